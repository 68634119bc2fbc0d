"""Sizes of caches and number of cores, as the operating system reports them.

References
----------
Linux: ``Documentation/ABI/testing/sysfs-devices-system-cpu``. Windows:
"GetLogicalProcessorInformation" and "SYSTEM_LOGICAL_PROCESSOR_INFORMATION". macOS: "Determining
System Capabilities" (``hw.perflevel0`` are the fast cores of Apple's processors).
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

_LINUX_FOLDER = "sys/devices/system/cpu/cpu0/cache"

_RECORD = struct.Struct("<QI4xBBHII4x")
"""Of Windows: processors (a bit each), kind; of a cache level, associativity, line, bytes, type."""

_CORE, _CACHE = 0, 2
"""Kinds of Windows' records."""

_INSTRUCTIONS = 1
"""Type of a cache that holds no data."""


class _Record(NamedTuple):
    """What Windows says of one core or cache."""

    processors: int  # a bit each
    kind: int
    level: int
    associativity: int
    line_bytes: int
    size_bytes: int
    type: int


def cache_sizes(root: str | os.PathLike[str] = "/") -> Mapping[int, int]:
    """Bytes of the caches that the data of the first processor goes through, by level.

    Parameters
    ----------
    root
        Of the file system of Linux.

    Returns
    -------
    mapping of int to int
        Empty where the system does not say them. Apple's second level is shared by the cores of a
        cluster, and counts with the share of one.

    Raises
    ------
    OSError, ValueError
        If Linux says them in other words.
    """
    if sys.platform == "win32":
        return {
            record.level: record.size_bytes
            for record in _records()
            if record.kind == _CACHE and record.type != _INSTRUCTIONS and record.processors & 1
        }
    if sys.platform == "darwin":
        return dict(_of_macos())
    return dict(_of_linux(Path(root, _LINUX_FOLDER)))


def num_cores() -> int:
    """Number of cores of Windows' or macOS's machine; its processors where it does not say it."""
    if sys.platform == "win32":
        found = sum(record.kind == _CORE for record in _records())
    else:
        found = _sysctl("hw.physicalcpu")
    return found or os.cpu_count() or 1


def _records() -> Iterator[_Record]:
    """What Windows says of cores and caches; nothing if it says nothing."""
    if sys.platform != "win32":
        return
    read = ctypes.WinDLL("kernel32").GetLogicalProcessorInformation
    size = ctypes.c_uint32(0)
    read(None, ctypes.byref(size))  # fails, and says how many bytes it needs
    words = (ctypes.c_char * size.value)()
    if read(words, ctypes.byref(size)):
        yield from map(_Record._make, _RECORD.iter_unpack(words.raw[: size.value]))


def _of_macos() -> Iterator[tuple[int, int]]:
    """Level and bytes of each cache."""
    for level, name in ((1, "l1dcachesize"), (2, "l2cachesize"), (3, "l3cachesize")):
        # Intel's processors have one kind of cores.
        size = _sysctl(f"hw.perflevel0.{name}") or _sysctl(f"hw.{name}")
        if level == 2:
            size //= _sysctl("hw.perflevel0.cpusperl2") or 1
        if size:
            yield level, size


def _of_linux(folder: Path) -> Iterator[tuple[int, int]]:
    """Level and bytes of each cache."""
    for cache in folder.glob("index*"):
        level, kind, size = (
            (cache / name).read_text("ascii").strip() for name in ("level", "type", "size")
        )
        if kind != "Instruction":
            yield int(level), int(size.rstrip("K")) << 10


def _sysctl(name: str) -> int:
    """A number of macOS by its name; 0 where it has none of this name."""
    read = getattr(ctypes.CDLL(None), "sysctlbyname", None)
    if read is None:
        return 0
    # Numbers of 32 bits fill the lower half: all Macs are little-endian.
    value = ctypes.c_int64(0)
    size = ctypes.c_size_t(ctypes.sizeof(value))
    read.restype = ctypes.c_int
    failed = read(name.encode(), ctypes.byref(value), ctypes.byref(size), None, ctypes.c_size_t(0))
    return 0 if failed else value.value
