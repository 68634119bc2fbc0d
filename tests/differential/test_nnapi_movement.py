"""NNAPI's operations that move, copy and choose elements, against plain indexing."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from armpy_nnapi import OperandCode, OperationCode
from tests.differential.nnapi_peers import (
    BOOL8,
    FLOAT16,
    FLOAT32,
    FLOATS,
    IMAGE_TYPES,
    INT32,
    ITEM_TYPES,
    QUANTIZED,
    SIGNED,
    SYMMETRIC,
    SYMMETRIC16,
    UNSIGNED,
    UNSIGNED16,
    Array,
    Draw,
    Expected,
    Input,
    Instance,
    Omitted,
    Scalar,
    Tensor,
    boolean,
    check_instances,
    integer,
    integers,
    limits_of,
    moved,
    names,
)

_O = OperationCode


def test_concatenation() -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick(IMAGE_TYPES)
        shape = draw.shape()
        axis = draw.size(len(shape) - 1, 0)
        shapes = [(*shape[:axis], draw.size(3), *shape[axis + 1 :]) for _ in range(draw.size(4))]
        parts = [draw.tensor(kind, s) for s in shapes]
        if kind in FLOATS:
            values = np.empty((*shape[:axis], sum(s[axis] for s in shapes), *shape[axis + 1 :]))
            output = Expected(kind, _joined(parts, axis, values).astype(kind.traits.dtype))
        else:
            total = sum(s[axis] for s in shapes)
            values = np.empty((*shape[:axis], total, *shape[axis + 1 :]))
            output = draw.output(kind, _joined(parts, axis, values))
        return Instance(_O.CONCATENATION, [*parts, integer(axis)], [output])

    check_instances(make)


def _joined(parts: Sequence[Tensor], axis: int, result: Array) -> Array:
    """Real elements of several tensors, one after the other."""
    start = 0
    for part in parts:
        for index in np.ndindex(*part.shape):
            at = (*index[:axis], start + index[axis], *index[axis + 1 :])
            result[at] = part.real[index]
        start += part.shape[axis]
    return result


def test_reshape() -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick(IMAGE_TYPES)
        source = draw.tensor(kind, draw.shape())
        left, shape = source.stored.size, []
        for factor in (2, 3, 4):
            if left % factor == 0 and draw.chance():
                shape.append(factor)
                left //= factor
        shape.append(left)
        shape_given = [shape[i] for i in draw.permutation(len(shape))]
        values = np.array(list(source.stored.flat), source.stored.dtype).reshape(shape_given)
        if draw.chance():
            shape_given[draw.size(len(shape_given) - 1, 0)] = -1
        return Instance(_O.RESHAPE, [source, integers(shape_given)], [moved(source, values)])

    check_instances(make)


def test_squeeze() -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick(IMAGE_TYPES)
        shape = tuple(1 if draw.chance() else dim for dim in draw.shape())
        source = draw.tensor(kind, shape)
        ones = [axis for axis, dim in enumerate(shape) if dim == 1]
        axes_given: Input = Omitted(INT32)
        if ones and draw.chance(0.7):
            ones = [axis for axis in ones if draw.chance(0.7)] or ones[:1]
            axes_given = integers(
                [axis - len(shape) if draw.chance(0.3) else axis for axis in ones]
            )
        left = [dim for axis, dim in enumerate(shape) if axis not in ones] or [1]
        return Instance(
            _O.SQUEEZE, [source, axes_given], [moved(source, source.stored.reshape(left))]
        )

    check_instances(make)


def test_expand_dims() -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick(ITEM_TYPES)
        source = draw.tensor(kind, draw.shape(draw.size(3)))
        rank = source.stored.ndim + 1
        axis = draw.size(rank - 1, -rank)
        shape = list(source.shape)
        shape.insert(axis % rank, 1)
        output = moved(source, source.stored.reshape(shape))
        return Instance(_O.EXPAND_DIMS, [source, integer(axis)], [output])

    check_instances(make)


def test_transpose() -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick(IMAGE_TYPES)
        source = draw.tensor(kind, draw.shape())
        perm = draw.permutation(source.stored.ndim)
        perm_given: Input = integers(perm)
        if source.stored.ndim == 2 and draw.chance():
            perm, perm_given = [1, 0], Omitted(INT32)
        values = np.empty([source.shape[axis] for axis in perm], source.stored.dtype)
        for index in np.ndindex(*source.shape):
            values[tuple(index[axis] for axis in perm)] = source.stored[index]
        return Instance(_O.TRANSPOSE, [source, perm_given], [moved(source, values)])

    check_instances(make)


def test_tile() -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick(ITEM_TYPES)
        source = draw.tensor(kind, draw.shape(highest=3))
        multiples = [draw.size(3) for _ in source.shape]
        shape = [dim * times for dim, times in zip(source.shape, multiples, strict=True)]
        values = np.empty(shape, source.stored.dtype)
        for index in np.ndindex(*shape):
            inside = tuple(i % dim for i, dim in zip(index, source.shape, strict=True))
            values[index] = source.stored[inside]
        return Instance(_O.TILE, [source, integers(multiples)], [moved(source, values)])

    check_instances(make)


def test_fill() -> None:
    scalars = {
        FLOAT32: OperandCode.FLOAT32,
        FLOAT16: OperandCode.FLOAT16,
        INT32: OperandCode.INT32,
    }

    def make(draw: Draw) -> Instance:
        kind = draw.pick((FLOAT32, FLOAT16, INT32))
        shape, value = draw.shape(), draw.size(100, -100)
        values = np.array([value] * int(np.prod(shape)), kind.traits.dtype).reshape(shape)
        inputs = [integers(shape), Scalar(scalars[kind], value)]
        return Instance(_O.FILL, inputs, [Expected(kind, values)])

    check_instances(make)


RANK_TYPES = (*ITEM_TYPES, BOOL8, SYMMETRIC, SYMMETRIC16, UNSIGNED16)


def test_rank() -> None:
    def make(draw: Draw) -> Instance:
        source = draw.tensor(draw.pick(RANK_TYPES), draw.shape())
        output = Expected(OperandCode.INT32, np.array(len(source.shape), np.int32))
        return Instance(_O.RANK, [source], [output])

    check_instances(make)


def test_slice() -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick(ITEM_TYPES)
        source = draw.tensor(kind, draw.shape())
        begin = [draw.size(dim - 1, 0) for dim in source.shape]
        sizes = [draw.size(dim - b) for dim, b in zip(source.shape, begin, strict=True)]
        values = np.empty(sizes, source.stored.dtype)
        for index in np.ndindex(*sizes):
            at = tuple(b + i for b, i in zip(begin, index, strict=True))
            values[index] = source.stored[at]
        ends = zip(source.shape, begin, sizes, strict=True)
        sizes_given = [-1 if b + n == dim and draw.chance() else n for dim, b, n in ends]
        inputs = [source, integers(begin), integers(sizes_given)]
        return Instance(_O.SLICE, inputs, [moved(source, values)])

    check_instances(make)


def test_strided_slice() -> None:
    """Against Python's slices, which clamp begin and end the same way."""

    def make(draw: Draw) -> Instance:
        kind = draw.pick(IMAGE_TYPES)
        source = draw.tensor(kind, draw.shape(highest=5))
        chosen: list[list[int]] = []
        columns: list[tuple[int, int, int]] = []
        masks = [0, 0, 0]
        for axis, dim in enumerate(source.shape):
            places, column, bits = _random_slice(draw, dim)
            chosen.append(places)
            columns.append(column)
            for i, bit in enumerate(bits):
                masks[i] |= bit << axis
        values = source.stored[np.ix_(*chosen)]
        sizes = [len(c) for axis, c in enumerate(chosen) if not masks[2] >> axis & 1] or [1]
        begin, end, strides = (integers(column) for column in zip(*columns, strict=True))
        inputs = [source, begin, end, strides, *(integer(mask) for mask in masks)]
        return Instance(_O.STRIDED_SLICE, inputs, [moved(source, values.reshape(sizes))])

    check_instances(make)


