"""Sizes that are traced: results computed from them are known for others without computing again.

Notes
-----
A `Size` stands for a dimension in shapes. Arithmetic with one gives another one, which remembers
how it came about; whatever code finds out about one, by comparing it or by needing it as a plain
number, becomes a condition. Results for sizes therefore hold for all others that meet
the same conditions, with every size in it computed anew. Nothing can get around that: a `Size` is
no ``int``, so that whatever takes its value has to ask for it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, TypeVar

import numpy as np

from armpy.errors import LayerValidationError

if TYPE_CHECKING:
    import numpy.typing as npt

Number: TypeAlias = int | float

Function: TypeAlias = Callable[..., Number]
"""Gives the same for the same numbers."""

Formula: TypeAlias = Callable[[Sequence[int]], "list[Number] | None"]
"""Gives sizes by `Size.number` for other first ones; None if a condition is not met."""

ValueT = TypeVar("ValueT")

_Step: TypeAlias = tuple[int, Function, tuple[int, ...]]
"""Number, function and operands' numbers of a computed value."""

_Condition: TypeAlias = tuple[str, int, int, bool]
"""Comparison, operands' numbers, and the required result."""

_TESTS: Mapping[str, Callable[[Number, Number], bool]] = MappingProxyType(
    {"==": operator.eq, "<": operator.lt, "<=": operator.le}
)

_SIGNS: Mapping[Function, str] = MappingProxyType(
    {operator.add: "+", operator.sub: "-", operator.mul: "*", operator.floordiv: "//"}
)
"""Functions for which generated code has operators."""

_NEUTRAL: Mapping[Function, int] = MappingProxyType({operator.add: 0, operator.mul: 1})
"""Plain numbers that change nothing."""


class SymbolicTrace:
    """Trace of how sizes follow from the first ones, and of conditions found on them."""

    def __init__(self, sizes: Sequence[int]) -> None:  # the first ones, while they are traced
        # By number: the plain numbers, and zeros in the place of all that is computed.
        self._numbers: list[Number] = [0] * len(sizes)
        self._plain: dict[tuple[type, Number], int] = {}
        self._steps: dict[tuple[Function, tuple[int, ...]], Size] = {}
        # Sums and products of a size and a plain number, by `Size.number`.
        self._chains: dict[int, tuple[Any, ...]] = {}  # Any: the function and both
        self.layer = ""  # whose code looks at sizes, for messages
        self._conditions: dict[tuple[str, int, int], tuple[bool, str]] = {}  # with the layer
        # The first ones.
        self.given = [Size(self, number, size) for number, size in enumerate(sizes)]

    def step(self, function: Function, *operands: Any) -> Size:  # Any: numbers and sizes
        """Apply a function to some sizes and plain numbers; plain ones of a chain become one."""
        is_chain = (
            function in _NEUTRAL and type(operands[1]) is int and type(operands[0].now) is int
        )
        if is_chain:  # fractions would be rounded differently
            known, first, other = self._chains.get(operands[0].number, (None, None, 0))
            if known is function:
                operands = first, function(other, operands[1])
            if operands[1] == _NEUTRAL[function]:
                return operands[0]  # type: ignore[no-any-return]  # a size
        key = function, tuple([self._number(operand) for operand in operands])
        size = self._steps.get(key)
        # Each step is made once, so that equal sizes have one number.
        if size is None:
            now = function(*map(_now, operands))
            size = self._steps[key] = Size(self, len(self._numbers), now)
            self._numbers.append(0)
            if is_chain:
                self._chains[size.number] = function, *operands
        return size

    def test(self, name: str, left: object, right: object) -> bool:
        """Return the result of a comparison, which becomes a condition."""
        first, other = self._number(left), self._number(right)
        result = _TESTS[name](_now(left), _now(right))
        # A comparison with itself is not a condition.
        if first != other:
            self._conditions.setdefault((name, first, other), (result, self.layer))
        return result

    def fix(self, size: Size) -> Number:
        """A size as a plain number, which it has to be from now on."""
        self.test("==", size, size.now)
        return size.now

    def _number(self, operand: object) -> int:
        if isinstance(operand, Size) and operand.trace is self:
            return operand.number
        plain = operand.trace.fix(operand) if isinstance(operand, Size) else _now(operand)
        # By type, too: 1 and 1.0 are equal keys, and do not compute alike.
        key = type(plain), plain
        if key not in self._plain:
            self._plain[key] = len(self._numbers)
            self._numbers.append(plain)
        return self._plain[key]

    def layers_against(self, sizes: Sequence[int]) -> list[str]:
        """Layers in which conditions were found that other first sizes do not meet."""
        values: list[Number] = [*sizes, *self._numbers[len(sizes) :]]
        try:
            for (function, operands), size in self._steps.items():
                values[size.number] = function(*[values[operand] for operand in operands])
        except ArithmeticError:  # computed under a condition only
            return []
        return [
            layer
            for (name, first, other), (expected, layer) in self._conditions.items()
            if _TESTS[name](values[first], values[other]) != expected
        ]

    def formula(self, wanted: Iterable[object]) -> Formula:
        """Return the function from the first sizes to some others; plain numbers are left out."""
        conditions = [(*key, expected) for key, (expected, _) in self._conditions.items()]
        results = {size.number for size in wanted if isinstance(size, Size)}
        needed = results.union(*[pair for _, *pair, _ in conditions])
        steps: list[_Step] = []
        for (function, operands), step_size in reversed(self._steps.items()):
            if step_size.number in needed:
                steps.append((step_size.number, function, operands))
                needed.update(operands)
        return _compiled(len(self.given), self._numbers, steps[::-1], conditions, results)


