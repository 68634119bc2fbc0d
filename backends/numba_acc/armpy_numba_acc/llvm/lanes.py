"""Vectors under construction: Python's operators write LLVM's instructions.

Notes
-----
Functions of `Lanes` read like arithmetic on numbers, and mean as many elements at a time as
their arguments have. Only what is written is computed: nothing is reordered, and operations on
floats follow IEEE 754, so that infinities and NaNs are values like any other.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"
# llvmlite has no types.

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from armpy_numba_acc.llvm import vectors

F32, F64 = ir.FloatType(), ir.DoubleType()
I32, I64 = ir.IntType(32), ir.IntType(64)


class Lanes:
    """A vector, together with where instructions are added.

    Parameters
    ----------
    builder : llvmlite.ir.IRBuilder
    value : llvmlite.ir.Value
        Of a vector type.
    """

    __slots__ = ("builder", "value")

    def __init__(self, builder, value) -> None:
        self.builder = builder
        self.value = value

    # What it is

    @property
    def element(self):
        """Type of an element."""
        return self.value.type.element

    @property
    def count(self) -> int:
        """Number of elements."""
        count: int = self.value.type.count
        return count

    @property
    def is_float(self) -> bool:
        """Whether elements are floats of either size."""
        return isinstance(self.element, (ir.FloatType, ir.DoubleType))

    def of(self, value) -> Lanes:
        """Another vector in the same place."""
        return Lanes(self.builder, value)

    def like(self, number) -> Lanes:
        """A number in every element, unless it is a vector already."""
        if isinstance(number, Lanes):
            return number
        number = float(number) if self.is_float else int(number)
        return self.of(ir.Constant(self.value.type, [self.element(number)] * self.count))

    # Arithmetic

    def _both(self, other, for_floats: str, for_integers: str) -> Lanes:
        """An instruction that floats have another one for than integers."""
        name = for_floats if self.is_float else for_integers
        return self.of(getattr(self.builder, name)(self.value, self.like(other).value))

    def __add__(self, other) -> Lanes:
        return self._both(other, "fadd", "add")

    def __sub__(self, other) -> Lanes:
        return self._both(other, "fsub", "sub")

    def __mul__(self, other) -> Lanes:
        return self._both(other, "fmul", "mul")

    def __truediv__(self, other) -> Lanes:
        return self._both(other, "fdiv", "sdiv")

    def __mod__(self, other) -> Lanes:
        return self._both(other, "frem", "srem")

    def __radd__(self, other) -> Lanes:
        return self.like(other) + self

    def __rsub__(self, other) -> Lanes:
        return self.like(other) - self

    def __rmul__(self, other) -> Lanes:
        return self.like(other) * self

    def __rtruediv__(self, other) -> Lanes:
        return self.like(other) / self

    def __neg__(self) -> Lanes:
        if self.is_float:
            return self.of(self.builder.fneg(self.value))
        return self.like(0) - self

    def __and__(self, other) -> Lanes:
        return self.of(self.builder.and_(self.value, self.like(other).value))

    def __or__(self, other) -> Lanes:
        return self.of(self.builder.or_(self.value, self.like(other).value))

    def __xor__(self, other) -> Lanes:
        return self.of(self.builder.xor(self.value, self.like(other).value))

    def __lshift__(self, other) -> Lanes:
        return self.of(self.builder.shl(self.value, self.like(other).value))

    def __rshift__(self, other) -> Lanes:
        return self.of(self.builder.ashr(self.value, self.like(other).value))

    def __abs__(self) -> Lanes:
        if self.is_float:
            return self.call("fabs", self)
        return choose(self < 0, -self, self)

    def call(self, name: str, *arguments: Lanes) -> Lanes:
        """A function of LLVM's own whose arguments and result are of one type."""
        kind = arguments[0].value.type
        letter = "f" if arguments[0].is_float else "i"
        width = {F32: 32, F64: 64}.get(kind.element) or kind.element.width
        function = vectors.intrinsic(
            self.builder,
            f"llvm.{name}.v{kind.count}{letter}{width}",
            kind,
            *(kind for _ in arguments),
        )
        return self.of(self.builder.call(function, [a.value for a in arguments]))

    def sqrt(self) -> Lanes:
        """Square roots."""
        return self.call("sqrt", self)

    def with_sign_of(self, other: Lanes) -> Lanes:
        """The same magnitudes with other signs."""
        return self.call("copysign", self, other)

    def times_plus(self, factor, summand) -> Lanes:
        """``self * factor + summand``, rounded once where the processor can."""
        return self.call("fmuladd", self, self.like(factor), self.like(summand))

    # Comparison; the results are of one bit

    def _compare(self, operator: str, other) -> Lanes:
        """Compare; false where a float is NaN."""
        name = "fcmp_ordered" if self.is_float else "icmp_signed"
        return self.of(getattr(self.builder, name)(operator, self.value, self.like(other).value))

    def __lt__(self, other) -> Lanes:
        return self._compare("<", other)

    def __le__(self, other) -> Lanes:
        return self._compare("<=", other)

    def __gt__(self, other) -> Lanes:
        return self._compare(">", other)

    def __ge__(self, other) -> Lanes:
        return self._compare(">=", other)

    def equals(self, other) -> Lanes:
        """Where both are the same number."""
        return self._compare("==", other)

    def differs(self, other) -> Lanes:
        """Where they are not the same number; true where a float is NaN."""
        if not self.is_float:
            return self._compare("!=", other)
        return self.of(self.builder.fcmp_unordered("!=", self.value, self.like(other).value))

    # Conversion

    def converted(self, name: str, element) -> Lanes:
        """An instruction such as ``sitofp`` to another type of elements."""
        kind = ir.VectorType(element, self.count)
        if kind == self.value.type:
            return self
        return self.of(getattr(self.builder, name)(self.value, kind))

    def bits(self) -> Lanes:
        """float32 as the integers that they are stored as."""
        return self.converted("bitcast", I32)

    def as_float(self) -> Lanes:
        """int32 as the floats that are stored like them."""
        return self.converted("bitcast", F32)

    def to_float(self) -> Lanes:
        """int32 to the nearest float32."""
        return self.converted("sitofp", F32)

    def to_integer(self) -> Lanes:
        """Floats without their fraction to int32; they have to fit."""
        return self.converted("fptosi", I32)

    def to_double(self) -> Lanes:
        """float32 to float64."""
        return self.converted("fpext", F64)

    def to_single(self) -> Lanes:
        """float64 to the nearest float32."""
        return self.converted("fptrunc", F32)


