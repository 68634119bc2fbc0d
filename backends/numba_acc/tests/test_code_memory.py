"""Memory that becomes code: what is run is what was written, on Apple's processors by thread."""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys
from typing import Any

import pytest
from armpy_numba_acc.machine import code_memory
from armpy_numba_acc.machine.code_memory import CodeMemory, CodeMemoryError

CODES = {
    "x86_64": bytes.fromhex("b82a000000 c3"),  # mov eax, 42; ret
    "aarch64": bytes.fromhex("40058052 c0035fd6"),  # mov w0, #42; ret
}

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX")


def written(size: int = mmap.PAGESIZE) -> CodeMemory:
    memory = CodeMemory(size)
    with memory.writable() as code:
        code[: len(CODES[platform.machine()])] = CODES[platform.machine()]
    memory.make_executable()
    return memory


@pytest.mark.skipif(platform.machine() not in CODES, reason="no code for this processor")
def test_code_runs_once_it_is_executable() -> None:
    memory = written()
    assert ctypes.CFUNCTYPE(ctypes.c_int)(memory.start)() == 42


class AppleSystem:
    """What macOS adds for pages that are either written or run, with a record of the calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.is_writable = False

    def pthread_jit_write_protect_np(self, enabled: int) -> None:
        self.is_writable = not enabled
        self.calls.append(("protect", enabled))

    def sys_icache_invalidate(self, start: ctypes.c_void_p, size: ctypes.c_size_t) -> None:
        assert not self.is_writable
        self.calls.append(("flush", start.value, size.value))


@pytest.fixture
def apple(monkeypatch: pytest.MonkeyPatch) -> AppleSystem:
    """macOS on Apple's processor; its pages are this system's, which may be all at once."""
    system = AppleSystem()
    whole_mmap = mmap.mmap

    def make(number: int, size: int, *, flags: int, prot: int) -> Any:
        assert flags & 0x800, "pages that are both have to be MAP_JIT"
        system.calls.append(("map", size, prot))
        return whole_mmap(number, size, flags=flags & ~0x800, prot=prot & ~mmap.PROT_EXEC)

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    monkeypatch.setattr(code_memory, "_process", lambda: system)
    monkeypatch.setattr(mmap, "mmap", make)
    return system


def test_apple_pages_are_written_by_a_thread_that_cannot_run_them_meanwhile(
    apple: AppleSystem,
) -> None:
    memory = CodeMemory(mmap.PAGESIZE)
    with memory.writable() as code:
        assert apple.is_writable
        code[:4] = b"code"
    memory.make_executable()
    rights = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    assert apple.calls == [
        ("map", mmap.PAGESIZE, rights),
        ("protect", 0),
        ("protect", 1),
        ("flush", memory.start, mmap.PAGESIZE),
    ]
    assert ctypes.string_at(memory.start, 4) == b"code"


def test_a_thread_runs_apple_pages_again_after_an_error(apple: AppleSystem) -> None:
    memory = CodeMemory(mmap.PAGESIZE)
    with pytest.raises(ValueError, match="while it is written"), memory.writable():
        raise ValueError("while it is written")
    assert not apple.is_writable


def test_a_system_that_gives_no_such_pages_is_an_error(
    apple: AppleSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(mmap, "mmap", refuse)
    with pytest.raises(CodeMemoryError, match="no memory for code"):
        CodeMemory(mmap.PAGESIZE)
    assert not apple.calls
