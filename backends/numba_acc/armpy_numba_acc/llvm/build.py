"""Builds a kernel from its name."""

from __future__ import annotations

import importlib

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
    return compile_kernel(module.make(isa, *kernel.parameters), kernel.symbol, isa)