def _compiled(
    num_given: int,  # how many first sizes there are
    numbers: Sequence[Number],  # by `Size.number`, the plain ones
    steps: Sequence[_Step],  # in the order in which they are computed
    conditions: Sequence[_Condition],
    results: Collection[int],  # numbers of the values to return; the others are zeros
) -> Formula:
    """Write the function that computes all sizes.

    A decoder has hundreds of steps and conditions, which are computed for each token.
    """
    functions: dict[str, Any] = {}  # Any: and numbers
    texts = [f"({number})" for number in numbers]
    for number, plain in enumerate(numbers):
        if type(plain) is not int:  # not all of these have a text
            texts[number] = f"p{number}"
            functions[texts[number]] = plain
    for number in (*range(num_given), *[step[0] for step in steps]):
        texts[number] = f"n{number}"
    lines = ["def compute(sizes):", f" [{', '.join(texts[:num_given])}] = sizes", " try:"]
    for number, function, operands in steps:
        places = [texts[operand] for operand in operands]
        sign = _SIGNS.get(function)
        if sign is None:
            functions[f"f{number}"] = function
            lines.append(f"  n{number} = f{number}({', '.join(places)})")
        else:
            lines.append(f"  n{number} = {places[0]} {sign} {places[1]}")
    tests = [
        f"{'' if expected else 'not '}{texts[left]} {test} {texts[right]}"
        for test, left, right, expected in conditions
    ]
    every = [text if number in results else "0" for number, text in enumerate(texts)]
    lines.append(f"  return [{', '.join(every)}] if {' and '.join(tests) or True} else None")
    # Computed under a condition only.
    lines += [" except ArithmeticError:", "  return None"]
    exec("\n".join(lines), functions)  # of numbers and signs alone
    return functions["compute"]  # type: ignore[no-any-return]  # as it is written


def computed(function: Function, *operands: int | float | Size) -> int:
    """Apply a function to some numbers; the result is a `Size` if one of these is one.

    The function's results about the numbers make no conditions. It is stored, and has to hash
    as others that do the same.
    """
    for operand in operands:
        if isinstance(operand, Size):
            return operand.trace.step(function, *operands)  # type: ignore[return-value]
    return function(*operands)  # type: ignore[return-value]  # for those who expect sizes


def current(value: ValueT) -> ValueT:
    """A value; of a `Size`, its value during tracing.

    It makes no condition: whatever is decided by it has to be right for all other sizes.
    """
    return value.now if isinstance(value, Size) else value  # type: ignore[return-value]


def fixed(value: ValueT) -> ValueT:
    """A value; of a `Size`, the plain number that it has to be from now on."""
    return value.trace.fix(value) if isinstance(value, Size) else value  # type: ignore[return-value]


