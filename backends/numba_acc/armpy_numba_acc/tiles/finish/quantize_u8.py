"""Quantisation of float32 to bytes: the micro-kernel."""

from __future__ import annotations

from functools import reduce
from operator import or_

from armpy_numba_acc.llvm.control import when
from armpy_numba_acc.llvm.primitives import FLOAT, NOTHING, WORD, Primitive, primitive
from armpy_numba_acc.llvm.values import (
    F32,
    I8,
    I32,
    Code,
    CodeValue,
    at_least,
    at_most,
    choose,
    vector,
)
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.elementwise import functions as f
from armpy_numba_acc.tiles.finish.requantize import BytePacker

VECTORS = 4
"""That are computed together."""

_BASE = 768
"""Added to stored integers so that bytes lie between 2**9 and 2**10."""

_FRACTION_BITS = (1 << 14) - 1
"""The last bits of such float32 numbers, which are fractions."""

_LARGEST = 2.0**30


def quantize_block(isa: Isa) -> Primitive:
    """Make the function that quantises four vectors of floats.

    Floats are divided by the scale and rounded, ties away from zero or to even; NaN is 0.
    Divisions take long: floats are multiplied instead, with which results of less than 256 are
    off by less than ``2**-14``, the rounding of the reference included. Where they are
    rounded by cutting fractions off, those may be wrong whose fractions are 0 then, and only
    those: their vectors are computed again.

    Returns
    -------
    callable
        ``quantize(source, target, zero_point, flip, to_even, scale, inverse)`` for code that Numba
        compiles: addresses; of the unsigned output; what bytes are changed by in the end; whether
        ties go to the even integer; the scale, and 1 by it.
    """
    kind = vector(F32, isa.lanes)

    @primitive(NOTHING, *(WORD,) * 5, FLOAT, FLOAT)
    def quantize(
        code: Code,
        source: CodeValue,
        target: CodeValue,
        zero_point: CodeValue,
        flip: CodeValue,
        to_even: CodeValue,
        scale: CodeValue,
        inverse: CodeValue,
    ) -> None:
        values = [source.load(kind, number) for number in range(VECTORS)]
        zero = zero_point.to_float()
        factor, shift = inverse.splat(isa.lanes), (zero + (_BASE + 0.5)).splat(isa.lanes)
        moved = [value.times_plus(factor, shift) for value in values]
        results = when(
            _is_doubtful(moved),
            lambda: [_exact(value, scale, zero, to_even) for value in values],
            lambda: [_cut_off(value) for value in moved],
            likely=False,
        )
        base, low, high = code.constant(I32, -_BASE), code.integer(0), code.integer(255)
        packer = BytePacker(isa, base, low, high, has_bounds=False)
        changed = flip.narrowed(I8).splat(isa.vector_bytes)
        target.store(packer.elements(results) ^ changed)

    return quantize


def _cut_off(moved: CodeValue) -> CodeValue:
    """Integers without fractions, where those of bytes lie; NaN is the lowest."""
    return at_most(at_least(moved, moved.like(0.0)), moved.like(_LARGEST)).to_integer()


def _is_doubtful(moved: list[CodeValue]) -> CodeValue:
    """Return whether any number of some vectors may be cut off wrong, or is NaN."""
    doubts = [
        (register.bits() & _FRACTION_BITS).equals(0) | register.is_nan() for register in moved
    ]
    return reduce(or_, doubts).any()


def _exact(
    value: CodeValue, scale: CodeValue, zero_point: CodeValue, to_even: CodeValue
) -> CodeValue:
    """Stored integers by a division."""
    steps, zero = value / scale.splat(value.count), zero_point.splat(value.count)
    steps = choose(steps.differs(steps), 0.0, steps)
    limits = zero, -zero, 255.0 - zero
    even, away = f.to_stored_even(steps, *limits), f.to_stored(steps, *limits)
    return choose(to_even.differs(0), even, away) + _BASE
