"""Code that is loaded without LLVM computes what LLVM's own loader makes of it."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from armpy_numba_acc import llvm
from armpy_numba_acc.llvm.build import build_kernel
from armpy_numba_acc.llvm.host import host_isas
from armpy_numba_acc.machine.code_memory import library_address
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.native import elf, loader

from armpy.core.system_trace import set_system_trace
from armpy.errors import BackendUnavailableError

FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)

pytestmark = pytest.mark.skipif(not elf.can_load(), reason="only Linux's code is loaded here")


@pytest.fixture(scope="module")
def objects() -> dict[str, bytes]:
    isa = host_isas()[0]
    return {
        kernel.symbol: build_kernel(kernel, isa)
        for kernel in (Kernel("copy"), Kernel("reduce", ("sum", "f32", "columns")))
    }


def copied(address: int) -> list[int]:
    """What the kernel that copies makes of some bytes."""
    source = np.arange(1000, dtype=np.uint8)
    target = np.zeros(1000, np.uint8)
    arguments = np.array([source.ctypes.data, target.ctypes.data, 1000], np.int64)
    FUNCTION(address)(arguments.ctypes.data, 0, 1)
    return target.tolist()


Load = Callable[[dict[str, bytes]], dict[str, int]]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("load", [loader.load_objects, llvm.load_by_llvm])
def test_code_runs_wherever_it_was_loaded(objects: dict[str, bytes], load: Load) -> None:
    addresses = load(objects)
    assert copied(addresses["copy"]) == np.arange(1000, dtype=np.uint8).tolist()


@pytest.mark.parametrize("load", [loader.load_objects, llvm.load_by_llvm])
def test_perf_gets_the_names_of_kernels(
    objects: dict[str, bytes], load: Load, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    request.addfinalizer(lambda: set_system_trace(""))
    set_system_trace("perf", maps_folder=str(tmp_path))
    addresses = load(objects)
    lines = (tmp_path / f"perf-{os.getpid()}.map").read_text().splitlines()
    named = {name: (int(start, 16), int(size, 16)) for start, size, name in map(str.split, lines)}
    assert {name: start for name, (start, _) in named.items()} == addresses
    assert all(0 < size <= len(objects[name]) for name, (_, size) in named.items())
    ordered = sorted(named.values())
    assert all(start + size <= after for (start, size), (after, _) in pairwise(ordered))


def test_code_is_loaded_without_llvm(
    objects: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llvm, "load_by_llvm", None)
    assert loader.load_objects(objects).keys() == objects.keys()


def test_memory_that_is_run_cannot_be_written(objects: dict[str, bytes]) -> None:
    addresses = elf.load(objects)
    with open("/proc/self/maps", encoding="ascii") as maps:
        mapped = [line.split()[:2] for line in maps]
    for address in addresses.values():
        rights = [
            mode
            for place, mode in mapped
            if int(place.split("-")[0], 16) <= address < int(place.split("-")[1], 16)
        ]
        assert rights == ["r-xp"]


@pytest.mark.parametrize(
    ("place", "byte"),
    [(0, 0), (4, 1), (5, 2), (16, 3), (18, 243)],
    ids=["magic", "32 bits", "big-endian", "library", "risc-v"],
)
def test_other_files_are_refused(objects: dict[str, bytes], place: int, byte: int) -> None:
    data = bytearray(objects["copy"])
    data[place] = byte
    with pytest.raises(elf.UnsupportedError):
        elf.load({"copy": bytes(data)})


def test_a_function_that_is_not_there_is_refused(objects: dict[str, bytes]) -> None:
    with pytest.raises(elf.UnsupportedError, match="does not define 'other'"):
        elf.load({"other": objects["copy"]})


def test_a_function_that_no_library_has_is_refused(objects: dict[str, bytes]) -> None:
    renamed = {n: code.replace(b"memset\0", b"memsex\0") for n, code in objects.items()}
    if renamed == objects:
        pytest.skip("these kernels call no library")
    with pytest.raises(elf.UnsupportedError, match="memsex"):
        elf.load(renamed)
    with pytest.raises(BackendUnavailableError, match="memsex"):  # LLVM would end the process
        loader.load_objects(renamed)


def test_functions_of_the_compilers_library_are_found() -> None:
    """A process that has not loaded it lacks conversions of float16, which kernels call."""
    try:
        library = ctypes.CDLL("libgcc_s.so.1")
        expected = ctypes.cast(library.__truncdfhf2, ctypes.c_void_p).value
    except (OSError, AttributeError):
        pytest.skip("the compiler's library has no such conversion")
    assert library_address("__truncdfhf2") == expected


def test_what_is_refused_is_left_to_llvm(
    objects: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> None:
        raise elf.UnsupportedError("no")

    monkeypatch.setattr(elf, "load", refuse)
    assert copied(loader.load_objects(objects)["copy"])[:4] == [0, 1, 2, 3]
