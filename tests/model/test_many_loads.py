"""Models that are loaded and closed again and again leave neither code nor memory behind.

``-s`` shows the memory.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy import DataType, Model, Network, TensorInfo, ops
from armpy.frontends.tflite_writer.tflite import write_tflite
from armpy_testing.effort import effort
from tests.support.prepared_models import use_own_model_cache

pytest.importorskip("numba", reason="Numba is not installed")
pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="the process's memory is read as Linux shows it"
)

LOADS = effort(300)
NUM_PARTS = 5
MOST_GROWTH_BYTES = 256
"""For each load, in the best of the last parts: what allocators keep comes now and then, in pages.
The code of the smallest of these models takes 16 KiB."""

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"
PAGES = Path("/proc/self/statm")


def convolutions() -> Network:
    """Float32 convolutions, with code of some pages."""
    net = Network()
    value = net.input("x", TensorInfo((1, 12, 12, 4), DataType.FLOAT32))
    for channels in (8, 4):
        weights = np.full((channels, 3, 3, value.info.known_shape[3]), 0.1, np.float32)
        convolution = ops.Convolution2d(padding=ops.Padding.SAME)
        value = net.add(convolution, value, net.constant(weights))
    net.output("y", net.add(ops.Softmax(), value))
    return net


def float32_file(folder: Path) -> Path:
    path = folder / "float32.tflite"
    write_tflite(convolutions().build(), path)
    return path


def int8_file(_: Path) -> Path:
    return DIGITS


def onnx_file(folder: Path) -> Path:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    parser = pytest.importorskip("onnx.parser", reason="onnx is not installed")
    pytest.importorskip("armpy_onnx", reason="armpy-onnx is not installed")
    path = folder / "model.onnx"
    weights = ", ".join(["0.1"] * 36)
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> net (float[1,4,12,12] x) => (float[1,1,12,12] y)'
        f" <float[1,4,3,3] w = {{{weights}}}>"
        " { c = Conv<pads = [1, 1, 1, 1]>(x, w) y = Sigmoid(c) }"
    )
    onnx.save(model, path)
    return path


FILES: dict[str, Callable[[Path], Path]] = {
    "float32": float32_file,
    "int8": int8_file,
    "onnx": onnx_file,
}
WAYS: dict[str, Callable[[Path, Path], Callable[[], Model]]] = {
    "cached": lambda path, _: partial(armpy.load, path),
    "compiled file": lambda path, folder: partial(armpy.load, compiled(path, folder)),
    # Models that warn are not looked for in the cache.
    "compiled anew": lambda path, _: partial(armpy.load, path, on_fallback="warn"),
}


def compiled(path: Path, folder: Path) -> Path:
    target = folder / "compiled.armpy"
    with armpy.load(path) as model:
        model.save(target)
    return target


def zeros(model: Model) -> dict[str, np.ndarray]:
    return {
        spec.name: np.zeros([size or 1 for size in spec.shape or ()], spec.data_type.dtype)
        for spec in model.inputs
    }


def code_bytes() -> int:
    """Bytes of anonymous memory of the process that can be run.

    Not the number of mappings: the kernel joins those that lie side by side.
    """
    gc.collect()
    with open("/proc/self/maps", encoding="utf-8") as maps:
        fields = [line.split() for line in maps]
    places = [line[0].split("-") for line in fields if len(line) == 5 and line[1] == "r-xp"]
    return sum(int(end, 16) - int(begin, 16) for begin, end in places)


def resident_bytes() -> int:
    gc.collect()
    return int(PAGES.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def load_and_close(load: Callable[[], Model], count: int, data: dict[str, np.ndarray]) -> None:
    for _ in range(count):
        with load() as model:
            model.run(data)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FILES)
def test_many_loads_leave_nothing(
    name: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_own_model_cache(monkeypatch, tmp_path / "cache")
    path = FILES[name](tmp_path)
    load = WAYS[way](path, tmp_path)
    with load() as model:
        data = zeros(model)
    load_and_close(load, 20, data)
    code, before = code_bytes(), resident_bytes()
    growth = []
    for _ in range(NUM_PARTS):
        load_and_close(load, LOADS // NUM_PARTS, data)
        after = resident_bytes()
        growth.append((after - before) / (LOADS // NUM_PARTS))
        before = after
    print(f"{name}, {way}: {[round(each) for each in growth]} bytes a load")
    assert code_bytes() <= code
    assert min(growth[1:]) < MOST_GROWTH_BYTES


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "net.armpy"
    with Model(convolutions()) as model:
        model.save(target)
    return target


def test_code_of_a_closed_model_is_unmapped(path: Path) -> None:
    with armpy.load(path) as model:
        model.run(zeros(model))
    del model
    before = code_bytes()
    with armpy.load(path) as model:
        model.run(zeros(model))
        assert code_bytes() > before
    del model
    assert code_bytes() == before


def test_a_function_that_outlives_its_model_has_its_code(path: Path) -> None:
    model = armpy.load(path)
    data = zeros(model)
    expected = model.run(data)["y"]
    out = {"y": np.empty_like(expected)}
    bound = model.bind(data, out)
    del model
    gc.collect()
    before = code_bytes()
    bound()
    np.testing.assert_array_equal(out["y"], expected)
    del bound
    assert code_bytes() < before


@pytest.mark.slow
def test_code_that_threads_run_stays_while_others_close_models(path: Path) -> None:
    """Workers run code of the model that they were started for, and serve those that follow."""
    errors: list[BaseException] = []

    def caller() -> None:
        try:
            for _ in range(effort(60)):
                model = armpy.load(path, num_threads=2)
                data = zeros(model)
                expected = model.run(data)["y"]
                bound = model.bind(data)
                del model
                np.testing.assert_array_equal(bound()["y"], expected)
        except BaseException as error:  # noqa: BLE001 - of a thread, for the test
            errors.append(error)

    threads = [threading.Thread(target=caller) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


_ENDS_WHILE_IT_RUNS = """
import sys, threading, time
import numpy as np
import armpy
model = armpy.load(sys.argv[1], num_threads=2)
data = {s.name: np.zeros(s.shape, np.float32) for s in model.inputs}
def run():
    while True:
        model.run(data)
for _ in range(3):
    threading.Thread(target=run, daemon=True).start()
time.sleep(0.2)
"""


@pytest.mark.slow
def test_an_interpreter_that_ends_unmaps_nothing_that_threads_run(tmp_path: Path) -> None:
    net = Network()
    x = net.input("x", TensorInfo((1, 64, 64, 32), DataType.FLOAT32))
    weights = net.constant(np.full((32, 3, 3, 32), 0.1, np.float32))
    net.output("y", net.add(ops.Convolution2d(padding=ops.Padding.SAME), x, weights))
    path = tmp_path / "net.armpy"
    with Model(net) as model:
        model.save(path)
    for _ in range(effort(5)):
        command = [sys.executable, "-c", _ENDS_WHILE_IT_RUNS, str(path)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (ended.returncode, ended.stderr) == (0, "")
