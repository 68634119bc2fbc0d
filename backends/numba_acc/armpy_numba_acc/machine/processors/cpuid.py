"""What an x86-64 processor says of itself (CPUID), and what the system keeps of its registers.

Notes
-----
For systems without a description of the processor in a file. The instructions are called as
machine code: a few bytes for the calling convention of POSIX, and of Windows.

References
----------
Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, "CPUID" and "XGETBV"; AMD64
Architecture Programmer's Manual, volume 3, appendix E.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple, TypeAlias

from armpy_numba_acc.machine.code_memory import CodeMemory, CodeMemoryError

_EAX, _EBX, _ECX, _EDX = range(4)

if sys.platform == "win32":  # ecx: leaf; edx: subleaf; r8: where the registers go
    _ARGUMENTS = bytes.fromhex("53 89c8 89d1")  # push rbx; mov eax, ecx; mov ecx, edx
else:  # edi, esi, rdx
    _ARGUMENTS = bytes.fromhex("53 4989d0 89f8 89f1")  # push rbx; mov r8, rdx; mov eax, edi; ...
_STORES = bytes.fromhex("418900 41895804 41894808 4189500c 5b c3")  # mov [r8], eax; ...; ret
_CPUID = _ARGUMENTS + bytes.fromhex("0fa2") + _STORES
_XGETBV = _ARGUMENTS + bytes.fromhex("0f01d0") + _STORES  # ecx is the subleaf's place: 0

_READ = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)
_PLACE_OF_XGETBV = 64

_EXTENDED = 0x8000_0000
_OSXSAVE = 27
"""Bit of leaf 1: the system saves registers, and XGETBV says which."""

_AVX, _AVX512, _AMX = 0x6, 0xE6, 0x60000
"""Registers that the system has to save when it changes between threads (XCR0)."""


class _Bit(NamedTuple):
    """Place of a feature: leaf, subleaf, register and bit; registers that the system must save."""

    leaf: int
    subleaf: int
    register: int
    bit: int
    saved: int = 0


FEATURES = {
    "sse3": _Bit(1, 0, _ECX, 0),
    "ssse3": _Bit(1, 0, _ECX, 9),
    "fma": _Bit(1, 0, _ECX, 12, _AVX),
    "cx16": _Bit(1, 0, _ECX, 13),
    "sse4.1": _Bit(1, 0, _ECX, 19),
    "sse4.2": _Bit(1, 0, _ECX, 20),
    "movbe": _Bit(1, 0, _ECX, 22),
    "popcnt": _Bit(1, 0, _ECX, 23),
    "avx": _Bit(1, 0, _ECX, 28, _AVX),
    "f16c": _Bit(1, 0, _ECX, 29, _AVX),
    "bmi": _Bit(7, 0, _EBX, 3),
    "avx2": _Bit(7, 0, _EBX, 5, _AVX),
    "bmi2": _Bit(7, 0, _EBX, 8),
    "avx512f": _Bit(7, 0, _EBX, 16, _AVX512),
    "avx512dq": _Bit(7, 0, _EBX, 17, _AVX512),
    "avx512ifma": _Bit(7, 0, _EBX, 21, _AVX512),
    "avx512cd": _Bit(7, 0, _EBX, 28, _AVX512),
    "avx512bw": _Bit(7, 0, _EBX, 30, _AVX512),
    "avx512vl": _Bit(7, 0, _EBX, 31, _AVX512),
    "avx512vbmi": _Bit(7, 0, _ECX, 1, _AVX512),
    "avx512vbmi2": _Bit(7, 0, _ECX, 6, _AVX512),
    "gfni": _Bit(7, 0, _ECX, 8),
    "avx512vnni": _Bit(7, 0, _ECX, 11, _AVX512),
    "avx512bitalg": _Bit(7, 0, _ECX, 12, _AVX512),
    "avx512vpopcntdq": _Bit(7, 0, _ECX, 14, _AVX512),
    "amx-bf16": _Bit(7, 0, _EDX, 22, _AMX),
    "avx512fp16": _Bit(7, 0, _EDX, 23, _AVX512),
    "amx-tile": _Bit(7, 0, _EDX, 24, _AMX),
    "amx-int8": _Bit(7, 0, _EDX, 25, _AMX),
    "avxvnni": _Bit(7, 1, _EAX, 4, _AVX),
    "avx512bf16": _Bit(7, 1, _EAX, 5, _AVX512),
    "avxvnniint8": _Bit(7, 1, _EDX, 4, _AVX),
    "sahf": _Bit(_EXTENDED + 1, 0, _ECX, 0),
    "lzcnt": _Bit(_EXTENDED + 1, 0, _ECX, 5),
    "sse4a": _Bit(_EXTENDED + 1, 0, _ECX, 6),
}
"""Features that generated code may use, by LLVM's names."""

Leaves: TypeAlias = Mapping[tuple[int, int], tuple[int, ...]]
"""Registers eax to edx by leaf and subleaf; 0 where the processor has no such leaf."""


@cache
def read_leaves() -> tuple[Leaves, int]:
    """Read the leaves of `FEATURES` and the processor's identity; and the registers that are saved.

    The leaves are empty where code cannot be called from memory.
    """
    try:
        memory = CodeMemory(2 * _PLACE_OF_XGETBV)
        with memory.writable() as code:
            code[: len(_CPUID)] = _CPUID
            code[_PLACE_OF_XGETBV : _PLACE_OF_XGETBV + len(_XGETBV)] = _XGETBV
        memory.make_executable()
    except CodeMemoryError:
        return {}, 0
    cpuid, xgetbv = _READ(memory.start), _READ(memory.start + _PLACE_OF_XGETBV)
    last = {start: _registers(cpuid, start, 0)[_EAX] for start in (0, _EXTENDED)}
    last_subleaf = _registers(cpuid, 7, 0)[_EAX] if last[0] >= 7 else 0
    leaves = {}
    for leaf, subleaf in sorted({(0, 0), *((bit.leaf, bit.subleaf) for bit in FEATURES.values())}):
        is_there = leaf <= last[leaf & _EXTENDED] and (leaf != 7 or subleaf <= last_subleaf)
        leaves[leaf, subleaf] = _registers(cpuid, leaf, subleaf) if is_there else (0, 0, 0, 0)
    # The instruction is an illegal one where the system does not say that it may be used.
    has_saved = leaves[1, 0][_ECX] >> _OSXSAVE & 1
    low, _, _, high = _registers(xgetbv, 0, 0) if has_saved else (0, 0, 0, 0)
    return leaves, high << 32 | low


def _registers(function: Callable[[int, int, int], object], leaf: int, sub: int) -> tuple[int, ...]:
    words = (ctypes.c_uint32 * 4)()
    function(leaf, sub, ctypes.addressof(words))
    return tuple(words)


def features_in(leaves: Leaves, saved: int) -> frozenset[str]:
    """LLVM's names of the features that leaves have, with the registers that the system saves."""
    return frozenset(
        name
        for name, (leaf, subleaf, register, bit, needed) in FEATURES.items()
        if leaves and leaves[leaf, subleaf][register] >> bit & 1 and needed & ~saved == 0
    )


def identity() -> tuple[object, ...]:
    """What is equal for processors of one model with the same features and system; or empty."""
    leaves, saved = read_leaves()
    if not leaves:
        return ()
    # Vendor, and family, model and stepping. The rest of leaf 1 differs between cores.
    vendor, model = leaves[0, 0][1:], leaves[1, 0][_EAX]
    return vendor, model, sorted(features_in(leaves, saved))
