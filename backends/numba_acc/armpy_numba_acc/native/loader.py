"""Loads compiled kernels into the process, without Numba."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping

from armpy.errors import BackendUnavailableError
from armpy_numba_acc import llvm
from armpy_numba_acc.machine.compiler import missing_compiler
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

    Raises
    ------
    BackendUnavailableError
        If LLVM would have to load them, and is not there.
    """
    with _LOCK:
        reason = "code of this system is loaded by LLVM"
        if elf.can_load():
            try:
                return elf.load(objects)
            except elf.UnsupportedError as error:
                reason = str(error)
                _log.info("LLVM has to load the kernels: %s", error)
        if missing_compiler():
            raise BackendUnavailableError(
                "object code cannot be loaded",
                where="NumbaAcc",
                actual=f"{reason}; {missing_compiler()}",
            )
        return llvm.load_by_llvm(objects)
