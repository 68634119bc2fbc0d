from armpy_numba_acc.runtime import threads as threads

__all__: list[str]
