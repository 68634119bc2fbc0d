"""Compiles kernels: Python source through Numba to LLVM's language, and LLVM to object code.

Notes
-----
Numba types the function and translates it, without optimising. Which processor the code is
for is said to LLVM alone, so that kernels for any instruction set, and even for another
architecture, can be made on any machine.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,attr-defined"
# Numba and llvmlite have no types.

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import llvmlite.binding as llvm
import numba
from numba.core import config, registry
from numba.core.ccallback import CFunc
from numba.core.compiler_lock import global_compiler_lock

from armpy_numba_acc.codegen.isa import Isa

_SIGNATURE = numba.types.void(numba.int64, numba.int64, numba.int64)
_LOCK = threading.Lock()  # Numba's optimisation level is the process's


@dataclass(frozen=True, slots=True)
class Linked:
    """A kernel that calls functions which Numba does not see.

    Parameters
    ----------
    function : callable
        The kernel; it is translated once for all that it is linked with.
    definitions : str
        The functions, in LLVM's language.
    """

    function: Callable[[int, int, int], None]
    definitions: str


Function: TypeAlias = Callable[[int, int, int], None] | Linked
"""What a kernel is compiled from."""


@cache
def _initialize() -> None:
    """Let LLVM know every target."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def compile_kernel(function: Function, symbol: str, isa: Isa) -> bytes:
    """Compile a kernel to object code.

    Parameters
    ----------
    function : callable or Linked
        Takes three integers: the address of its arguments, the thread's number, and the
        number of threads. Uses `armpy_numba_acc.codegen.pointers` for memory, and raises
        nothing.
    symbol : str
        What the compiled function is called.
    isa : Isa

    Returns
    -------
    bytes
        An object file with one function ``void(int64, int64, int64)``.
    """
    module, machine = _module(function, symbol, isa)
    code: bytes = machine.emit_object(module)
    return code


def compile_assembly(function: Function, symbol: str, isa: Isa) -> str:
    """Compile a kernel to assembly text; parameters as for `compile_kernel`."""
    module, machine = _module(function, symbol, isa)
    text: str = machine.emit_assembly(module)
    return text


def _module(function, symbol: str, isa: Isa):
    """The optimised module of a kernel, and the machine that it is for."""
    _initialize()
    if isinstance(function, Linked):
        module = llvm.parse_assembly(_wrapped(_translated_once(function.function), symbol))
        module.link_in(llvm.parse_assembly(function.definitions))
    else:
        module = llvm.parse_assembly(_wrapped(_unoptimized(function), symbol))
    module.name = symbol
    target = llvm.Target.from_triple(isa.triple)
    machine = target.create_target_machine(
        cpu=isa.cpu, features=isa.features, opt=3, reloc="pic", codemodel="default"
    )
    module.triple = isa.triple
    module.data_layout = str(machine.target_data)
    for defined in module.functions:
        if not defined.is_declaration and defined.name != symbol:
            defined.linkage = llvm.Linkage.internal
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.slp_vectorization = True
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)
    return module, machine


def _unoptimized(function) -> str:
    """A kernel in LLVM's language as Numba writes it."""
    with _LOCK:
        level = config.OPT
        # Numba sets itself up for the level that it finds, which is to be the process's own.
        _ = registry.cpu_target.target_context
        config.OPT = config._OptLevel(0)
        try:
            return _translated(function)
        finally:
            config.OPT = level


_translated_once = cache(_unoptimized)


def _wrapped(text: str, symbol: str) -> str:
    """A translated kernel, called from a plain C function."""
    return text + _WRAPPER.format(symbol=symbol, inner=_inner_name(text))


def _translated(function) -> str:
    """What Numba makes of a function, before it makes code of it for the host.

    Notes
    -----
    The host may not have the instructions, and would compile for nothing.
    """
    signature = (_SIGNATURE.args, _SIGNATURE.return_type)
    options = {"nopython": True, "error_model": "numpy"}
    with global_compiler_lock:
        callback = CFunc(function, signature, locals={}, options=options)
        library = callback._compile_uncached().library
        module = library._final_module
        for other in dict.fromkeys(library._linking_libraries):
            module.link_in(other._get_module_for_linking(), preserve=True)
        return str(module)


_WRAPPER = """
define void @"{symbol}"(i64 %args, i64 %thread, i64 %num_threads) {{
  %result = alloca ptr
  %exception = alloca ptr
  %status = call i32 {inner}(ptr %result, ptr %exception, i64 %args, i64 %thread, i64 %num_threads)
  ret void
}}
"""


def _inner_name(text: str) -> str:
    """Name of the function that Numba made of a kernel: the first one defined."""
    start = text.index("define i32 @") + len("define i32 ")
    return text[start : text.index("(", start)]
