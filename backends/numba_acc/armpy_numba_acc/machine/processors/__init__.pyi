from armpy_numba_acc.machine.processors import arm as arm
from armpy_numba_acc.machine.processors import cores as cores
from armpy_numba_acc.machine.processors import features as features
from armpy_numba_acc.machine.processors import matrix_unit as matrix_unit
from armpy_numba_acc.machine.processors import targets as targets
from armpy_numba_acc.machine.processors import topology as topology

__all__: list[str]
