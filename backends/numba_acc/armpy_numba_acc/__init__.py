"""NumbaAcc: compiles whole regions of a network with Numba and LLVM."""

from importlib.util import find_spec

from armpy_numba_acc.backend import NumbaBackend

__all__ = ["NumbaBackend"]

# They are imported when something is to be compiled; that they are missing is to be known before.
for _name in ("numba", "llvmlite"):
    if find_spec(_name) is None:
        raise ModuleNotFoundError(f"No module named '{_name}'", name=_name)
