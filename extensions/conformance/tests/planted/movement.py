"""Wrong values of operations that move elements."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from armpy.ops import (
    Concat,
    Gather,
    Transpose,
)
from armpy.types import DataType

from .planting import Planted
from .shapes import Call, Fault, Fused
from .wrong_values import (
    Answer,
    Condition,
    attribute,
    axis_of,
    rank_of,
    recomputed,
    shape_of,
    source,
    wrong,
    wrong_forms,
)


def concat_as_it_is(operation: Concat, call: Call) -> Answer:
    """Inputs of other scales are copied as they are."""
    result = call.results[0].quantization
    infos = [info for info in call.infos if info is not None]
    if result is None or all(info.quantization == result for info in infos):
        return None
    arrays = [array for array in call.inputs if array is not None]
    return [np.concatenate(arrays, operation.axis)]


def first_batch_of_indices(operation: Gather, call: Call) -> Answer:
    """The indices of the first batch are used for all."""
    indices = source(call, 1)
    if operation.batch_dims != 1 or indices.size == 0:
        return None
    return recomputed(call, inputs=(call.inputs[0], np.broadcast_to(indices[:1], indices.shape)))


def inverse_at_rank_five(operation: Transpose, call: Call) -> Answer:
    """Beyond rank 4 the inverse of the permutation is taken."""
    if source(call).ndim < 5 or operation.perm is None:
        return None
    turned = source(call).transpose(np.argsort(operation.perm))
    return [turned.reshape(call.outputs[0].shape)]


class Turned(Fault):
    """Square matrices are not turned over."""

    def after(self, call: Call) -> None:
        is_square = len(set(call.outputs[0].shape)) == 1 and call.outputs[0].ndim == 2
        if call.operation.name == "Transpose" and is_square and call.inputs[0] is not None:
            call.outputs[0][...] = call.inputs[0]


# --- Forms


def _has_wide_indices(call: Call) -> bool:
    info = call.infos[1]
    return info is not None and info.data_type is DataType.SIGNED64


_MOVES: Mapping[str, tuple[str, Condition]] = {
    "concat-constant-between": (
        "Concat",
        lambda c: len(c.infos) == 3 and axis_of(c) in (0,) and rank_of(c) > 3,
    ),
    "stack-last-many": ("Stack", lambda c: axis_of(c) == -1 and len(c.infos) > 3),
    "split-into-five": ("Splitter", lambda c: len(c.outputs) > 4),
    "split-rest-negative": (
        "Splitter",
        lambda c: (
            attribute(c, "sizes") is not None and -1 in attribute(c, "sizes") and axis_of(c) < 0
        ),
    ),
    "transpose-rank-6": ("Transpose", lambda c: rank_of(c) == 6),
    "pad-value-rank-5": ("Pad", lambda c: attribute(c, "pad_value") != 0 and rank_of(c) == 5),
    "slice-to-the-end-rank-4": ("Slice", lambda c: -1 in attribute(c, "size") and rank_of(c) == 4),
    "strided-backwards-masked": (
        "StridedSlice",
        lambda c: min(attribute(c, "stride")) < 0 and attribute(c, "begin_mask"),
    ),
    "strided-beyond-the-end": (
        "StridedSlice",
        lambda c: max(attribute(c, "end")) > 8 and max(attribute(c, "stride")) == 3,
    ),
    "gather-negative-axis-wide": (
        "Gather",
        lambda c: axis_of(c) < 0 and _has_wide_indices(c),
    ),
    "gather-nd-wraps-elements": (
        "GatherNd",
        lambda c: attribute(c, "wraps_negative") and shape_of(c, 1)[-1] == rank_of(c),
    ),
    "scatter-max-last": (
        "ScatterElements",
        lambda c: attribute(c, "reduction").name == "MAX" and axis_of(c) < 0,
    ),
    "one-hot-middle-constant": (
        "OneHot",
        lambda c: attribute(c, "axis") == 1 and rank_of(c) > 2,
    ),
    "tile-inner-axes": ("Tile", lambda c: attribute(c, "multiples")[0] == 1 and rank_of(c) == 5),
    "reverse-two-axes": ("ReverseV2", lambda c: len(attribute(c, "axes")) > 1 and rank_of(c) > 3),
    "shuffle-first-axis": ("ChannelShuffle", lambda c: axis_of(c) == 0 and rank_of(c) == 4),
    "expand-negative": ("ExpandDims", lambda c: axis_of(c) == -3),
}


MOVEMENT_FAULTS: dict[str, Planted] = {
    "edges/square": Planted("Transpose/square", Fused, Turned),
    "blind-subtle/concat": wrong(Concat, concat_as_it_is),
    "blind-move/batched-indices": wrong(Gather, first_batch_of_indices),
    "blind-move/inverse": wrong(Transpose, inverse_at_rank_five),
    **wrong_forms(_MOVES, "moves"),
}
"""By class and name."""
