"""Compiled kernels: in the process, on disk, or made now."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence

from armpy.backend import Progress, report_progress
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.store.keys import is_current, object_key
from armpy_numba_acc.store.settings import disk_entries

_KIND = "object"
_LOCK = threading.RLock()
_ADDRESSES: dict[tuple[str, Kernel], int] = {}

if hasattr(os, "register_at_fork"):
    # A child must not be left with a kernel half made, nor with locks of threads it does not have.
    os.register_at_fork(
        before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release
    )


def kernel_addresses(kernels: Sequence[Kernel], isa: Isa) -> dict[Kernel, int]:
    """Address of each kernel's code, compiled if need be.

    Parameters
    ----------
    kernels : sequence of Kernel
    isa : Isa
    """
    with _LOCK:
        missing = [k for k in dict.fromkeys(kernels) if (isa.key, k) not in _ADDRESSES]
        if missing:
            # A process that has the backend and does not use it must not load LLVM.
            from armpy_numba_acc.native.loader import load_objects  # noqa: PLC0415

            codes = object_codes(missing, isa)
            addresses = load_objects({kernel.symbol: code for kernel, code in codes.items()})
            for kernel in missing:
                _ADDRESSES[isa.key, kernel] = addresses[kernel.symbol]
        return {kernel: _ADDRESSES[isa.key, kernel] for kernel in kernels}


def object_codes(kernels: Sequence[Kernel], isa: Isa) -> dict[Kernel, bytes]:
    """Object code of each kernel, from disk or compiled and kept there.

    Parameters
    ----------
    kernels : sequence of Kernel
        Each once.
    isa : Isa
    """
    entries = disk_entries()
    keys = {kernel: object_key(kernel, isa) if entries else "" for kernel in kernels}
    codes: dict[Kernel, bytes] = {}
    for kernel, key in keys.items():
        if entries is not None and key and (parts := entries.read(_KIND, key)):
            codes[kernel] = bytes(parts[0])
    absent = [kernel for kernel in kernels if kernel not in codes]
    for number, kernel in enumerate(absent):
        _report(number, len(absent))
        codes[kernel] = _compiled(kernel, isa)
        if entries is not None and keys[kernel] and is_current():
            entries.write(_KIND, keys[kernel], [codes[kernel]], f"{kernel.symbol} for {isa.name}")
    _report(len(absent), len(absent))
    return codes


def _compiled(kernel: Kernel, isa: Isa) -> bytes:
    """A kernel's object code, made now."""
    # Numba is slow to import, and not needed where everything is on disk.
    from armpy_numba_acc.llvm.build import build_kernel  # noqa: PLC0415

    return build_kernel(kernel, isa)


def _report(done: int, total: int) -> None:
    """Say how many kernels are compiled, if any has to be."""
    if total:
        report_progress(Progress("NumbaAcc", "compiling kernels", done, total))
