"""What is Linux's own has something else in its place on other systems."""

from __future__ import annotations

import ctypes
import platform
import sys
from typing import Any

import pytest
from armpy_numba_acc import llvm
from armpy_numba_acc.kernels import executor, loop
from armpy_numba_acc.llvm.compiler import compile_assembly, compile_kernel
from armpy_numba_acc.machine.isa import Host, Isa, isas_of, make_isa
from armpy_numba_acc.machine.processors import arm
from armpy_numba_acc.native import elf, image, loader
from armpy_numba_acc.store import objects
from armpy_numba_acc.store.host import with_elf

from armpy.errors import BackendUnavailableError

from .random_networks import random_network
from .support import ISAS, check_against_reference

LINUX, MACOS, WINDOWS = (
    "aarch64-unknown-linux-gnu",
    "arm64-apple-darwin24.0.0",
    "x86_64-pc-windows-msvc",
)

ALL = ["neon", "fullfp16", "dotprod", "i8mm", "bf16"]


def portable(triple: str) -> Isa:
    return make_isa("portable", triple, "generic", frozenset())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("triple", "called"),
    [
        (LINUX, {"sched_yield", "clock_gettime"}),
        (MACOS, {"_sched_yield", "_clock_gettime"}),
        (WINDOWS, {"SwitchToThread", "QueryPerformanceCounter", "QueryPerformanceFrequency"}),
    ],
)
def test_each_system_is_asked_in_its_own_words(triple: str, called: set[str]) -> None:
    text = compile_assembly(executor.make(portable(triple)), "kernel", portable(triple))
    words = set(text.replace("(%rip)", "").replace("*__imp_", "").split())
    all_names = ("sched_yield", "clock_gettime", "SwitchToThread")
    known = {*all_names, *(f"_{name}" for name in all_names)}
    known |= {f"QueryPerformance{name}" for name in ("Counter", "Frequency")}
    assert {word.removesuffix("@PLT") for word in words} & known == called


def test_the_clock_of_macos_is_the_one_that_python_reads() -> None:
    def number_of_clock(triple: str) -> set[str]:
        isa = portable(triple)
        text = compile_assembly(loop.make(isa, "test"), "kernel", isa)
        moves = (line.split() for line in text.splitlines())
        return {words[2] for words in moves if words[:2] == ["mov", "w0,"]}

    assert "#1" in number_of_clock(LINUX)
    assert "#8" in number_of_clock(MACOS)


@pytest.mark.parametrize("triple", [MACOS, WINDOWS], ids=["mach-o", "coff"])
def test_objects_of_other_systems_are_no_elf_files(triple: str) -> None:
    isa = portable(triple)
    code = compile_kernel(loop.make(isa, "back"), "back", isa)
    with pytest.raises(elf.UnsupportedError):
        elf.load({"back": code})


def test_windows_calling_convention_comes_in_an_elf_file() -> None:
    isa = portable(with_elf(WINDOWS))
    code = compile_kernel(loop.make(isa, "back"), "back", isa)
    linked = elf.link({"back": code}, isa.triple)
    assert linked.architecture == "x86_64-windows"
    # Its first argument comes in rcx, and Linux's in rdi: neither may run where the other does.
    text = compile_assembly(loop.make(isa, "back"), "back", isa)
    assert "%rcx" in text
    if sys.platform != "win32":
        with pytest.raises(elf.UnsupportedError, match="code for x86_64-windows, and this is"):
            elf.load_image(linked)


@pytest.mark.parametrize(
    ("triple", "for_objects"),
    [
        (WINDOWS, "x86_64-pc-windows-msvc-elf"),
        ("x86_64-pc-windows-msvc-elf", "x86_64-pc-windows-msvc-elf"),
        (MACOS, MACOS),
        (LINUX, LINUX),
    ],
)
def test_only_windows_is_asked_for_elf(triple: str, for_objects: str) -> None:
    assert with_elf(triple) == for_objects


