"""Models in other processes, and twice in one: the sources they are made of again."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import shutil
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armpy
from armpy import Model, Network, Runtime, RuntimeOptions
from armpy.errors import InvalidArgumentError, ParserError
from armpy_testing.models.networks import ADD, RELU, f32, floats
from armpy_testing.systems import NEEDS_REPLACEABLE_FILES

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"
IMAGE = np.random.default_rng(1).random((1, 16, 16, 1)).astype(np.float32)
REAL: dict[str, Any] = {"backends": ["CpuRef"], "quantize_inputs": True, "dequantize_outputs": True}


def relu(runtime: Runtime | None = None) -> Model:
    net = Network("relu")
    net.output("y", net.add(RELU, net.input("x", f32(None, 3)), name="relu"))
    return Model(net, runtime or Runtime(RuntimeOptions(backends=["CpuRef"])))


@pytest.mark.parametrize(
    "twice", [lambda m: pickle.loads(pickle.dumps(m)), copy.copy, copy.deepcopy]
)
def test_a_copy_is_loaded_anew_with_the_same_options(twice: Any) -> None:
    with armpy.load(DIGITS, **REAL) as model, twice(model) as other:
        assert other.runtime is not model.runtime
        assert other.runtime.options.backends == model.runtime.options.backends
        np.testing.assert_array_equal(other(IMAGE), model(IMAGE))
        model.close()
        assert other(IMAGE).dtype == np.float32


def test_variants_are_copied_by_what_made_them() -> None:
    with relu() as model:
        both = model.reshape({"x": (2, 3)}).with_outputs(["relu"])
        with pickle.loads(pickle.dumps(both)) as other:
            outputs = other.run({"x": np.full((2, 3), -1, np.float32)})
    assert [*outputs] == ["relu"]
    assert outputs["relu"].shape == (2, 3)


@NEEDS_REPLACEABLE_FILES
def test_a_file_that_has_changed_is_not_pickled_nor_taken_for_the_one_that_was(
    tmp_path: Path,
) -> None:
    path = tmp_path / "digits.tflite"
    path.write_bytes(DIGITS.read_bytes())
    with armpy.load(path, **REAL) as model:
        text = pickle.dumps(model)
        path.write_bytes(DIGITS.read_bytes() + b"more")
        with pytest.raises(ParserError, match="the model file has changed since"):
            pickle.dumps(model)
    with pytest.raises(ParserError, match="the model file has changed since it was loaded"):
        pickle.loads(text)
    path.unlink()
    with pytest.raises(ParserError, match="cannot be read"):
        pickle.loads(text)


@NEEDS_REPLACEABLE_FILES
def test_elements_beside_a_model_that_have_changed_are_not_taken_for_what_they_were(
    tmp_path: Path,
) -> None:
    """Of equal size and time, moved to where the others were."""
    pytest.importorskip("armpy_onnx")
    onnx = pytest.importorskip("onnx")
    text = '<ir_version: 9, opset_import: ["" : 18]> g (float[N, 4] x) => (float[N, 4] y)'
    model = onnx.parser.parse_model(text + "{ y = Add (x, w) }")
    model.graph.initializer.append(onnx.numpy_helper.from_array(floats(1, 2, 3, 4), "w"))
    path, beside = tmp_path / "sum.onnx", tmp_path / "w.bin"
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    with armpy.load(path, backends=["CpuRef"]) as loaded:
        copied = pickle.dumps(loaded)
        other = tmp_path / "other.bin"
        other.write_bytes(floats(5, 6, 7, 8).tobytes())
        times = beside.stat()
        os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
        other.replace(beside)
        with pytest.raises(ParserError, match=r"w\.bin: the model file has changed since"):
            pickle.dumps(loaded)
        with pytest.raises(ParserError, match=r"w\.bin: the model file has changed since"):
            loaded.reshape({"x": (2, 4)})
    with pytest.raises(ParserError, match=r"w\.bin: the model file has changed since it"):
        pickle.loads(copied)


@pytest.mark.slow
@pytest.mark.parametrize("is_kept", [True, False], ids=["kept", "read"])
def test_a_model_does_not_care_where_the_process_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_kept: bool
) -> None:
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("ARMPY_MODEL_CACHE", "on" if is_kept else "off")
    shutil.copy(DIGITS, tmp_path / "model.tflite")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "model.tflite").write_bytes(b"another file of that name")
    for _ in range(1 + is_kept):  # the second time, it is there
        monkeypatch.chdir(tmp_path)
        with armpy.load("model.tflite", backends=["CpuRef"]) as model:
            monkeypatch.chdir(tmp_path / "other")
            name = model.inputs[0].name
            image = np.zeros((1, 16, 16, 1), np.int8)
            for other in (copy.copy(model), pickle.loads(pickle.dumps(model))):
                np.testing.assert_array_equal(other(image), model(image))
            assert model.signature("serving_default").inputs[0].name == "image"
            assert model.reshape({name: (3, 16, 16, 1)}).outputs[0].shape == (3, 10)
            assert model.run({name: image}, [name])[name].shape == image.shape
            assert model.metadata.producer == "MLIR Converted."


def test_what_cannot_be_pickled_is_named() -> None:
    with relu() as closed:
        pass
    with pytest.raises(InvalidArgumentError, match="the model is closed"):
        pickle.dumps(closed)
    registry = armpy.BackendRegistry.discover(RuntimeOptions().plugin_options())
    options = RuntimeOptions(backends=["CpuRef"], registry=registry)
    with (
        relu(Runtime(options)) as model,
        pytest.raises(InvalidArgumentError, match=r"its runtime cannot be pickled.*the path"),
    ):
        pickle.dumps(model)


def _answer(model: Model) -> Any:
    """What a worker process computes."""
    return os.getpid(), model(IMAGE)


@pytest.mark.slow
def test_a_model_goes_to_a_process_that_was_spawned() -> None:
    with (
        armpy.load(DIGITS, **REAL) as model,
        ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as workers,
    ):
        process, answer = workers.submit(_answer, model).result(120)
        assert process != os.getpid()
        np.testing.assert_array_equal(answer, model(IMAGE))


def test_quantised_outputs_are_real_numbers_where_that_is_asked_for() -> None:
    with (
        armpy.load(DIGITS, backends=["CpuRef"], quantize_inputs=True) as plain,
        armpy.load(DIGITS, **REAL) as model,
    ):
        stored = plain(IMAGE)
        wanted = (stored.astype(np.float64) + 128) / 256  # type: ignore[union-attr]  # as the file says
        name, output = model.inputs[0].name, model.outputs[0].name
        target = np.empty((1, 10), np.float32)
        outputs = [
            model(IMAGE),
            model.run({name: IMAGE})[output],
            model.run({name: IMAGE}, deadline_s=60)[output],
            model.start({name: IMAGE}).result(60)[output],
            model.run({name: IMAGE}, [output])[output],
            model.run({name: IMAGE}, {output: target})[output],
        ]
        assert outputs[-1] is target
        for array in outputs:
            assert array.dtype == np.float32  # type: ignore[union-attr]
            np.testing.assert_array_equal(array, wanted)
        with pytest.raises(InvalidArgumentError, match="a writable C-contiguous float32 array"):
            model.run({name: IMAGE}, {output: np.empty((1, 10), np.int8)})
        np.testing.assert_array_equal(plain.outputs[0].dequantize(stored), wanted)


def test_warming_up_prepares_and_runs_every_shape_once() -> None:
    with relu() as model:
        model.warm_up({"x": (4, 3)})
        assert model.runtime.get_network(model.network_id).latest.shapes == ((4, 3),)  # type: ignore[union-attr]
        model.warm_up([{"x": (n, 3)} for n in (1, 2)])
        assert len(model.runtime.get_network(model.network_id).program_cache.programs) == 3
        with pytest.raises(InvalidArgumentError, match="does not stay prepared for so many shapes"):
            model.warm_up([{"x": (n, 3)} for n in range(1, 1000)])
        with pytest.raises(InvalidArgumentError, match="an input has no shape yet"):
            model.warm_up()
        with pytest.raises(InvalidArgumentError, match=r"timeout_s: .*Expected seconds.*got -1"):
            model.warm_up({"x": (4, 3)}, timeout_s=-1)


def test_warming_up_leaves_state_alone() -> None:
    net = Network("counting")
    count = net.variable("count", f32(1))
    more = net.add(ADD, net.input("x", f32(1)), net.constant(floats(1)))
    net.assign(count, net.add(ADD, count, more))
    net.output("y", count)
    with Model(net, Runtime(RuntimeOptions(backends=["CpuRef"]))) as model:
        model(floats(5))
        model.warm_up()
        assert model(floats(0)) == 6
