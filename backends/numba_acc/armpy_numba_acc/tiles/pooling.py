"""The micro-kernels of pooling: float32, 8-bit and 16-bit."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# llvmlite has no types.

from __future__ import annotations

from llvmlite import ir

from armpy_numba_acc.llvm.bytes import interleave, pack_bytes, pack_words, store_bytes
from armpy_numba_acc.llvm.vectors import (
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    extreme,
    fma,
    intrinsic,
    load,
    splat,
    store,
    suffix,
    vector,
)
from armpy_numba_acc.tiles.walk import repeat
from armpy_numba_acc.tiles.windows import block_definition


def pooling_block_f32(lanes: int, columns: int, parts: int, algorithm: str) -> str:
    """Write the function that computes ``lanes * parts`` channels of some pixels.

    Parameters
    ----------
    lanes, columns, parts : int
        Elements of a vector, pixels, vectors of each.
    algorithm : str
        ``max``, ``average`` or ``l2``.

    Notes
    -----
    Arguments: height and width of a window, bounds. There is a slot for each tap and pixel. What
    a pixel's sum is multiplied by has been prepared, as float32.
    """
    kind = vector(F32, lanes)

    def body(builder, block):
        def add(builder, address, totals):
            """Take in one element of a window."""
            place = builder.add(address, block.at)
            values = [load(builder, place, kind, I64(part)) for part in range(parts)]
            return [combine(builder, *pair) for pair in zip(totals, values, strict=True)]

        first = float("-inf") if algorithm == "max" else 0.0
        initial = [ir.Constant(kind, [first] * lanes)] * (columns * parts)
        totals = _over_taps(builder, block, columns, initial, add)
        bounds = [
            splat(
                builder, builder.bitcast(builder.trunc(block.argument(builder, k), I32), F32), lanes
            )
            for k in (2, 3)
        ]
        for number, total in enumerate(totals):
            pixel, part = divmod(number, parts)
            value = mean(builder, total, block.factors, pixel)
            value = extreme(builder, "maxnum", bounds[0], value)  # NaN stays
            value = extreme(builder, "minnum", bounds[1], value)
            place = builder.add(block.place(builder, pixel), I64(part * lanes * 4))
            store(builder, value, place)

    def combine(builder, total, value):
        """What has been found so far with one more element; NaN stays."""
        if algorithm == "max":
            largest = extreme(builder, "maxnum", value, total)
            return builder.select(builder.fcmp_unordered("uno", value, value), value, largest)
        return (
            fma(builder, value, value, total) if algorithm == "l2" else builder.fadd(total, value)
        )

    def mean(builder, total, factors, pixel):
        """What a window's elements become."""
        if algorithm == "max":
            return total
        factor = splat(builder, load(builder, factors, F32, I64(2 * pixel)), lanes)
        value = builder.fmul(total, factor)
        if algorithm == "average":
            return value
        return builder.call(intrinsic(builder, f"llvm.sqrt.{suffix(kind)}", kind, kind), (value,))

    return block_definition(1, columns, 0, body)


def max_block_u8(width: int, columns: int) -> str:
    """Write the function that finds the largest elements of windows; see `pooling_block_f32`.

    Notes
    -----
    Arguments as for `mean_block_u8`.
    """
    size = max(width, 16)

    def body(builder, block):
        def add(builder, address, totals):
            """Take in one element of a window."""
            value = load(builder, builder.add(address, block.at), vector(I8, size))
            return [extreme(builder, "umax", totals[0], value)]

        lowest, highest = (
            splat(builder, builder.trunc(block.argument(builder, k), I8), size) for k in (5, 6)
        )
        totals = _over_taps(builder, block, columns, [lowest] * columns, add)
        for pixel, total in enumerate(totals):
            value = extreme(builder, "umin", total, highest)
            store_bytes(builder, value, block.place(builder, pixel), width)

    return block_definition(1, columns, 0, body)


