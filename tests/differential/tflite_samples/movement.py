"""Samples of operators that move elements, look them up, order or make them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from armpy_testing.models.tflite_writer import OptionValue
from tests.differential.tflite_samples.making import (
    DTYPES,
    EVERY,
    Arg,
    Draw,
    Family,
    Maker,
    One,
    ints,
)
from tests.differential.tflite_samples.weighted import packed


def _reshape(operator: str, draw: Draw) -> Iterator[One]:
    yield One([draw(2, 3, 4), ints(4, -1)], [draw.out()], {"new_shape": [4, -1]})


def _expand_dims(operator: str, draw: Draw) -> Iterator[One]:
    yield One([draw(2, 3), ints(1, shape=())], [draw.out()])


def _squeeze(operator: str, draw: Draw) -> Iterator[One]:
    yield One([draw(2, 1, 3, 1)], [draw.out()], {"squeeze_dims": [1]})


def _transpose(operator: str, draw: Draw) -> Iterator[One]:
    yield One([draw(2, 3, 4), ints(2, 0, 1)], [draw.out()])
    yield One([draw(2, 1, 3, 2, 2), ints(4, 2, 0, 3, 1)], [draw.out()])


def _tile(operator: str, draw: Draw) -> Iterator[One]:
    yield One([draw(2, 3), ints(2, 3)], [draw.out()])
    yield One([draw(2, 3), ints(1, 2, kind="INT64")], [draw.out()])


def _broadcast_to(operator: str, draw: Draw) -> Iterator[One]:
    yield One([draw(3, 1), ints(2, 3, 4)], [draw.out()], version=2)
    yield One([draw(3, 1), ints(3, 4, kind="INT64")], [draw.out()], version=3)


def _pad(operator: str, draw: Draw) -> Iterator[One]:
    value = [draw()] if operator == "PADV2" else []
    for kind in ("INT32", "INT64", "INT8", "INT16"):
        sizes = ints(1, 0, 0, 2, kind=kind, shape=(2, 2))
        yield One([draw(2, 3), sizes, *(arg.constant for arg in value)], [draw.out()])


def _mirror_pad(operator: str, draw: Draw) -> Iterator[One]:
    for mode in ("REFLECT", "SYMMETRIC"):
        sizes = ints(1, 1, 2, 0, shape=(2, 2))
        yield One([draw(3, 4), sizes], [draw.out()], {"mode": mode})


def _slice(operator: str, draw: Draw) -> Iterator[One]:
    for kind in ("INT32", "INT64"):
        begin, size = ints(1, 0, 2, kind=kind), ints(1, -1, 2, kind=kind)
        yield One([draw(2, 3, 5), begin, size], [draw.out()])


def _strided_slice(operator: str, draw: Draw) -> Iterator[One]:
    options: dict[str, OptionValue] = {"begin_mask": 1, "end_mask": 2, "shrink_axis_mask": 4}
    numbers = [ints(0, 2, 1), ints(2, 0, 2), ints(1, -1, 1)]
    yield One([draw(2, 3, 4), *numbers], [draw.out()], options)


def _gather(operator: str, draw: Draw) -> Iterator[One]:
    for kind in ("INT32", "INT64", "INT16"):
        yield One([draw(4, 3), ints(2, 0, 3, kind=kind)], [draw.out()], {"axis": 0})
    indices = ints(2, 0, 1, 1, shape=(2, 2))
    yield One([draw(2, 3, 2), indices], [draw.out()], {"axis": 1, "batch_dims": 1})


def _gather_nd(operator: str, draw: Draw) -> Iterator[One]:
    for kind in ("INT32", "INT64", "INT16"):
        yield One([draw(4, 3, 2), ints(2, 0, 3, 1, kind=kind, shape=(2, 2))], [draw.out()])


def _reverse(operator: str, draw: Draw) -> Iterator[One]:
    yield One([draw(2, 3, 4), ints(1)], [draw.out()])


def _reverse_sequence(operator: str, draw: Draw) -> Iterator[One]:
    options: dict[str, OptionValue] = {"seq_dim": 1, "batch_dim": 0}
    for kind in ("INT32", "INT64"):
        yield One([draw(2, 4, 3), ints(3, 2, kind=kind)], [draw.out()], options)


def _concatenation(operator: str, draw: Draw) -> Iterator[One]:
    yield One([draw(2, 3), draw(2, 1), draw(2, 2)], [draw.out()], {"axis": 1})


def _pack(operator: str, draw: Draw) -> Iterator[One]:
    options: dict[str, OptionValue] = {"values_count": 2, "axis": 1}
    yield One([draw(2, 3), draw(2, 3)], [draw.out()], options)


def _unpack(operator: str, draw: Draw) -> Iterator[One]:
    yield One([draw(2, 3)], [draw.out()] * 2, {"num": 2, "axis": 0})


def _split(operator: str, draw: Draw) -> Iterator[One]:
    yield One([ints(1, shape=()), draw(2, 6)], [draw.out()] * 3, {"num_splits": 3})


def _split_v(operator: str, draw: Draw) -> Iterator[One]:
    for kind in ("INT32", "INT64"):
        sizes = ints(1, 3, 2, kind=kind)
        options: dict[str, OptionValue] = {"num_splits": 3}
        yield One([draw(2, 6), sizes, ints(1, shape=())], [draw.out()] * 3, options)


def _depth_to_space(operator: str, draw: Draw) -> Iterator[One]:
    yield One([draw(1, 2, 3, 8)], [draw.out()], {"block_size": 2})


def _space_to_depth(operator: str, draw: Draw) -> Iterator[One]:
    yield One([draw(1, 4, 6, 2)], [draw.out()], {"block_size": 2})


def _space_to_batch(operator: str, draw: Draw) -> Iterator[One]:
    pads = ints(0, 0, 2, 0, shape=(2, 2))
    yield One([draw(1, 4, 4, 2), ints(2, 2), pads], [draw.out()])


def _batch_to_space(operator: str, draw: Draw) -> Iterator[One]:
    crops = ints(0, 0, 2, 0, shape=(2, 2))
    yield One([draw(4, 2, 2, 2), ints(2, 2), crops], [draw.out()])


def _fill(operator: str, draw: Draw) -> Iterator[One]:
    for kind in ("INT32", "INT64"):
        yield One([ints(2, 3, kind=kind), draw()], [draw.out()])


def _range(operator: str, draw: Draw) -> Iterator[One]:
    numbers = [np.array(value, DTYPES[draw.kind]) for value in (1, 8, 2)]
    yield One([replace(draw(), values=number) for number in numbers], [draw.out()])


def _one_hot(operator: str, draw: Draw) -> Iterator[One]:
    for kind in ("INT32", "INT64", "INT16", "INT8", "UINT8"):
        indices = ints(0, 2, 3, kind=kind)
        yield One([indices, ints(3, shape=()), draw(), draw()], [draw.out()], {"axis": -1})


def _shape(operator: str, draw: Draw) -> Iterator[One]:
    for kind in ("INT32", "INT64"):
        yield One([draw(2, 3)], [draw.out(kind)], {"out_type": kind})


def _rank(operator: str, draw: Draw) -> Iterator[One]:
    yield One([draw(2, 3)], [draw.out("INT32")])


def _broadcast_args(operator: str, draw: Draw) -> Iterator[One]:
    yield One([ints(3, 1, kind=draw.kind), replace(ints(4, kind=draw.kind))], [draw.out()])
    left, right = (replace(ints(*v, kind=draw.kind), is_constant=False) for v in ((2, 1), (2, 5)))
    yield One([left, right], [draw.out()])


def _topk(operator: str, draw: Draw) -> Iterator[One]:
    yield One([draw(3, 6), ints(3, shape=())], [draw.out(), draw.out("INT32")], {})


def _topk_positions(operator: str, draw: Draw) -> Iterator[One]:
    outs = [draw.out("FLOAT32"), draw.out("INT16")]
    yield One([draw(3, 6, kind="FLOAT32"), ints(3, kind="INT16", shape=())], outs, {})


def _unique(operator: str, draw: Draw) -> Iterator[One]:
    for kind in ("INT32", "INT64"):
        yield One([draw(9)], [draw.out(), draw.out(kind)], {"idx_out_type": kind})


def _where(operator: str, draw: Draw) -> Iterator[One]:
    yield One([draw(3, 4)], [draw.out("INT64")])


def _matrix_diag(operator: str, draw: Draw) -> Iterator[One]:
    yield One([draw(2, 3)], [draw.out()])


def _matrix_set_diag(operator: str, draw: Draw) -> Iterator[One]:
    yield One([draw(2, 3, 4), draw(2, 3)], [draw.out()])


def _scatter_nd(operator: str, draw: Draw) -> Iterator[One]:
    indices = ints(4, 1, 4, shape=(3, 1))
    yield One([indices, draw(3, 2), ints(5, 2)], [draw.out()])


def _sparse_to_dense(operator: str, draw: Draw) -> Iterator[One]:
    for kind in ("INT32", "INT64"):
        indices = ints(0, 1, 2, 0, kind=kind, shape=(2, 2))
        args: list[Arg] = [indices, ints(3, 4, kind=kind), draw(2), draw()]
        yield One(args, [draw.out()], {})
    yield One([ints(1, 3), ints(5), draw(), draw()], [draw.out()], {})


def _dynamic_update_slice(operator: str, draw: Draw) -> Iterator[One]:
    for kind in ("INT32", "INT64"):
        for places in ((1, 2), (-3, 9)):
            start = replace(ints(*places, kind=kind), is_constant=False)
            yield One([draw(4, 5), draw(2, 3), start], [draw.out()])


def _embedding_lookup(operator: str, draw: Draw) -> Iterator[One]:
    indices = replace(ints(3, 0, 4), is_constant=False)
    yield One([indices, draw(5, 4).constant], [draw.out()])


def _hybrid_embedding(operator: str, draw: Draw) -> Iterator[One]:
    indices = replace(ints(3, 0, 4), is_constant=False)
    weights = draw(5, 4, kind=draw.kind.split(" of ")[1])
    weights = replace(weights, zero_point=0)
    if weights.type == "INT4" and weights.values is not None:
        values = np.clip(weights.values, -7, 7)
        weights = replace(weights, values=values, raw=packed(values, 4))
    yield One([indices, weights.constant], [draw.out("FLOAT32")])


def _embedding_sparse(operator: str, draw: Draw) -> Iterator[One]:
    for combiner in ("SUM", "MEAN", "SQRTN"):
        ids, rows = ints(1, 3, 0), ints(0, 0, 0, 1, 2, 0, shape=(3, 2))
        args = [ids, rows, ints(3, 2), draw(3, kind="FLOAT32", low=1), draw(4, 3, 2).constant]
        yield One(args, [draw.out()], {"combiner": combiner})


def _hashtable_lookup(operator: str, draw: Draw) -> Iterator[One]:
    lookups = replace(ints(7, 2, 9), is_constant=False)
    args = [lookups, ints(2, 5, 7), draw(3, 4)]
    yield One(args, [draw.out(), draw.out("UINT8")])


def _segments(operator: str, draw: Draw) -> Iterator[One]:
    ids = [0, 0, 1, 3] if operator == "SEGMENT_SUM" else [2, 0, 2, 1]
    count = [] if operator == "SEGMENT_SUM" else [ints(4, shape=())]
    yield One([draw(4, 3), ints(*ids), *count], [draw.out()])


def _dilate(operator: str, draw: Draw) -> Iterator[One]:
    yield One([draw(2, 3), ints(2, 3), draw()], [draw.out()])


_MOVES: list[tuple[str, Maker]] = [
    ("RESHAPE", _reshape),
    ("EXPAND_DIMS", _expand_dims),
    ("SQUEEZE", _squeeze),
    ("TRANSPOSE", _transpose),
    ("TILE", _tile),
    ("BROADCAST_TO", _broadcast_to),
    ("PAD", _pad),
    ("PADV2", _pad),
    ("MIRROR_PAD", _mirror_pad),
    ("SLICE", _slice),
    ("STRIDED_SLICE", _strided_slice),
    ("GATHER", _gather),
    ("GATHER_ND", _gather_nd),
    ("REVERSE_V2", _reverse),
    ("REVERSE_SEQUENCE", _reverse_sequence),
    ("CONCATENATION", _concatenation),
    ("PACK", _pack),
    ("UNPACK", _unpack),
    ("SPLIT", _split),
    ("SPLIT_V", _split_v),
    ("DEPTH_TO_SPACE", _depth_to_space),
    ("SPACE_TO_DEPTH", _space_to_depth),
    ("SPACE_TO_BATCH_ND", _space_to_batch),
    ("BATCH_TO_SPACE_ND", _batch_to_space),
    ("FILL", _fill),
    ("ONE_HOT", _one_hot),
    ("SHAPE", _shape),
    ("RANK", _rank),
    ("TOPK_V2", _topk),
    ("UNIQUE", _unique),
    ("WHERE", _where),
    ("MATRIX_DIAG", _matrix_diag),
    ("MATRIX_SET_DIAG", _matrix_set_diag),
    ("SCATTER_ND", _scatter_nd),
    ("SPARSE_TO_DENSE", _sparse_to_dense),
    ("DYNAMIC_UPDATE_SLICE", _dynamic_update_slice),
    ("EMBEDDING_LOOKUP", _embedding_lookup),
    ("HASHTABLE_LOOKUP", _hashtable_lookup),
    ("SEGMENT_SUM", _segments),
    ("UNSORTED_SEGMENT_SUM", _segments),
    ("UNSORTED_SEGMENT_PROD", _segments),
    ("UNSORTED_SEGMENT_MAX", _segments),
    ("UNSORTED_SEGMENT_MIN", _segments),
    ("DILATE", _dilate),
]
_EMBEDDINGS = (
    "FLOAT32 of INT8 quantised",
    "FLOAT32 of UINT8 quantised",
    "FLOAT32 of INT4 quantised",
)
_NUMBERS = ("FLOAT32", "FLOAT64", "INT32", "INT64", "INT16", "INT8")

FAMILY: Family = [
    *(((operator,), EVERY, make) for operator, make in _MOVES),
    (("TOPK_V2",), ("positions INT16",), _topk_positions),
    (("RANGE",), _NUMBERS, _range),
    (("BROADCAST_ARGS",), ("INT32", "INT64"), _broadcast_args),
    (("EMBEDDING_LOOKUP",), _EMBEDDINGS, _hybrid_embedding),
    (("EMBEDDING_LOOKUP_SPARSE",), ("FLOAT32",), _embedding_sparse),
]
