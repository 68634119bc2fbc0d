from armpy_numba_acc.passes.region import lower_region as lower_region
from armpy_numba_acc.passes.rewriting import rewrite_of as rewrite_of
