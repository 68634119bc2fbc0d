"""Loads object files of any platform into the process, by LLVM."""

from __future__ import annotations

from collections.abc import Mapping

import llvmlite.binding as llvm

from armpy.core.system_trace import name_code

_LOADED: list[object] = []
"""What keeps code alive that LLVM has loaded: it stays until the process ends."""


def load_by_llvm(objects: Mapping[str, bytes]) -> dict[str, int]:
    """Load object files; the address of the function that each defines, by name."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    sizes = {}
    for name, code in objects.items():
        object_file = llvm.ObjectFileRef.from_data(code)
        sizes[name] = sum(part.size() for part in object_file.sections() if part.is_text())
        engine.add_object_file(object_file)
    engine.finalize_object()
    _LOADED.append(engine)
    addresses = {name: int(engine.get_function_address(name)) for name in objects}
    name_code([(name, address, sizes[name]) for name, address in addresses.items()])
    return addresses
