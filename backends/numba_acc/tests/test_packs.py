"""Kernels from packs: used where they are what would be compiled, and nowhere else."""

from __future__ import annotations

import logging
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
from armpy_numba_acc import llvm, native
from armpy_numba_acc.files import NumbaPrograms
from armpy_numba_acc.llvm.build import build_kernel
from armpy_numba_acc.llvm.host import host_isas
from armpy_numba_acc.machine import compiler
from armpy_numba_acc.machine.isa import NAMES
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.machine.processors.targets import (
    PROCESSORS,
    host_target,
    named_target,
    runs_on,
)
from armpy_numba_acc.native import elf
from armpy_numba_acc.runtime.described_kernels import described_kernels
from armpy_numba_acc.store import keys, objects, packs
from armpy_numba_acc.store.objects import object_codes, shared_loops
from armpy_numba_acc.store.packs import about_kernels, packed_codes, why_not

from armpy.backend.caches import gathered_cache_uses
from armpy.backend.programs import ProgramFit
from armpy.core.installation import restore_command
from armpy.errors import BackendUnavailableError
from armpy.store.archive import kernel_packs
from armpy.store.archive.container import open_container
from armpy.store.archive.kernel_packs import write_pack
from armpy_testing.digits import MODEL

from .support import forget_sources, instructions, note_compiled

ISA = host_isas()[0]
KERNELS = [Kernel("first", (1, "a")), Kernel("second"), Kernel("third", (2,))]
CODES = {kernel.symbol: f"packed {kernel.symbol}".encode() for kernel in KERNELS[:2]}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache, a folder for packs that is looked into, and no packs of NumbaAcc's own."""
    monkeypatch.setattr(packs, "OWN_PACKS", tmp_path / "own")
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv(kernel_packs.VARIABLE, str(tmp_path / "packs"))
    (tmp_path / "packs").mkdir()
    # The sources may change while their tests run.
    monkeypatch.setattr(keys, "_IMPORTED_NS", 1 << 63)
    forget_sources()
    yield tmp_path / "packs"
    forget_sources()


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Kernel]:
    """The kernels that were compiled, by something that is quick."""
    return note_compiled(monkeypatch)


def about(**changed: object) -> dict[str, object]:
    names = [kernel.name for kernel in KERNELS]
    return {**about_kernels(host_target(ISA, 1), names), **changed}


def test_what_is_packed_is_not_compiled(folder: Path, compiled: list[Kernel]) -> None:
    write_pack(folder / "host.kernels", "NumbaAcc", about(), CODES)
    with gathered_cache_uses() as uses:
        codes = object_codes(KERNELS, ISA)
    assert {k.symbol: codes[k] for k in KERNELS[:2]} == CODES
    assert compiled == KERNELS[2:]
    assert [(use.what, use.is_hit, use.reason) for use in uses] == [
        ("2 kernels from packs", True, str(folder / "host.kernels")),
        ("1 kernel", False, ""),
    ]


