"""Selection of optimiser passes: only those with work to do are imported."""

from __future__ import annotations

from armpy.core.dataclass import dataclass
from armpy.core.symbolic import current
from armpy.graph import Graph, Layer, Value
from armpy.ops.composite import Composite

RESHAPES = frozenset(("ExpandDims", "Reshape", "Squeeze"))
"""Operations that give elements another shape."""

MOVING = RESHAPES | {
    *("BroadcastTo", "ChannelShuffle", "DepthToSpace", "ReverseV2", "Slice", "SpaceToDepth"),
    *("StridedSlice", "Tile", "Transpose"),
}
"""Operations whose output holds elements of the only input, whatever they stand for."""

BROADCASTING = frozenset(("Comparison", "ElementwiseBinary", "LogicalBinary"))
"""Operations that broadcast two tensors."""

ELEMENTWISE = BROADCASTING | {
    *("Activation", "Cast", "Dequantize", "ElementwiseUnary", "Prelu", "Quantize", "Select"),
}
"""Operations that compute each element from those at its place; smaller inputs are broadcast."""

CARRYING = (
    ELEMENTWISE
    | RESHAPES
    | {
        *("ArgMinMax", "BroadcastTo", "Concat", "LogSoftmax", "Pad", "Reduce", "ReverseV2"),
        *("Slice", "Softmax", "Splitter", "StridedSlice", "Tile"),
    }
)
"""Operations that can compute the same with their axes in another order."""

MERGED = RESHAPES | {"Cast", "Dequantize", "Quantize", "Transpose"}
"""Operations that are done once where several of them read the same."""


@dataclass(frozen=True, slots=True)
class _Trigger:
    """Consecutive layers that a pass reduces, by the names of their operations."""

    name: str  # of the pass
    first: frozenset[str]
    between: frozenset[str]
    last: frozenset[str]


_NONE: frozenset[str] = frozenset()
_TRANSPOSE = frozenset(("Transpose",))
_CAST = frozenset(("Cast",))
_WEIGHTED = frozenset(
    ("Convolution2d", "DepthwiseConvolution2d", "FullyConnected", "TransposeConvolution2d")
)
_TRIGGERS = (
    _Trigger(
        "join_attention",
        frozenset(("Softmax",)),
        frozenset(("Comparison", "Select")),
        frozenset(("BatchMatMul",)),
    ),
    _Trigger("cancel_transposes", _TRANSPOSE, _NONE, CARRYING | _TRANSPOSE),
    _Trigger("merge_casts", _CAST, _NONE, _CAST),
    _Trigger("merge_reshapes", RESHAPES, _NONE, RESHAPES),
    _Trigger("remove_broadcasts", frozenset(("BroadcastTo",)), _NONE, BROADCASTING),
    _Trigger(
        "cancel_conversions",
        frozenset(("Cast", "Dequantize")),
        MOVING,
        frozenset(("Cast", "Quantize")),
    ),
    _Trigger(
        "fold_pad",
        frozenset(("Pad",)),
        _NONE,
        frozenset(("Convolution2d", "DepthwiseConvolution2d", "Pooling2d")),
    ),
    # An expression that is written out ends with a sum or a product.
    _Trigger("join_written_out", _WEIGHTED, _NONE, frozenset(("ElementwiseBinary",))),
    _Trigger(
        "join_written_out",
        frozenset(("ElementwiseUnary",)),
        frozenset(("ElementwiseBinary",)),
        frozenset(("ElementwiseBinary",)),
    ),
)
_FIRST = frozenset(kind for trigger in _TRIGGERS for kind in trigger.first)


def worthwhile(graph: Graph) -> set[str]:
    """Return the names of passes that may match; the others certainly do not."""
    names: set[str] = set()
    # Which passes would match a reader of a value.
    open_for: dict[Value, set[_Trigger]] = {}
    read: set[tuple[str, Value | None]] = set()
    carried: set[Value | None] = set()
    for layer in graph.layers:
        kind = kind_of(layer)
        # Most layers begin nothing, and this is all that they cost.
        if open_for or kind in _FIRST:
            _follow(layer, kind, open_for, names)
        if kind in MERGED:
            key = kind, layer.inputs[0]
            # A hint only: the pass itself compares attributes.
            if key in read:
                names.add("merge_equal_siblings")
            read.add(key)
            if kind == "Transpose":
                if moves_nothing(layer):
                    names.add("reshape_transposes")
                if layer.inputs[0] in carried:
                    names.add("cancel_transposes")
        if kind in CARRYING:
            carried.update(layer.outputs)
    return names


def _follow(layer: Layer, kind: str, open_for: dict[Value, set[_Trigger]], names: set[str]) -> None:
    """Find a layer's inputs from groups that others began, and begin its own group."""
    begun = {trigger for value in layer.inputs if value for trigger in open_for.get(value, ())}
    names.update(trigger.name for trigger in begun if kind in trigger.last)
    going_on = {trigger for trigger in begun if kind in trigger.between}
    if kind in _FIRST:
        going_on.update(trigger for trigger in _TRIGGERS if kind in trigger.first)
    if going_on:
        open_for[layer.outputs[0]] = going_on


def kind_of(layer: Layer) -> str:
    """Name of a layer's operation if it is armpy's own; a vendor or a file may have one alike."""
    operation = layer.operation
    return "" if operation.extension or isinstance(operation, Composite) else operation.name


def moves_nothing(layer: Layer) -> bool:
    """Return whether a layer is a transpose after which every element is where it was."""
    if kind_of(layer) != "Transpose" or layer.output.info.has_per_axis_quantization:
        return False
    perm, shape = layer.operation.attributes()["perm"], layer["input"].info.known_shape
    # Axes of one element can be anywhere without moving any; larger ones may have one later.
    axes = [axis for axis in perm or () if current(shape[axis]) != 1 or shape[axis] != 1]
    return perm is not None and axes == sorted(axis % len(shape) for axis in axes)
