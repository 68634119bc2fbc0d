"""NumbaAcc: compiles whole regions of a network with Numba and LLVM."""

from armpy_numba_acc.backend import NumbaBackend

__all__ = ["NumbaBackend"]