def _random_slice(
    draw: Draw, dim: int
) -> tuple[list[int], tuple[int, int, int], tuple[int, int, int]]:
    """Indexes that a slice takes, of which there are some; its numbers; its bits of the masks."""
    if draw.chance(0.2):
        at = draw.size(dim - 1, -dim)
        return [at % dim], (at, at + 1 or dim, 1), (0, 0, 1)
    while True:
        begin, end = draw.size(dim, -dim), draw.size(dim + 1, -dim - 1)
        step = draw.pick((1, 2, 3, -1, -2))
        bits = (int(draw.chance(0.3)), int(draw.chance(0.3)), 0)
        shown = slice(None if bits[0] else begin, None if bits[1] else end, step)
        indexes = list(range(dim))[shown]
        if indexes:
            return indexes, (begin, end, step), bits


def test_split() -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick(ITEM_TYPES)
        count, shape = draw.size(4), list(draw.shape())
        axis = draw.size(len(shape) - 1, -len(shape))
        width = shape[axis]
        shape[axis] *= count
        source = draw.tensor(kind, shape)
        along = np.moveaxis(source.stored, axis, 0)
        parts = [np.moveaxis(along[i * width : (i + 1) * width], 0, axis) for i in range(count)]
        outputs = [moved(source, np.ascontiguousarray(part)) for part in parts]
        return Instance(_O.SPLIT, [source, integer(axis), integer(count)], outputs)

    check_instances(make)


