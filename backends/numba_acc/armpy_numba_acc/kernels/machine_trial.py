"""Trials of a machine: loops that keep one part of the processor busy, all in one kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from armpy_numba_acc.llvm.arithmetic.bfloat16 import add_pairs
from armpy_numba_acc.llvm.arithmetic.dots import spread_products
from armpy_numba_acc.llvm.arithmetic.matrix_unit import Amx
from armpy_numba_acc.llvm.calls import reader
from armpy_numba_acc.llvm.control import repeat, when
from armpy_numba_acc.llvm.primitives import NOTHING, WORD, primitive
from armpy_numba_acc.llvm.values import F32, I32, Code, CodeValue, vector
from armpy_numba_acc.machine.calls.measuring import MachineTrial
from armpy_numba_acc.machine.cost_model.trials import (
    CONFIGURATION_OFFSET,
    NUM_ACCESSES,
    NUM_TOTALS,
    RESULTS_OFFSET,
    ROW_BYTES,
    ROWS_OFFSET,
    TimedLoop,
    trials_of,
)
from armpy_numba_acc.machine.isa import Isa

_LINE_BYTES = 64


def make(isa: Isa) -> Callable[[int, int, int], None]:
    """Make the kernel; the measured instructions depend on the instruction set."""
    read = reader(MachineTrial)

    @primitive(NOTHING, WORD, WORD, WORD, WORD)
    def run(
        code: Code, memory: CodeValue, number: CodeValue, repeats: CodeValue, mask: CodeValue
    ) -> None:
        for place, trial in enumerate(trials_of(isa)):
            loops = _Loops(isa._replace(vector_bytes=trial.vector_bytes or 16), code, memory)

            def write(loops: _Loops = loops, trial: TimedLoop = trial) -> Sequence[CodeValue]:
                loops.run(trial, repeats, mask)
                return []

            when(number.equals(place), write)

    def machine_trial(args: int, shares: int, num_shares: int) -> None:
        call = read(args)
        run(call.memory, call.number, call.repeats, call.mask)

    return machine_trial


class _Loops:
    """Writes loops for registers of one width."""

    def __init__(self, isa: Isa, code: Code, memory: CodeValue) -> None:
        self.isa, self.code, self.memory = isa, code, memory
        self.floats, self.words = vector(F32, isa.lanes), vector(I32, isa.lanes)

    def run(self, trial: TimedLoop, repeats: CodeValue, mask: CodeValue) -> None:
        """Write a trial's loop, so that no turn can be left out."""
        if trial.what in ("dots", "fetches", "puts"):
            self._run_unit(trial, repeats)
            return
        turn, count = {
            "chain": (self._chain, 1),
            "steps": (self._steps(trial.kind), NUM_TOTALS),
            "wait": (self._steps(trial.kind), 1),
            "loads": (self._loads(mask), 8),
            "stores": (self._stores(mask), 1),
            "broadcasts": (self._broadcasts, 8),
            "tile": (self._tile(trial), trial.rows * trial.vectors),
        }[trial.what]
        is_float = trial.what in ("tile", "broadcasts") or trial.kind in ("f32", "bf16")
        kind = self.floats if is_float else self.words
        totals = [self.memory.load(kind, number) for number in range(count)]
        if trial.what == "chain":
            totals = [totals[0].at(0)]
        for number, total in enumerate(repeat(self.code, repeats, totals, turn)):
            (self.memory + RESULTS_OFFSET + _LINE_BYTES * (number % 16)).store(total)

    def _chain(self, _: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
        """Four integer multiplications, each by the result of the one before."""
        for _turn in range(4):
            totals = [total * total for total in totals]
        return totals

    def _steps(self, kind: str) -> Callable[[CodeValue, list[CodeValue]], list[CodeValue]]:
        """One product of each register of sums."""
        first, second = (self.memory.load(self.words, number) for number in (20, 21))
        if kind == "f32":
            x, y = first.bitcast(self.floats), second.bitcast(self.floats)
            return lambda _, totals: [x.times_plus(y, total) for total in totals]
        if kind == "bf16":
            return lambda _, totals: [add_pairs(self.isa, total, first, second) for total in totals]
        dots = spread_products(self.isa)
        elements = dots.elements(first)
        if self.isa.dot:
            weights = dots.weights(self.memory, 10)
            return lambda _, totals: [dots.add(total, elements, weights) for total in totals]

        def turn(number: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
            # Other weights for each sum and turn, as such a product does not depend on the sum: the
            # compiler would compute one, before the loop.
            line = self.memory + ((number * _LINE_BYTES) & (ROW_BYTES - 1))
            return [
                dots.add(total, elements, dots.weights(line, j)) for j, total in enumerate(totals)
            ]

        return turn

    def _loads(self, mask: CodeValue) -> Callable[[CodeValue, list[CodeValue]], list[CodeValue]]:
        """As many loads, one after the other."""
        size = self.isa.vector_bytes

        def turn(number: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
            place = self.memory + ((number * (NUM_ACCESSES * size)) & mask)
            for access in range(NUM_ACCESSES):
                chosen = access % len(totals)
                totals[chosen] = totals[chosen] ^ (place + size * access).load(self.words)
            return totals

        return turn

    def _stores(self, mask: CodeValue) -> Callable[[CodeValue, list[CodeValue]], list[CodeValue]]:
        """As many stores, one after the other."""
        size = self.isa.vector_bytes

        def turn(number: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
            place = self.memory + ((number * (NUM_ACCESSES * size)) & mask)
            for access in range(NUM_ACCESSES):
                (place + size * access).store(totals[0])
            return totals

        return turn

    def _broadcasts(self, number: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
        """As many elements, each in all lanes."""
        place = self.memory + ((number * 4) & (ROW_BYTES - 1))
        for access in range(NUM_ACCESSES):
            chosen = access % len(totals)
            element = (place + _LINE_BYTES * access).load(F32).splat(self.isa.lanes)
            totals[chosen] = totals[chosen] + element
        return totals

    def _tile(self, trial: TimedLoop) -> Callable[[CodeValue, list[CodeValue]], list[CodeValue]]:
        """A step of a tile of a product, as the product engine writes it."""
        rows = [self.memory + (ROWS_OFFSET + ROW_BYTES * row) for row in range(trial.rows)]
        line_bytes = self.isa.vector_bytes * trial.vectors

        def turn(number: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
            line = self.memory + ((number * line_bytes) & 0x3FFF)
            weights = [line.load(self.floats, j) for j in range(trial.vectors)]
            index, result = (number * 4) & (ROW_BYTES - 1), []
            for row, place in enumerate(rows):
                element = (place + index).load(F32).splat(self.isa.lanes)
                sums = totals[row * trial.vectors : (row + 1) * trial.vectors]
                result += [
                    element.times_plus(weight, total)
                    for weight, total in zip(weights, sums, strict=True)
                ]
            return result

        return turn

    def _run_unit(self, trial: TimedLoop, repeats: CodeValue) -> None:
        """Four operations of the matrix unit."""
        unit = Amx(self.code, self.memory)
        pitch = self.code.integer(_LINE_BYTES)
        unit.configure(self.memory + CONFIGURATION_OFFSET)
        for tile in (4, 5, 6, 7):
            unit.load(tile, self.memory + ROW_BYTES * tile, pitch)

        def turn(number: CodeValue, _: list[CodeValue]) -> list[CodeValue]:
            place = self.memory + ((number * (4 * ROW_BYTES)) & 0x3FFF)
            for part in range(4):
                if trial.what == "dots":
                    tiles = part, 4 + part // 2, 6 + part % 2
                    unit.dot("bytes" if trial.kind == "u8" else "bfloat16", *tiles)
                elif trial.what == "fetches":
                    unit.load(4 + part, place + ROW_BYTES * part, pitch)
                else:
                    unit.store(part, place + ROW_BYTES * part, pitch)
            return []

        repeat(self.code, repeats, [], turn)
        unit.release()
