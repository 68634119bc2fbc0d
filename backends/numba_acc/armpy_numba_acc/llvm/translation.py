"""Translates Python to LLVM's language by Numba, which neither optimises nor compiles anything.

Notes
-----
Numba would compile each function that another one calls as soon as it is called, for the processor
that LLVM takes this one for. Kernels are made for other processors as well, and LLVM ends the
process at an instruction that its processor lacks. So functions are translated by a code generator
that has no such step, and what processor they are for is said once, after all translation.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from inspect import Parameter, Signature, signature
from typing import Any, TypeAlias

from numba import types
from numba.core.compiler import CompilerBase, Flags, compile_extra
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager
from numba.core.target_extension import target_override
from numba.core.typed_passes import (
    NoPythonBackend,
    NopythonTypeInference,
)
from numba.core.untyped_passes import (
    FixupArgs,
    GenericRewrites,
    ReconstructSSA,
    TranslateByteCode,
)

from armpy_numba_acc.llvm.calls import CallFields, field_types
from armpy_numba_acc.llvm.primitives import NumbaType, TranslatedFunction, WrittenFunction
from armpy_numba_acc.llvm.steps import InlineCalls, LowerFunction
from armpy_numba_acc.llvm.target import NAME, TARGET
from armpy_numba_acc.llvm.values import Code
from armpy_numba_acc.machine.layout import MemoryLayout

_Numba: TypeAlias = Any  # Any: Numba has no types

OPTIONS: dict[str, Any] = {  # Any: Numba's options
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "_nrt": False,
}
"""Options of Numba: no Python wrappers and no reference counting."""


_STEPS = (
    TranslateByteCode,
    FixupArgs,
    InlineCalls,
    GenericRewrites,
    ReconstructSSA,
    NopythonTypeInference,
    LowerFunction,
    NoPythonBackend,
)
"""Numba's steps that kernels need, in order."""


class _Compiler(CompilerBase):  # type: ignore[misc]  # Numba has no types
    """Numba without steps for closures, contexts, exceptions and arrays, which kernels lack."""

    def define_pipelines(self) -> list[PassManager]:
        """The one way to translate."""
        steps = PassManager(NAME)
        for step in _STEPS:
            steps.add_pass(step, step.__name__)
        steps.finalize()
        return [steps]


@global_compiler_lock  # type: ignore[untyped-decorator]  # Numba has no types
def translated(
    function: Callable[..., object], kinds: Sequence[_Numba], result: _Numba = None
) -> _Numba:
    """Translate a function.

    Parameters
    ----------
    function : callable
        In Python that Numba takes.
    kinds
        Of its arguments.
    result
        Of the result; inferred if left out.

    Returns
    -------
    numba compile result
        Its ``library`` has the function, ``fndesc`` says how it is called.
    """
    flags = Flags()
    TARGET.options.parse_as_flags(flags, OPTIONS)
    flags.no_compile = True
    flags.enable_pyobject = False  # what cannot be translated is an error, and no slower code
    contexts = TARGET.typing_context, TARGET.target_context
    with target_override(NAME):
        return compile_extra(
            *contexts, function, tuple(kinds), result, flags, {}, pipeline_class=_Compiler
        )


def text_of(function: Callable[..., object], result: str = "void") -> str:
    """A kernel in LLVM's language as Numba writes it, with all functions that it calls."""
    library = translated(function, (types.int64,) * 3, getattr(types, result)).library
    with global_compiler_lock:
        module = library._final_module
        for other in dict.fromkeys(library._linking_libraries):
            module.link_in(other._get_module_for_linking(), preserve=True)
    return str(module)


text_once = cache(text_of)


def _typed(of: TranslatedFunction | WrittenFunction) -> Callable[..., _Numba]:
    """Return the function that gives Numba the types of another one, and writes its calls."""
    if isinstance(of, WrittenFunction):
        return _typed_written(of)
    function = of.function

    def typed(_: _Numba, *kinds: _Numba) -> _Numba:
        translation = translated(function, kinds)

        def generate(context: _Numba, builder: _Numba, called: _Numba, args: _Numba) -> _Numba:
            context.active_code_library.add_linking_library(translation.library)
            return context.call_internal(builder, translation.fndesc, called, args)

        return translation.signature, generate

    return _named(typed, function, signature(function).parameters)


def _typed_written(of: WrittenFunction) -> Callable[..., _Numba]:
    result, kinds = _numba_type(of.result), [*map(_numba_type, of.kinds)]

    def typed(*_: _Numba) -> _Numba:
        def generate(context: _Numba, builder: _Numba, _: _Numba, args: _Numba) -> _Numba:
            code = Code(builder)
            value = of.write(code, *map(code.of, args))
            if isinstance(value, CallFields):
                return _tuple(context, builder, result, value)
            return context.get_dummy_value() if value is None else value.value

        return result(*kinds), generate

    return _named(typed, of.write, [f"argument_{number}" for number in range(len(kinds))])


def _named(
    typed: Callable[..., _Numba], of: Callable[..., object], names: Iterable[str]
) -> Callable[..., _Numba]:
    """Name a function for Numba, which looks at its parameters' names, and nothing else of them."""
    parameters = [
        Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in ("typingctx", *names)
    ]
    typed.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    typed.__name__, typed.__doc__ = of.__name__, of.__doc__
    return typed


def _numba_type(kind: NumbaType) -> _Numba:
    """Numba's type of a name, or of a record."""
    if isinstance(kind, str):
        return getattr(types, kind)
    fields = {name: _field_type(hint) for name, hint in field_types(kind).items()}
    values = namedtuple(kind.__name__, fields)  # type: ignore[misc]
    return types.NamedTuple([*fields.values()], values)


def _field_type(hint: Any) -> _Numba:  # Any: a type
    if isinstance(hint, type) and issubclass(hint, MemoryLayout):
        return _numba_type(hint)
    return types.float32 if hint is float else types.int64


def _tuple(context: _Numba, builder: _Numba, kind: _Numba, words: CallFields) -> _Numba:
    """A record as Numba's tuple."""
    values = [getattr(words, name) for name in kind.fields]
    members = [
        _tuple(context, builder, member, value) if isinstance(value, CallFields) else value.value
        for member, value in zip(kind.types, values, strict=True)
    ]
    return context.make_tuple(builder, kind, members)


TARGET.typing_context.typed = _typed
