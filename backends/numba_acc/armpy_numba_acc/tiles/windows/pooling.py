"""Pooling: the micro-kernels that fold windows of float32, 8-bit and 16-bit elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from armpy_numba_acc.llvm.arithmetic.bytes import interleave, pack_bytes, pack_words, store_bytes
from armpy_numba_acc.llvm.control import repeat
from armpy_numba_acc.llvm.values import (
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    CodeValue,
    Kind,
    at_least,
    at_most,
    choose,
    vector,
)
from armpy_numba_acc.machine.call import Call
from armpy_numba_acc.machine.calls.windows import PoolingF32, PoolingI16, PoolingU8
from armpy_numba_acc.tiles.windows.loop import Block, block_definition

Fold = Callable[[CodeValue, CodeValue], CodeValue]
"""Takes the result so far and another element of the window."""


def pooling_block_f32(lanes: int, columns: int, parts: int, algorithm: str) -> str:
    """Write the function that pools ``lanes * parts`` channels of some pixels.

    There is a slot for each tap and pixel. What a pixel's sum is multiplied by has been prepared,
    as float32.

    Parameters
    ----------
    lanes, columns, parts
        Elements of a vector, pixels, vectors of each.
    algorithm
        ``max``, ``average`` or ``l2``.
    """
    kind = vector(F32, lanes)

    def compute(block: Block) -> None:
        call, initial = block.call(PoolingF32), -math.inf if algorithm == "max" else 0.0

        def load(address: CodeValue) -> list[CodeValue]:
            return [(address + block.at).load(kind, part) for part in range(parts)]

        fold = {"max": _larger, "l2": lambda total, x: x.times_plus(x, total)}.get(algorithm, _sum)
        pixels = _over_taps(block, PoolingF32, columns, [(kind, initial)] * parts, load, fold)
        low, high = (bound.splat(lanes) for bound in (call.low, call.high))
        for pixel, values in enumerate(pixels):
            for part, total in enumerate(values):
                value = at_most(high, at_least(low, finished(total, block.factors, pixel)))
                block.place(pixel).store(value, part)

    def finished(total: CodeValue, factors: CodeValue, pixel: int) -> CodeValue:
        """Return the result of a window's elements."""
        if algorithm == "max":
            return total
        value = total * factors.load(F32, 2 * pixel).splat(lanes)
        return value if algorithm == "average" else value.sqrt()

    return block_definition(1, columns, 0, compute)


def _sum(total: CodeValue, value: CodeValue) -> CodeValue:
    return total + value


def _larger(total: CodeValue, value: CodeValue) -> CodeValue:
    """Maximum of the elements; NaN stays."""
    return choose(value.is_nan(), value, at_least(value, total))


def max_block_u8(width: int, columns: int) -> str:
    """Write the function that finds the maximum of windows of bytes; see `pooling_block_f32`."""
    kind = vector(I8, max(width, 16))

    def compute(block: Block) -> None:
        call = block.call(PoolingU8)
        low, high = (bound.narrowed(I8).splat(kind.count) for bound in (call.low, call.high))
        pixels = _over_taps(
            block,
            PoolingU8,
            columns,
            [low],
            lambda address: [(address + block.at).load(kind)],
            lambda total, value: total.call("umax", value),
        )
        for pixel, (total,) in enumerate(pixels):
            store_bytes(total.call("umin", high), block.place(pixel), width)

    return block_definition(1, columns, 0, compute)


