"""Features of 64-bit Arm processors, as the operating system reports them.

Notes
-----
LLVM reads them from ``/proc/cpuinfo``, which emulators and some containers show as that of another
processor, and says nothing on macOS. On Windows it asks the operating system itself.

References
----------
Linux: "ARM64 ELF hwcaps". macOS: "Determining instruction set characteristics" (``sysctlbyname``).
"""

from __future__ import annotations

import ctypes
import platform
import sys

_MACHINES = ("aarch64", "arm64")

_AT_HWCAP, _AT_HWCAP2 = 16, 26

_LINUX = (
    ("neon", _AT_HWCAP, 1),
    ("lse", _AT_HWCAP, 8),
    ("fullfp16", _AT_HWCAP, 10),
    ("rdm", _AT_HWCAP, 12),
    ("jsconv", _AT_HWCAP, 13),
    ("complxnum", _AT_HWCAP, 14),
    ("rcpc", _AT_HWCAP, 15),
    ("sha3", _AT_HWCAP, 17),
    ("dotprod", _AT_HWCAP, 20),
    ("fp16fml", _AT_HWCAP, 23),
    ("lse2", _AT_HWCAP, 25),
    ("rcpc-immo", _AT_HWCAP, 26),
    ("flagm", _AT_HWCAP, 27),
    ("altnzcv", _AT_HWCAP2, 7),
    ("fptoint", _AT_HWCAP2, 8),
    ("i8mm", _AT_HWCAP2, 13),
    ("bf16", _AT_HWCAP2, 14),
)
"""LLVM's name of a feature, the word of the auxiliary vector that has it, and its bit."""

_MACOS = {
    "neon": "AdvSIMD",
    "fullfp16": "arm.FEAT_FP16",
    "dotprod": "arm.FEAT_DotProd",
    "i8mm": "arm.FEAT_I8MM",
    "bf16": "arm.FEAT_BF16",
}
"""After ``hw.optional.``, by LLVM's name."""


def arm_features() -> frozenset[str]:
    """Features of this processor that kernels use, in LLVM's words; none of other architectures.

    Returns
    -------
    frozenset of str
        Those that the operating system says it has: others it may have, or not.
    """
    if platform.machine() not in _MACHINES:
        return frozenset()
    if sys.platform == "darwin":
        return frozenset(name for name, of_system in _MACOS.items() if _sysctl(of_system))
    words = {number: _auxiliary(number) for number in (_AT_HWCAP, _AT_HWCAP2)}
    return frozenset(name for name, word, bit in _LINUX if words[word] >> bit & 1)


def _auxiliary(number: int) -> int:
    """A word that the kernel gave the process; 0 where there is none."""
    if not sys.platform.startswith("linux"):
        return 0
    read = getattr(ctypes.CDLL(None), "getauxval", None)
    # Not every C library for Linux has it.
    if read is None:
        return 0
    read.restype, read.argtypes = ctypes.c_ulong, (ctypes.c_ulong,)
    return int(read(number))


def _sysctl(name: str) -> bool:
    """Return whether macOS says that the processor has something."""
    value = ctypes.c_int64(0)
    size = ctypes.c_size_t(ctypes.sizeof(value))
    read = ctypes.CDLL(None).sysctlbyname
    read.restype = ctypes.c_int
    at = f"hw.optional.{name}".encode()
    return read(
        at, ctypes.byref(value), ctypes.byref(size), None, ctypes.c_size_t(0)
    ) == 0 and bool(value.value)
