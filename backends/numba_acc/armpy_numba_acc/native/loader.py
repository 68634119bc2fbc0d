"""Loads compiled kernels into the process, without Numba."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping

from armpy_numba_acc.native import elf

_log = logging.getLogger("armpy.NumbaAcc")

_LOCK = threading.Lock()


def load_objects(objects: Mapping[str, bytes]) -> dict[str, int]:
    """Load object files.

    Parameters
    ----------
    objects : mapping of str to bytes
        By the name of the one function that each defines.

    Returns
    -------
    dict of str to int
        Address of each function.
    """
    with _LOCK:
        if elf.can_load():
            try:
                return elf.load(objects)
            except elf.UnsupportedError as error:
                _log.info("LLVM has to load the kernels: %s", error)
        # Importing LLVM takes longer than loading the kernels of a model.
        from armpy_numba_acc.llvm.loader import load_by_llvm  # noqa: PLC0415

        return load_by_llvm(objects)
