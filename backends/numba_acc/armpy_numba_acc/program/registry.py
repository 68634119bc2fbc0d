"""Which operations can be lowered, and by what."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from armpy.graph import Layer
from armpy.ops.operation import OperandInfos, Operation
from armpy.records import dataclass
from armpy.tensor import TensorInfo

if TYPE_CHECKING:
    from armpy_numba_acc.program.emitter import Emitter

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

_FAMILY_OF = {name: family for family, names in FAMILIES.items() for name in names}


def lowering_of(operation: Operation) -> Lowering | None:
    """How an operation is lowered; None if it is not. Imports what is needed for it alone."""
    family = _FAMILY_OF.get(type(operation).__name__)
    if family is None:
        return None
    module = importlib.import_module(f"armpy_numba_acc.lowering.{family}")
    lowerings: Mapping[type[Operation], Lowering] = module.LOWERINGS
    return lowerings.get(type(operation))


def refusal_of(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """Why a layer, whose shapes are known, cannot be lowered as it is; empty if it can."""
    lowering = lowering_of(operation)
    if lowering is None:
        return f"NumbaAcc has no {operation.name}"
    return lowering.check(operation, inputs, outputs)
