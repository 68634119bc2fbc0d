"""Builds a kernel from its name."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Iterator
from contextlib import contextmanager

from armpy_numba_acc.llvm.compiler import (
    Function,
    KeepLoops,
    LinkedKernel,
    compile_kernel,
    make_loops,
    shared_loops,
)
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.kernel import Kernel


def build_kernel(kernel: Kernel, isa: Isa, keep: KeepLoops = make_loops) -> bytes:
    """Make a kernel's function and compile it.

    Parameters
    ----------
    keep
        Keeps what kernels have in common: with it, Numba need not be imported.

    Returns
    -------
    bytes
        Object code that defines `kernel.symbol`.
    """
    with _uncollected():
        return compile_kernel(_made(kernel, isa), kernel.symbol, isa, keep)


def loops_for(kernel: Kernel, isa: Isa, keep: KeepLoops) -> dict[str, bytes]:
    """Return the loops that a kernel shares with others, by their name; or nothing."""
    function = _made(kernel, isa)
    if not isinstance(function, LinkedKernel):
        return {}
    name, loops = shared_loops(function, isa, keep)
    return {name: loops} if name else {}


def _made(kernel: Kernel, isa: Isa) -> Function:
    """Make the function that a kernel is compiled from."""
    module = importlib.import_module(f"armpy_numba_acc.kernels.{kernel.name}")
    function: Function = module.make(isa, *kernel.parameters)
    return function


@contextmanager
def _uncollected() -> Iterator[None]:
    """Have Python look for no cycles, unless it does not anyway.

    Numba makes some hundred thousand objects for a kernel, nearly all of which live until it is
    done: looking through them again and again takes a fifth of the time of a translation.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
