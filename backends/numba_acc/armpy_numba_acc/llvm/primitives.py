"""What code that Numba compiles calls: functions written with `Value`, and functions inlined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Any, TypeAlias, TypeVar

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from armpy_numba_acc.llvm.values import I64, Code, Value

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

Primitive: TypeAlias = Callable[..., Any]
"""What Numba's code calls; the call has no types that mypy could check (Any)."""

WORD, FLOAT, NOTHING = types.int64, types.float32, types.void
"""What Numba's code hands over: integers and addresses, float32; and what gives nothing back."""


TRANSLATION: dict[str, Any] = {  # Any: Numba's options
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "_nrt": False,
}
"""How Numba translates: nobody in Python calls what it makes, and it counts no references."""


def inlined(function: FunctionT) -> FunctionT:
    """Have Numba put a function into whoever calls it."""
    made: FunctionT = njit(inline="always", **TRANSLATION)(function)
    return made


def compiled(function: FunctionT) -> FunctionT:
    """Have Numba compile a function that others call; LLVM may put it into them."""
    made: FunctionT = njit(**TRANSLATION)(function)
    return made


def primitive(
    result: Any,  # Any: a type of Numba's
    *kinds: Any,  # Any: types of Numba's
) -> Callable[[Callable[..., Value | None]], Primitive]:
    """Let Numba's code call a function that writes LLVM's instructions.

    Parameters
    ----------
    result : numba type
        `WORD`, `FLOAT`, another one, or `NOTHING`.
    *kinds : numba type
        Of the arguments.

    Returns
    -------
    callable
        Decorates ``write(code, *values)``, which gives a `Value`, or None for `NOTHING`.
    """

    def decorate(write: Callable[..., Value | None]) -> Primitive:
        def typed(*_: Any) -> Any:  # Any: Numba has no types
            def generate(context: Any, builder: Any, _: Any, args: Any) -> Any:
                code = Code(builder)
                value = write(code, *(code.of(argument) for argument in args))
                return context.get_dummy_value() if value is None else value.value

            return result(*kinds), generate

        # Numba looks at how many parameters there are, and at nothing else of them.
        names = ["typingctx", *(f"argument_{number}" for number in range(len(kinds)))]
        parameters = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
        typed.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        typed.__name__, typed.__doc__ = write.__name__, write.__doc__
        made: Primitive = intrinsic(typed)
        return made

    return decorate


def linked(name: str, count: int, *, returns: bool = False) -> Primitive:
    """A function that is called by its name; whoever calls it links a `Definition`.

    Parameters
    ----------
    name : str
    count : int
        Of its arguments, all of them 64-bit integers.
    returns : bool
        Whether it gives one back.
    """

    def call(code: Code, *values: Value) -> Value | None:
        result = code.call(name, I64 if returns else None, *values)
        return result if returns else None

    call.__name__ = name
    return primitive(WORD if returns else NOTHING, *(WORD,) * count)(call)


@dataclass(frozen=True, slots=True)
class Definition:
    """A function for `linked` to call.

    Parameters
    ----------
    name : str
    count : int
        Of its arguments, all of them 64-bit integers.
    write : callable
        ``write(code, *arguments)`` gives what the function does, or None for nothing.
    returns : bool
        Whether it gives a 64-bit integer.
    """

    name: str
    count: int
    write: Callable[..., Value | None]
    returns: bool = False


def defined(*definitions: Definition) -> str:
    """Functions in LLVM's language."""
    module = ir.Module()
    for each in definitions:
        result = I64 if each.returns else ir.VoidType()
        function = ir.Function(module, ir.FunctionType(result, (I64,) * each.count), each.name)
        code = Code(ir.IRBuilder(function.append_basic_block("entry")))
        value = each.write(code, *(code.of(argument) for argument in function.args))
        if value is None:
            code.builder.ret_void()
        else:
            code.builder.ret(value.value)
    return str(module)