def elements_of(numbers: Sequence[int], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """An array of numbers of a dtype; of objects if a `Size` is among them."""
    try:
        # `np.array` would take the values of sizes.
        return np.array(numbers, object if is_traced(*numbers) else dtype)
    except OverflowError as error:
        kind, actual = str(np.dtype(dtype)), str(list(numbers))
        raise LayerValidationError("sizes do not fit", expected=kind, actual=actual) from error


def is_traced(*values: object) -> bool:
    """Return whether one of some values is a `Size`."""
    return any(isinstance(value, Size) for value in values)


class Size:
    """A dimension, or a value computed from dimensions, that is traced."""

    __slots__ = ("now", "number", "trace")
    __array_ufunc__ = None  # NumPy's numbers let it compute

    def __init__(self, trace: SymbolicTrace, number: int, now: Number) -> None:
        self.trace = trace
        self.number = number
        self.now = now

    # Arithmetic

    def __add__(self, other: object) -> Size:
        return _computed(operator.add, self, other)

    def __radd__(self, other: object) -> Size:
        return _computed(operator.add, self, other)

    def __sub__(self, other: object) -> Size:
        return self + -other if type(other) is int else _computed(operator.sub, self, other)

    def __rsub__(self, other: object) -> Size:
        return self * -1 + other if type(other) is int else _computed(operator.sub, other, self)

    def __mul__(self, other: object) -> Size:
        return _computed(operator.mul, self, other)

    def __rmul__(self, other: object) -> Size:
        return _computed(operator.mul, self, other)

    def __floordiv__(self, other: object) -> Size:
        if type(other) is int and other == 1 and type(self.now) is int:
            return self
        return _computed(operator.floordiv, self, other)

    def __rfloordiv__(self, other: object) -> Size:
        return _computed(operator.floordiv, other, self)

    def __truediv__(self, other: object) -> Size:
        return _computed(operator.truediv, self, other)

    def __rtruediv__(self, other: object) -> Size:
        return _computed(operator.truediv, other, self)

    def __mod__(self, other: object) -> Size:
        return _computed(operator.mod, self, other)

    def __rmod__(self, other: object) -> Size:
        return _computed(operator.mod, other, self)

    def __divmod__(self, other: object) -> tuple[Size, Size]:
        return self // other, self % other

    def __and__(self, other: object) -> Size:
        return _computed(operator.and_, self, other)

    def __lshift__(self, other: object) -> Size:
        return _computed(operator.lshift, self, other)

    def __rshift__(self, other: object) -> Size:
        return _computed(operator.rshift, self, other)

    def __pow__(self, other: object) -> Size:
        return _computed(operator.pow, self, other)

    def __neg__(self) -> Size:
        return self * -1

    def __pos__(self) -> Size:
        return self

    def __abs__(self) -> Size:
        return -self if self < 0 else self

    def __ceil__(self) -> Size:
        return self.trace.step(math.ceil, self)

    def __floor__(self) -> Size:
        return self.trace.step(math.floor, self)

    # What makes conditions

    def __eq__(self, other: object) -> bool:
        if not _is_number(other):
            return NotImplemented
        return self.trace.test("==", self, other)

    def __lt__(self, other: object) -> bool:
        return self.trace.test("<", self, other) if _is_number(other) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self.trace.test("<=", self, other) if _is_number(other) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return not self.trace.test("<=", self, other) if _is_number(other) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return not self.trace.test("<", self, other) if _is_number(other) else NotImplemented

    def __bool__(self) -> bool:
        return not self.trace.test("==", self, 0)

    def __hash__(self) -> int:
        # A key of a dictionary must not change.
        return hash(self.trace.fix(self))

    def __index__(self) -> int:
        return operator.index(self.trace.fix(self))  # type: ignore[arg-type]  # else an error

    def __int__(self) -> int:
        return int(self.trace.fix(self))

    def __float__(self) -> float:
        return float(self.trace.fix(self))

    def __repr__(self) -> str:
        """Describe it for people, without finding anything out."""
        return f"~{self.now}"


def _is_number(value: object) -> TypeGuard[Number | Size]:
    """Return whether something can be computed with."""
    return isinstance(value, (int, float, Size, np.number))


def _computed(function: Callable[[Number, Number], Number], left: object, right: object) -> Size:
    """Combine two operands."""
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        plain = map(fixed, (left, right))
        return function(*plain)  # type: ignore[arg-type, return-value]  # an array
    if not _is_number(left) or not _is_number(right):
        return NotImplemented  # type: ignore[no-any-return]  # what Python asks for
    size = left if isinstance(left, Size) else right
    assert isinstance(size, Size)
    return size.trace.step(function, left, right)


def _now(value: object) -> Number:
    """An operand's value while it is traced."""
    if isinstance(value, Size):
        return value.now
    return value.item() if isinstance(value, np.number) else value  # type: ignore[return-value]