def mean_block_u8(width: int, columns: int, has_words: bool) -> str:
    """Write the function that computes means of windows of bytes; see `pooling_block_f32`.

    For each pixel two values are prepared: the factor of the sum, as float32, and the
    added to it before, as int32. Rounds ties away from zero, then adds the zero point.

    Parameters
    ----------
    has_words
        Whether sums are kept in 16 bits: for 257 elements at most.
    """
    size = max(width, 16)
    octets, words, sums = vector(I8, size), vector(I16, size // 2), vector(I32, size // 4)
    kinds = [words] * 2 if has_words else [sums] * 4

    def compute(block: Block) -> None:
        call = block.call(PoolingU8)

        def load(address: CodeValue) -> list[CodeValue]:
            values = widened((address + block.at).load(octets), words)
            return values if has_words else [v for part in values for v in widened(part, sums)]

        initial = [(kind, 0) for kind in kinds]
        pixels = _over_taps(block, PoolingU8, columns, initial, load, _sum)
        for pixel, values in enumerate(pixels):
            totals = [v for part in values for v in widened(part, sums)] if has_words else values
            steps = [mean(total, block.factors, pixel) for total in totals]
            packed = [pack_words(steps[k : k + 2], call.zero_point) for k in (0, 2)]
            store_bytes(pack_bytes(packed, call.low, call.high), block.place(pixel), width)

    def widened(value: CodeValue, wider: Kind) -> list[CodeValue]:
        """Unsigned integers as ones of twice the size, in two vectors."""
        zeros = value.like(0)
        return [interleave(value, zeros, half).bitcast(wider) for half in range(2)]

    def mean(total: CodeValue, factors: CodeValue, pixel: int) -> CodeValue:
        factor = factors.load(F32, 2 * pixel).splat(sums.count)
        addend = factors.load(I32, 2 * pixel + 1).splat(sums.count)
        value = (total + addend).to_float() * factor
        return (value + value.like(0.5).with_sign_of(value)).to_integer()

    return block_definition(1, columns, 0, compute)


def small_mean_block_u8(width: int, columns: int) -> str:
    """Write the function that computes means of few bytes, in 16 bits; see `pooling_block_f32`.

    For each pixel it has been prepared: 2**15 by the number n of elements, rounded up, in 16 bits;
    n or n - 1, whichever is even, in 16 bits; the sum's addend, as int32. ``2 |sum| + n``
    by ``2 n`` is the magnitude of the mean, ties away from zero. The quotient's error is below its
    step of ``1 / n``, as sums are below ``256 n``: for n of at most 11.
    """
    size = max(width, 16)
    octets, words = vector(I8, size), vector(I16, size // 2)

    def compute(block: Block) -> None:
        call = block.call(PoolingU8)

        def load(address: CodeValue) -> list[CodeValue]:
            values = (address + block.at).load(octets)
            zeros = values.like(0)
            return [interleave(values, zeros, half).bitcast(words) for half in range(2)]

        pixels = _over_taps(block, PoolingU8, columns, [(words, 0)] * 2, load, _sum)
        zero = call.zero_point.narrowed(I16).splat(words.count)
        for pixel, totals in enumerate(pixels):
            means = [mean(total, block.factors, pixel) + zero for total in totals]
            store_bytes(pack_bytes(means, call.low, call.high), block.place(pixel), width)

    def mean(total: CodeValue, factors: CodeValue, pixel: int) -> CodeValue:
        inverse, even, addend = (
            factors.load(I16, 4 * pixel + number).splat(words.count) for number in range(3)
        )
        moved = total + addend
        sign = moved >> 15
        magnitude = (moved ^ sign) - sign
        doubled = magnitude + magnitude + even
        product = doubled.converted("zext", I32) * inverse.converted("zext", I32)
        quotient = product.shifted_right(16).narrowed(I16)
        return (quotient ^ sign) - sign

    return block_definition(1, columns, 0, compute)


def pooling_block_i16(lanes: int, columns: int, algorithm: str) -> str:
    """Write the function that pools 16-bit elements; see `pooling_block_f32`.

    For each pixel it has been prepared how many elements its window has, as int32. Means round ties
    away from zero: float64 holds quotients of less than 2**31 by less than 2**15 so exactly that
    none reaches the next integer.
    """
    is_max = algorithm == "max"
    narrow = vector(I16, lanes)
    kind = narrow if is_max else vector(I32, lanes)

    def compute(block: Block) -> None:
        call = block.call(PoolingI16)
        low, high = (b.narrowed(kind.element).splat(lanes) for b in (call.low, call.high))

        def load(address: CodeValue) -> list[CodeValue]:
            return [(address + block.at).load(narrow).signed(kind.element)]

        initial, fold = (low, _larger_integer) if is_max else ((kind, 0), _sum)
        pixels = _over_taps(block, PoolingI16, columns, [initial], load, fold)
        for pixel, (total,) in enumerate(pixels):
            value = total if is_max else mean(total, block.factors, pixel)
            block.place(pixel).store(value.call("smax", low).call("smin", high).narrowed(I16))

    def mean(total: CodeValue, factors: CodeValue, pixel: int) -> CodeValue:
        """A window's sum divided by how many elements it has."""
        count = factors.load(I32, 2 * pixel)
        half = count.shifted_right(1).splat(lanes).converted("sitofp", F64)
        divisor = count.splat(lanes).converted("sitofp", F64)
        value = total.converted("sitofp", F64)
        return ((value + half.with_sign_of(value)) / divisor).to_integer()

    return block_definition(1, columns, 0, compute)


def _larger_integer(total: CodeValue, value: CodeValue) -> CodeValue:
    """Maximum of signed integers."""
    return total.call("smax", value)


def _over_taps(
    block: Block,
    kind: type[Call],
    columns: int,
    initial: Sequence[CodeValue | tuple[Kind, float]],
    load: Callable[[CodeValue], Sequence[CodeValue]],
    fold: Fold,
) -> list[list[CodeValue]]:
    """Loop over the taps of windows with the results so far in registers.

    Parameters
    ----------
    kind
        Record of the kernel's call.
    initial
        What each of a pixel's vectors begins with.
    load : callable
        Gives an element of the window, as so many vectors, from an address.
    fold : callable
        See `Fold`.

    Returns
    -------
    list of list of CodeValue
        The vectors of each pixel.
    """
    code, call, parts = block.args.code, block.call(kind), len(initial)
    firsts = [start if isinstance(start, CodeValue) else code.constant(*start) for start in initial]

    def step(tap: CodeValue, totals: list[CodeValue]) -> list[CodeValue]:
        """One tap for every pixel."""
        table = block.table + tap * (8 * columns)
        results: list[CodeValue] = []
        for j in range(columns):
            elements = load(table.load(I64, j))
            results += map(fold, totals[j * parts : (j + 1) * parts], elements)
        return results

    sums = repeat(code, call.kernel_h * call.kernel_w, firsts * columns, step)
    return [sums[pixel * parts : (pixel + 1) * parts] for pixel in range(columns)]
