from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from armpy_numba_acc import passes
from armpy_numba_acc.llvm.host import host_isas
from armpy_numba_acc.machine.kernel import Kernel
from armpy_numba_acc.passes.region import lower_region
from armpy_numba_acc.program.program import Program
from armpy_numba_acc.store import keys, objects, programs
from armpy_numba_acc.store.objects import object_codes
from armpy_numba_acc.store.programs import compiled_program, packed, unpacked
from armpy_numba_acc.store.settings import disk_entries
from hypothesis import given, settings
from hypothesis import strategies as st

from armpy import Network, watch_progress
from armpy.backend.control_flow import for_one_turn
from armpy.graph import SubgraphView
from armpy.ops import Convolution2d, FullyConnected
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_testing.effort import effort

from .support import forget_sources, note_compiled

ISA = host_isas()[0]
KERNELS = [Kernel("first", (1, "a")), Kernel("second"), Kernel("third", (2,))]


def region(weight: float = 0.5) -> SubgraphView:
    net = Network()
    x = net.input("x", TensorInfo((1, 6, 6, 3), DataType.FLOAT32))
    y = net.add(Convolution2d(), x, net.constant(np.full((4, 3, 3, 3), weight, np.float32)))
    net.output("y", net.add(FullyConnected(), y, net.constant(np.ones((5, 64), np.float32))))
    graph = net.build()
    return SubgraphView.of(graph, graph.layers)


def same(one: Program, other: Program) -> bool:
    for field in dataclasses.fields(Program):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, np.ndarray):
            if a.dtype != b.dtype or a.shape != b.shape or not np.array_equal(a, b):
                return False
        elif a != b:
            return False
    return True


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("ARMPY_NUMBA_CACHE", raising=False)
    # The sources may change while their tests run.
    monkeypatch.setattr(keys, "_IMPORTED_NS", 1 << 63)
    forget_sources()
    return tmp_path / "numba_acc"


@pytest.fixture
def lowered(monkeypatch: pytest.MonkeyPatch) -> list[SubgraphView]:
    """The regions that were lowered."""
    seen: list[SubgraphView] = []

    def counted(view: SubgraphView, *arguments: object) -> Program:
        seen.append(view)
        return lower_region(view, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(passes, "lower_region", counted)
    return seen


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[Kernel]:
    """The kernels that were compiled, by something that is quick."""
    return note_compiled(monkeypatch)


def test_a_program_survives_as_bytes() -> None:
    program = compiled_program(region(), ISA)
    again = unpacked(packed(program))
    assert again is not None
    assert same(program, again)


def test_a_region_is_lowered_once(lowered: list[SubgraphView]) -> None:
    first = compiled_program(region(), ISA)
    assert same(first, compiled_program(region(), ISA))
    assert len(lowered) == 1
    compiled_program(region(0.25), ISA)
    compiled_program(region(), ISA, 2)
    assert len(lowered) == 3


def test_the_constants_of_a_kept_program_begin_at_a_cache_line() -> None:
    compiled_program(region(), ISA)
    assert compiled_program(region(), ISA).constants.ctypes.data % 64 == 0


def test_nothing_is_kept_if_it_is_switched_off(
    folder: Path, lowered: list[SubgraphView], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARMPY_NUMBA_CACHE", "off")
    compiled_program(region(), ISA)
    compiled_program(region(), ISA)
    assert len(lowered) == 2
    assert not folder.exists()


def test_nothing_is_kept_once_the_sources_have_changed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, compiled: list[Kernel]
) -> None:
    for module in (programs, objects, keys):
        monkeypatch.setattr(module, "is_current", lambda: False)
    compiled_program(region(), ISA)
    object_codes(KERNELS, ISA)
    assert not folder.exists()


DOCUMENTS = [
    "",
    "nonsense",
    "[]",
    "[[1, 2]]",
    json.dumps({"class": "Program", "fields": []}),
    json.dumps({"class": "Kernel", "fields": ["a", []]}),
    json.dumps({"class": "os", "fields": []}),
    json.dumps({"array": 7, "dtype": "<i4", "shape": [1]}),
    json.dumps({"array": 1, "dtype": "O", "shape": [1]}),
    "[" * 100_000,
]


@pytest.mark.parametrize("document", DOCUMENTS, ids=range(len(DOCUMENTS)))
def test_other_bytes_are_no_program(document: str) -> None:
    assert unpacked([document.encode(), b"\0" * 8]) is None


def test_a_program_holds_nothing_that_cannot_be_kept() -> None:
    program = compiled_program(region(), ISA)
    odd = dataclasses.replace(program, arena_bytes=np.int64(7))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="cannot hold a int64"):
        packed(odd)


def test_kernels_are_compiled_once(compiled: list[Kernel]) -> None:
    first = object_codes(KERNELS[:2], ISA)
    assert object_codes(KERNELS, ISA) == {**first, KERNELS[2]: b"third_2" * 50}
    assert compiled == KERNELS


