"""Compiles kernels: Python source through Numba to LLVM's language, and LLVM to object code.

Notes
-----
Numba types the function and translates it, without optimising. Which processor the code is
for is said to LLVM alone, so that kernels for any instruction set, and even for another
architecture, can be made on any machine.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any, TypeAlias

import llvmlite.binding as llvm

from armpy.core.dataclass import dataclass
from armpy_numba_acc import llvm as writers  # translation: imported where it is not kept
from armpy_numba_acc.machine.isa import Isa

_log = logging.getLogger("armpy.NumbaAcc")

_Llvm: TypeAlias = Any  # Any: Numba and llvmlite have no types


@dataclass(frozen=True, slots=True)
class LinkedKernel:
    """A kernel that calls functions which Numba does not see."""

    # The kernel; it is translated once for all that it is linked with.
    function: Callable[[int, int, int], None]
    definitions: str  # the functions, in LLVM's language


@dataclass(frozen=True, slots=True)
class KernelWithResult:
    """A function that returns an integer, which kernels do not."""

    function: Callable[[int, int, int], int]


KeepLoops: TypeAlias = Callable[[str, Isa, Callable[[], bytes]], bytes]
"""``keep(name, isa, make)``: loops by their name, kept ones before what ``make()`` returns."""

Function: TypeAlias = Callable[[int, int, int], None] | LinkedKernel | KernelWithResult
"""What a kernel is compiled from."""


@cache
def _initialize() -> None:
    """Let LLVM know every target."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def make_loops(name: str, isa: Isa, make: Callable[[], bytes]) -> bytes:
    """Keep no loops."""
    return make()


def compile_kernel(
    function: Function, symbol: str, isa: Isa, keep: KeepLoops = make_loops
) -> bytes:
    """Compile a kernel to object code.

    Parameters
    ----------
    function : callable, LinkedKernel or KernelWithResult
        Takes three integers: the address of its arguments, the shares to run
        (`armpy_numba_acc.llvm.threads.sharing.shares_of`), and the number of all shares. Uses
        `armpy_numba_acc.llvm.pointers` for memory, and raises nothing.
    symbol
        The compiled function's name.
    keep : callable
        Keeps `shared_loops`.

    Returns
    -------
    bytes
        An object file with one function ``void(int64, int64, int64)``, or ``int64(...)`` if it
        is `KernelWithResult`.
    """
    module, machine = _module(function, symbol, isa, keep)
    code: bytes = machine.emit_object(module)
    return code


def compile_assembly(function: Function, symbol: str, isa: Isa) -> str:
    """Compile a kernel to assembly text; parameters as for `compile_kernel`."""
    module, machine = _module(function, symbol, isa, make_loops)
    text: str = machine.emit_assembly(module)
    return text


def _module(function: Function, symbol: str, isa: Isa, keep: KeepLoops) -> tuple[_Llvm, _Llvm]:
    """The optimised module of a kernel, and the machine that it is for."""
    _initialize()
    machine = _machine(isa)
    if isinstance(function, LinkedKernel):
        return _linked(function, symbol, isa, machine, keep), machine
    if isinstance(function, KernelWithResult):
        text = _wrapped(writers.text_of(function.function, "int64"), symbol, "i64")
    else:
        text = _wrapped(writers.text_of(function), symbol)
    module = _parsed(text, machine, isa)
    module.name = symbol
    _hide_all_but(module, symbol)
    _optimize(module, machine)
    return module, machine


def _machine(isa: Isa) -> _Llvm:
    """The processor that an instruction set's code is for."""
    target = llvm.Target.from_triple(isa.triple)
    return target.create_target_machine(
        cpu=isa.cpu, features=isa.features, opt=3, reloc="pic", codemodel="default"
    )


def _parsed(text: str, machine: _Llvm, isa: Isa) -> _Llvm:
    return _for_machine(llvm.parse_assembly(text), machine, isa)


def _for_machine(module: _Llvm, machine: _Llvm, isa: Isa) -> _Llvm:
    """The module, for a processor; Numba takes all code to be for this one."""
    module.triple = isa.triple
    module.data_layout = str(machine.target_data)
    return module


