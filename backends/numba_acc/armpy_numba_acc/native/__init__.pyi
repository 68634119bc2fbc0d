from armpy_numba_acc.native.elf import link as link
from armpy_numba_acc.native.image import UnsupportedError as UnsupportedError
from armpy_numba_acc.native.loader import load_objects as load_objects
from armpy_numba_acc.native.loader import why_foreign as why_foreign
from armpy_numba_acc.native.loader import why_unsupported as why_unsupported
