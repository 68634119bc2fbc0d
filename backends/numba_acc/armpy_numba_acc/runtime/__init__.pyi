from armpy_numba_acc.runtime import team_trial as team_trial
from armpy_numba_acc.runtime import threads as threads

__all__: list[str]
