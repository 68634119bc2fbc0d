from armpy_numba_acc.program.choices import Choices as Choices
from armpy_numba_acc.program.offered import offer_constants as offer_constants
from armpy_numba_acc.program.estimate import Rates as Rates
