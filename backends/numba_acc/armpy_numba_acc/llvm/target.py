"""The target that Numba types and translates kernels for, which knows little.

Notes
-----
Numba's own target knows arrays, texts, containers and random numbers, looks through all of them for
the type of each sum, and compiles some of the calls for the processor at hand. Kernels are
made of numbers, tuples, ranges and primitives: to know no more saves a quarter of the time, and
the code that sets Numba's target up.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cached_property
from types import BuiltinFunctionType
from typing import Any, NoReturn, TypeAlias

from numba.core import types
from numba.core.codegen import AOTCodeLibrary, AOTCPUCodegen
from numba.core.cpu import CPUContext, CPUTargetOptions
from numba.core.descriptors import TargetDescriptor
from numba.core.imputils import Registry
from numba.core.target_extension import (
    CPU,
    dispatcher_registry,
    jit_registry,
    target_registry,
)
from numba.core.typing import templates
from numba.core.typing.context import BaseContext
from numba.cpython import builtins, numbers, rangeobj, tupleobj

from armpy_numba_acc.llvm.primitives import InlinedFunction, TranslatedFunction, WrittenFunction

_Numba: TypeAlias = Any  # Any: Numba has no types

NAME = "armpy"
"""Of the target, for Numba."""

KNOWN = (builtins, numbers, rangeobj, tupleobj)
"""Modules of Numba's that say, when they are imported, how what kernels are made of is written."""

_typed, _lowered = templates.Registry(), Registry(NAME)
"""Registries of primitives: their types for Numba, and their lowering."""


class _Library(AOTCodeLibrary):  # type: ignore[misc]  # Numba has no types
    """Functions as Numba writes them."""

    def _optimize_functions(self, ll_module: _Numba) -> None:
        """Leave them, whatever optimisation level the process wants of Numba."""
        ll_module.data_layout = self._codegen._data_layout

    def _optimize_final_module(self) -> None:
        """Leave them here, too."""


class _Codegen(AOTCPUCodegen):  # type: ignore[misc]  # Numba has no types
    """Writes functions, and makes no code of them."""

    _library_class = _Library


class _Operator(types.Function):
    """An operator that is looked up once for the types of its operands.

    Parameters
    ----------
    function : numba type
        What Numba knows of it.
    """

    def __init__(self, function: _Numba) -> None:
        super().__init__(function.templates)
        self._signatures: dict[tuple[_Numba, ...], _Numba] = {}

    def get_call_type(self, context: _Numba, args: tuple[_Numba, ...], kws: _Numba) -> _Numba:
        if args not in self._signatures:
            self._signatures[args] = super().get_call_type(context, args, kws)
        return self._signatures[args]


class _TypeContext(BaseContext):  # type: ignore[misc]  # Numba has no types
    """Types of what kernels are made of."""

    def init(self) -> None:
        """Begin without operators and functions."""
        self._operators: dict[_Numba, _Operator] = {}
        self._written: dict[TranslatedFunction | WrittenFunction, _Numba] = {}
        self.typed: Callable[[TranslatedFunction | WrittenFunction], Callable[..., _Numba]]

    def load_additional_registries(self) -> None:
        """Know `min` and `max`."""
        self.install_registry(_typed)

    def resolve_value_type(self, val: _Numba) -> _Numba:
        """The type of a constant or function."""
        if isinstance(val, InlinedFunction):  # whose calls are gone
            return types.none
        if isinstance(val, TranslatedFunction | WrittenFunction):
            if val not in self._written:
                typed = self.typed(val)
                template = templates.make_intrinsic_template(val, typed, typed.__name__)
                self._written[val] = types.Function(template)
            return self._written[val]
        value_type = super().resolve_value_type(val)
        if not (isinstance(val, BuiltinFunctionType) and isinstance(value_type, types.Function)):
            return value_type
        if value_type not in self._operators:
            self._operators[value_type] = _Operator(value_type)
        return self._operators[value_type]

    def resolve_function_type(self, func: _Numba, args: _Numba, kws: _Numba) -> _Numba:
        """The signature of a function for some arguments."""
        if isinstance(func, BuiltinFunctionType):
            func = self.resolve_value_type(func)
        if isinstance(func, _Operator):
            return func.get_call_type(self, args, kws)
        return super().resolve_function_type(func, args, kws)


class _CodeContext(CPUContext):  # type: ignore[misc]  # Numba has no types
    """Writes what kernels are made of."""

    def init(self) -> None:
        """Have a code generator that makes no code."""
        self.is32bit = False
        self._internal_codegen = _Codegen(NAME)

    def load_additional_registries(self) -> None:
        """Know `min`, `max` and primitives."""
        self.install_registry(_lowered)

    def post_lowering(self, mod: _Numba, library: _Numba) -> None:
        """Leave out what Numba adds to count references."""


class _Target(CPU):  # type: ignore[misc]  # Numba has no types
    """The target in Numba's order of them: whatever is for all processors is for it."""


class _Descriptor(TargetDescriptor):  # type: ignore[misc]  # Numba has no types
    """Gives Numba the contexts of the target."""

    options = CPUTargetOptions

    @cached_property
    def typing_context(self) -> _TypeContext:
        return _TypeContext()

    @cached_property
    def target_context(self) -> _CodeContext:
        """Writes functions."""
        return _CodeContext(self.typing_context, NAME)


class _Functions:
    """Stands for functions of the target, where Numba asks them for it."""

    targetdescr = _Descriptor(NAME)


TARGET = _Functions.targetdescr


def _refuse(*_: object, **__: object) -> NoReturn:
    """Refuse what Numba would compile when it is called."""
    raise TypeError("kernels call nothing that Numba would have to compile: write a primitive")


class _Extreme(templates.AbstractTemplate):  # type: ignore[misc]  # Numba has no types
    """Types of `min` and `max`: that of all numbers together."""

    def generic(self, args: tuple[_Numba, ...], kws: _Numba) -> _Numba:
        return templates.signature(self.context.unify_types(*args), *args)


def _add_extreme(function: _Numba, compare: _Numba) -> None:
    """Replace `min` or `max`, which Numba otherwise compiles as functions."""
    named = {"key": function}
    _typed.register_global(function)(type(f"_{function.__name__}", (_Extreme,), named))

    @_lowered.lower(function, types.VarArg(types.Number))  # type: ignore[attr-defined, untyped-decorator]
    def write(context: _Numba, builder: _Numba, signature: _Numba, args: _Numba) -> _Numba:
        return builtins.do_minmax(context, builder, signature.args, args, compare)


_add_extreme(min, operator.lt)
_add_extreme(max, operator.gt)
target_registry[NAME] = _Target
dispatcher_registry[_Target] = _Functions
jit_registry[_Target] = _refuse
