"""Lines of bytes: slopes and offsets for each channel, rounded and clamped, stage after stage."""

from __future__ import annotations

from collections.abc import Sequence

from armpy_numba_acc.llvm.primitives import Definition, defined
from armpy_numba_acc.llvm.values import F32, Code, CodeValue, at_least, choose, clamp
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.elementwise.elements import (
    for_each_vector,
    load_elements,
    store_elements,
)
from armpy_numba_acc.tiles.elementwise.loop import NUM_ROWS_ARGUMENTS, ROWS_NAME, for_each_row


def byte_lines_definition(isa: Isa, stages: str, clamping: str) -> str:
    """Write the function that computes rows of neighbouring bytes.

    Parameters
    ----------
    stages, clamping
        See `armpy_numba_acc.machine.calls.ByteLines`.

    Returns
    -------
    str
        In LLVM's language, with the arguments of `elementwise_definition`'s: addresses of the
        bytes and of their first constants, bytes from a plane of constants to the next,
        address of the output, number of bytes, address of the numbers.
    """

    def write(code: Code, *arguments: CodeValue) -> None:
        plane_bytes, parameters = arguments[2], arguments[5]
        numbers = [parameters.load(F32, 2 * n) for n in range(3 * len(stages))]

        def row(inputs: Sequence[CodeValue], target: CodeValue, count: CodeValue) -> None:
            source, constants = inputs

            def compute(lanes: int, index: CodeValue, mask: CodeValue | None) -> None:
                plane = constants
                real = load_elements(source, "u8", index, lanes, mask).to_float()
                for number, (stage, clamped) in enumerate(zip(stages, clamping, strict=True)):
                    zero, low, high = (n.splat(lanes) for n in numbers[3 * number :][:3])
                    planes = []
                    for _ in range(3 if stage == "b" else 2):
                        planes.append(load_elements(plane, "f32", index, lanes, mask))
                        plane = plane + plane_bytes
                    slope, *offsets = planes
                    offset = choose(real < zero, *offsets) if stage == "b" else offsets[0]
                    moved = real.times_plus(slope, offset)
                    if clamped == "1":
                        moved = at_least(low, moved)
                    elif clamped == "2":
                        moved = clamp(moved, low, high + 0.5)
                    integers = moved.to_integer()
                    real = integers.to_float()
                # Processors can cut off at 255 where they make bytes of integers.
                bytes_ = integers.call("umin", integers.like(255))
                store_elements(bytes_, target, "u8", index, mask)

            for_each_vector(isa, isa.lanes, count, compute)

        for_each_row(arguments, 2, row)

    return defined(Definition(ROWS_NAME, NUM_ROWS_ARGUMENTS, write))
