"""Builds a kernel from its name."""

from __future__ import annotations

import importlib

from armpy_numba_acc.codegen.compiler import compile_kernel
from armpy_numba_acc.codegen.isa import Isa
from armpy_numba_acc.kernels import Kernel


def build_kernel(kernel: Kernel, isa: Isa) -> bytes:
    """Make a kernel's function and compile it.

    Returns
    -------
    bytes
        Object code that defines `kernel.symbol`.
    """
    module = importlib.import_module(f"armpy_numba_acc.kernels.{kernel.name}")
    return compile_kernel(module.make(isa, *kernel.parameters), kernel.symbol, isa)
