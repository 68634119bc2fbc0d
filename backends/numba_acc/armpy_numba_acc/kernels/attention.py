"""Attention of float32, without a matrix of scores."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from armpy_numba_acc.llvm.arithmetic.reals import is_nan
from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.pointers import INTEGERS, load_f32, load_u8, store_f32
from armpy_numba_acc.llvm.primitives import compiled
from armpy_numba_acc.llvm.threads.sharing import share_items, thread_of
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.calls.attention import KEYS_AT_ONCE, MOST_VECTORS, Attention
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.attention import (
    block_ends,
    product_rows,
    scale_rows,
    softmax_rows,
)
from armpy_numba_acc.tiles.blocks import make_transpose_tile
from armpy_numba_acc.tiles.few_queries import add_rows, gather_values, score_keys

Transpose = Callable[[Pointer, int, Pointer, int, int, int], None]
Products = Callable[[Pointer, int, Pointer, Pointer, int, int, Pointer], None]
RunBlock = Callable[[Pointer, Pointer, Pointer, Pointer, Pointer, int, int, int, int], int]
Rest = Callable[[Pointer, Pointer, Pointer, Pointer, Pointer, int, int, int], None]


def _make_transpose(lanes: int) -> Transpose:
    """Make ``transpose(target, target_pitch, source, source_pitch, rows, columns)``."""
    tile = make_transpose_tile(4, lanes)

    @compiled
    def transpose(
        target: Pointer,
        target_pitch: int,
        source: Pointer,
        source_pitch: int,
        rows: int,
        columns: int,
    ) -> None:
        if rows < lanes or columns < lanes:
            for row in range(rows):
                for column in range(columns):
                    value = load_f32(source + row * source_pitch, column)
                    store_f32(target + column * target_pitch, row, value)
            return
        for row in range(0, rows, lanes):
            y = min(row, rows - lanes)
            for column in range(0, columns, lanes):
                x = min(column, columns - lanes)
                to, from_ = target + x * target_pitch + y * 4, source + y * source_pitch + x * 4
                tile(to, from_, target_pitch, source_pitch)

    return transpose


def _make_products(isa: Isa, vectors: int, accumulates: bool) -> Products:
    """Make ``multiply(values, pitch, lines, target, rows, depth, factors)`` for any number of rows.

    See `product_rows`. Rows at the end that are not a whole tile are computed one by one.
    """
    many = (8 if isa.num_registers >= 32 else 4) * MOST_VECTORS // vectors
    some, single = (product_rows(isa, vectors, rows, accumulates) for rows in (many, 1))
    line = vectors * isa.vector_bytes

    @compiled
    def multiply(
        values: Pointer,
        pitch: int,
        lines: Pointer,
        target: Pointer,
        rows: int,
        depth: int,
        factors: Pointer,
    ) -> None:
        row_pitch = 4 if accumulates else pitch
        whole = rows // many * many
        for row in range(0, whole, many):
            some(values + row * row_pitch, pitch, lines, target + row * line, depth, factors)
        for row in range(whole, rows):
            single(values + row * row_pitch, pitch, lines, target + row * line, depth, factors)

    return multiply


@compiled
def keep_finite(target: Pointer, value: Pointer, row: int, rows: int, columns: int) -> None:
    """Copy rows of values, without those that are not finite."""
    for number in range(rows):
        for column in range(columns):
            item = load_f32(value + number * row, column)
            is_finite = item - item == 0
            store_f32(target, number * columns + column, item if is_finite else np.float32(0))


def _make_add_rest(mask: str, block: int) -> Rest:
    """Make what adds the values that `keep_finite` leaves out, for the queries that see them."""
    stored, _, of_keys = mask.partition(" ")
    is_masked, is_truth, is_of_keys = bool(mask), stored == "bool", bool(of_keys)
    hidden = np.float32(-np.inf)
    read = reader(Attention)

    @compiled
    def sees(args: Pointer, marks: Pointer, lane: int, distance: int) -> bool:
        call = read(args)
        distance -= lane * call.advance
        if distance < call.low or distance > call.high:
            return False
        place = 0 if is_of_keys else lane
        if is_truth:
            return bool(load_u8(marks, place) != 0)
        if is_masked:
            return bool(load_f32(marks, place) != hidden)
        return True

    @compiled
    def add_rest(
        args: Pointer,
        value: Pointer,
        powers: Pointer,
        outputs: Pointer,
        marks: Pointer,
        count: int,
        rows: int,
        offset: int,
    ) -> None:
        call = read(args)
        for row in range(rows):
            for column in range(call.value_size):
                item = load_f32(value + row * call.value_row, column)
                if item - item == 0:
                    continue
                for lane in range(count):
                    if sees(args, marks + row * call.mask_row, lane, offset + row):
                        place = column * block + lane
                        added = load_f32(powers, row * block + lane) * item
                        store_f32(outputs, place, load_f32(outputs, place) + added)

    return add_rest


@compiled
def count_nan(row: Pointer, count: int) -> int:
    """Return how many elements of a row are NaN."""
    num_nan = 0
    for number in range(count):
        if is_nan(load_f32(row, number)):
            num_nan += 1
    return num_nan


def _make_row_products(isa: Isa, queries: int) -> tuple[Products, Products]:
    """Make both products of a few queries, which read keys and values row by row.

    Parameters and results are those of `_make_products`, but that room follows the lines: first for
    the queries' rows, or the outputs, and then for outputs turned round.
    """
    lanes, line = isa.lanes, isa.vector_bytes
    transpose = _make_transpose(lanes)
    multiply, gather, add = score_keys(isa, queries), gather_values(isa, queries), add_rows(isa)
    single = product_rows(isa, 1, 1, False)
    keys_at_once = lanes // queries

    @compiled
    def score(
        key: Pointer,
        pitch: int,
        lines: Pointer,
        target: Pointer,
        keys: int,
        size: int,
        rows: Pointer,
    ) -> None:
        groups = keys // keys_at_once
        multiply(key, pitch, rows, target, groups, size // lanes)
        for number in range(groups * keys_at_once, keys):
            single(key + number * pitch, pitch, lines, target + number * line, size, 0)

    @compiled
    def accumulate(
        value: Pointer,
        pitch: int,
        scores: Pointer,
        target: Pointer,
        size: int,
        keys: int,
        factors: Pointer,
    ) -> None:
        rows = scores + KEYS_AT_ONCE * line + KEYS_AT_ONCE * size * 4
        turned = rows + size * line
        gather(value, pitch, scores, rows, keys, size // lanes)
        transpose(turned, line, rows, size * 4, lanes, size)
        add(turned, target, size, factors)

    return score, accumulate


def _make_block(
    isa: Isa, mask: str, vectors: int, is_bounded: int, is_capped: int, num_rows: int
) -> RunBlock:
    """Make what computes the outputs of a block of queries, and counts those that have NaN."""
    block = vectors * isa.lanes
    line = block * 4
    if num_rows:
        score, gather = _make_row_products(isa, num_rows)
    else:
        score, gather = (_make_products(isa, vectors, accumulates) for accumulates in (False, True))
    weigh = softmax_rows(isa, vectors, mask, bool(is_bounded), bool(is_capped))
    begin, finish = block_ends(isa, vectors)
    add_rest = _make_add_rest(mask, block)
    read = reader(Attention)

    @compiled
    def run_block(
        args: Pointer,
        packed: Pointer,
        key: Pointer,
        value: Pointer,
        marks: Pointer,
        position: int,
        keys: int,
        count: int,
        is_careful: int,
    ) -> int:
        """Compute the outputs of `count` queries, of which the first one's position is given."""
        call = read(args)
        state = packed + call.size * line
        outputs = state + 3 * line
        scores = outputs + call.value_size * line
        copy = scores + KEYS_AT_ONCE * line
        # Rows of queries, for products that read row by row, follow the outputs' turned rows.
        rows = copy + KEYS_AT_ONCE * call.value_size * 4 + 2 * call.value_size * line
        begin(state, outputs, call.value_size)
        end = min(keys, position + 1 + (count - 1) * call.advance + call.high)
        for at in range(max(0, position + call.low), end, KEYS_AT_ONCE):
            here = min(KEYS_AT_ONCE, end - at)
            score(key + at * call.key_row, call.key_row, packed, scores, here, call.size, rows)
            weigh(
                scores,
                here,
                marks + at * call.mask_row,
                call.mask_row,
                at - position,
                call.low,
                call.high,
                state,
                call.scale,
                call.cap,
            )
            factors = state + 2 * line
            values, row = value + at * call.value_row, call.value_row
            if is_careful != 0:
                keep_finite(copy, values, row, here, call.value_size)
                values, row = copy, call.value_size * 4
            gather(values, row, scores, outputs, call.value_size, here, factors)
            if is_careful != 0:
                values, seen = value + at * call.value_row, marks + at * call.mask_row
                add_rest(args, values, scores, outputs, seen, count, here, at - position)
        finish(state, outputs, call.value_size)
        return count_nan(state, count)

    return run_block


