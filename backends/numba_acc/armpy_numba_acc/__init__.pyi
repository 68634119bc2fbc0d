from armpy_numba_acc.backend import NumbaBackend as NumbaBackend
from armpy_numba_acc import ahead as ahead
from armpy_numba_acc.machine.compiler import missing_compiler as missing_compiler
from armpy_numba_acc.machine.texts import compressed as compressed, inflated as inflated
