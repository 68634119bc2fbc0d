"""Features of this processor, as LLVM reported them in an earlier process."""

from __future__ import annotations

import hashlib
import json
from functools import cache

from armpy_numba_acc import llvm
from armpy_numba_acc.machine.compiler import missing_compiler
from armpy_numba_acc.machine.isa import Host, Isa, isas_of
from armpy_numba_acc.machine.processors.features import identity_of_processor, this_processor
from armpy_numba_acc.store.keys import package_version
from armpy_numba_acc.store.settings import disk_entries

_KIND = "host"


@cache
def known_isas() -> tuple[Isa, ...]:
    """The instruction sets that this processor has, best first.

    Importing LLVM to ask takes longer than a small model does, so the answer is kept for as
    long as the kernel describes the processor in the same words.
    """
    if missing_compiler():
        return isas_of(_stored_host())
    entries, key = disk_entries(), _key()
    if entries is None or not key:
        return isas_of(_read_host())
    parts = entries.read(_KIND, key)
    if parts is not None:
        triple, cpu, available, lacking = json.loads(bytes(parts[0]))
        return isas_of(Host(triple, cpu, frozenset(available), frozenset(lacking)))
    host = _read_host()
    fields = [host.triple, host.cpu, sorted(host.available), sorted(host.lacking)]
    entries.write(
        _KIND, key, [json.dumps(fields).encode()], f"features of {host.cpu}", "armpy itself"
    )
    return isas_of(host)


def _read_host() -> Host:
    """Read the description of this processor by LLVM."""
    host = llvm.read_host()
    return host._replace(triple=with_elf(host.triple))


def with_elf(triple: str) -> str:
    """The triple of a system, for object files that the own loader reads.

    LLVM writes Windows' own format (COFF) else, on which its loader for ELF ends the process.
    The calling convention stays Windows'.
    """
    is_windows = "-windows" in triple and not triple.endswith("-elf")
    return f"{triple}-elf" if is_windows else triple


def _stored_host() -> Host:
    """Read the operating system's description: enough for instruction sets, not for compiling."""
    here = this_processor()
    system = "windows-elf" if here.system == "win32" else here.system
    return Host(f"{here.architecture}-unknown-{system}", "generic", here.features, frozenset())


def processor() -> str:
    """Which processor this is, more precisely than instruction sets say."""
    return _key() or (_stored_host() if missing_compiler() else _read_host()).cpu


def _key() -> str:
    """Digest of the processors and of what the system lets processes use; empty if unknown."""
    described = identity_of_processor()
    if not described:
        return ""
    text = json.dumps([package_version("llvmlite"), *described])
    return hashlib.sha256(text.encode()).hexdigest()[:32]
