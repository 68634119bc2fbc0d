"""Product of a float32 vector and a matrix."""

from __future__ import annotations

from armpy_numba_acc.llvm.compiler import LinkedKernel
from armpy_numba_acc.machine.calls.vectors import VectorMatrixF32
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.tiles.vector_matrix.engine import vector_kernel
from armpy_numba_acc.tiles.vector_matrix.f32 import VectorRealFinish, VectorRealProducts


def make(isa: Isa, *parameters: int | str) -> LinkedKernel:
    """Make the kernel for the record's parameters."""
    return vector_kernel(
        isa, VectorMatrixF32.made_for(*parameters), VectorRealProducts, VectorRealFinish
    )
