"""A process without memory, or without its working directory: armpy's own errors, or answers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.shared import shared_file

MODEL = ("models", "mlperf_tiny", "kws_ref_model.tflite")
ROOT = Path(__file__).parents[2]

WITHOUT_MEMORY = """\
import resource, sys
import numpy as np
import armpy
from armpy import DataType, Model, Network, Runtime, RuntimeOptions, TensorInfo, ops

def limit(extra_bytes):
    text = open("/proc/self/status").read()
    used = int(text.partition("VmData:")[2].split()[0]) << 10
    limit = resource.RLIM_INFINITY if extra_bytes is None else used + extra_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (limit, resource.RLIM_INFINITY))

def negation(size):
    net = Network("negation")
    x = net.input("x", TensorInfo((size,), DataType.FLOAT32))
    for _ in range(2):
        x = net.add(ops.ElementwiseUnary(ops.UnaryOperation.NEG), x)
    net.output("y", x)
    return net

SIZE = 8 << 20
runtime = Runtime(RuntimeOptions(backends=["CpuRef"]))
model, given = Model(negation(SIZE), runtime), np.ones(SIZE, np.float32)
model.run({"x": given[:SIZE]})
calls = {
    "call": lambda: model(given),
    "run": lambda: model.run({"x": given}),
    "enqueue": lambda: runtime.enqueue_workload(0, {"x": given}),
    "start": lambda: model.start({"x": given}).result(30),
    "bind": lambda: model.bind({"x": given})(),
    "deadline": lambda: model.run({"x": given}, deadline_s=30.0),
    "load": lambda: armpy.load(sys.argv[1], backends=["CpuRef"]),
    "runtime": lambda: Runtime(RuntimeOptions(backends=["CpuRef"])),
    "network": lambda: Model(negation(SIZE + 1), runtime),
}
model.start({"x": given}).result(30)  # the threads are there
for name, call in calls.items():
    model.free_working_memory()
    for extra_bytes in (2 << 20, 20 << 20, 60 << 20):
        limit(extra_bytes)
        try:
            call()
            outcome = "answered"
        except armpy.ArmpyError as error:
            outcome = type(error).__name__
        finally:
            limit(None)
        print(name, extra_bytes, outcome)
assert (model(given) == given).all()
"""

WITHOUT_FOLDER = """\
import os, sys
import numpy as np
os.chdir(sys.argv[2])
os.rmdir(sys.argv[2])
import armpy
from armpy import Runtime, RuntimeOptions
model = armpy.load(sys.argv[1], backends=["CpuRef"])
model.save(sys.argv[3])
again = armpy.load(sys.argv[3], backends=["CpuRef"])
given = {s.name: np.ones([n or 1 for n in s.shape], s.data_type.dtype) for s in model.inputs}
for name, result in model.run(given).items():
    assert (again.run(given)[name] == result).all()
for options in (RuntimeOptions(isolation="process"), RuntimeOptions(probe=True)):
    Runtime(options).close()
for call in (
    lambda: armpy.load("relative.tflite"),
    lambda: model.save("relative.armpy"),
    lambda: armpy.load(sys.argv[1]).run(given),  # whatever Numba does without a folder
):
    try:
        call()
    except armpy.ArmpyError as error:
        print(error)
"""


def done(program: str, *arguments: str, folder: Path) -> str:
    """What a program prints."""
    environment = os.environ | {"ARMPY_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", program, *arguments]
    ended = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits what Linux counts")
def test_process_without_memory_is_told_so_by_armpys_error(tmp_path: Path) -> None:
    lines = done(WITHOUT_MEMORY, str(shared_file(*MODEL)), folder=tmp_path).splitlines()
    outcomes = [line.split()[-1] for line in lines]
    told = {"MemoryLimitError", "BackendError", "BackendCapabilityError", "QueueFullError"}
    assert set(outcomes) <= told | {"answered"}
    assert outcomes.count("MemoryLimitError") >= 5, lines


@pytest.mark.skipif(sys.platform == "win32", reason="folders in use cannot be removed there")
def test_process_whose_folder_was_removed_loads_and_runs(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    place = str(tmp_path / "model.armpy")
    printed = done(
        WITHOUT_FOLDER, str(shared_file(*MODEL)), str(gone), place, folder=tmp_path / "cache"
    )
    assert "relative.tflite: no such file" in printed
    assert "cannot be written" in printed
