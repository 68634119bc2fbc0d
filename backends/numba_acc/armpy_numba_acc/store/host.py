# SPDX-License-Identifier: Apache-2.0
"""Features of this processor, as LLVM reported them in an earlier process."""

from __future__ import annotations

import hashlib
import json
from functools import cache

from armpy_numba_acc import llvm
from armpy_numba_acc.machine.compiler import missing_compiler
from armpy_numba_acc.machine.isa import Host, Isa, isas_of
from armpy_numba_acc.machine.processors.arm import arm_features
from armpy_numba_acc.machine.processors.features import this_processor
from armpy_numba_acc.store.keys import package_version
from armpy_numba_acc.store.settings import disk_entries

_KIND = "host"
_PROCESSORS = "/proc/cpuinfo"
_MODEL = (
    *("vendor_id", "cpu family", "model", "stepping", "flags"),
    *("Features", "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision"),
)
"""Fields that identify the processor and the features that the kernel allows."""


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
    return llvm.read_host()


def _stored_host() -> Host:
    """Read the operating system's description: enough for instruction sets, not for compiling."""
    here = this_processor()
    return Host(f"{here.architecture}-unknown-{here.system}", "generic", here.features, frozenset())


def processor() -> str:
    """Which processor this is, more precisely than instruction sets say."""
    return _key() or (_stored_host() if missing_compiler() else _read_host()).cpu


def _key() -> str:
    """Digest of how the kernel describes the processors; empty if it does not."""
    try:
        with open(_PROCESSORS, encoding="utf-8", errors="replace") as file:
            lines = [*iter(lambda: file.readline().rstrip("\n"), "")]  # of the first processor
    except OSError:
        return ""
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    model = {
        name.strip(): value.strip() for name, value in fields.items() if name.strip() in _MODEL
    }
    if not model.keys() & {"flags", "Features"}:
        return ""
    # An emulator shows the file of the processor that it runs on.
    also = sorted(arm_features())
    text = json.dumps([package_version("llvmlite"), sorted(model.items()), also])
    return hashlib.sha256(text.encode()).hexdigest()[:32]