def make(
    isa: Isa,
    mask: str,
    vectors: int,
    is_bounded: int,
    is_capped: int,
    length_bytes: int,
    num_rows: int,
) -> Callable[[int, int, int], None]:
    """Make the kernel for the record's parameters; threads share blocks of queries."""
    block = vectors * isa.lanes
    line = block * 4
    run_block = _make_block(isa, mask, vectors, is_bounded, is_capped, num_rows)
    lanes = isa.lanes
    transpose = _make_transpose(lanes)
    multiply = scale_rows(isa, vectors)
    mask_bytes = {"": 0, "f32": 4, "bool": 1}.get(mask, 0)
    load_length, _ = INTEGERS[length_bytes or 8]
    read = reader(Attention)

    def attention(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        heads, size, value_size = call.heads, call.size, call.value_size
        blocks = (call.queries + block - 1) // block
        packed = call.scratch + thread_of(shares) * call.scratch_pitch
        outputs = packed + (size + 3) * line
        first, last = share_items(call.batches * heads * blocks, shares, num_shares)
        for number in range(first, last):
            item = number // blocks
            batch = item // heads
            head = item - batch * heads
            group = head // call.heads_per_group
            # The last block overlaps the one in front of it.
            start = min((number - item * blocks) * block, max(call.queries - block, 0))
            count = min(block, call.queries - start)
            query = call.query + batch * call.query_batch + head * call.query_head
            key = call.key + batch * call.key_batch + group * call.key_head
            value = call.value + batch * call.value_batch + group * call.value_head
            target = call.target + batch * call.target_batch + head * call.target_head
            marks = call.mask + batch * call.mask_batch + head * call.mask_head
            query += start * call.query_row
            transpose(packed, line, query, call.query_row, count, size)
            multiply(packed, size, call.query_scale)
            if num_rows != 0:
                rows = outputs + value_size * 3 * line + KEYS_AT_ONCE * (line + value_size * 4)
                transpose(rows, size * 4, packed, line, size, lanes)
            marks += start * mask_bytes
            keys, position = call.keys, call.num_past
            if length_bytes != 0:
                length = load_length(call.lengths, batch)
                position = length - 1 - (call.queries - 1) * call.advance
                keys = min(keys, length)
            position += start * call.advance
            # A value that is not finite makes NaN of what does not see it: that is found, and the
            # block computed again, rather than looked for in all values ahead.
            if run_block(args, packed, key, value, marks, position, keys, count, 0) != 0:
                run_block(args, packed, key, value, marks, position, keys, count, 1)
            target += start * call.target_row
            transpose(target, call.target_row, outputs, line, value_size, count)

    return attention
