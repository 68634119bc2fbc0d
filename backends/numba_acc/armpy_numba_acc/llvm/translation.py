"""Translates Python to LLVM's language by Numba, which neither optimises nor compiles anything.

Notes
-----
Numba would compile each function that another one calls as soon as it is called, for the processor
that LLVM takes this one for. Kernels are made for other processors as well, and LLVM ends the
process at an instruction that its processor lacks. So functions are translated by a code generator
that has no such step, and what processor they are for is said once, after all translation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

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

from armpy_numba_acc.llvm.steps import InlineCalls, LowerFunction
from armpy_numba_acc.llvm.target import NAME, TARGET

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


def module_of(translation: _Numba) -> _Numba:
    """LLVM's module of a translated function, with all functions that it calls."""
    library = translation.library
    with global_compiler_lock:
        module = library._final_module
        for other in dict.fromkeys(library._linking_libraries):
            module.link_in(other._get_module_for_linking(), preserve=True)
    return module
