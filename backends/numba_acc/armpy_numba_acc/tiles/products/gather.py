"""Gathers what rows of a product multiply: the taps of each next to each other."""

from __future__ import annotations

from functools import partial

from armpy_numba_acc.llvm.calls import CallFields
from armpy_numba_acc.llvm.control import loop, when
from armpy_numba_acc.llvm.primitives import Definition, linked
from armpy_numba_acc.llvm.values import I8, I64, Code, CodeValue, first_lanes, vector
from armpy_numba_acc.machine.calls.products import MatrixWalk, ProductCall
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.processors.matrix_unit import CONFIGURATION_BYTES

_NAME = "armpy_gather_rows"

gather_rows = linked(_NAME, 3)
"""``(args, table, target)`` copies rows, whose addresses are in a table, after each other."""


def gather_definition(isa: Isa, record: type[ProductCall]) -> Definition:
    """The function `gather_rows`.

    Nothing is read that belongs to no tap. Bytes after a tap, up to where the next one begins or
    the row ends, become zeros: anything may lie there in memory, also NaN.
    """
    return Definition(_NAME, 3, partial(_write, isa, record))


def _write(
    isa: Isa,
    record: type[ProductCall],
    code: Code,
    args: CodeValue,
    table: CodeValue,
    target: CodeValue,
) -> None:
    call, size = CallFields(record, args), isa.vector_bytes
    walk = CallFields(MatrixWalk, call.walk + CONFIGURATION_BYTES)
    kind, taps, pitch = vector(I8, size), call.taps, walk.tap_pitch
    whole, rest = walk.tap_bytes / size, walk.tap_bytes % size
    mask = first_lanes(rest, size)

    def row(number: CodeValue, _: list[CodeValue]) -> list[CodeValue]:
        source, place = table.load(I64, number), target + number * walk.gathered_pitch

        def tap(number: CodeValue, _: list[CodeValue]) -> list[CodeValue]:
            tap_source, at = source + taps.load(I64, number), place + number * pitch

            def piece(number: CodeValue, _: list[CodeValue]) -> list[CodeValue]:
                at.store(tap_source.load(kind, number), number)
                return []

            def last() -> list[CodeValue]:
                at.store(tap_source.load(kind, whole, mask=mask), whole)
                return []

            loop(code, whole, [], piece)
            when(rest > 0, last)
            return []

        loop(code, call.num_taps, [], tap)
        end = place + call.num_taps * pitch
        for index in range(64 // size):
            end.store(code.constant(kind), index)
        return []

    loop(code, call.rows, [], row)
