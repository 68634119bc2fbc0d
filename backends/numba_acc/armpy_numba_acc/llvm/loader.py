"""Loads object files of any platform into the process, by LLVM."""

from __future__ import annotations

from collections.abc import Mapping

import llvmlite.binding as llvm

_LOADED: list[object] = []
"""What keeps code alive that LLVM has loaded: it stays until the process ends."""


def load_by_llvm(objects: Mapping[str, bytes]) -> dict[str, int]:
    """Load object files; the address of the function that each defines, by name."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    for code in objects.values():
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _LOADED.append(engine)
    return {name: int(engine.get_function_address(name)) for name in objects}
