"""Features of this processor, in LLVM's words, read without LLVM.

Notes
-----
Kernels that were compiled elsewhere are only run where everything is there that they may use:
an unknown feature counts as absent.

References
----------
Linux: ``arch/x86/include/asm/cpufeatures.h`` for the flags of ``/proc/cpuinfo``, which holds what
the processor has, the hypervisor shows and the kernel lets processes use. Other systems have no
such file: there the processor is asked itself, see `armpy_numba_acc.machine.processors.cpuid`.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from armpy_numba_acc.machine import processors

if TYPE_CHECKING:  # what `processors` imports when it is asked for
    import armpy_numba_acc.machine.processors.cpuid  # noqa: F401 - its name is `processors.cpuid`

_DESCRIPTION = "/proc/cpuinfo"

_MODEL = (
    *("vendor_id", "cpu family", "model", "stepping", "flags"),
    *("Features", "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "CPU revision"),
)
"""Fields that identify the processor and the features that the kernel allows."""

_ARCHITECTURES = {"amd64": "x86_64", "x86_64": "x86_64", "arm64": "aarch64", "aarch64": "aarch64"}
"""LLVM's name of an architecture, by the operating system's."""

_LINUX_X86 = {
    "pni": "sse3",
    "ssse3": "ssse3",
    "sse4_1": "sse4.1",
    "sse4_2": "sse4.2",
    "sse4a": "sse4a",
    "popcnt": "popcnt",
    "cx16": "cx16",
    "lahf_lm": "sahf",
    "abm": "lzcnt",
    "movbe": "movbe",
    "bmi1": "bmi",
    "bmi2": "bmi2",
    "f16c": "f16c",
    "fma": "fma",
    "gfni": "gfni",
    "avx": "avx",
    "avx2": "avx2",
    "avx_vnni": "avxvnni",
    "avx_vnni_int8": "avxvnniint8",
    "avx512f": "avx512f",
    "avx512bw": "avx512bw",
    "avx512cd": "avx512cd",
    "avx512dq": "avx512dq",
    "avx512vl": "avx512vl",
    "avx512ifma": "avx512ifma",
    "avx512vbmi": "avx512vbmi",
    "avx512_vbmi2": "avx512vbmi2",
    "avx512_vnni": "avx512vnni",
    "avx512_bitalg": "avx512bitalg",
    "avx512_vpopcntdq": "avx512vpopcntdq",
    "avx512_bf16": "avx512bf16",
    "avx512_fp16": "avx512fp16",
    "amx_tile": "amx-tile",
    "amx_int8": "amx-int8",
    "amx_bf16": "amx-bf16",
}
"""LLVM's name of each feature that generated code may use, by the kernel's."""


class Processor(NamedTuple):
    """A processor, as the operating system describes it."""

    system: str  # `sys.platform`
    # As LLVM's triples begin: ``x86_64``, ``aarch64``; others as Python calls them.
    architecture: str
    # LLVM's names of those that generated code may use, beside what all processors of the
    # architecture have.
    features: frozenset[str]


def architecture_of(name: str) -> str:
    """An architecture by its name, as `Processor` has it, from any that systems call it by."""
    return _ARCHITECTURES.get(name, name)


@cache
def this_processor() -> Processor:
    """The one that this process runs on."""
    architecture = _architecture()
    if architecture == "aarch64":
        features = processors.arm.arm_features()
    else:
        features = _described() if architecture == "x86_64" else frozenset()
    return Processor(sys.platform, architecture, features)


def identity_of_processor() -> list[object]:
    """What is equal as long as the processor and the features that may be used are the same.

    Returns
    -------
    list
        Of the form of JSON; empty where nothing describes the processor.
    """
    # An emulator shows the file of the processor that it runs on.
    also = sorted(processors.arm.arm_features())
    if sys.platform != "linux":
        words = processors.cpuid.identity() if _architecture() == "x86_64" else ()
        return [[sys.platform, *words], also] if words else []
    fields = {name: value for name, value in _first_processor() if name in _MODEL}
    return [sorted(fields.items()), also] if fields.keys() & {"flags", "Features"} else []


def _architecture() -> str:
    return architecture_of(platform.machine().lower())


def _described() -> frozenset[str]:
    """Features of x86-64 as Linux describes the first processor, or as the processor says."""
    if sys.platform != "linux":
        return processors.cpuid.features_in(*processors.cpuid.read_leaves())
    words = dict(_first_processor()).get("flags", "").split()
    return frozenset(_LINUX_X86[word] for word in words if word in _LINUX_X86)


def _first_processor() -> Iterator[tuple[str, str]]:
    """Names and values of the first processor in Linux's file; nothing if it cannot be read."""
    try:
        with open(_DESCRIPTION, encoding="utf-8", errors="replace") as file:
            for line in iter(lambda: file.readline().rstrip("\n"), ""):
                name, _, value = line.partition(":")
                yield name.strip(), value.strip()
    except OSError:
        return  # nothing is known, and nothing is taken to be there
