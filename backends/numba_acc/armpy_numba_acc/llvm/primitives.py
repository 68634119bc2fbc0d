"""Primitives for code that Numba compiles: functions written with `CodeValue`, and inlined ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from inspect import Parameter, Signature, signature
from typing import Any, TypeAlias, TypeVar

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from armpy_numba_acc.llvm.translation import OPTIONS, translated
from armpy_numba_acc.llvm.values import I64, Code, CodeValue

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

Primitive: TypeAlias = Callable[..., Any]
"""What Numba's code calls; the call has no types that mypy could check (Any)."""

WORD, FLOAT, NOTHING = types.int64, types.float32, types.void
"""What Numba's code hands over: integers and addresses, float32; and what gives nothing back."""


def inlined(function: FunctionT) -> FunctionT:
    """Have Numba inline a function into its callers."""
    dispatcher: FunctionT = njit(inline="always", **OPTIONS)(function)
    return dispatcher


def compiled(function: FunctionT) -> FunctionT:
    """Have Numba translate a function that others call; LLVM may put it into them."""

    def typed(_: Any, *kinds: Any) -> Any:  # Any: Numba has no types
        translation = translated(function, kinds)

        def generate(context: Any, builder: Any, called: Any, args: Any) -> Any:
            context.active_code_library.add_linking_library(translation.library)
            return context.call_internal(builder, translation.fndesc, called, args)

        return translation.signature, generate

    intrinsic_function: FunctionT = _intrinsic(typed, function, signature(function).parameters)
    return intrinsic_function


def primitive(
    result: Any,  # Any: a type of Numba's
    *kinds: Any,  # Any: types of Numba's
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
        def typed(*_: Any) -> Any:  # Any: Numba has no types
            def generate(context: Any, builder: Any, _: Any, args: Any) -> Any:
                code = Code(builder)
                value = write(code, *(code.of(argument) for argument in args))
                return context.get_dummy_value() if value is None else value.value

            return result(*kinds), generate

        names = [f"argument_{number}" for number in range(len(kinds))]
        primitive_made: Primitive = _intrinsic(typed, write, names)
        return primitive_made

    return decorate


def _intrinsic(typed: Callable[..., Any], of: Callable[..., Any], names: Iterable[str]) -> Any:
    """Make a function of Numba's that is typed and written by another one.

    Numba looks at the parameters' names, and at nothing else of them.
    """
    parameters = [
        Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in ("typingctx", *names)
    ]
    typed.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    typed.__name__, typed.__doc__ = of.__name__, of.__doc__
    return intrinsic(typed)


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