def test_packs_are_used_where_nothing_is_kept(
    folder: Path, compiled: list[Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARMPY_NUMBA_CACHE", "off")
    write_pack(folder / "host.kernels", "NumbaAcc", about(), CODES)
    object_codes(KERNELS[:2], ISA)
    assert compiled == []


def test_what_was_compiled_here_goes_before_packs(
    folder: Path, compiled: list[Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = object_codes(KERNELS[:1], ISA)
    write_pack(folder / "host.kernels", "NumbaAcc", about(), CODES)
    # A place that was not looked into while it had no packs.
    monkeypatch.setenv(kernel_packs.VARIABLE, str(folder / "host.kernels"))
    assert object_codes(KERNELS[:1], ISA) == first
    assert compiled == KERNELS[:1]


LIES = {
    "another interface": about(abi="0" * 16),
    "nothing said": {},
    "needs what is not here": about(needs=["warp-drive"]),
    "another architecture": about_kernels(
        named_target("neoverse-v1" if ISA.triple.startswith("x86_64") else "x86-64-v4"), ["first"]
    ),
    "another layout": about(isa=[*ISA._replace(vector_bytes=ISA.vector_bytes * 2)]),
    "other sources": about(sources={"first": "0" * 64}),
    "no sources": about(sources={}),
    "sources without a name": about(sources=["first"]),
    "another instruction set": about(isa=[*ISA._replace(name=NAMES[-1])]),
    "an instruction set of other types": about(isa=[str(field) for field in ISA]),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("said", LIES.values(), ids=LIES)
def test_packs_for_anything_else_are_not_used(
    folder: Path, said: dict[str, object], compiled: list[Kernel]
) -> None:
    write_pack(folder / "host.kernels", "NumbaAcc", said, CODES)
    object_codes(KERNELS, ISA)
    assert compiled == KERNELS
    assert why_not(said, ISA)
    assert NumbaPrograms().check_kernels(said, {"isa": ISA.name}).fit is ProgramFit.FOREIGN


def test_of_a_pack_for_other_sources_only_kernels_from_these_are_used(
    folder: Path, compiled: list[Kernel]
) -> None:
    sources = {"first": keys.code_digest("first"), "second": "0" * 64}
    write_pack(folder / "host.kernels", "NumbaAcc", about(sources=sources), CODES)
    object_codes(KERNELS, ISA)
    assert compiled == KERNELS[1:]


def test_a_process_whose_sources_have_changed_takes_none(
    folder: Path, compiled: list[Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pack(folder / "host.kernels", "NumbaAcc", about(), CODES)
    monkeypatch.setattr(keys, "_IMPORTED_NS", 0)
    forget_sources()
    object_codes(KERNELS, ISA)
    assert compiled == KERNELS
    with pytest.raises(BackendUnavailableError, match="a pack cannot be made"):
        about()


def test_a_damaged_kernel_is_compiled_and_it_is_said(
    folder: Path, compiled: list[Kernel], caplog: pytest.LogCaptureFixture
) -> None:
    path = folder / "host.kernels"
    write_pack(path, "NumbaAcc", about(), CODES)
    whole = bytearray(path.read_bytes())
    whole[-1] ^= 1  # of the last kernel's code
    path.write_bytes(whole)
    with caplog.at_level(logging.WARNING):
        object_codes(KERNELS, ISA)
    assert compiled == KERNELS
    assert "checksum of block 0 is wrong" in caplog.text


def test_a_damaged_pack_is_said_once(
    folder: Path, compiled: list[Kernel], caplog: pytest.LogCaptureFixture
) -> None:
    path = folder / "host.kernels"
    write_pack(path, "NumbaAcc", about(), CODES)
    whole = bytearray(path.read_bytes())
    code = open_container(path).sections["code"]
    whole[code.offset : code.offset + code.size] = bytes(code.size)
    path.write_bytes(whole)
    with caplog.at_level(logging.WARNING):
        object_codes(KERNELS, ISA)
    assert compiled == KERNELS
    assert len(caplog.records) == 1


def test_a_compiler_that_cannot_be_imported_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> ModuleType:
        raise ImportError("Numba needs NumPy 2.2 or less.\n Got NumPy 2.4.")

    assert "compiler: Numba and LLVM" in [*described_kernels(lambda: ISA)]
    monkeypatch.setattr(compiler, "import_module", refuse)
    first, *_ = described_kernels(lambda: ISA)
    assert first == (
        "problem: kernels cannot be compiled, as Numba cannot be imported: Numba needs NumPy "
        "2.2 or less. Got NumPy 2.4. Run: pip install --force-reinstall numba"
    )


def test_a_cut_pack_of_its_own_is_a_problem_that_ends_in_the_command_to_restore_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    whole, cut = own / "sapphirerapids.kernels", own / "znver4.kernels"
    for path in (whole, cut):
        write_pack(path, "NumbaAcc", about(), CODES)
    cut.write_bytes(cut.read_bytes()[:-9])
    with caplog.at_level(logging.WARNING):
        lines = [*described_kernels(lambda: ISA)]
    (problem,) = (line for line in lines if line.startswith("problem: "))
    assert problem.startswith(
        f"problem: kernels are not taken from {cut}: the kernel pack is damaged: it is not whole. "
        f"Expected {whole.stat().st_size} bytes; got {cut.stat().st_size} bytes. Run: "
    )
    assert problem.endswith(restore_command(str(cut), {"armpy": "."}))
    assert f"pack: {whole}: used" in lines
    # What other commands say.
    assert "kernels build" not in caplog.text
    assert "Run: armpy doctor, which says how to restore it" in caplog.text


def test_a_damaged_kernel_of_its_own_pack_is_a_problem(tmp_path: Path) -> None:
    path = tmp_path / "own" / "znver4.kernels"
    path.parent.mkdir()
    write_pack(path, "NumbaAcc", about(), CODES)
    whole = bytearray(path.read_bytes())
    whole[-1] ^= 1
    path.write_bytes(whole)
    (problem,) = (x for x in described_kernels(lambda: ISA) if x.startswith("problem: "))
    assert "the kernel pack is damaged: the checksum of block 0 is wrong. Run: " in problem


def test_a_pack_that_the_variable_names_is_warned_of_with_the_variable(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    compiled: list[Kernel],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv(kernel_packs.VARIABLE, str(tmp_path / "nowhere"))
    with caplog.at_level(logging.WARNING):
        object_codes(KERNELS, ISA)
    assert compiled == KERNELS
    assert "nowhere: it cannot be read: No such file or directory" in caplog.text
    assert "Correct ARMPY_KERNELS, or unset it" in caplog.text


def test_packs_of_one_target_complete_each_other(folder: Path, compiled: list[Kernel]) -> None:
    for number, (name, code) in enumerate(CODES.items()):
        write_pack(folder / f"{number}.kernels", "NumbaAcc", about(), {name: code})
    object_codes(KERNELS[:2], ISA)
    assert compiled == []


def test_the_pack_of_this_processor_comes_first(folder: Path) -> None:
    general = ISA._replace(cpu="generic")
    for name, isa in (("a", general), ("b", ISA), ("c", general)):
        said = about(isa=[*isa], needs=[])
        write_pack(folder / f"{name}.kernels", "NumbaAcc", said, {"second": name.encode()})
    assert packed_codes([KERNELS[1]], ISA)[KERNELS[1]].code == b"b"


@pytest.mark.parametrize("name", PROCESSORS)
def test_targets_of_one_layout_stand_for_each_other_where_they_run(name: str) -> None:
    target = named_target(name)
    said = about_kernels(target, ["first"])
    fits = not why_not(said, ISA)
    assert fits == (not runs_on(target) and packs._layout(target.isa) == packs._layout(ISA))


_RUN = """\
import sys, json
import numpy as np
import armpy
path, = sys.argv[1:]
model = armpy.load(path, backends=["NumbaAcc", "CpuRef"])
spec = model.inputs[0]
x = np.arange(np.prod(spec.shape)).reshape(spec.shape) % 200
y = model(x.astype(spec.data_type.dtype))
print(json.dumps({"compiler": "numba" in sys.modules, "y": y.tolist()}))
"""


@pytest.mark.slow
def test_a_model_runs_from_a_pack_as_from_what_is_compiled_here(
    folder: Path, tmp_path: Path
) -> None:
    model = str(MODEL)
    environment = {**os.environ, "ARMPY_CACHE_DIR": str(tmp_path / "one")}

    def run(**changed: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", _RUN, model],
            env=environment | changed,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    here = run(ARMPY_KERNELS="off")
    build = [sys.executable, "-m", "armpy", "kernels", "build", model, "-o", str(folder)]
    subprocess.run(build, env=environment, check=True, capture_output=True)
    packed = run(ARMPY_CACHE_DIR=str(tmp_path / "two"))
    # The second process has an empty cache, and imports no compiler.
    assert packed == here.replace('"compiler": true', '"compiler": false')
    assert '"compiler": false' in packed


_COMPILE = """
import sys
from armpy_numba_acc.llvm.host import host_isas
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.store.objects import object_codes
kernel = Kernel(sys.argv[1], tuple(int(p) if p.isdigit() else p for p in sys.argv[2:]))
print(object_codes([kernel], host_isas()[0])[kernel].hex(), "numba" in sys.modules)
"""


@pytest.mark.slow
@pytest.mark.parametrize("place", ["pack", "disk"])
@pytest.mark.parametrize(
    ("kernel", "other"),
    [
        (Kernel("elementwise", ("x0.tanh.x1.mul", "f32xf32xf32", "vv")), ("exp", "f32xf32", "v")),
        (Kernel("pooling_u8", (64, 1, "max", 0)), (64, 2, "max", 0)),
    ],
    ids=str,
)
def test_what_kernels_share_is_translated_once_for_all_processes(
    folder: Path,
    place: str,
    kernel: Kernel,
    other: tuple[int | str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alike = Kernel(kernel.name, other)
    if place == "disk":  # the processes find NumbaAcc's own packs
        monkeypatch.setenv(kernel_packs.VARIABLE, "off")
    if place == "pack":
        loops = shared_loops([alike], ISA)
        said = about_kernels(host_target(ISA, 1), loops)
        write_pack(folder / "host.kernels", "NumbaAcc", said, loops)
    for made in (alike, kernel):
        command = [sys.executable, "-c", _COMPILE, made.name, *map(str, made.parameters)]
        ended = subprocess.run(command, check=True, capture_output=True, text=True)
        code, has_numba = ended.stdout.split()
        assert has_numba == str(place == "disk" and made == alike)
        assert instructions(bytes.fromhex(code)) == instructions(build_kernel(made, ISA))


_LOAD = """
from armpy_numba_acc.llvm.host import host_isas
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.store.objects import kernel_addresses
assert kernel_addresses([Kernel("reduce", ("sum", "f32", "columns"))], host_isas()[0])
print("loaded")
"""


@pytest.mark.slow
@pytest.mark.sampled(5)
@pytest.mark.skipif(not elf.can_load(), reason="only Linux's object files are checked")
@pytest.mark.parametrize(
    ("place", "byte"),
    [(4, 1), (5, 2), (16, 3), (18, 183), (18, 62), (18, 243)],
    ids=["32 bits", "big-endian", "library", "aarch64", "x86-64", "risc-v"],
)
def test_code_of_another_architecture_is_compiled_anew(folder: Path, place: int, byte: int) -> None:
    kernel = Kernel("reduce", ("sum", "f32", "columns"))  # with relocations
    code = bytearray(build_kernel(kernel, ISA))
    is_foreign = code[place] != byte
    code[place] = byte
    said = about_kernels(host_target(ISA, 1), [kernel.name])
    write_pack(folder / "host.kernels", "NumbaAcc", said, {kernel.symbol: bytes(code)})
    # In another process: LLVM would abort it.
    ended = subprocess.run(
        [sys.executable, "-c", _LOAD], check=False, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout) == (0, "loaded\n")
    assert ended.stderr.count("1 kernels are compiled again") == is_foreign


def _cut(length: int, code: bytes) -> bytes:
    return code[:length]


def _changed(place: int, form: str, value: int, code: bytes) -> bytes:
    changed = bytearray(code)
    struct.pack_into(form, changed, place, value)
    return bytes(changed)


def _with_section_outside(code: bytes) -> bytes:
    (sections,) = struct.unpack_from("<Q", code, 40)
    return _changed(sections + 2 * 64 + 24, "<Q", 1 << 40, code)


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "header alone": partial(_cut, 64),
    "half": lambda code: code[: len(code) // 2],
    "size of sections": partial(_changed, 58, "<H", 0),
    "place of sections": partial(_changed, 40, "<Q", 1 << 40),
    "number of sections": partial(_changed, 60, "<H", 60_000),
    "names of sections": partial(_changed, 62, "<H", 99),
    "section outside": _with_section_outside,
}


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.skipif(not elf.can_load(), reason="only Linux's object files are checked")
@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_code_of_a_pack_is_compiled_anew(
    folder: Path, damage: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    kernel = Kernel("reduce", ("sum", "f32", "columns"))
    code = DAMAGE[damage](build_kernel(kernel, ISA))
    said = about_kernels(host_target(ISA, 1), [kernel.name])
    write_pack(folder / "host.kernels", "NumbaAcc", said, {kernel.symbol: code})
    monkeypatch.setattr(llvm, "load_by_llvm", None)  # which damaged code would end with a signal
    monkeypatch.setattr(objects, "_ADDRESSES", {})
    assert objects.kernel_addresses([kernel], ISA)[kernel]
    assert "1 kernels are compiled again" in caplog.text


@pytest.mark.skipif(not elf.can_load(), reason="only Linux's object files are checked")
def test_llvm_gets_no_code_of_another_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm, "load_by_llvm", None)
    code = bytearray(build_kernel(Kernel("copy"), ISA))
    code[18] = 183 if code[18] == 62 else 62
    with pytest.raises(BackendUnavailableError, match=r"code of 'copy' .* it is for"):
        native.load_objects({"copy": bytes(code)})