def mean_block_u8(width: int, columns: int, has_words: bool) -> str:
    """Write the function that computes means of windows; see `pooling_block_f32`.

    Parameters
    ----------
    has_words : bool
        Whether sums are kept in 16 bits: for 257 elements at most.

    Notes
    -----
    Arguments: height and width of a window, zero point, bounds. For each pixel it has been
    prepared what the sum is multiplied by, as float32, and what is added to it before, as int32.
    Rounds halves away from zero, then adds the zero point.
    """
    size = max(width, 16)
    octets, words = vector(I8, size), vector(I16, size // 2)
    sums, reals = vector(I32, size // 4), vector(F32, size // 4)
    parts = 2 if has_words else 4
    kind = words if has_words else sums

    def body(builder, block):
        def add(builder, address, totals):
            """Take in one element of a window."""
            value = load(builder, builder.add(address, block.at), octets)
            values = halves_of(builder, value, words)
            if not has_words:
                values = [v for half in values for v in halves_of(builder, half, sums)]
            return [builder.add(*pair) for pair in zip(totals, values, strict=True)]

        initial = [ir.Constant(kind, None)] * (columns * parts)
        totals = _over_taps(builder, block, columns, initial, add)
        zero_point, low, high = (builder.trunc(block.argument(builder, k), I32) for k in (2, 5, 6))
        for pixel in range(columns):
            found = totals[pixel * parts : (pixel + 1) * parts]
            if has_words:
                found = [v for half in found for v in halves_of(builder, half, sums)]
            steps = [rounded(builder, total, block.factors, pixel) for total in found]
            halves = [pack_words(builder, steps[k : k + 2], zero_point) for k in (0, 2)]
            value = pack_bytes(builder, halves, low, high)
            store_bytes(builder, value, block.place(builder, pixel), width)

    def halves_of(builder, value, wider):
        """Unsigned integers as ones of twice the size, in two vectors."""
        zeros = ir.Constant(value.type, None)
        return [
            builder.bitcast(interleave(builder, value, zeros, half), wider) for half in range(2)
        ]

    def rounded(builder, total, factors, pixel):
        """The mean as an integer."""
        lanes = size // 4
        factor = splat(builder, load(builder, factors, F32, I64(2 * pixel)), lanes)
        addend = splat(builder, load(builder, factors, I32, I64(2 * pixel + 1)), lanes)
        value = builder.fmul(builder.sitofp(builder.add(total, addend), reals), factor)
        copysign = intrinsic(builder, f"llvm.copysign.{suffix(reals)}", reals, reals, reals)
        away = builder.call(copysign, (ir.Constant(reals, [0.5] * lanes), value))
        return builder.fptosi(builder.fadd(value, away), sums)

    return block_definition(1, columns, 0, body)


def max_block_i16(lanes: int, columns: int) -> str:
    """Write the function that finds the largest elements of windows; see `pooling_block_f32`.

    Notes
    -----
    Arguments: height and width of a window, bounds.
    """
    kind = vector(I16, lanes)

    def body(builder, block):
        def add(builder, address, totals):
            """Take in one element of a window."""
            value = load(builder, builder.add(address, block.at), kind)
            return [extreme(builder, "smax", totals[0], value)]

        lowest, highest = (
            splat(builder, builder.trunc(block.argument(builder, k), I16), lanes) for k in (2, 3)
        )
        totals = _over_taps(builder, block, columns, [lowest] * columns, add)
        for pixel, total in enumerate(totals):
            value = extreme(builder, "smin", total, highest)
            store(builder, value, block.place(builder, pixel))

    return block_definition(1, columns, 0, body)


def mean_block_i16(lanes: int, columns: int) -> str:
    """Write the function that computes means of windows; see `pooling_block_f32`.

    Notes
    -----
    Arguments as for `max_block_i16`. For each pixel it has been prepared how many elements its
    window has, as int32. Rounds halves away from zero: float64 holds quotients of less than
    2**31 by less than 2**15 so exactly that none reaches the next integer.
    """
    narrow, sums, reals = vector(I16, lanes), vector(I32, lanes), vector(F64, lanes)

    def body(builder, block):
        def add(builder, address, totals):
            """Take in one element of a window."""
            value = load(builder, builder.add(address, block.at), narrow)
            return [builder.add(totals[0], builder.sext(value, sums))]

        totals = _over_taps(builder, block, columns, [ir.Constant(sums, None)] * columns, add)
        low, high = (
            splat(builder, builder.trunc(block.argument(builder, k), I32), lanes) for k in (2, 3)
        )
        for pixel, total in enumerate(totals):
            value = extreme(builder, "smax", mean(builder, total, block.factors, pixel), low)
            value = builder.trunc(extreme(builder, "smin", value, high), narrow)
            store(builder, value, block.place(builder, pixel))

    def mean(builder, total, factors, pixel):
        """A window's sum divided by how many elements it has."""
        count = load(builder, factors, I32, I64(2 * pixel))
        half = builder.sitofp(splat(builder, builder.lshr(count, I32(1)), lanes), reals)
        divisor = builder.sitofp(splat(builder, count, lanes), reals)
        copysign = intrinsic(builder, f"llvm.copysign.{suffix(reals)}", reals, reals, reals)
        value = builder.sitofp(total, reals)
        value = builder.fadd(value, builder.call(copysign, (half, value)))
        return builder.fptosi(builder.fdiv(value, divisor), sums)

    return block_definition(1, columns, 0, body)


def _over_taps(builder, block, columns, initial, add):
    """Loop over taps with what has been found so far in registers.

    Parameters
    ----------
    add : callable
        ``add(builder, address, totals)`` takes in what is at an address for one pixel.
    """
    parts = len(initial) // columns
    num_taps = builder.mul(block.argument(builder, 0), block.argument(builder, 1))

    def step(builder, tap, totals):
        """One tap for every pixel."""
        table = builder.add(block.table, builder.mul(tap, I64(8 * columns)))
        results = []
        for j in range(columns):
            address = load(builder, table, I64, I64(j))
            results += add(builder, address, totals[j * parts : (j + 1) * parts])
        return results

    return repeat(builder, num_taps, initial, step)