def test_windows_code_calls_windows_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    isa = portable(with_elf(WINDOWS))
    linked = elf.link({"run": compile_kernel(executor.make(isa), "run", isa)}, isa.triple)
    assert {"SwitchToThread", "QueryPerformanceCounter"} <= linked.jumps.keys()
    assert not linked.jumps.keys() & {"sched_yield", "clock_gettime"}
    # The processor runs both, and only the system's functions are missing here.
    monkeypatch.setattr(image, "own_architecture", lambda: "x86_64-windows")
    if sys.platform != "win32":
        with pytest.raises(elf.MissingFunctionError, match="QueryPerformance"):
            elf.load_image(linked)


def test_llvm_loads_no_code_where_it_would_end_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(elf, "can_load", lambda: False)
    monkeypatch.setattr(loader, "HAS_LLVM_LOADER", False)
    monkeypatch.setattr(llvm, "load_by_llvm", None)
    with pytest.raises(BackendUnavailableError, match="LLVM loads no code on Windows"):
        loader.load_objects({"kernel": b"whatever it is"})


@pytest.mark.parametrize(("system", "machine"), [("darwin", "arm64"), ("darwin", "x86_64")])
def test_llvm_loads_objects_elsewhere(
    system: str, machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(llvm, "load_by_llvm", lambda objects: dict.fromkeys(objects, 7))
    assert loader.load_objects({"kernel": b"whatever it is"}) == {"kernel": 7}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(3))
def test_networks_run_with_code_that_llvm_has_loaded(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []
    by_llvm = llvm.load_by_llvm

    def load(codes: dict[str, bytes]) -> dict[str, int]:
        loaded.extend(codes)
        return by_llvm(codes)

    monkeypatch.setattr(elf, "can_load", lambda: False)
    monkeypatch.setattr(llvm, "load_by_llvm", load)
    monkeypatch.setattr(objects, "_ADDRESSES", {})
    network, inputs = random_network(seed)
    check_against_reference(network, inputs, ISAS[0])
    assert "executor" in loaded


class System:
    """The functions of an operating system that report features."""

    def __init__(self, words: dict[int, int], names: dict[str, int]) -> None:
        def getauxval(number: int) -> int:
            return words.get(number, 0)

        def sysctlbyname(name: bytes, value: Any, *_: object) -> int:
            value._obj.value = names.get(name.decode(), 0)
            return 0 if name.decode() in names else -1

        self.getauxval, self.sysctlbyname = getauxval, sysctlbyname


def features(
    monkeypatch: pytest.MonkeyPatch, name: str, machine: str, system: System
) -> frozenset[str]:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(sys, "platform", name)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: system)
    return arm.arm_features()


def test_linux_reports_features_of_arm_in_the_auxiliary_vector(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Bits 1, 10 and 20 of HWCAP, 13 and 14 of HWCAP2: asimd, asimdhp, asimddp, i8mm, bf16.
    newer = System({16: 0x0010_0402, 26: 0x6000}, {})
    older = System({16: 0x883}, {})
    assert features(monkeypatch, "linux", "aarch64", newer) == set(ALL)
    assert features(monkeypatch, "linux", "aarch64", older) == {"neon"}
    assert features(monkeypatch, "linux", "x86_64", newer) == frozenset()


def test_macos_reports_features_of_arm_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    m1 = dict.fromkeys(["AdvSIMD", "arm.FEAT_FP16", "arm.FEAT_DotProd"], 1)
    m1 |= {"arm.FEAT_BF16": 0}  # older systems do not know the newest
    system = System({}, {f"hw.optional.{name}": has for name, has in m1.items()})
    assert features(monkeypatch, "darwin", "arm64", system) == {"neon", "fullfp16", "dotprod"}


@pytest.mark.parametrize(
    ("has", "names"),
    [
        (ALL, ["i8mm", "neon", "neon-basic", "portable"]),
        (["neon", "dotprod"], ["neon", "neon-basic", "portable"]),
        (["neon"], ["neon-basic", "portable"]),
    ],
)
def test_arm_has_the_instruction_sets_of_its_features(has: list[str], names: list[str]) -> None:
    host = Host(LINUX, "generic", frozenset(has), frozenset({"sve"}))
    isas = isas_of(host)
    assert [isa.name for isa in isas] == names
    assert all(isa.features.startswith("-sve,") for isa in isas[:-1])
