"""Forms of operations that move, join, cut, look up and make elements."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

from armpy.ops import (
    BroadcastTo,
    ChannelShuffle,
    Concat,
    ExpandDims,
    Fill,
    Gather,
    GatherElements,
    GatherNd,
    OneHot,
    Pad,
    PaddingMode,
    Reshape,
    ReverseSequence,
    ReverseV2,
    ScatterElements,
    ScatterNd,
    ScatterReduction,
    Slice,
    Splitter,
    Squeeze,
    Stack,
    StridedSlice,
    Tile,
    Transpose,
    Unstack,
)
from armpy.types import DataType
from armpy_conformance.cases.pairs.elementwise import RANKS
from armpy_conformance.cases.pairs.form_table import MOVED, Choice, FormTable
from armpy_conformance.cases.pairs.rows import AXES, has_axis
from armpy_conformance.comparison.seeded_values import (
    Values,
    anything,
    below,
    between,
    distinct,
    few,
)
from armpy_conformance.sampling.case_template import CaseTemplate, Scale, indexed

_SHAPES = {name: RANKS[name] for name in ("", "rank-1", "rank-3", "rank-4", "rank-5")}
_DISTINCT: tuple[Values, ...] = (distinct,)


def _axis_of(choice: Choice) -> int:
    """The chosen axis, counted from the front."""
    return int(choice["axis"] % len(choice["shape"]))


def _with_size(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    return (*shape[:axis], size, *shape[axis + 1 :])


_COUNTS = {"": 2, "one": 1, "three": 3, "five": 5, "nine": 9}


def _concat(choice: Choice) -> CaseTemplate:
    axis, shape = _axis_of(choice), choice["shape"]
    sizes = [1 + (n * choice["growth"]) % 3 for n in range(choice["count"])]
    parts = tuple(_with_size(shape, axis, size) for size in sizes)
    constants = tuple(n for n in choice["constants"] if 0 < n < len(parts))
    scales = tuple(Scale(1 / 16 / (1 + n % 2), 0.1 * n) for n in range(len(parts)))
    is_same = choice["scales"] == "same"
    return CaseTemplate(
        "",
        Concat(),
        parts,
        values=_DISTINCT,
        constants=constants,
        scales=scales[:1] if is_same else scales,
    )


def _stack(choice: Choice) -> CaseTemplate:
    shape = choice["shape"]
    return CaseTemplate("", Stack(), (shape,) * choice["count"], values=_DISTINCT)


def _fits_stack(choice: Choice) -> bool:
    """Return whether there is room for a new axis, which may be the last one."""
    rank = len(choice["shape"]) + 1
    return bool(-rank <= choice["axis"] < rank)


def _unstack(choice: Choice) -> CaseTemplate:
    shape = choice["shape"]
    return CaseTemplate("", Unstack(shape[choice["axis"]]), (shape,), values=_DISTINCT)


def _split(choice: Choice) -> CaseTemplate:
    count, axis = choice["count"], _axis_of(choice)
    sizes = [1 + n % 3 for n in range(count)]
    total = sum(sizes)
    if choice["how"] == "equal":
        shape = _with_size(choice["shape"], axis, 2 * count)
        return CaseTemplate("", Splitter(count), (shape,), values=_DISTINCT)
    if choice["how"] == "rest":
        sizes[count // 2] = -1
    shape = _with_size(choice["shape"], axis, total)
    operation = Splitter(count, sizes=tuple(sizes))
    return CaseTemplate("", operation, (shape,), values=_DISTINCT)


_PERMUTATIONS = {
    "rank-1": ((5,), (0,)),
    "": ((3, 4), (1, 0)),
    "square": ((3, 3), (1, 0)),
    "identity": ((3, 4), (0, 1)),
    **{
        "rank-3-" + "".join(map(str, perm)): ((2, 3, 4), perm)
        for perm in ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
    },
    **{
        "rank-4-" + "".join(map(str, perm)): ((2, 3, 2, 4), perm)
        for perm in ((0, 2, 1, 3), (0, 3, 1, 2), (0, 2, 3, 1), (3, 0, 1, 2), (2, 3, 0, 1))
    },
    "rank-5-04213": ((2, 1, 3, 2, 2), (0, 4, 2, 1, 3)),
    "rank-5-43210": ((2, 1, 3, 2, 2), (4, 3, 2, 1, 0)),
    "rank-6-510423": ((2, 1, 3, 1, 2, 2), (5, 1, 0, 4, 2, 3)),
}


def _transpose(choice: Choice) -> CaseTemplate:
    shape, perm = choice["order"]
    return CaseTemplate("", Transpose(perm), (shape,), values=_DISTINCT)


_PAD_FORMS = {
    "": ((1, 0), (0, 1)),
    "around": ((1, 2), (2, 1)),
    "first-axis": ((2, 1), (0, 0)),
    "last-axis": ((0, 0), (1, 2)),
    "none": ((0, 0), (0, 0)),
}


def _pad(choice: Choice) -> CaseTemplate:
    rank = len(choice["shape"])
    first, last = choice["edges"]
    pads = (first, *((0, 0),) * (rank - 2), last)[-rank:]
    return CaseTemplate(
        "", Pad(pads), (choice["shape"],), values=_DISTINCT, scales=(Scale(1 / 16, 0.3),)
    )


def _fits_pad(choice: Choice) -> bool:
    """Return whether there is a value only where it is used, and enough to mirror."""
    is_constant = choice["padding_mode"] is PaddingMode.CONSTANT
    is_small = min(choice["shape"][0], choice["shape"][-1]) < 3
    return is_constant or not (bool(choice["pad_value"]) or is_small)


def _slice(choice: Choice) -> CaseTemplate:
    shape = choice["shape"]
    begin = tuple(min(choice["from"], dim - 1) * (n % 2 or dim > 2) for n, dim in enumerate(shape))
    if choice["to"] == "end":
        size = (-1,) * len(shape)
    elif choice["to"] == "one":
        size = (1,) * len(shape)
    else:
        size = tuple(dim - first for dim, first in zip(shape, begin, strict=True))
    return CaseTemplate("", Slice(begin, size), (shape,), values=_DISTINCT)


_STEPS = {
    "": (1, 1),
    "step-2": (2, 2),
    "backwards": (-1, -1),
    "backwards-2": (-2, 1),
    "uneven": (1, 3),
}
_STRIDED_MASKS = {
    "": {},
    "begin-mask": {"begin_mask": 1},
    "end-mask": {"end_mask": 2},
    "masks": {"begin_mask": 2, "end_mask": 1},
    "shrink": {"shrink_axis_mask": 1},
    "shrink-last": {"shrink_axis_mask": 2},
    "new-axis": {"new_axis_mask": 2},
    "ellipsis": {"ellipsis_mask": 1},
}
_STRIDED_RANGES = {"": (1, 5), "negative": (-4, -1), "beyond": (-9, 9), "whole": (0, 5)}


def _strided(choice: Choice) -> CaseTemplate:
    first, last = choice["range"]
    places = [(last, first) if step < 0 else (first, last) for step in choice["steps"]]
    operation = StridedSlice(
        tuple(begin for begin, _ in places),
        tuple(end for _, end in places),
        choice["steps"],
        **choice["masks"],
    )
    return CaseTemplate("", operation, (choice["shape"],), values=_DISTINCT)


def _fits_strided(choice: Choice) -> bool:
    """Return whether single elements lie inside, and steps over new axes are plain."""
    masks = choice["masks"]
    if choice["end_is_offset"]:
        return choice["range"] == (1, 5) and min(choice["steps"]) > 0 and not masks
    if "shrink_axis_mask" in masks or "new_axis_mask" in masks or "ellipsis_mask" in masks:
        return choice["steps"] == (1, 1) and choice["range"] in ((1, 5), (-4, -1), (0, 5))
    return True


_INDEX_TYPES = {"": DataType.SIGNED32, "wide": DataType.SIGNED64, "narrow": DataType.SIGNED16}


def _indices(choice: Choice, limit: int) -> Values:
    """Indices below a limit, below 0 as well where they wrap."""
    return between(-limit, limit - 1) if choice["wraps_negative"] else below(limit)


def _gather(choice: Choice) -> CaseTemplate:
    shape, axis = choice["shape"], _axis_of(choice)
    batch = choice["batch_dims"]
    indices = (*shape[:batch], *choice["indices"])
    return CaseTemplate(
        "",
        Gather(),
        (shape, indices),
        values=(distinct, _indices(choice, shape[axis])),
        constants=choice["constants"],
        infos=partial(indexed, index_type=choice["index type"]),
    )


def _fits_gather(choice: Choice) -> bool:
    """Return whether the batch comes before the axis."""
    return has_axis(choice) and choice["batch_dims"] <= _axis_of(choice)


def _gather_elements(choice: Choice) -> CaseTemplate:
    shape, axis = choice["shape"], _axis_of(choice)
    indices = _with_size(shape, axis, 2 * shape[axis] if choice["more"] else 1)
    return CaseTemplate(
        "",
        GatherElements(),
        (shape, indices),
        values=(distinct, _indices(choice, shape[axis])),
        infos=partial(indexed, index_type=choice["index type"]),
    )


_DEPTHS = {
    "": ((4, 4, 3), (5, 2), 4),
    "elements": ((4, 4), (3, 2), 4),
    "rows": ((4, 3), (5, 1), 4),
    "outer": ((3, 3, 2), (2, 2, 2), 3),
    "one": ((5, 2), (1,), 5),
    "rank-5": ((2, 2, 2, 3, 2), (4, 3), 2),
}
_BATCHED_DEPTHS = {
    "batch": ((3, 4, 2), (3, 2, 1), 4),
    "batch-elements": ((2, 3, 3), (2, 4, 2), 3),
}


def _gather_nd(choice: Choice) -> CaseTemplate:
    shape, indices, limit = choice["depth"]
    return CaseTemplate(
        "",
        GatherNd(1 if shape in ((3, 4, 2), (2, 3, 3)) else 0),
        (shape, indices),
        values=(distinct, _indices(choice, limit)),
        constants=choice["constants"],
        infos=partial(indexed, index_type=choice["index type"]),
    )


def _scatter_elements(choice: Choice) -> CaseTemplate:
    shape, axis = choice["shape"], _axis_of(choice)
    # Updates that meet have one result in any order if they are combined.
    indices = _with_size(shape, axis, 1 if choice["reduction"] is ScatterReduction.NONE else 3)
    return CaseTemplate(
        "",
        ScatterElements(),
        (shape, indices, indices),
        values=(few, _indices(choice, shape[axis]), few),
        infos=partial(indexed, index_type=choice["index type"]),
    )


def _scatter_nd(choice: Choice) -> CaseTemplate:
    shape, indices, limit = choice["depth"]
    updates = (*indices[:-1], *shape[indices[-1] :])
    return CaseTemplate(
        "",
        ScatterNd(),
        (shape, indices, updates),
        values=(few, _indices(choice, limit), few),
        infos=partial(indexed, index_type=choice["index type"]),
    )


def _fits_scatter(choice: Choice) -> bool:
    """Return whether updates do not meet, or what comes of them is the same in any order."""
    is_one = math.prod(choice["depth"][1][:-1]) == 1
    return is_one or choice["reduction"] is not ScatterReduction.NONE


def _one_hot(choice: Choice) -> CaseTemplate:
    return CaseTemplate(
        "",
        OneHot(choice["depth"]),
        (choice["shape"], (), ()),
        lambda types: types[1] in (DataType.FLOAT32, DataType.QASYMM_S8, DataType.SIGNED32),
        values=(between(-1, 5), anything, anything),
        constants=choice["constants"],
    )


def _fits_one_hot(choice: Choice) -> bool:
    return bool(-1 <= choice["axis"] <= len(choice["shape"]))


def _tile(choice: Choice) -> CaseTemplate:
    rank = len(choice["shape"])
    multiples = tuple(choice["times"] if n % 2 == choice["which"] else 1 for n in range(rank))
    return CaseTemplate("", Tile(multiples), (choice["shape"],), values=_DISTINCT)


_STRETCHED = {
    "": ((3, 1), (4, 3, 5)),
    "scalar": ((), (2, 3)),
    "vector": ((5,), (3, 5)),
    "middle": ((2, 1, 3), (2, 4, 3)),
    "outer": ((1, 3, 1), (2, 3, 2)),
    "batch": ((1, 2, 3), (4, 2, 3)),
    "same": ((2, 3), (2, 3)),
    "rank-5": ((2, 1, 1, 3), (2, 2, 2, 1, 3)),
}


def _stretch(choice: Choice) -> CaseTemplate:
    shape, result = choice["forms"]
    return CaseTemplate("", BroadcastTo(result), (shape,), values=_DISTINCT)


_TURNED = {"": (0,), "last": (-1,), "middle": (1,), "two": (0, -1), "unsorted": (-1, 0)}


def _turn(choice: Choice) -> CaseTemplate:
    return CaseTemplate("", ReverseV2(), (choice["shape"],), values=_DISTINCT)


def _fits_turn(choice: Choice) -> bool:
    """Return whether the shape has all axes, each once."""
    rank = len(choice["shape"])
    axes = choice["axes"]
    is_there = all(-rank <= axis < rank for axis in axes)
    return is_there and len({axis % rank for axis in axes}) == len(axes)


def _reverse_sequence(choice: Choice) -> CaseTemplate:
    shape, (sequence, batch) = choice["shape"], choice["axes"]
    return CaseTemplate(
        "",
        ReverseSequence(sequence, batch),
        (shape, (shape[batch],)),
        values=(distinct, between(0, shape[sequence])),
        infos=partial(indexed, index_type=choice["index type"]),
    )


def _shuffle(choice: Choice) -> CaseTemplate:
    shape = _with_size(choice["shape"], _axis_of(choice), 6)
    return CaseTemplate("", ChannelShuffle(), (shape,), values=_DISTINCT)


_RESHAPES = {
    "": ((2, 3, 4), (4, -1)),
    "flat": ((2, 3, 4), (-1,)),
    "first-open": ((2, 3, 4), (-1, 2)),
    "more": ((4, 6), (2, 2, 3, 2)),
    "ones": ((3, 4), (1, 3, 1, 4)),
    "to-scalar": ((1, 1), ()),
    "from-scalar": ((), (1, 1)),
    "rank-5": ((2, 6), (2, 1, 2, 1, 3)),
    "same": ((2, 3), (2, 3)),
}


def _reshape(choice: Choice) -> CaseTemplate:
    shape, target = choice["forms"]
    return CaseTemplate("", Reshape(target), (shape,), values=_DISTINCT)


_SQUEEZED = {
    "": ((1, 3, 1, 2), None),
    "first": ((1, 3, 1, 2), (0,)),
    "third": ((1, 3, 1, 2), (2,)),
    "negative": ((1, 3, 1, 2), (-2,)),
    "two": ((1, 3, 1, 2), (0, -2)),
    "last": ((2, 3, 1), (-1,)),
    "all": ((1, 1), None),
    "rank-5": ((1, 2, 1, 1, 3), (0, 3)),
}


def _squeeze(choice: Choice) -> CaseTemplate:
    shape, axes = choice["forms"]
    return CaseTemplate("", Squeeze(axes), (shape,), values=_DISTINCT)


def _expand(choice: Choice) -> CaseTemplate:
    return CaseTemplate("", ExpandDims(), (choice["shape"],), values=_DISTINCT)


_FILLED = {
    "": (2, 3),
    "line": (7,),
    "scalar": (),
    "rank-4": (2, 1, 3, 2),
    "rank-5": (1, 2, 1, 2, 2),
}


def _fill(choice: Choice) -> CaseTemplate:
    return CaseTemplate("", Fill(choice["result"]), (choice["value"],))


_ALONG: dict[str, Any] = {"shape": _SHAPES, "axis": AXES}  # Any: as of a factor
_WITH_INDICES: dict[str, Any] = {"index type": _INDEX_TYPES}  # Any: as of a factor
_CONSTANT_INDICES = {"": (), "constant-indices": (1,)}
_BEGINNINGS = {"": 1, "from-0": 0, "from-2": 2}

_MOVES: tuple[FormTable, ...] = (
    FormTable(
        Concat,
        {
            **_ALONG,
            "count": _COUNTS,
            "growth": {"": 0, "unequal": 1},
            "constants": {"": (), "constant": (1,)},
            "scales": {"": "same"},
        },
        _concat,
        has_axis,
    ),
    FormTable(Stack, {**_ALONG, "count": _COUNTS}, _stack, _fits_stack),
    FormTable(Unstack, _ALONG, _unstack, has_axis),
    FormTable(
        Splitter,
        {**_ALONG, "count": _COUNTS, "how": {"": "equal", "sizes": "sizes", "rest": "rest"}},
        _split,
        has_axis,
    ),
    FormTable(Transpose, {"order": _PERMUTATIONS}, _transpose),
    FormTable(
        Pad,
        {
            "shape": _SHAPES,
            "edges": _PAD_FORMS,
            "pad_value": {"": 0.0, "value": 1.5, "negative-value": -2.0},
        },
        _pad,
        _fits_pad,
    ),
    FormTable(
        Slice,
        {
            "shape": _SHAPES,
            "from": _BEGINNINGS,
            "to": {"": "dim", "to-end": "end", "one-element": "one"},
        },
        _slice,
    ),
    FormTable(
        StridedSlice,
        {
            "shape": {"": (6, 5), "rank-3": (6, 5, 2), "rank-4": (5, 5, 2, 3)},
            "range": _STRIDED_RANGES,
            "steps": _STEPS,
            "masks": _STRIDED_MASKS,
        },
        _strided,
        _fits_strided,
    ),
    FormTable(
        Gather,
        {
            **_ALONG,
            **_WITH_INDICES,
            "batch_dims": {"": 0, "batch": 1},
            "indices": {"": (4,), "one": (), "rows": (2, 3)},
            "constants": _CONSTANT_INDICES,
        },
        _gather,
        _fits_gather,
    ),
    FormTable(
        GatherElements,
        {**_ALONG, **_WITH_INDICES, "more": {"": False, "more": True}},
        _gather_elements,
        has_axis,
    ),
    FormTable(
        GatherNd,
        {
            "depth": {**_DEPTHS, **_BATCHED_DEPTHS},
            **_WITH_INDICES,
            "constants": _CONSTANT_INDICES,
        },
        _gather_nd,
    ),
    FormTable(ScatterElements, {**_ALONG, **_WITH_INDICES}, _scatter_elements, has_axis),
    FormTable(ScatterNd, {"depth": _DEPTHS, **_WITH_INDICES}, _scatter_nd, _fits_scatter),
    FormTable(
        OneHot,
        {
            "shape": RANKS,
            "axis": {"": -1, "first": 0, "axis-1": 1, "axis-2": 2},
            "depth": {"": 4, "depth-1": 1, "depth-6": 6},
            "constants": {"": (), "constant-values": (1, 2)},
        },
        _one_hot,
        _fits_one_hot,
        types=(DataType.SIGNED32,),
        complete=(DataType.SIGNED32,),
    ),
    FormTable(
        Tile,
        {"shape": _SHAPES, "times": {"": 2, "times-3": 3}, "which": {"": 0, "odd-axes": 1}},
        _tile,
    ),
    FormTable(BroadcastTo, {"forms": _STRETCHED}, _stretch),
    FormTable(ReverseV2, {"shape": _SHAPES, "axes": _TURNED}, _turn, _fits_turn),
    FormTable(
        ReverseSequence,
        {
            "shape": {"": (3, 4), "rank-3": (3, 4, 2), "rank-4": (2, 3, 2, 2)},
            "axes": {"": (0, 1), "batch-first": (1, 0), "last": (-1, 0)},
            "index type": {"": DataType.SIGNED32, "wide": DataType.SIGNED64},
        },
        _reverse_sequence,
    ),
    FormTable(
        ChannelShuffle,
        {**_ALONG, "num_groups": {"": 2, "groups-3": 3, "groups-6": 6, "groups-1": 1}},
        _shuffle,
        has_axis,
    ),
    FormTable(Reshape, {"forms": _RESHAPES}, _reshape),
    FormTable(Squeeze, {"forms": _SQUEEZED}, _squeeze),
    FormTable(ExpandDims, {"shape": RANKS, "axis": AXES}, _expand),
    FormTable(Fill, {"result": _FILLED, "value": {"": (), "vector": (1,)}}, _fill),
)
"""Forms of each operation."""

TABLES = tuple(
    table if table.kind is OneHot else replace(table, types=MOVED, complete=(DataType.FLOAT32,))
    for table in _MOVES
)
"""Tables of operations on elements of any type."""
