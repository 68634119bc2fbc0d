"""The store's part of the placement report, and several processes that compile one model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from armpy.backend import CacheUse
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import Activation, ActivationFunction, ElementwiseBinary, Softmax
from armpy.tensor import TensorInfo
from armpy.types import DataType


def network() -> Network:
    net = Network("example")
    x = net.input("x", TensorInfo((2, 8), DataType.FLOAT32))
    value = net.add(Activation(ActivationFunction.RELU), net.add(ElementwiseBinary(), x, x))
    net.output("y", net.add(Softmax(), value))
    return net


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("ARMPY_NUMBA_CACHE", raising=False)
    return tmp_path / "numba_acc"


def uses() -> tuple[CacheUse, ...]:
    model = Model(network(), Runtime(RuntimeOptions(backends=["NumbaAcc", "CpuRef"])))
    assert model.placement is not None
    return tuple(use for use in model.placement.cache_uses if "program" in use.what)


@pytest.mark.usefixtures("folder")
def test_the_placement_report_shows_whether_a_program_was_stored() -> None:
    (first,), (second,) = uses(), uses()
    assert (first.backend_id, first.is_hit, first.reason) == ("NumbaAcc", False, "there is none")
    assert (second.is_hit, second.reason) == (True, "")
    assert first.what.startswith("1 program of 3 layers")


def test_the_report_says_what_is_wrong_with_a_program(folder: Path) -> None:
    uses()
    (path,) = folder.glob("program-*.entry")
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    (use,) = uses()
    assert (use.is_hit, use.reason) == (False, "its checksum is wrong")
    assert uses()[0].is_hit


def test_programs_are_summed_up_under_their_model(folder: Path) -> None:
    from armpy_numba_acc.store.settings import disk_entries

    uses()
    entries = disk_entries()
    assert entries is not None
    groups = {e.name.partition("-")[0]: e.group for e in entries.list_entries()}
    assert groups["program"] == "example"
    assert folder.exists()


WORKER = """
import sys, time
from pathlib import Path
import numpy as np
from armpy_numba_acc.store import objects, programs
from test_store_sharing import network
from armpy import Model
from armpy.execution import Runtime, RuntimeOptions

log, started = Path(sys.argv[1]), Path(sys.argv[2])

def logged(owner, name, describe):
    original = getattr(owner, name)
    def call(*arguments):
        with log.open("a") as file:
            file.write(describe(*arguments) + "\\n")
        return original(*arguments)
    setattr(owner, name, call)

logged(objects, "_compiled", lambda kernel, isa: kernel.symbol)
logged(programs, "_lowered", lambda *_: "program")
runtime = Runtime(RuntimeOptions(backends=["NumbaAcc", "CpuRef"]))
Path(started, sys.argv[3]).touch()
while len([*started.iterdir()]) < 4:
    time.sleep(0.005)
y = Model(network(), runtime)(np.zeros((2, 8), np.float32))
assert np.array_equal(y, np.full((2, 8), 0.125, np.float32)), y
"""


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
def test_processes_that_prepare_one_model_at_once_make_each_thing_once(tmp_path: Path) -> None:
    log, started = tmp_path / "log", tmp_path / "started"
    started.mkdir()
    command = [sys.executable, "-c", WORKER, str(log), str(started)]
    workers = [
        subprocess.Popen(
            [*command, str(number)],
            stderr=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parent,
        )
        for number in range(4)
    ]
    for worker in workers:
        _, errors = worker.communicate(timeout=300)
        assert worker.returncode == 0, errors
    things = log.read_text().split()
    assert sorted(things) == sorted(set(things)), "something was made twice"
    assert "program" in things
    assert len(things) >= 3
    assert not [*(tmp_path / "numba_acc").glob("*.lock")]
