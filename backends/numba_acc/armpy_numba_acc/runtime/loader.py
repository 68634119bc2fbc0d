"""Loads compiled kernels into the process, without Numba."""

# mypy: disable-error-code="no-untyped-call"
# llvmlite has no types.

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping

from armpy_numba_acc.runtime import elf

_log = logging.getLogger("armpy.NumbaAcc")

_LOCK = threading.Lock()
_LOADED: list[object] = []
"""What keeps code alive that LLVM has loaded: it stays until the process ends."""


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
        return _loaded_by_llvm(objects)


def _loaded_by_llvm(objects: Mapping[str, bytes]) -> dict[str, int]:
    """Load object files of any platform."""
    # Importing it takes longer than loading the kernels of a model.
    import llvmlite.binding as llvm  # noqa: PLC0415

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    for code in objects.values():
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _LOADED.append(engine)
    return {name: int(engine.get_function_address(name)) for name in objects}