def test_gather() -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick(ITEM_TYPES)
        source = draw.tensor(kind, draw.shape(draw.size(3)))
        axis = draw.size(source.stored.ndim - 1, -source.stored.ndim)
        dim, at = source.shape[axis], axis % source.stored.ndim
        indices = draw.tensor(INT32, draw.shape(draw.size(2)), 0, dim - 1)
        shape = (*source.shape[:at], *indices.shape, *source.shape[at + 1 :])
        values = np.empty(shape, source.stored.dtype)
        for index in np.ndindex(*shape):
            middle = index[at : at + indices.stored.ndim]
            rest = index[at + indices.stored.ndim :]
            values[index] = source.stored[(*index[:at], indices.stored[middle], *rest)]
        return Instance(_O.GATHER, [source, integer(axis), indices], [moved(source, values)])

    check_instances(make)


def test_embedding_lookup() -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick(ITEM_TYPES)
        table = draw.tensor(kind, draw.shape(draw.size(4, 2)))
        lookups = draw.tensor(INT32, draw.shape(1), 0, table.shape[0] - 1)
        rows = np.stack([table.stored[row] for row in lookups.stored])
        return Instance(_O.EMBEDDING_LOOKUP, [lookups, table], [moved(table, rows)])

    check_instances(make)


def test_hashtable_lookup() -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick((FLOAT32, INT32, UNSIGNED, SIGNED))
        table = draw.tensor(kind, draw.shape())
        keys = sorted(draw.permutation(12)[: table.shape[0]])
        lookups = draw.tensor(INT32, draw.shape(1), 0, 11)
        rows = {key: table.stored[i] for i, key in enumerate(keys)}
        nothing = np.zeros(table.shape[1:], table.stored.dtype)
        rows_found = np.stack([rows.get(int(key), nothing) for key in lookups.stored])
        hits = np.array([key in rows for key in lookups.stored.tolist()], np.uint8)
        outputs = [moved(table, rows_found), Expected(UNSIGNED, hits, 1.0)]
        return Instance(_O.HASHTABLE_LOOKUP, [lookups, integers(keys), table], outputs)

    check_instances(make)


def padded(values: Array, paddings: Sequence[tuple[int, int]], filling: float) -> Array:
    """Elements with others around them."""
    shape = [dim + sum(pair) for dim, pair in zip(values.shape, paddings, strict=True)]
    padded_values = np.empty(shape, values.dtype)
    padded_values[...] = filling
    for index in np.ndindex(*values.shape):
        padded_values[tuple(i + pair[0] for i, pair in zip(index, paddings, strict=True))] = values[
            index
        ]
    return padded_values


def test_pad() -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick(IMAGE_TYPES)
        source = draw.tensor(kind, draw.shape(highest=3))
        paddings = [(draw.size(2, 0), draw.size(2, 0)) for _ in source.shape]
        values = padded(source.stored, paddings, source.zero_point)
        return Instance(_O.PAD, [source, integers(paddings)], [moved(source, values)])

    check_instances(make)


def test_pad_v2() -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick(IMAGE_TYPES)
        source = draw.tensor(kind, draw.shape(highest=3))
        paddings = [(draw.size(2, 0), draw.size(2, 0)) for _ in source.shape]
        if kind in QUANTIZED:
            lowest, highest = limits_of(kind)
            value: Scalar = integer(draw.size(highest, lowest))
        else:
            code = OperandCode.FLOAT16 if kind is FLOAT16 else OperandCode.FLOAT32
            value = Scalar(code, draw.number(-5, 5))
        values = padded(source.stored, paddings, value.value)
        return Instance(_O.PAD_V2, [source, integers(paddings), value], [moved(source, values)])

    check_instances(make)


def in_layout(source: Tensor, nchw: bool) -> Tensor:
    """An NHWC tensor in the layout that is asked for."""
    stored = np.ascontiguousarray(np.moveaxis(source.stored, 3, 1)) if nchw else source.stored
    return Tensor(source.code, stored, source.scale, source.zero_point)


def of_image(
    draw: Draw, nchw: bool, inputs: Sequence[Input], code: OperationCode, made: Array
) -> Instance:
    """An instance whose first input and output are images; NHWC may go without its argument."""
    source = inputs[0]
    assert isinstance(source, Tensor)
    layout = [] if not nchw and draw.chance() else [boolean(nchw)]
    values = np.ascontiguousarray(np.moveaxis(made, 3, 1)) if nchw else made
    operands = [in_layout(source, nchw), *inputs[1:], *layout]
    return Instance(code, operands, [moved(source, values)])


