from armpy_numba_acc.store.objects import kernel_addresses as kernel_addresses
from armpy_numba_acc.store.packs import packed_codes as packed_codes