def choose(mask: Lanes, one, other) -> Lanes:
    """`one` where the mask is set, else `other`; one of them may be a number."""
    kind = one if isinstance(one, Lanes) else other
    values = kind.like(one).value, kind.like(other).value
    return mask.of(mask.builder.select(mask.value, *values))


def replaced(mask: Lanes, values: Lanes, compute: Callable[[], Lanes]) -> Lanes:
    """`values`, but where the mask is set what `compute` gives: it is run if a bit is."""
    builder = mask.builder
    bits = builder.bitcast(mask.value, ir.IntType(mask.count))
    before = builder.block
    with builder.if_then(
        builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0)), likely=False
    ):
        others = choose(mask, compute(), values)
        seldom = builder.block
    result = builder.phi(values.value.type)
    result.add_incoming(values.value, before)
    result.add_incoming(others.value, seldom)
    return values.of(result)


def clamp(values: Lanes, low, high) -> Lanes:
    """Values within bounds; NaN stays NaN."""
    values = choose(values < low, low, values)
    return choose(values > high, high, values)


def larger(one: Lanes, other) -> Lanes:
    """The larger of each two; NaN where either is."""
    return _extreme(one, other, one > other)


def smaller(one: Lanes, other) -> Lanes:
    """The smaller of each two; NaN where either is."""
    return _extreme(one, other, one < other)


def _extreme(one: Lanes, other, is_first: Lanes) -> Lanes:
    """One of two by a comparison, which is false where either is NaN."""
    chosen = choose(is_first, one, other)
    return choose(one.differs(one), one, chosen) if one.is_float else chosen
