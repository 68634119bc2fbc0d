from armpy_numba_acc.native.elf import link as link
from armpy_numba_acc.native.loader import load_objects as load_objects
from armpy_numba_acc.native.loader import why_foreign as why_foreign
