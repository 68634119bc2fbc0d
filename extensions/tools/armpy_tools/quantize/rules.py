"""Rules of quantising operations: whose scales outputs have, and which they may have at all.

References
----------
TensorFlow Lite 8-bit quantization specification, "Specific operators".
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType

from armpy.graph import Layer
from armpy.ops.activation_layers import Activation, ActivationFunction
from armpy.ops.elementwise import BinaryOperation, ElementwiseBinary, UnaryOperation
from armpy.ops.pooling import Pooling2d, PoolingAlgorithm
from armpy.ops.reduction import Reduce, ReduceOperation
from armpy.tensor import Quantization
from armpy.types import DataType


class Rule(enum.Enum):
    """Rule by which an operation's outputs get their scale.

    WEIGHTED layers multiply by constant weights, outputs get the scale of their range. FREE
    ones get that, too. KEEPING ones have the first input's. JOINING ones have all inputs and the
    output on one scale. FIXED ones have the scale that their function's range gives. READING ones
    give something that is not a real number, and take their input as it is.
    """

    WEIGHTED = 0
    FREE = 1
    KEEPING = 2
    JOINING = 3
    FIXED = 4
    READING = 5


_RULES: Mapping[str, Rule] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "Convolution2d",
                "DepthwiseConvolution2d",
                "FullyConnected",
                "TransposeConvolution2d",
            ),
            Rule.WEIGHTED,
        ),
        **dict.fromkeys(("BatchMatMul", "Prelu"), Rule.FREE),
        **dict.fromkeys(
            (
                *("BatchToSpaceNd", "BroadcastTo", "DepthToSpace", "ExpandDims", "Gather"),
                *("GatherNd", "Pad", "Resize", "Reshape", "ReverseV2", "Slice", "SpaceToBatchNd"),
                *("SpaceToDepth", "Splitter", "Squeeze", "StridedSlice", "Tile", "Transpose"),
                "Unstack",
            ),
            Rule.KEEPING,
        ),
        **dict.fromkeys(("Concat", "Stack"), Rule.JOINING),
        **dict.fromkeys(("L2Normalization", "LogSoftmax", "Softmax"), Rule.FIXED),
        **dict.fromkeys(("ArgMinMax", "Shape", "Rank"), Rule.READING),
    }
)

_BINARY: Mapping[BinaryOperation, Rule] = MappingProxyType(
    {
        BinaryOperation.ADD: Rule.FREE,
        BinaryOperation.SUB: Rule.FREE,
        BinaryOperation.MUL: Rule.FREE,
        BinaryOperation.MAXIMUM: Rule.JOINING,
        BinaryOperation.MINIMUM: Rule.JOINING,
    }
)

_REDUCTIONS: Mapping[ReduceOperation, Rule] = MappingProxyType(
    {
        ReduceOperation.MEAN: Rule.FREE,
        ReduceOperation.SUM: Rule.FREE,
        ReduceOperation.MAX: Rule.KEEPING,
        ReduceOperation.MIN: Rule.KEEPING,
    }
)

_ACTIVATIONS: Mapping[ActivationFunction, Rule] = MappingProxyType(
    {
        ActivationFunction.SIGMOID: Rule.FIXED,
        ActivationFunction.TANH: Rule.FIXED,
        **dict.fromkeys(
            (
                *(ActivationFunction.RELU, ActivationFunction.BOUNDED_RELU),
                *(ActivationFunction.LEAKY_RELU, ActivationFunction.ELU),
                *(ActivationFunction.HARD_SWISH, ActivationFunction.GELU),
            ),
            Rule.FREE,
        ),
    }
)

_ONLY_8_BITS = frozenset(
    (
        *("Prelu", "L2Normalization", "LogSoftmax"),
        *(ActivationFunction.ELU, ActivationFunction.HARD_SWISH, ActivationFunction.GELU),
    )
)
"""What TFLite has no kernels of 16 bits for."""

_FIXED_8: Mapping[object, Quantization] = MappingProxyType(
    {
        "Softmax": Quantization.per_tensor(1 / 256, -128),
        "LogSoftmax": Quantization.per_tensor(16 / 256, 127),
        "L2Normalization": Quantization.per_tensor(1 / 128, 0),
        ActivationFunction.SIGMOID: Quantization.per_tensor(1 / 256, -128),
        ActivationFunction.TANH: Quantization.per_tensor(1 / 128, 0),
    }
)
_FIXED_16 = Quantization.per_tensor(1 / 32768, 0)


FILTER_AXIS = {
    "Convolution2d": 0,
    "DepthwiseConvolution2d": 3,
    "FullyConnected": 0,
    "TransposeConvolution2d": 0,
}
"""Axis of the weights that runs along the output's channels."""


def rule_of(layer: Layer, data_type: DataType) -> Rule | None:
    """The rule of a layer of floats; None if it cannot be computed with these integers.

    Parameters
    ----------
    data_type : DataType
        Of the activations: QASYMM_S8 or QSYMM_S16.
    """
    operation = layer.operation
    if operation.extension:
        return None
    if data_type is DataType.QSYMM_S16 and _key_of(layer) in _ONLY_8_BITS:
        return None
    if isinstance(operation, ElementwiseBinary):
        return _BINARY.get(operation.operation)
    if isinstance(operation, Activation):
        return _ACTIVATIONS.get(operation.function)
    if isinstance(operation, Reduce):
        return _REDUCTIONS.get(operation.operation)
    if isinstance(operation, Pooling2d):
        return None if operation.algorithm is PoolingAlgorithm.L2 else Rule.KEEPING
    if operation.name == "ElementwiseUnary":
        is_abs = operation.attributes()["operation"] is UnaryOperation.ABS
        return Rule.FREE if is_abs else None
    return _RULES.get(operation.name)


def moves_only(layer: Layer) -> bool:
    """Return whether a KEEPING layer gives elements of its input, and nothing between them."""
    operation = layer.operation
    if isinstance(operation, Pooling2d):
        return operation.algorithm is PoolingAlgorithm.MAX
    return operation.name not in ("Pad", "Resize")


def fixed_scale(layer: Layer, data_type: DataType) -> Quantization:
    """The scale of a FIXED layer's output."""
    return _FIXED_16 if data_type is DataType.QSYMM_S16 else _FIXED_8[_key_of(layer)]


def _key_of(layer: Layer) -> object:
    """The function of an activation layer, the name of any other operation."""
    operation = layer.operation
    return operation.function if isinstance(operation, Activation) else operation.name
