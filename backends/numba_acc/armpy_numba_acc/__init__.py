"""NumbaAcc: compiles whole regions of a network with Numba and LLVM."""

from armpy.core.lazy import offer

__getattr__, __dir__ = offer(__name__)
