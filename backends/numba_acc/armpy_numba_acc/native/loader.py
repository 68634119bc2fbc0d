"""Loads compiled kernels into the process, without Numba."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping

from armpy.errors import BackendUnavailableError
from armpy_numba_acc import llvm
from armpy_numba_acc.machine.code_memory import HAS_LLVM_LOADER
from armpy_numba_acc.machine.compiler import missing_compiler
from armpy_numba_acc.native import elf
from armpy_numba_acc.native.image import own_architecture
from armpy_numba_acc.native.object_file import object_architecture

_log = logging.getLogger("armpy.NumbaAcc")

_LOCK = threading.Lock()


def load_objects(objects: Mapping[str, bytes], *, are_compiled_here: bool = True) -> dict[str, int]:
    """Load object files.

    Parameters
    ----------
    objects : mapping of str to bytes
        By the name of the one function that each defines.
    are_compiled_here
        Whether LLVM may load what this package's own loader does not support. Code from files may
        be damaged, with which LLVM ends the process.

    Returns
    -------
    dict of str to int
        Address of each function.

    Raises
    ------
    BackendUnavailableError
        If LLVM would have to load them and is not installed or cannot (on Windows), if an object
        is for another architecture, or if it was compiled here and calls a function that does not
        exist: LLVM would let it call address 0.
    UnsupportedError
        If the own loader does not support code that was not compiled here.
    """
    with _LOCK:
        reason = "code of this system is loaded by LLVM"
        if elf.can_load():
            try:
                return elf.load(objects)
            except elf.MissingFunctionError as error:
                if not are_compiled_here:
                    raise
                raise BackendUnavailableError(
                    "object code cannot be loaded", where="NumbaAcc", actual=str(error)
                ) from error
            except elf.UnsupportedError as error:
                if not are_compiled_here:
                    raise
                reason = str(error)
                _check_architectures(objects)
                _log.info("LLVM has to load the kernels: %s", error)
        if missing := _missing_loader():
            raise BackendUnavailableError(
                "object code cannot be loaded", where="NumbaAcc", actual=f"{reason}; {missing}"
            )
        return llvm.load_by_llvm(objects)


def _missing_loader() -> str:
    """Why LLVM loads no code in this process; empty if it does."""
    return missing_compiler() if HAS_LLVM_LOADER else "LLVM loads no code on Windows"


def why_foreign(code: bytes) -> str:
    """Reason why an object file is not for this processor; empty if it is.

    Checked where the own loader is used; a file does not say which system it is for.
    """
    own = own_architecture().partition("-")[0]
    if not own:
        return ""
    try:
        architecture = object_architecture(code)
    except elf.UnsupportedError as error:
        return str(error)
    return "" if architecture == own else f"it is for {architecture}, and this is {own}"


def why_unsupported(name: str, code: bytes) -> str:
    """Reason why the own loader does not support an object file; empty if it does."""
    try:
        elf.link({name: code})
    except elf.UnsupportedError as error:
        return str(error)
    return ""


def _check_architectures(objects: Mapping[str, bytes]) -> None:
    """Refuse objects of other architectures: LLVM would abort the process."""
    for name, code in objects.items():
        if reason := why_foreign(code):
            raise BackendUnavailableError(
                f"the object code of '{name}' cannot be loaded", where="NumbaAcc", actual=reason
            )
