"""Primitives for code that Numba compiles: functions written with `CodeValue`, and inlined ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from llvmlite import ir

from armpy.core.dataclass import dataclass
from armpy_numba_acc.llvm.values import I64, Code, CodeValue
from armpy_numba_acc.machine.layout import MemoryLayout

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

Primitive: TypeAlias = Callable[..., Any]
"""What Numba's code calls; the call has no types that mypy could check (Any)."""

NumbaType: TypeAlias = "str | type[MemoryLayout]"
"""By its name, or a tuple of the words of a record."""

WORD, FLOAT, NOTHING = "int64", "float32", "void"
"""What Numba's code hands over: integers and addresses, float32; and what gives nothing back."""


@dataclass(frozen=True, slots=True, eq=False)
class InlinedFunction:
    """A function that Numba translates in the place of each call."""

    function: Callable[..., Any]

    def __str__(self) -> str:
        return f"{self.function.__module__}.{self.function.__qualname__}"


@dataclass(frozen=True, slots=True, eq=False)
class TranslatedFunction:
    """A function that Numba translates once for all calls with arguments of the same types."""

    function: Callable[..., Any]


@dataclass(frozen=True, slots=True, eq=False)
class WrittenFunction:
    """A function that writes LLVM's instructions where Numba's code calls it."""

    write: Callable[..., Any]  # ``write(code, *values)``: a `CodeValue`, `CallFields` or None
    result: NumbaType
    kinds: tuple[NumbaType, ...]  # of the arguments


def inlined(function: FunctionT) -> FunctionT:
    """Have Numba inline a function into its callers."""
    stand_in: Any = InlinedFunction(function)  # Any: to callers it is the function
    return stand_in  # type: ignore[no-any-return]


def compiled(function: FunctionT) -> FunctionT:
    """Have Numba translate a function that others call; LLVM may put it into them."""
    stand_in: Any = TranslatedFunction(function)  # Any: as above
    return stand_in  # type: ignore[no-any-return]


def primitive(
    result: NumbaType, *kinds: NumbaType
) -> Callable[[Callable[..., CodeValue | None]], Primitive]:
    """Let Numba's code call a function that writes LLVM's instructions.

    Parameters
    ----------
    result
        `WORD`, `FLOAT`, another one, or `NOTHING`.
    *kinds
        Of the arguments.

    Returns
    -------
    callable
        Decorates ``write(code, *values)``, which gives a `CodeValue`, or None for `NOTHING`.
    """

    def decorate(write: Callable[..., CodeValue | None]) -> Primitive:
        stand_in: Any = WrittenFunction(write, result, kinds)  # Any: as above
        return stand_in  # type: ignore[no-any-return]

    return decorate


def linked(name: str, count: int, *, returns: bool = False) -> Primitive:
    """A function that is called by its name; its callers link a `Definition`.

    Parameters
    ----------
    count
        Of its arguments, all of them 64-bit integers.
    returns
        Whether it gives one back.
    """

    def call(code: Code, *values: CodeValue) -> CodeValue | None:
        result = code.call(name, I64 if returns else None, *values)
        return result if returns else None

    call.__name__ = name
    return primitive(WORD if returns else NOTHING, *(WORD,) * count)(call)


@dataclass(frozen=True, slots=True)
class Definition:
    """A function for `linked` to call."""

    name: str
    count: int  # of its arguments, all of them 64-bit integers
    # ``write(code, *arguments)`` returns the function's result, or None for nothing.
    write: Callable[..., CodeValue | None]
    returns: bool = False  # whether it gives a 64-bit integer


def defined(*definitions: Definition) -> str:
    """Functions in LLVM's language."""
    module = ir.Module()
    for definition in definitions:
        result = I64 if definition.returns else ir.VoidType()
        function = ir.Function(
            module, ir.FunctionType(result, (I64,) * definition.count), definition.name
        )
        code = Code(ir.IRBuilder(function.append_basic_block("entry")))
        value = definition.write(code, *(code.of(argument) for argument in function.args))
        if value is None:
            code.builder.ret_void()
        else:
            code.builder.ret(value.value)
    return str(module)
