"""Which operations can be lowered, and by what."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from armpy.backend import ReasonCode, Support
from armpy.graph import Layer
from armpy.ops import BinaryOperation, ElementwiseBinary, FusedActivation, Select, Softmax
from armpy.ops.operation import OperandInfos, Operation
from armpy.records import dataclass
from armpy.tensor import TensorInfo
from armpy_numba_acc.lowering.empties import (
    gives_nothing,
    has_empty,
    needed_inputs,
    refusal_of_empty,
)

if TYPE_CHECKING:
    from armpy_numba_acc.lowering.emitter import Emitter

Check: TypeAlias = Callable[[Operation, OperandInfos, Sequence[TensorInfo]], str]
"""Why a layer cannot be lowered; empty if it can. All shapes are known."""

Lower: TypeAlias = Callable[["Emitter", Layer], None]
"""Adds the commands that compute a layer's outputs."""


@dataclass(frozen=True, slots=True)
class Lowering:
    """How an operation is lowered.

    Parameters
    ----------
    check : callable
        See `Check`.
    lower : callable
        See `Lower`.
    """

    check: Check
    lower: Lower


FAMILIES: dict[str, tuple[str, ...]] = {
    "activation": ("Activation", "L2Normalization", "LogSoftmax", "Softmax"),
    "concatenation": ("Concat", "Stack"),
    "depthwise": ("DepthwiseConvolution2d",),
    "elementwise": (
        "Comparison",
        "ElementwiseBinary",
        "ElementwiseUnary",
        "LogicalBinary",
        "Prelu",
        "Select",
    ),
    "extremes": ("ArgMinMax",),
    "gathering": ("Gather", "GatherNd"),
    "loops": ("While",),
    "lstm": ("UnidirectionalSequenceLstm",),
    "marking": ("OneHot",),
    "matrices": ("BatchMatMul",),
    "movement": (
        "BatchToSpaceNd",
        "BroadcastTo",
        "ChannelShuffle",
        "DepthToSpace",
        "ExpandDims",
        "Fill",
        "Rank",
        "Reshape",
        "ReverseV2",
        "Shape",
        "Slice",
        "SpaceToBatchNd",
        "SpaceToDepth",
        "Splitter",
        "Squeeze",
        "StridedSlice",
        "Tile",
        "Transpose",
        "Unstack",
    ),
    "normalization": ("InstanceNormalization", "Normalization"),
    "ordering": ("TopkV2",),
    "padding": ("Pad",),
    "pooling": ("Pooling2d",),
    "quantizing": ("Cast", "Dequantize", "Quantize"),
    "reduction": ("Reduce",),
    "resizing": ("Resize",),
    "svdf": ("Svdf",),
    "transposed": ("TransposeConvolution2d",),
    "weighted": ("Convolution2d", "FullyConnected"),
}
"""Modules of this package, and the operations that each has in its ``LOWERINGS``."""

_EXACT_OPERATIONS = (BinaryOperation.ADD, BinaryOperation.SUB, BinaryOperation.MUL)
_LARGEST_SCALE = 2.0**40
_SMALLEST_CHANNEL = 2.0**-126

_FAMILY_OF = {name: family for family, names in FAMILIES.items() for name in names}


def lowering_of(operation: Operation) -> Lowering | None:
    """How an operation is lowered; None if it is not. Imports what is needed for it alone."""
    family = _FAMILY_OF.get(type(operation).__name__)
    if family is None:
        return None
    module = importlib.import_module(f"armpy_numba_acc.lowering.{family}")
    lowerings: Mapping[type[Operation], Lowering] = module.LOWERINGS
    return lowerings.get(type(operation))


def support(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> Support:
    """Whether a layer can be lowered, with the reason if not."""
    lowering = lowering_of(operation)
    if lowering is None:
        return Support.no(ReasonCode.OPERATION, f"NumbaAcc has no {operation.name}")
    infos = [info for info in (*inputs, *outputs) if info is not None]
    for info in infos:
        if not info.is_fully_shaped:
            return Support.no(ReasonCode.SHAPE, f"the shape of {info} is not known")
        if _has_odd_scale(info) and not _takes_any_scale(operation):
            text = f"{info} has a scale out of the range of what kernels compute with"
            return Support.no(ReasonCode.QUANTIZATION, text)
    if has_empty(infos):
        if gives_nothing(operation, inputs, outputs):
            return Support.yes()
        if reason := refusal_of_empty(operation, inputs, outputs):
            return Support.no(ReasonCode.SHAPE, reason)
        inputs = needed_inputs(operation, inputs)
    reason = lowering.check(operation, inputs, outputs)
    if reason and not _is_rewritten(operation, inputs, outputs):
        return Support.no(ReasonCode.OTHER, reason)
    return Support.yes()


def _has_odd_scale(info: TensorInfo) -> bool:
    """Whether float32 cannot hold products and quotients of some scales like a quantised tensor's.

    Notes
    -----
    Channels without a weight that matters may have a tiny scale, but none that is subnormal.
    """
    if info.quantization is None or not info.data_type.is_quantized:
        return False
    least = _SMALLEST_CHANNEL if info.has_per_axis_quantization else 1 / _LARGEST_SCALE
    return not all(s == 0 or least <= s <= _LARGEST_SCALE for s in info.quantization.scales)


def _takes_any_scale(operation: Operation) -> bool:
    """Whether a layer only moves elements, saturates, or is computed in fixed point.

    Notes
    -----
    Masks of large negative numbers give attention scores such scales.
    """
    if isinstance(operation, ElementwiseBinary):
        is_exact = operation.operation in _EXACT_OPERATIONS
        return is_exact and operation.activation in (FusedActivation.NONE, FusedActivation.RELU)
    return isinstance(operation, Select | Softmax)


def refusal_of(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """Why a layer, whose shapes are known, cannot be lowered as it is; empty if it can."""
    lowering = lowering_of(operation)
    if lowering is None:
        return f"NumbaAcc has no {operation.name}"
    return lowering.check(operation, inputs, outputs)


def _is_rewritten(
    operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
) -> bool:
    """Whether a layer can be lowered written otherwise."""
    # Nearly all networks do without.
    from armpy_numba_acc.lowering.rewriting import rewriting_of  # noqa: PLC0415

    rewriting = rewriting_of(operation, inputs, outputs)
    if rewriting is None:
        return False
    changed = [rewriting.input_info(info, index) for index, info in enumerate(inputs)]
    results = [rewriting.output_info(info) for info in outputs]
    return not refusal_of(rewriting.operation, changed, results)
