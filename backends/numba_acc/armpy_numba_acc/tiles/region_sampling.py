"""Samples of regions: their places along an axis, and their sums or maxima in all channels."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from numba import float32, float64, int64

from armpy_numba_acc.llvm.control import loop
from armpy_numba_acc.llvm.pointers import load_f32, load_i64, store_f32, store_i64
from armpy_numba_acc.llvm.primitives import FLOAT, NOTHING, WORD, Primitive, compiled, primitive
from armpy_numba_acc.llvm.values import F32, I64, Code, CodeValue, larger, vector
from armpy_numba_acc.machine.call import Pointer
from armpy_numba_acc.machine.isa import Isa


@primitive("float64", "float64")
def _floor(code: Code, value: CodeValue) -> CodeValue:
    return value.call("floor")


@primitive("float64", "float64")
def _ceil(code: Code, value: CodeValue) -> CodeValue:
    return value.call("ceil")


@cache
def make_taps(form: str) -> Callable[..., float]:
    """Make ``taps(bins, end, first, last, num_out, samples, size, pitch, is_half_pixel)``.

    It writes for each of `num_out`, and one more, the number of its first tap, and whether some of
    its samples count as 0. Taps follow, up to `end`: the byte offset (int64) of an element along
    the axis, and its weight (float32, in 8 bytes). Neighbouring samples share a tap in a mean,
    unless one weight is 0: that times infinity is NaN. `first` and `last` are where the
    region lies. The result is how many samples an element of the output has (float64). `form` is
    that of `armpy_numba_acc.machine.calls.images.RoiAlign`.
    """
    is_inside, is_mean = form == "inside", form != "max"

    @compiled
    def put(taps: Pointer, first: int, number: int, offset: int, weight: float) -> int:
        """Add a tap to those of an element of the output; return how many taps there are."""
        for other in range(max(first, number - 3), number):
            known = load_f32(taps, 4 * other + 2)
            may_share = (known != 0) == (weight != 0) if is_mean else known == weight
            if may_share and load_i64(taps, 2 * other) == offset:
                store_f32(taps, 4 * other + 2, known + weight if is_mean else known)
                return number
        store_i64(taps, 2 * number, offset)
        store_f32(taps, 4 * number + 2, weight)
        return number + 1

    @compiled
    def find_taps(
        bins: int,
        taps_end: int,
        start: float,
        end: float,
        num_out: int,
        samples: int,
        size: int,
        pitch: int,
        is_half_pixel: int,
    ) -> float:
        taps = bins + (num_out + 1) * 16
        length = float64(end) - float64(start)
        if is_inside:
            length = float64(end - start)
        if is_half_pixel == 0:
            length = max(length, float64(1))
        step = length / float64(num_out)
        if is_inside:
            step = float64(float32(step))
        count = float64(samples)
        if samples == 0:
            count = max(_ceil(step), 0.0)
        distance = step / max(count, float64(1))
        begin = float64(start) - (0.5 if is_half_pixel != 0 else 0.0)
        total, capacity = 0, (taps_end - taps) // 16 - 1
        for place in range(num_out):
            store_i64(bins, 2 * place, total)
            first, origin = total, begin + float64(place) * step
            number, most = float64(0), count
            if not is_inside and distance > 0:  # no more than may lie within the image
                number = min(max(_ceil((-1 - origin) / distance - 0.5), float64(0)), count)
                most = min(count, float64(size + 1) / distance + 2)
            counted = 0
            for _ in range(int64(most)):
                where = origin + (number + 0.5) * distance
                if is_inside:
                    where = float64(
                        float32(place) * float32(step)
                        + start
                        + (float32(number) + float32(0.5)) * float32(distance)
                    )
                # Positions of a huge region are rounded to anything, and may not fill the table.
                is_there = number < count and total < capacity
                if is_there and (is_inside or (where >= -1 and where <= size)):
                    where = min(max(where, float64(0)), float64(size - 1))
                    limit = size - 1 if is_inside else max(size - 2, 0)
                    lower = min(int64(_floor(where)), limit)
                    share = float32(where - float64(lower))
                    total = put(taps, first, total, lower * pitch, float32(1) - share)
                    total = put(taps, first, total, min(lower + 1, size - 1) * pitch, share)
                    counted += 1
                number += 1
            store_i64(bins, 2 * place + 1, int64(counted == 0 or float64(counted) < count))
        store_i64(bins, 2 * num_out, total)
        samples_of_each: float = max(count, 1.0)
        return samples_of_each

    return find_taps


@cache
def make_combine(isa: Isa, is_max: bool) -> Primitive:
    """Make ``combine(target, source, rows, num_rows, columns, num_columns, channels, start)``.

    Each of some neighbouring float32 channels becomes the largest of `start` and its elements at
    the rows' and columns' taps times both weights; or their sum, divided by `start`.
    """
    blocks = dict.fromkeys((4 * isa.lanes, isa.lanes, min(isa.lanes, 4), 1))

    @primitive(NOTHING, *(WORD,) * 7, FLOAT)
    def combine(
        code: Code,
        target: CodeValue,
        source: CodeValue,
        rows: CodeValue,
        num_rows: CodeValue,
        columns: CodeValue,
        num_columns: CodeValue,
        channels: CodeValue,
        start: CodeValue,
    ) -> None:
        def step_of(lanes: int) -> Callable[[CodeValue, list[CodeValue]], list[CodeValue]]:
            width = min(lanes, isa.lanes)
            kind, parts = vector(F32, width), range(lanes // width)

            def step(channel: CodeValue, _: list[CodeValue]) -> list[CodeValue]:
                place = source + channel * 4

                def add_row(y: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
                    row, share = place + rows.load(I64, y * 2), rows.load(F32, y * 4 + 2)

                    def add(x: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
                        element = row + columns.load(I64, x * 2)
                        weight = (columns.load(F32, x * 4 + 2) * share).splat(width)
                        elements = [element.load(kind, part) for part in parts]
                        if is_max:
                            pairs = zip(totals, elements, strict=True)
                            return [larger(total, value * weight) for total, value in pairs]
                        pairs = zip(totals, elements, strict=True)
                        return [value.times_plus(weight, total) for total, value in pairs]

                    return loop(code, num_columns, totals, add)

                first = start.splat(width) if is_max else code.constant(kind)
                totals = loop(code, num_rows, [first for _ in parts], add_row)
                for part, total in enumerate(totals):
                    result = total if is_max else total / start.splat(width)
                    (target + channel * 4).store(result, part)
                return []

            return step

        done = code.integer(0)
        for lanes in blocks:
            end = done + (channels - done) / lanes * lanes
            loop(code, end, [], step_of(lanes), start=done, by=lanes)
            done = end

    return combine
