from armpy_numba_acc.backend import NumbaBackend as NumbaBackend
