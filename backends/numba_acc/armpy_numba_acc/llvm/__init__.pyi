from armpy_numba_acc.llvm.build import build_kernel as build_kernel
from armpy_numba_acc.llvm.build import loops_for as loops_for
from armpy_numba_acc.llvm.host import read_host as read_host
from armpy_numba_acc.llvm.loader import load_by_llvm as load_by_llvm
from armpy_numba_acc.llvm.translation import text_of as text_of
from armpy_numba_acc.llvm.translation import text_once as text_once
