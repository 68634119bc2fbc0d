from armpy_numba_acc.backend import NumbaBackend as NumbaBackend
from armpy_numba_acc import ahead as ahead