def test_the_number_of_compiled_kernels_is_reported(compiled: list[Kernel]) -> None:
    steps: list[tuple[str, str, int, int]] = []
    with watch_progress(lambda p: steps.append((p.backend_id, p.task, p.done, p.total))):
        object_codes(KERNELS[:1], ISA)
        steps.clear()
        object_codes(KERNELS, ISA)
        object_codes(KERNELS, ISA)
    assert steps == [("NumbaAcc", "compiling kernels", done, 2) for done in range(3)]


def test_kernels_that_are_done_stay_when_compiling_is_interrupted(
    compiled: list[Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = objects._compiled

    def interrupted(kernel: Kernel, isa: object) -> bytes:
        if kernel == KERNELS[2]:
            raise KeyboardInterrupt
        return quick(kernel, isa)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(objects, "_compiled", interrupted)
        with pytest.raises(KeyboardInterrupt):
            object_codes(KERNELS, ISA)
    object_codes(KERNELS, ISA)
    assert compiled == KERNELS


@pytest.mark.usefixtures("compiled")
def test_programs_for_a_single_turn_are_not_kept(folder: Path) -> None:
    with for_one_turn():
        compiled_program(region(), ISA)
    assert not list(folder.glob("program*"))
    compiled_program(region(), ISA)
    assert len(list(folder.glob("program*"))) == 1


DAMAGES = ("flip", "cut", "empty", "swap", "remove", "grow", "exchange")


@pytest.mark.slow
@settings(max_examples=effort(40, quick=10))
@given(st.data())
def test_a_damaged_store_gives_what_an_empty_one_gives(data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        # Examples share the folder, so that each begins with what the last one left.
        patch.setattr(objects, "_compiled", lambda kernel, _: kernel.symbol.encode() * 50)
        expected = {kernel: kernel.symbol.encode() * 50 for kernel in KERNELS}
        forget_sources()
        program = compiled_program(region(), ISA)
        assert object_codes(KERNELS, ISA) == expected
        entries = disk_entries()
        assert entries is not None
        paths = sorted(Path(entries.location).iterdir())
        for _ in range(data.draw(st.integers(1, 3))):
            damage(data, data.draw(st.sampled_from(paths)), paths)
        forget_sources()
        assert object_codes(KERNELS, ISA) == expected
        assert same(compiled_program(region(), ISA), program)
        assert not any(entry.problem for entry in entries.verify())


def damage(data: st.DataObject, path: Path, paths: list[Path]) -> None:
    contents = path.read_bytes() if path.exists() else b""
    place = data.draw(st.integers(0, max(len(contents) - 1, 0)))
    kind = data.draw(st.sampled_from(DAMAGES))
    if kind == "flip" and contents:
        flipped = bytes([contents[place] ^ 1 << data.draw(st.integers(0, 7))])
        contents = contents[:place] + flipped + contents[place + 1 :]
    elif kind == "cut":
        contents = contents[:place]
    elif kind == "empty":
        contents = b""
    elif kind == "grow":
        contents += data.draw(st.binary(min_size=1, max_size=100))
    elif kind in ("swap", "exchange"):
        other = data.draw(st.sampled_from(paths))
        theirs = other.read_bytes() if other.exists() else b""
        if kind == "exchange":
            other.write_bytes(contents)
        contents = theirs
    path.unlink(missing_ok=True)
    if kind != "remove":
        path.touch(mode=0o600)
        path.write_bytes(contents)


HINDERED = """
import resource, sys
import numpy as np
import armpy
from .networks import runtime_of, small

if sys.argv[1] == "full":  # no file takes more than its beginning
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
with runtime_of(1) as runtime:
    model = armpy.Model(small(), runtime)
    print(model(np.full((1, 8), 3, np.float32)).sum())
    print(*model.placement.cache_uses, sep="\\n")
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there are no such limits here")
@pytest.mark.parametrize("hindrance", ["full", "read-only"])
def test_networks_run_where_nothing_can_be_kept(hindrance: str, folder: Path) -> None:
    folder.mkdir(mode=0o700)
    if hindrance == "read-only":
        if os.geteuid() == 0:
            pytest.skip("nothing is read-only for this user")
        folder.chmod(0o500)
    done = subprocess.run(
        [sys.executable, "-B", "-c", f"__package__ = {__package__!r}\n{HINDERED}", hindrance],
        cwd=Path(__file__).parents[__name__.count(".")],
        capture_output=True,
        text=True,
        check=False,
    )
    answer, *uses = done.stdout.splitlines()
    assert answer == "24.0", done.stderr
    assert list(folder.iterdir()) == []
    assert len(uses) == 2, done.stderr
    assert all("not kept: " in use for use in uses)
    assert done.stderr.count("nothing is kept: ") == 1
