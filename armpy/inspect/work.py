"""Work of a layer: arithmetic operations and bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType

from armpy.core.dataclass import dataclass
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo


@dataclass(frozen=True, slots=True)
class Work:
    """Work of a layer, independent of its backend."""

    flops: float
    """Arithmetic operations; a multiplication and an addition are two."""
    size_bytes: float
    """Bytes of all operands that it reads or writes, constants included."""

    def __add__(self, other: Work) -> Work:
        return Work(self.flops + other.flops, self.size_bytes + other.size_bytes)


def work_of(operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> Work:
    """Count the work of an operation.

    Parameters
    ----------
    inputs, outputs : sequence of TensorInfo
        An unknown dimension counts as 1; so does all of a tensor of unknown rank.

    Notes
    -----
    Control flow counts its own copies, not the graphs that it runs.
    """
    infos = [info for info in inputs if info is not None]
    size_bytes = sum(_elements(i) * i.data_type.size_bytes for i in (*infos, *outputs))
    # A vendor's operation has no count, and looks at each element at least.
    count = _COUNTS.get(operation.name, _element_by_element)
    return Work(float(count(operation, infos, outputs)), float(size_bytes))


def family_of(name: str) -> str:
    """The family whose rate stands for an operation that has none: by the operation's name."""
    if name in _PRODUCTS or name == "products":
        return "products"
    return "moves" if name in _MOVES or name == "moves" else "elements"


def _elements(info: TensorInfo) -> int:
    """Number of elements; unknown dimensions count as 1."""
    return prod(1 if dim is None else dim for dim in info.shape or ())


_Infos = Sequence[TensorInfo]
_Counted = Callable[[Operation, _Infos, _Infos], float]


def _element_by_element(_: Operation, inputs: _Infos, outputs: _Infos) -> float:
    """One operation for each element of the largest operand."""
    return max((_elements(info) for info in (*inputs, *outputs)), default=0)


def _weighted(channel_axis: int) -> _Counted:
    """Products of each output element with the weights of one channel of this axis."""

    def count(_: Operation, inputs: _Infos, outputs: _Infos) -> float:
        weights = inputs[1]
        channels = (weights.shape or (1,) * (channel_axis + 1))[channel_axis]
        return 2.0 * _elements(outputs[0]) * _elements(weights) / max(channels or 1, 1)

    return count


def _spread(_: Operation, inputs: _Infos, outputs: _Infos) -> float:
    """Products of each input element with the weights of its channel."""
    weights = inputs[1]
    channels = (weights.shape or (1,))[-1]
    return 2.0 * _elements(inputs[0]) * _elements(weights) / max(channels or 1, 1)


def _matrices(operation: Operation, inputs: _Infos, outputs: _Infos) -> float:
    """Products of rows with columns."""
    axis = -2 if getattr(operation, "transpose_x", False) else -1
    depth = (inputs[0].shape or (1, 1))[axis]
    return 2.0 * _elements(outputs[0]) * (depth or 1)


def _windows(operation: Operation, _: _Infos, outputs: _Infos) -> float:
    """One operation for each element of each window."""
    return float(_elements(outputs[0]) * prod(getattr(operation, "pool_size", (1, 1))))


def _attention(operation: Operation, inputs: _Infos, outputs: _Infos) -> float:
    """Products of each query with every key, and of each probability with a value."""
    keys = (inputs[1].shape or (1,) * 4)[2] or 1
    return 2.0 * keys * (_elements(inputs[0]) + _elements(outputs[0]))


def _recurrent(operation: Operation, inputs: _Infos, outputs: _Infos) -> float:
    """Products with every matrix of weights, for each vector of the input."""
    depth = (inputs[0].shape or (1,))[-1]
    vectors = _elements(inputs[0]) / max(depth or 1, 1)
    return 2.0 * vectors * sum(_elements(info) for info in inputs[1:] if info.rank == 2)


def _none(_: Operation, inputs: _Infos, outputs: _Infos) -> float:
    """No arithmetic: elements are moved."""
    return 0.0


_RECURRENT = (
    *("Lstm", "UnidirectionalSequenceLstm", "BidirectionalSequenceLstm", "QLstm", "QuantizedLstm"),
    *("Rnn", "UnidirectionalSequenceRnn", "BidirectionalSequenceRnn", "Svdf"),
    "RecurrentSequence",
)
_PRODUCTS = frozenset(
    (
        *("Convolution2d", "DepthwiseConvolution2d", "TransposeConvolution2d"),
        *("Convolution3d", "TransposeConvolution3d"),
        *("FullyConnected", "BlockwiseFullyConnected", "BatchMatMul", "Attention", *_RECURRENT),
    )
)
_MOVES = frozenset(
    (
        *("Reshape", "ExpandDims", "Squeeze", "Concat", "Stack", "Pad", "Transpose", "Tile"),
        *("BroadcastTo", "ReverseV2", "ChannelShuffle", "Slice", "StridedSlice", "Splitter"),
        *("Unstack", "Gather", "GatherNd", "DepthToSpace", "SpaceToDepth", "SpaceToBatchNd"),
        *("BatchToSpaceNd", "Fill", "MemCopy", "If", "While"),
    )
)
_COUNTS: Mapping[str, _Counted] = MappingProxyType(
    {
        "Convolution2d": _weighted(0),
        "Convolution3d": _weighted(0),
        "DepthwiseConvolution2d": _weighted(3),
        "FullyConnected": _weighted(0),
        "TransposeConvolution2d": _spread,
        "TransposeConvolution3d": _spread,
        "BatchMatMul": _matrices,
        "BlockwiseFullyConnected": _matrices,
        "Attention": _attention,
        "Pooling2d": _windows,
        "Pooling3d": _windows,
        "MaxPoolWithIndices": _windows,
        **dict.fromkeys(_RECURRENT, _recurrent),
        **dict.fromkeys(_MOVES, _none),
    }
)
