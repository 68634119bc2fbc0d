"""Memory that becomes code, and addresses of the system's functions, on POSIX and Windows.

Notes
-----
Memory is written first and made executable then: memory that is both is refused by some systems.
Apple's processors have pages that are either, by thread (``MAP_JIT``).

References
----------
Apple, "Porting just-in-time compilers to Apple silicon".
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

HAS_LLVM_LOADER = sys.platform != "win32"
"""Whether LLVM may load code: on Windows its loader of ELF files ends the process where sections
come to lie too far apart."""


class CodeMemoryError(Exception):
    """The system gives no memory for code, or does not let it be run."""


class MissingAddressError(Exception):
    """Neither the process nor the system's libraries have a function of this name."""


if sys.platform == "win32":
    _COMMIT_AND_RESERVE, _RELEASE = 0x3000, 0x8000
    _READ_WRITE, _EXECUTE_READ = 0x04, 0x20
    _LIBRARIES = ("kernel32", "ucrtbase", "vcruntime140", "ntdll")
    """Have what kernels call: threads and clocks, the C library's functions, and ``__chkstk``,
    which touches the pages of a large stack frame in order."""

    class CodeMemory:
        """Pages that are zero, for code; freed with the last reference to this.

        Attributes
        ----------
        start : int
            Address of the first page.

        Raises
        ------
        CodeMemoryError
            If the system has no room.
        """

        def __init__(self, size: int) -> None:
            self.start = 0
            self._size = size
            # Kept here: an interpreter that ends empties modules before the last memory goes.
            self._free = _kernel32().VirtualFree
            start = _kernel32().VirtualAlloc(None, size, _COMMIT_AND_RESERVE, _READ_WRITE)
            if not start:
                raise CodeMemoryError(f"no memory for code: {_last_error()}")
            self.start = int(start)

        def __del__(self) -> None:
            if self.start:
                self._free(self.start, 0, _RELEASE)

        @contextmanager
        def writable(self) -> Iterator[memoryview]:
            """The bytes, which this thread may write; ahead of `make_executable`."""
            memory = (ctypes.c_char * self._size).from_address(self.start)
            with memoryview(memory) as chars, chars.cast("B") as code:
                yield code

        def make_executable(self) -> None:
            """Let the memory be run, and no longer be written.

            Raises
            ------
            CodeMemoryError
                If the system refuses it.
            """
            before = ctypes.c_ulong()
            windows = _kernel32()
            if not windows.VirtualProtect(
                self.start, self._size, _EXECUTE_READ, ctypes.byref(before)
            ):
                raise CodeMemoryError(f"memory cannot be made executable: {_last_error()}")
            windows.FlushInstructionCache(windows.GetCurrentProcess(), self.start, self._size)

    @cache
    def _kernel32() -> ctypes.WinDLL:
        """The functions for memory, with their types: addresses do not fit into an int."""
        library = ctypes.WinDLL("kernel32", use_last_error=True)
        address, size, word = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_ulong
        library.VirtualAlloc.argtypes = (address, size, word, word)
        library.VirtualAlloc.restype = address
        library.VirtualProtect.argtypes = (address, size, word, ctypes.POINTER(word))
        library.VirtualFree.argtypes = (address, size, word)
        library.FlushInstructionCache.argtypes = (address, address, size)
        library.GetCurrentProcess.restype = address
        return library

    def _last_error() -> str:
        return str(ctypes.WinError(ctypes.get_last_error()))

    @cache
    def _libraries() -> tuple[ctypes.CDLL, ...]:
        return tuple(map(ctypes.CDLL, _LIBRARIES))

else:
    _LIBRARIES = ("the process", "libgcc_s.so.1")
    """The second has what compilers call for what a processor lacks, such as conversions of
    float16."""

    _MAP_JIT = 0x800
    """Of macOS: pages that a thread may write while it may not run them."""

    class CodeMemory:
        """Pages that are zero, for code; unmapped with the last reference to this.

        Attributes
        ----------
        start : int
            Address of the first page.

        Raises
        ------
        CodeMemoryError
            If the system has no room.
        """

        def __init__(self, size: int) -> None:
            flags, rights = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE
            self._is_by_thread = _has_apple_processor()
            if self._is_by_thread:
                flags, rights = flags | _MAP_JIT, rights | mmap.PROT_EXEC
            try:
                memory = mmap.mmap(-1, size, flags=flags, prot=rights)
            except OSError as error:
                raise CodeMemoryError(f"no memory for code: {error}") from error
            self._memory = memory
            self.start = ctypes.addressof(ctypes.c_char.from_buffer(memory))

        @contextmanager
        def writable(self) -> Iterator[memoryview]:
            """The bytes, which this thread may write; ahead of `make_executable`."""
            if self._is_by_thread:
                _process().pthread_jit_write_protect_np(0)
            try:
                with memoryview(self._memory) as code:
                    yield code
            finally:
                # Until then the thread can run no code that is in such pages.
                if self._is_by_thread:
                    _process().pthread_jit_write_protect_np(1)

        def make_executable(self) -> None:
            """Let the memory be run, and no longer be written.

            Raises
            ------
            CodeMemoryError
                If the system refuses it.
            """
            size = len(self._memory)
            if self._is_by_thread:
                address, length = ctypes.c_void_p(self.start), ctypes.c_size_t(size)
                _process().sys_icache_invalidate(address, length)
                return
            # Ahead of the change of rights, after which nothing is written any more.
            if (flush := _flush_instructions()) is not None:
                flush(self.start, self.start + size)
            protect = _process().mprotect
            protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
            if protect(self.start, size, mmap.PROT_READ | mmap.PROT_EXEC):
                number = ctypes.get_errno()
                raise CodeMemoryError(f"memory cannot be made executable: error {number}")

    def _has_apple_processor() -> bool:
        return sys.platform == "darwin" and platform.machine() == "arm64"

    @cache
    def _process() -> ctypes.CDLL:
        """The functions that the process has: each such object is a class of its own."""
        return ctypes.CDLL(None, use_errno=True)

    def _libraries() -> Iterator[ctypes.CDLL]:
        yield _process()
        try:
            yield ctypes.CDLL(_LIBRARIES[1])
        except OSError:  # not every system has it
            return

    @cache
    def _flush_instructions() -> Callable[[int, int], object] | None:
        """Return a function that clears Arm's instruction cache; None where that is not needed.

        x86-64 has no need of it. On Arm, Linux does it itself for pages that become executable
        (``__sync_icache_dcache`` in ``arch/arm64/mm/flush.c``), on which the loader of shared
        libraries relies; the compiler's library follows the architecture manual.
        """
        if platform.machine() != "aarch64":
            return None
        for library in _libraries():
            function = getattr(library, "__clear_cache", None)
            if function is not None:
                function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_void_p), None
                flush: Callable[[int, int], object] = function
                return flush
        return None


def library_address(name: str) -> int:
    """Address of a function of the process or of the system's libraries.

    Raises
    ------
    MissingAddressError
        If none of them has it.
    """
    for library in _libraries():
        function = getattr(library, name, None)
        if function is not None:
            return ctypes.cast(function, ctypes.c_void_p).value or 0
    raise MissingAddressError(f"it calls '{name}', which none of {', '.join(_LIBRARIES)} has")
