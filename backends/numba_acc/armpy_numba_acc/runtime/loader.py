"""Loads compiled kernels into the process, without Numba."""

# mypy: disable-error-code="no-untyped-call"
# llvmlite has no types.

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import cache

import llvmlite.binding as llvm

_LOCK = threading.Lock()
_ENGINES: list[object] = []
"""What keeps loaded code alive: it stays until the process ends."""


@cache
def _initialize() -> None:
    """Let LLVM know the host."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


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
        _initialize()
        machine = llvm.Target.from_default_triple().create_target_machine()
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        for code in objects.values():
            engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        _ENGINES.append(engine)
        return {name: int(engine.get_function_address(name)) for name in objects}
