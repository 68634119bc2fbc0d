"""Translates Python to LLVM's language by Numba, which neither optimises nor compiles anything.

Notes
-----
Numba would compile each function that another one calls as soon as it is called, for the processor
that LLVM takes this one for. Kernels are made for other processors as well, and LLVM ends the
process at an instruction that its processor lacks. So functions are translated by a code generator
that has no such step, and what processor they are for is said once, behind all translation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

from numba.core import registry
from numba.core.codegen import AOTCodeLibrary, AOTCPUCodegen
from numba.core.compiler import Flags, compile_extra
from numba.core.compiler_lock import global_compiler_lock

_Numba: TypeAlias = Any  # Any: Numba has no types

OPTIONS: dict[str, Any] = {  # Any: Numba's options
    "error_model": "numpy",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "_nrt": False,
}
"""How Numba translates: nobody in Python calls what it makes, and it counts no references."""


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


@cache
def _context() -> _Numba:
    """What Numba translates with; functions of the process's own Numba are none of its."""
    context = registry.cpu_target.target_context
    context.refresh()  # sets Numba itself up, which needs a context that compiles
    return context.subtarget(_internal_codegen=_Codegen("armpy"))


@global_compiler_lock  # type: ignore[untyped-decorator]  # Numba has no types
def translated(
    function: Callable[..., object], kinds: Sequence[_Numba], result: _Numba = None
) -> _Numba:
    """Translate a function.

    Parameters
    ----------
    function : callable
        In Python that Numba takes.
    kinds : sequence of numba type
        Of its arguments.
    result : numba type, optional
        Of what it returns; found out if it is left out.

    Returns
    -------
    numba compile result
        Its ``library`` has the function, ``fndesc`` says how it is called.
    """
    flags = Flags()
    registry.cpu_target.options.parse_as_flags(flags, OPTIONS)
    flags.no_compile = True
    typing = registry.cpu_target.typing_context
    return compile_extra(typing, _context(), function, tuple(kinds), result, flags, locals={})


def module_of(translation: _Numba) -> _Numba:
    """LLVM's module of a translated function, with all functions that it calls."""
    library = translation.library
    with global_compiler_lock:
        module = library._final_module
        for other in dict.fromkeys(library._linking_libraries):
            module.link_in(other._get_module_for_linking(), preserve=True)
    return module
