"""Marks for traces of the whole system, and names of compiled code for perf."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy import DataType, Network, TensorInfo
from armpy.backend import trace_section
from armpy.core.system_trace import has_marks, name_code, set_system_trace
from armpy.execution import NetworkProperties, Runtime, RuntimeOptions
from armpy.execution.calls.invocation import Invocation
from armpy_testing.systems import NEEDS_NAMED_PIPES, NEEDS_TRACE_FILES


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    yield
    set_system_trace("")


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """File in place of the kernel's, with marks on."""
    path = tmp_path / "trace_marker"
    path.touch()
    set_system_trace("marks", [str(tmp_path / "absent"), str(path)])
    return path


def marks(marker: Path) -> list[str]:
    return marker.read_text().splitlines()


def doubling() -> Network:
    """``y = x + x``."""
    net = Network()
    x = net.input("x", TensorInfo((2,), DataType.FLOAT32))
    net.output("y", net.add(armpy.ops.ElementwiseBinary(), x, x, name="twice"))
    return net


def sections(marker: Path) -> list[tuple[int, str]]:
    """Depth and name of each section, in order; each is ended."""
    depth = 0
    begun: list[tuple[int, str]] = []
    for line in marks(marker):
        kind, process, *name = line.split("|", 2)
        assert int(process) == os.getpid()
        if kind == "B":
            begun.append((depth, name[0]))
            depth += 1
        else:
            assert (kind, name) == ("E", [])
            depth -= 1
        assert depth >= 0
    assert depth == 0
    return begun


@NEEDS_TRACE_FILES
def test_a_section_is_two_lines_of_systrace(marker: Path) -> None:
    with trace_section("acme upload", "", "weights\nof two"), trace_section("inner"):
        pass
    first = f"B|{os.getpid()}|acme upload weights of two"
    end = f"E|{os.getpid()}"
    assert marks(marker) == [first, f"B|{os.getpid()}|inner", end, end]


@NEEDS_TRACE_FILES
def test_a_section_that_raises_is_ended(marker: Path) -> None:
    with pytest.raises(KeyError), trace_section("fails"):
        raise KeyError
    assert sections(marker) == [(0, "fails")]


@NEEDS_TRACE_FILES
@pytest.mark.parametrize("profiling", [False, True])
def test_loading_preparing_and_executing_are_marked(marker: Path, profiling: bool) -> None:
    runtime = Runtime(RuntimeOptions(backends=["CpuRef"]))
    number = runtime.load_network(doubling(), NetworkProperties(profiling=profiling))
    loaded = sections(marker)
    assert loaded[0] == (0, "armpy load")
    names = [name for _, name in loaded]
    assert {"armpy optimise", "armpy assign layers", "armpy prepare"} <= set(names)
    inputs = {"x": np.ones(2, np.float32)}
    runtime.enqueue_workload(number, inputs)
    execution = runtime.get_network(number).bind(Invocation(inputs))
    before = len(sections(marker))
    assert execution()["y"].tolist() == [2, 2]
    run = sections(marker)[before:]
    assert run[0][0] == 0
    assert re.fullmatch(r"armpy execute network \d+", run[0][1])
    assert run[-1] == (1, "armpy execute CpuRef: ElementwiseBinary 'twice'")
    assert names.count("armpy prepare workload CpuRef ElementwiseBinary 'twice'") == 1


def test_nothing_is_written_when_it_is_off(marker: Path) -> None:
    set_system_trace("")
    assert not has_marks()
    assert trace_section("a") is trace_section("b")
    with trace_section("a"):
        pass
    name_code([("kernel", 1, 2)])
    assert marks(marker) == []


@NEEDS_TRACE_FILES
def test_a_forked_child_marks_with_its_own_number(
    marker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with trace_section("parent"):
        pass
    monkeypatch.setattr(os, "getpid", lambda: 4711)  # as in a child
    with trace_section("child"):
        pass
    assert marks(marker)[-2:] == ["B|4711|child", "E|4711"]


def test_a_missing_marker_is_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    set_system_trace("marks", [str(tmp_path / "absent"), str(tmp_path / "other")])
    for _ in range(2):
        with trace_section("a"):
            pass
    (record,) = caplog.records
    assert (record.levelno, record.name) == (logging.WARNING, "armpy.core.system_trace")
    text = record.getMessage()
    lacks = "Windows has no such file" if sys.platform == "win32" else "No such file"
    assert text.startswith(f"ARMPY_SYSTEM_TRACE: no sections are marked: {lacks}")
    assert str(tmp_path / "absent") in text


@NEEDS_TRACE_FILES
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_a_marker_that_refuses_lines_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    set_system_trace("marks", ["/dev/full"])
    with trace_section("a"), trace_section("b"):
        pass
    (record,) = caplog.records
    assert "no more sections are marked: No space left on device: /dev/full" in record.getMessage()
    assert not has_marks()


@NEEDS_TRACE_FILES
def test_perf_gets_names_of_compiled_code(tmp_path: Path) -> None:
    set_system_trace("perf", maps_folder=str(tmp_path))
    name_code([("first", 0x7F00, 0x20), ("second", 0x7F20, 16)])
    name_code([("third", 0x8000, 1)])
    path = tmp_path / f"perf-{os.getpid()}.map"
    assert path.read_text() == "7f00 20 first\n7f20 10 second\n8000 1 third\n"
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "kind",
    [
        "symbolic link",
        "hard link",
        "writable by others",
        pytest.param("fifo", marks=NEEDS_NAMED_PIPES),
    ],
)
def test_a_map_that_is_not_the_users_own_is_left_alone(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, other = tmp_path / f"perf-{os.getpid()}.map", tmp_path / "other"
    other.write_text("precious")
    if kind == "symbolic link":
        path.symlink_to(other)
    elif kind == "hard link":
        path.hardlink_to(other)
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        path.write_text("precious")
        path.chmod(0o666)
    set_system_trace("perf", maps_folder=str(tmp_path))
    for _ in range(2):
        name_code([("kernel", 1, 2)])
    (record,) = caplog.records
    assert "perf gets no names of compiled code" in record.getMessage()
    assert str(path) in record.getMessage()
    assert other.read_text() == "precious"


@NEEDS_TRACE_FILES
@pytest.mark.slow
def test_the_environment_is_read_by_the_first_runtime(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    marker.touch()
    program = (
        "from armpy.core import system_trace as t; import sys\n"
        f"t.set_system_trace.__defaults__ = ([{str(marker)!r}], '')\n"
        "from armpy.execution import Runtime, RuntimeOptions\n"
        "Runtime(RuntimeOptions(backends=['CpuRef']))\n"
        "with t.trace_section('here'): pass\n"
    )
    environment = {**os.environ, "ARMPY_SYSTEM_TRACE": "marks"}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment, timeout=60)
    lines = marks(marker)
    assert [line.split("|", 2)[0] for line in lines] == ["B", "E"]
    assert lines[0].endswith("|here")
