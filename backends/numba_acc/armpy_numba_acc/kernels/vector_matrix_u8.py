"""Product of a vector of bytes and a matrix."""

from __future__ import annotations

from armpy_numba_acc.llvm.compiler import LinkedKernel
from armpy_numba_acc.machine.calls.vectors import VectorMatrixU8
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.vector_matrix.engine import vector_kernel
from armpy_numba_acc.tiles.vector_matrix.u8 import VectorByteFinish, VectorByteProducts


def make(isa: Isa, *parameters: int | str) -> LinkedKernel:
    """Make the kernel for the record's parameters."""
    return vector_kernel(
        isa, VectorMatrixU8.made_for(*parameters), VectorByteProducts, VectorByteFinish
    )
