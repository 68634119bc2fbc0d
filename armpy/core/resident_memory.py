"""Memory of this process and of the machine, on POSIX and Windows."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys

if sys.platform == "win32":

    class _Counters(ctypes.Structure):
        """``PROCESS_MEMORY_COUNTERS``."""

        _fields_ = (
            ("size", ctypes.c_uint32),
            ("num_faults", ctypes.c_uint32),
            ("peak_bytes", ctypes.c_size_t),
            ("resident_bytes", ctypes.c_size_t),
            ("others", ctypes.c_size_t * 6),
        )

    class _Status(ctypes.Structure):
        """``MEMORYSTATUSEX``."""

        _fields_ = (
            ("size", ctypes.c_uint32),
            ("percent", ctypes.c_uint32),
            ("machine_bytes", ctypes.c_uint64),
            ("others", ctypes.c_uint64 * 6),
        )

    def resident_bytes() -> tuple[int, int]:
        """Resident memory of the process now, and its peak; 0 where the system does not say."""
        windows = ctypes.WinDLL("kernel32")
        windows.GetCurrentProcess.restype = ctypes.c_void_p
        windows.K32GetProcessMemoryInfo.argtypes = (
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_uint32,
        )
        counters = _Counters()
        counters.size = ctypes.sizeof(counters)
        windows.K32GetProcessMemoryInfo(
            windows.GetCurrentProcess(), ctypes.byref(counters), counters.size
        )
        return counters.resident_bytes, counters.peak_bytes

    def machine_memory_bytes() -> int:
        """Memory of the machine; 0 if the system does not say."""
        status = _Status()
        status.size = ctypes.sizeof(status)
        ctypes.WinDLL("kernel32").GlobalMemoryStatusEx(ctypes.byref(status))
        return int(status.machine_bytes)

    def reserve_memory(size: int) -> None:
        """Take memory from the system and give it back; OSError if there is none."""
        mmap.mmap(-1, size).close()

else:
    import resource

    def resident_bytes() -> tuple[int, int]:
        """Resident memory of the process now, and its peak.

        Linux reports both. Elsewhere both are the peak that `getrusage` reports.
        """
        try:
            with open("/proc/self/status", encoding="ascii", errors="replace") as file:
                fields = dict(line.split(":", 1) for line in file if ":" in line)
            return _kib(fields["VmRSS"]), _kib(fields["VmHWM"])
        except (OSError, KeyError, ValueError):
            most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            return (most, most) if sys.platform == "darwin" else (1024 * most, 1024 * most)

    def _kib(text: str) -> int:
        """Bytes of ``1234 kB``."""
        return 1024 * int(text.split(maxsplit=1)[0])

    def machine_memory_bytes() -> int:
        """Memory of the machine; 0 if the system does not say."""
        try:
            return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (OSError, ValueError):
            return 0

    def reserve_memory(size: int) -> None:
        """Take memory from the system and give it back; OSError if there is none."""
        mmap.mmap(-1, size, mmap.MAP_PRIVATE).close()
