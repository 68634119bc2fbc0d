from armpy_numba_acc.llvm.build import build_kernel as build_kernel
from armpy_numba_acc.llvm.host import read_host as read_host
from armpy_numba_acc.llvm.loader import load_by_llvm as load_by_llvm
