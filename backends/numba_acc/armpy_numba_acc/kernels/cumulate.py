"""Sums and products of the elements so far along an axis."""

from __future__ import annotations

from collections.abc import Callable

from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.control import loop
from armpy_numba_acc.llvm.pointers import INTEGERS, load_f32, store_f32
from armpy_numba_acc.llvm.primitives import NOTHING, WORD, Primitive, compiled, primitive
from armpy_numba_acc.llvm.threads.sharing import share_items
from armpy_numba_acc.llvm.values import (
    Code,
    CodeValue,
    Kind,
    element_bytes,
    kind_of_format,
)
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.calls.rows import Cumulate
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.blocks import make_copy_run

_STREAMS = 4
"""Rows at once, whose sums do not wait for each other."""


def _make_scan(kind: Kind, is_sum: bool, streams: int) -> Primitive:
    """Make ``scan(target, source, count, step, pitch)``, which cumulates a row or several.

    Their elements are `step` bytes apart, and the rows `pitch` bytes.
    """

    @primitive(NOTHING, *(WORD,) * 5)
    def scan(
        code: Code,
        target: CodeValue,
        source: CodeValue,
        count: CodeValue,
        step: CodeValue,
        pitch: CodeValue,
    ) -> None:
        offsets = [pitch * number for number in range(streams)]
        targets, sources = ([base + offset for offset in offsets] for base in (target, source))

        def turn(number: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
            at = number * step
            elements = [(place + at).load(kind) for place in sources]
            pairs = zip(totals, elements, strict=True)
            results = [x + y if is_sum else x * y for x, y in pairs]
            for place, result in zip(targets, results, strict=True):
                (place + at).store(result)
            return results

        first = [place.load(kind) for place in sources]
        for place, element in zip(targets, first, strict=True):
            place.store(element)
        loop(code, count, first, turn, start=code.integer(1))

    return scan


def make(isa: Isa, operation: str, kind: str) -> Callable[[int, int, int], None]:
    """Make the kernel for the record's parameters; threads share the rows or columns.

    Each element is added to the sum of those in front of it, one after the other.
    """
    read, element, is_sum = reader(Cumulate), kind_of_format(kind), operation == "sum"
    size, neutral = element_bytes(element), 0 if is_sum else 1
    load, store = (load_f32, store_f32) if kind == "f32" else INTEGERS[size]
    several, single = (_make_scan(element, is_sum, streams) for streams in (_STREAMS, 1))
    copy_run = make_copy_run(isa)

    @compiled
    def add_line(target: Pointer, sums: Pointer, source: Pointer, count: int) -> None:
        for j in range(count):
            x, y = load(sums, j), load(source, j)
            store(target, j, x + y if is_sum else x * y)

    @compiled
    def fill_line(target: Pointer, count: int, pitch: int) -> None:
        for j in range(count):
            store(target + j * pitch, 0, neutral)

    def cumulate(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        inner, count = call.inner, call.count - call.is_exclusive
        step, line = inner * size, call.count * inner * size
        start = 0
        if call.is_reversed != 0:
            start, step = line - step, -step
        # An exclusive sum begins with nothing, and lies one element further on.
        ahead = call.is_exclusive * step
        block = 1 if inner == 1 else call.block
        blocks = (inner + block - 1) // block
        first, last = share_items(call.outers * blocks, shares, num_shares)
        while first < last:
            outer = first // blocks
            column = (first - outer * blocks) * block
            columns = min(block, inner - column)
            at = start + outer * line + column * size
            to, from_ = call.target + at, call.source + at
            rows = 1
            if inner == 1:
                rows = _STREAMS if first + _STREAMS <= last else 1
                if call.is_exclusive != 0:
                    fill_line(to, rows, line)
                if count > 0:
                    if rows > 1:
                        several(to + ahead, from_, count, step, line)
                    else:
                        single(to + ahead, from_, count, step, line)
            else:
                if call.is_exclusive != 0:
                    fill_line(to, columns, size)
                    to += ahead
                if count > 0:
                    copy_run(to, from_, columns * size)
                for _ in range(1, count):
                    from_ += step
                    add_line(to + step, to, from_, columns)
                    to += step
            first += rows

    return cumulate