def _hide_all_but(module: _Llvm, symbol: str) -> None:
    """Let LLVM drop or take apart every function but one."""
    for defined in module.functions:
        if not defined.is_declaration and defined.name != symbol:
            defined.linkage = llvm.Linkage.internal


def _optimize(module: _Llvm, machine: _Llvm) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.slp_vectorization = True
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)


def _linked(
    function: LinkedKernel, symbol: str, isa: Isa, machine: _Llvm, keep: KeepLoops
) -> _Llvm:
    """The optimised module of a kernel and the functions that it calls.

    Both are optimised before they are joined: what Numba translates is the same for many
    kernels, and LLVM takes twice as long for both in one. Afterwards little is left to do.
    """
    loops = llvm.parse_bitcode(_kept_once(function.function, isa, keep))
    module = _for_machine(loops, machine, isa)
    module.get_function(_ANY).name = module.name = symbol
    definitions = _parsed(function.definitions, machine, isa)
    _optimize(definitions, machine)
    called = [defined.name for defined in definitions.functions if not defined.is_declaration]
    module.link_in(definitions)
    text = str(module)
    for name in called:
        if len(re.findall(f'call [^\n]*@"?{re.escape(name)}"?\\(', text)) == 1:
            module.get_function(name).add_function_attribute("alwaysinline")
    _hide_all_but(module, symbol)
    passes = llvm.create_new_module_pass_manager()
    for add in _AFTER_LINKING:
        getattr(passes, f"add_{add}_pass")()
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    passes.run(module, llvm.create_pass_builder(machine, options))
    return module


def shared_loops(function: LinkedKernel, isa: Isa, keep: KeepLoops) -> tuple[str, bytes]:
    """Return the loops that many kernels share, and the name that they are kept by.

    Returns
    -------
    name : str
        Empty if the function has none to itself: its loops are not kept.
    loops : bytes
        LLVM's bitcode, which later versions of LLVM can read too: a kernel, optimised, but for
        the functions that it is linked with.
    """
    _initialize()
    return _name_of(function.function), _kept_once(function.function, isa, keep)


@cache
def _kept_once(function: Callable[..., object], isa: Isa, keep: KeepLoops) -> bytes:
    name, make = _name_of(function), partial(_optimized, function, isa)
    loops = (keep if name else make_loops)(name, isa, make)
    try:
        llvm.parse_bitcode(loops)
    except RuntimeError as error:
        _log.info("'%s' is translated anew, as a later LLVM has written it: %s", name, error)
        return make()
    return loops


def _name_of(function: Callable[..., object]) -> str:
    """Name of a function's loops; empty if others share it, as functions within functions do."""
    name = f"{function.__module__}.{function.__qualname__}"
    return "" if "<locals>" in name else name


def _optimized(function: Callable[..., object], isa: Isa) -> bytes:
    machine = _machine(isa)
    module = _parsed(_wrapped(writers.text_once(function), _ANY), machine, isa)
    _hide_all_but(module, _ANY)
    _optimize(module, machine)
    bitcode: bytes = module.as_bitcode()
    return bitcode


def _wrapped(text: str, symbol: str, result: str = "") -> str:
    """A translated function, called from a plain C function that returns its result or nothing."""
    end = f"%value = load {result}, ptr %result\n  ret {result} %value" if result else "ret void"
    inner = _inner_name(text)
    return text + _WRAPPER.format(symbol=symbol, inner=inner, result=result or "void", end=end)


_ANY = "armpy_kernel_of_any_name"

_AFTER_LINKING = (
    "always_inliner",
    "sroa",
    "instruction_combine",
    "simplify_cfg",
    "global_dead_code_eliminate",
)
"""Passes worth repeating where a function is inlined into its caller."""

_WRAPPER = """
define {result} @"{symbol}"(i64 %args, i64 %shares, i64 %num_shares) {{
  %result = alloca ptr
  %exception = alloca ptr
  %status = call i32 {inner}(ptr %result, ptr %exception, i64 %args, i64 %shares, i64 %num_shares)
  {end}
}}
"""


def _inner_name(text: str) -> str:
    """Name of the function that Numba made of a kernel: the first one defined."""
    start = text.index("define i32 @") + len("define i32 ")
    return text[start : text.index("(", start)]
