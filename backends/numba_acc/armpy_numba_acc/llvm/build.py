"""Builds a kernel from its name."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Iterator
from contextlib import contextmanager

from armpy_numba_acc.llvm.compiler import compile_kernel
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.kernel import Kernel


def build_kernel(kernel: Kernel, isa: Isa) -> bytes:
    """Make a kernel's function and compile it.

    Returns
    -------
    bytes
        Object code that defines `kernel.symbol`.
    """
    module = importlib.import_module(f"armpy_numba_acc.kernels.{kernel.name}")
    with _uncollected():
        return compile_kernel(module.make(isa, *kernel.parameters), kernel.symbol, isa)


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
