"""Numbers and vectors under construction: Python's operators write LLVM's instructions.

Notes
-----
Code that is written with `CodeValue` reads like arithmetic on numbers, and means as many elements
at a time as its vectors have. The code is computed as written: nothing is reordered, and
operations on floats follow IEEE 754, so that infinities and NaNs are values like any other.

Loops and conditions are in `armpy_numba_acc.llvm.control`; whole functions, and what code that
Numba compiles can call, in `armpy_numba_acc.llvm.primitives`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from llvmlite import ir

Kind: TypeAlias = Any  # Any: llvmlite's types have no types
"""A type of LLVM's: of a number or a vector."""

Number: TypeAlias = "CodeValue | int | float"
"""A value, or a constant of the type of the value that it is combined with."""

I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
F16, F32, F64 = ir.HalfType(), ir.FloatType(), ir.DoubleType()


def vector(element: Kind, lanes: int) -> Kind:
    """A vector type."""
    return ir.VectorType(element, lanes)


def kind_of_format(format_: str) -> Kind:
    """The kind of elements: ``f32``, or integers of some bits such as ``i16`` and ``u16``."""
    return F32 if format_ == "f32" else ir.IntType(int(format_[1:]))


def element_bytes(kind: Kind) -> int:
    """Bytes of a number, or of each element of a vector."""
    element = kind.element if isinstance(kind, ir.VectorType) else kind
    if isinstance(element, ir.FloatType | ir.DoubleType):
        return 4 if isinstance(element, ir.FloatType) else 8
    return max(int(element.width) // 8, 1)


def suffix(kind: Kind) -> str:
    """Return how LLVM's intrinsics name a type: ``v16f32``, ``i64``."""
    element = kind.element if isinstance(kind, ir.VectorType) else kind
    is_float = isinstance(element, ir.FloatType | ir.DoubleType)
    text = f"f{8 * element_bytes(element)}" if is_float else f"i{element.width}"
    return f"v{kind.count}{text}" if isinstance(kind, ir.VectorType) else text


class Code:
    """Place where instructions are added."""

    __slots__ = ("builder",)

    def __init__(self, builder: Any) -> None:  # Any: llvmlite has no types
        self.builder = builder

    def of(self, value: Any) -> CodeValue:  # Any: llvmlite has no types
        """Wrap a value of llvmlite's, with operators."""
        return CodeValue(self, value)

    def constant(self, kind: Kind, number: float = 0) -> CodeValue:
        """A number, in every element if the type is a vector."""
        return self.of(_constant_of(kind, number, repr(number)))

    def integer(self, number: int) -> CodeValue:
        """A constant of 64 bits: sizes, addresses, counts."""
        return self.constant(I64, number)

    def numbers(self, element: Kind, values: Sequence[float]) -> CodeValue:
        """A vector of constants."""
        return self.of(_constants_of(element, (*values,), repr(values)))

    def undefined(self, kind: Kind) -> CodeValue:
        """An undefined value, for results that are never read."""
        return self.of(ir.Constant(kind, ir.Undefined))

    def call(
        self, name: str, result: Kind | None, *arguments: CodeValue, **options: Any
    ) -> CodeValue:
        """Call a function by its name: LLVM's own, the C library's, or one that is linked.

        Parameters
        ----------
        result
            None if it returns nothing; the result must not be used then.
        **options
            As for llvmlite's ``IRBuilder.call``, such as ``fastmath=("reassoc",)``.
        """
        kinds = [argument.kind for argument in arguments]
        function_kind = ir.FunctionType(ir.VoidType() if result is None else result, kinds)
        module = self.builder.module
        function = module.globals.get(name) or ir.Function(module, function_kind, name)
        return self.of(self.builder.call(function, [a.value for a in arguments], **options))

    def stack(self, kind: Kind, count: int = 1) -> CodeValue:
        """Address of memory for values, which the function has for as long as it runs."""
        with self.builder.goto_entry_block():
            room = self.builder.alloca(kind, count)
            return self.of(self.builder.ptrtoint(room, I64))


@lru_cache(maxsize=4096)
def _constant_of(kind: Kind, number: float, _: str) -> Any:  # Any: llvmlite has no types
    """A constant, in every element if the type is a vector, whose text is put together once.

    The text of the number distinguishes zeros with different signs.
    """
    if isinstance(kind, ir.VectorType):
        return ir.Constant(kind, [_constant(kind.element, number)] * kind.count)
    return _constant(kind, number)


@lru_cache(maxsize=4096)
def _constants_of(element: Kind, values: tuple[float, ...], _: str) -> Any:  # Any: as above
    """A vector of constants, whose text is put together once; for the text see above."""
    constants = [_constant(element, value) for value in values]
    return ir.Constant(vector(element, len(constants)), constants)


def _constant(kind: Kind, number: float) -> Any:  # Any: llvmlite has no types
    is_float = isinstance(kind, ir.FloatType | ir.DoubleType)
    return kind(float(number) if is_float else int(number))


class CodeValue:
    """A number or a vector that code computes, together with where instructions are added.

    Operators take values of the same type, or Python's numbers. Integers are signed unless a
    method says otherwise; comparisons give bits.
    """

    __slots__ = ("code", "value")

    def __init__(self, code: Code, value: Any) -> None:  # Any: llvmlite has no types
        self.code = code
        self.value = value

    # What it is

    @property
    def kind(self) -> Kind:
        """Its type."""
        return self.value.type

    @property
    def is_vector(self) -> bool:
        """Return whether it has elements."""
        return isinstance(self.kind, ir.VectorType)

    @property
    def element(self) -> Kind:
        """Type of an element, or of the number that it is."""
        return self.kind.element if self.is_vector else self.kind

    @property
    def count(self) -> int:
        """Number of elements."""
        return int(self.kind.count) if self.is_vector else 1

    @property
    def is_float(self) -> bool:
        """Return whether elements are floats of either size."""
        return isinstance(self.element, ir.FloatType | ir.DoubleType)

    def of(self, value: Any) -> CodeValue:  # Any: llvmlite has no types
        """Another value in the same place."""
        return CodeValue(self.code, value)

    def like(self, number: Number) -> CodeValue:
        """A constant of the same type, unless it is a value already."""
        return number if isinstance(number, CodeValue) else self.code.constant(self.kind, number)

    # Arithmetic

    def _with(self, other: Number, for_floats: str, for_integers: str) -> CodeValue:
        """An instruction that floats have another one for than integers."""
        name = for_floats if self.is_float else for_integers
        return self.of(getattr(self.code.builder, name)(self.value, self.like(other).value))

    def __add__(self, other: Number) -> CodeValue:
        return self._with(other, "fadd", "add")

    def __sub__(self, other: Number) -> CodeValue:
        return self._with(other, "fsub", "sub")

    def __mul__(self, other: Number) -> CodeValue:
        return self._with(other, "fmul", "mul")

    def __truediv__(self, other: Number) -> CodeValue:
        return self._with(other, "fdiv", "sdiv")

    def __floordiv__(self, other: Number) -> CodeValue:
        return self._with(other, "fdiv", "sdiv")

    def __mod__(self, other: Number) -> CodeValue:
        return self._with(other, "frem", "srem")

    def __radd__(self, other: Number) -> CodeValue:
        return self.like(other) + self

    def __rsub__(self, other: Number) -> CodeValue:
        return self.like(other) - self

    def __rmul__(self, other: Number) -> CodeValue:
        return self.like(other) * self

    def __rtruediv__(self, other: Number) -> CodeValue:
        return self.like(other) / self

    def __neg__(self) -> CodeValue:
        return self.of(self.code.builder.fneg(self.value)) if self.is_float else 0 - self

    def __and__(self, other: Number) -> CodeValue:
        return self._with(other, "and_", "and_")

    def __or__(self, other: Number) -> CodeValue:
        return self._with(other, "or_", "or_")

    def __xor__(self, other: Number) -> CodeValue:
        return self._with(other, "xor", "xor")

    def __lshift__(self, other: Number) -> CodeValue:
        return self._with(other, "shl", "shl")

    def __rshift__(self, other: Number) -> CodeValue:
        return self._with(other, "ashr", "ashr")

    def shifted_right(self, other: Number) -> CodeValue:
        """Bits moved down with zeros after them, whatever the sign is."""
        return self._with(other, "lshr", "lshr")

    def __abs__(self) -> CodeValue:
        return self.call("fabs") if self.is_float else choose(self < 0, -self, self)

    def call(self, name: str, *others: CodeValue) -> CodeValue:
        """A function of LLVM's own whose arguments and result are of one type: ``smin``."""
        return self.code.call(f"llvm.{name}.{suffix(self.kind)}", self.kind, self, *others)

    def sqrt(self) -> CodeValue:
        """Square roots."""
        return self.call("sqrt")

    def with_sign_of(self, other: CodeValue) -> CodeValue:
        """The same magnitudes with other signs."""
        return self.call("copysign", other)

    def times_plus(self, factor: Number, summand: Number) -> CodeValue:
        """``self * factor + summand``, rounded once where the processor can."""
        return self.call("fmuladd", self.like(factor), self.like(summand))

    # Comparison

    def _compare(self, operator: str, other: Number) -> CodeValue:
        """Compare; false where a float is NaN."""
        name = "fcmp_ordered" if self.is_float else "icmp_signed"
        compare = getattr(self.code.builder, name)
        return self.of(compare(operator, self.value, self.like(other).value))

    def __lt__(self, other: Number) -> CodeValue:
        return self._compare("<", other)

    def __le__(self, other: Number) -> CodeValue:
        return self._compare("<=", other)

    def __gt__(self, other: Number) -> CodeValue:
        return self._compare(">", other)

    def __ge__(self, other: Number) -> CodeValue:
        return self._compare(">=", other)

    def equals(self, other: Number) -> CodeValue:
        """Return where both are the same number."""
        return self._compare("==", other)

    def differs(self, other: Number) -> CodeValue:
        """Return where they are not the same number; true where a float is NaN."""
        if not self.is_float:
            return self._compare("!=", other)
        compare = self.code.builder.fcmp_unordered
        return self.of(compare("!=", self.value, self.like(other).value))

    def is_nan(self) -> CodeValue:
        """Return where a float is not a number."""
        return self.of(self.code.builder.fcmp_unordered("uno", self.value, self.value))

    def is_below(self, other: Number) -> CodeValue:
        """Return where it is smaller as an unsigned integer."""
        compare = self.code.builder.icmp_unsigned
        return self.of(compare("<", self.value, self.like(other).value))

    def mask_bits(self) -> CodeValue:
        """A vector of bits as an integer of as many bits, the first one lowest."""
        return self.bitcast(ir.IntType(self.count))

    def any(self) -> CodeValue:
        """Return whether a bit of a vector of bits is set."""
        bits = self.mask_bits()
        return self.of(self.code.builder.icmp_unsigned("!=", bits.value, bits.like(0).value))

    # Conversion

    def converted(self, name: str, element: Kind) -> CodeValue:
        """An instruction such as ``sitofp`` to another type of elements."""
        kind = vector(element, self.count) if self.is_vector else element
        if kind == self.kind:
            return self
        return self.of(getattr(self.code.builder, name)(self.value, kind))

    def bitcast(self, kind: Kind) -> CodeValue:
        """The same bits as a value of another type of the same size."""
        return self.of(self.code.builder.bitcast(self.value, kind))

    def bits(self) -> CodeValue:
        """float32 as the integers that they are stored as."""
        return self.converted("bitcast", I32)

    def as_float(self) -> CodeValue:
        """int32 as the floats that are stored like them."""
        return self.converted("bitcast", F32)

    def to_float(self) -> CodeValue:
        """int32 to the nearest float32."""
        return self.converted("sitofp", F32)

    def to_integer(self) -> CodeValue:
        """Floats without their fraction to int32; they have to fit."""
        return self.converted("fptosi", I32)

    def to_double(self) -> CodeValue:
        """float32 to float64."""
        return self.converted("fpext", F64)

    def to_single(self) -> CodeValue:
        """float64 to the nearest float32."""
        return self.converted("fptrunc", F32)

    def signed(self, element: Kind) -> CodeValue:
        """Signed integers in more bits."""
        return self.converted("sext", element)

    def unsigned(self, element: Kind) -> CodeValue:
        """Unsigned integers, or bits, in more bits."""
        return self.converted("zext", element)

    def narrowed(self, element: Kind) -> CodeValue:
        """The low bits of integers."""
        return self.converted("trunc", element)

    # Elements

    def splat(self, lanes: int) -> CodeValue:
        """A vector whose every element is this number."""
        kind, builder = vector(self.kind, lanes), self.code.builder
        nothing = self.code.undefined(kind)
        first = self.of(builder.insert_element(nothing.value, self.value, I32(0)))
        return first.shuffled([0] * lanes, nothing)

    def shuffled(self, lanes: Sequence[int], other: CodeValue | None = None) -> CodeValue:
        """Some elements of this vector and, counted on after them, of another one."""
        other = self.code.undefined(self.kind) if other is None else other
        numbers = self.code.numbers(I32, lanes)
        return self.of(self.code.builder.shuffle_vector(self.value, other.value, numbers.value))

    def at(self, number: int) -> CodeValue:
        """One element."""
        return self.of(self.code.builder.extract_element(self.value, I32(number)))

    # Memory; the value is an address

    def _pointer(self, kind: Kind, index: Number | None) -> Any:  # Any: llvmlite has no types
        """Pointer to element `index` of an array of `kind` at this address."""
        pointer = self.code.builder.inttoptr(self.value, kind.as_pointer())
        if index is None:
            return pointer
        return self.code.builder.gep(pointer, (self.like(index).value,))

    def place(self, kind: Kind, index: Number) -> CodeValue:
        """Address of element `index`; written so that LLVM sees what a loop walks over."""
        return self.of(self.code.builder.ptrtoint(self._pointer(kind, index), I64))

    def load(
        self,
        kind: Kind,
        index: Number | None = None,
        *,
        align: int = 0,
        mask: CodeValue | None = None,
    ) -> CodeValue:
        """Load a number or a vector.

        Parameters
        ----------
        index
            Counted in loaded elements, after the address.
        align
            Bytes that the address is a multiple of; those of an element if left out.
        mask
            The elements that are there; the others are 0.
        """
        pointer, align = self._pointer(kind, index), align or element_bytes(kind)
        if mask is None:
            return self.of(self.code.builder.load(pointer, align=align))
        name = f"llvm.masked.load.{suffix(kind)}.p0"
        size, zero = self.code.constant(I32, align), self.code.constant(kind)
        return self.code.call(name, kind, self.of(pointer), size, mask, zero)

    def store(
        self, value: CodeValue, index: Number | None = None, *, mask: CodeValue | None = None
    ) -> None:
        """Store a number or a vector; parameters as for `load`."""
        pointer, align = self._pointer(value.kind, index), element_bytes(value.kind)
        if mask is None:
            self.code.builder.store(value.value, pointer, align=align)
            return
        name = f"llvm.masked.store.{suffix(value.kind)}.p0"
        size = self.code.constant(I32, align)
        self.code.call(name, None, value, self.of(pointer), size, mask)

    def called(self, result: Kind, *arguments: CodeValue) -> CodeValue:
        """Call a C function at this address; as for `Code.call` otherwise."""
        kind = ir.FunctionType(result, [argument.kind for argument in arguments])
        pointer = self.code.builder.inttoptr(self.value, kind.as_pointer())
        return self.of(self.code.builder.call(pointer, [argument.value for argument in arguments]))

    def load_shared(self, index: int = 0) -> CodeValue:
        """Read a 64-bit integer that other threads write, with acquire order."""
        return self.of(self.code.builder.load_atomic(self._pointer(I64, index), "acquire", 8))

    def store_shared(self, value: Number, index: int = 0) -> None:
        """Write a 64-bit integer that other threads read, after all that was written before."""
        pointer, word = self._pointer(I64, index), self.like(value).value
        self.code.builder.store_atomic(word, pointer, "release", 8)

    def exchanged(self, expected: Number, value: Number, index: int = 0) -> CodeValue:
        """Compare and swap: write a 64-bit integer if it is as expected; returns the old value."""
        words = self.like(expected).value, self.like(value).value
        pair = self.code.builder.cmpxchg(self._pointer(I64, index), *words, "acq_rel", "acquire")
        return self.of(self.code.builder.extract_value(pair, 0))

    def prefetch(self) -> None:
        """Bring a line of memory to the second level of the cache."""
        numbers = [self.code.constant(I32, number) for number in (0, 2, 1)]
        self.code.call("llvm.prefetch.p0", None, self.of(self._pointer(I8, None)), *numbers)


def choose(mask: CodeValue, one: Number, other: Number) -> CodeValue:
    """`one` where the mask is set, else `other`; one of them may be a number."""
    kind = one if isinstance(one, CodeValue) else other
    assert isinstance(kind, CodeValue)  # the caller ensures it
    values = kind.like(one).value, kind.like(other).value
    return mask.of(mask.code.builder.select(mask.value, *values))


def clamp(values: CodeValue, low: Number, high: Number) -> CodeValue:
    """Values within bounds; NaN stays NaN."""
    values = choose(values < low, low, values)
    return choose(values > high, high, values)


def at_least(bound: CodeValue, values: CodeValue) -> CodeValue:
    """The larger of each two; `values` where `bound` is NaN or they are.

    A comparison and a choice, which are one instruction on x86; LLVM's own maxnum is three, as it
    minds NaN in both.
    """
    return choose(bound > values, bound, values)


def at_most(bound: CodeValue, values: CodeValue) -> CodeValue:
    """The smaller of each two, as `at_least`."""
    return choose(bound < values, bound, values)


def larger(one: CodeValue, other: Number) -> CodeValue:
    """The larger of each two; NaN where either is."""
    return _extreme(one, other, one > other)


def smaller(one: CodeValue, other: Number) -> CodeValue:
    """The smaller of each two; NaN where either is."""
    return _extreme(one, other, one < other)


def _extreme(value: CodeValue, other: Number, is_first: CodeValue) -> CodeValue:
    """One of two by a comparison, which is false where either is NaN."""
    chosen = choose(is_first, value, other)
    return choose(value.differs(value), value, chosen) if value.is_float else chosen


def first_lanes(count: CodeValue, lanes: int) -> CodeValue:
    """Bits of the lanes that lie below a number (int64)."""
    numbers = count.code.numbers(I32, range(lanes))
    return numbers < count.narrowed(I32).splat(lanes)