@pytest.mark.parametrize("code", [_O.DEPTH_TO_SPACE, _O.SPACE_TO_DEPTH], ids=names)
def test_depth_and_space(code: OperationCode) -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick(IMAGE_TYPES)
        n, h, w, c, block = draw.size(2), draw.size(2), draw.size(3), draw.size(3), draw.size(3)
        deep, wide = (n, h, w, c * block * block), (n, h * block, w * block, c)
        is_to_space = code is _O.DEPTH_TO_SPACE
        source = draw.tensor(kind, deep if is_to_space else wide)
        moved_values = np.empty(wide if is_to_space else deep, source.stored.dtype)
        for at in np.ndindex(*wide):
            offset = (at[1] % block) * block + at[2] % block
            inside = (at[0], at[1] // block, at[2] // block, offset * c + at[3])
            if is_to_space:
                moved_values[at] = source.stored[inside]
            else:
                moved_values[inside] = source.stored[at]
        return of_image(draw, draw.chance(), [source, integer(block)], code, moved_values)

    check_instances(make)


def test_batch_to_space() -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick(IMAGE_TYPES)
        n, h, w, c = draw.shape(4, 2)
        block = (draw.size(3), draw.size(3))
        source = draw.tensor(kind, (n * block[0] * block[1], h, w, c))
        image = np.empty((n, h * block[0], w * block[1], c), source.stored.dtype)
        for b, y, x, k in np.ndindex(*image.shape):
            offset = y % block[0] * block[1] + x % block[1]
            image[b, y, x, k] = source.stored[offset * n + b, y // block[0], x // block[1], k]
        inputs = [source, integers(block)]
        return of_image(draw, draw.chance(), inputs, _O.BATCH_TO_SPACE_ND, image)

    check_instances(make)


def test_space_to_batch() -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick(IMAGE_TYPES)
        n, h, w, c = draw.shape(4, 3)
        block = (draw.size(3), draw.size(3))
        paddings = []
        for size, step in zip((h, w), block, strict=True):
            before = draw.size(2, 0)
            paddings.append((before, -(size + before) % step))
        source = draw.tensor(kind, (n, h, w, c))
        whole = padded(source.stored, [(0, 0), *paddings, (0, 0)], source.zero_point)
        rows, columns = whole.shape[1] // block[0], whole.shape[2] // block[1]
        batch = np.empty((n * block[0] * block[1], rows, columns, c), whole.dtype)
        for i, j in itertools.product(range(block[0]), range(block[1])):
            for b in range(n):
                at = (i * block[1] + j) * n + b
                batch[at] = whole[b, i :: block[0], j :: block[1]]
        inputs = [source, integers(block), integers(paddings)]
        return of_image(draw, draw.chance(), inputs, _O.SPACE_TO_BATCH_ND, batch)

    check_instances(make)


def test_channel_shuffle() -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick(IMAGE_TYPES)
        groups, size, shape = draw.size(3), draw.size(3), list(draw.shape())
        axis = draw.size(len(shape) - 1, -len(shape))
        shape[axis] = groups * size
        source = draw.tensor(kind, shape)
        shuffled = np.empty_like(source.stored)
        results, sources = np.moveaxis(shuffled, axis, 0), np.moveaxis(source.stored, axis, 0)
        for g, k in itertools.product(range(groups), range(size)):
            results[k * groups + g] = sources[g * size + k]
        inputs = [source, integer(groups), integer(axis)]
        return Instance(_O.CHANNEL_SHUFFLE, inputs, [moved(source, shuffled)])

    check_instances(make)


def test_topk() -> None:
    def make(draw: Draw) -> Instance:
        kind = draw.pick(ITEM_TYPES)
        source = draw.tensor(kind, draw.shape(highest=6))
        if kind in FLOATS:
            source = Tensor(kind, np.round(source.stored))
        k = draw.size(source.shape[-1])
        values = np.empty((*source.shape[:-1], k), source.stored.dtype)
        positions = np.empty(values.shape, np.int32)
        for index in np.ndindex(*source.shape[:-1]):
            pairs = sorted(((x, i) for i, x in enumerate(source.stored[index].tolist())))
            values[index] = [x for x, _ in pairs[::-1][:k]]
            positions[index] = [i for _, i in pairs[::-1][:k]]
        outputs = [moved(source, values), Expected(INT32, positions)]
        return Instance(_O.TOPK_V2, [source, integer(k)], outputs)

    check_instances(make)
