"""Values, bindings, options and profiles as programs use them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx

from armpy_compat import onnxruntime as ort
from armpy_compat.onnxruntime.capi import onnxruntime_pybind11_state as state

from .test_inference_session import CPU_REF, TWICE, X, content, opened


def test_values_share_the_memory_of_arrays() -> None:
    array = X.copy()
    value = ort.OrtValue.ortvalue_from_numpy(array)
    assert (value.shape(), value.data_type(), value.element_type()) == ([3, 2], "tensor(float)", 1)
    assert (value.device_name(), value.tensor_size_in_bytes()) == ("cpu", 24)
    assert value.is_tensor()
    value.update_inplace(np.zeros((3, 2), np.float32))
    assert not array.any()
    assert value.data_ptr() == array.ctypes.data
    np.testing.assert_array_equal(np.from_dlpack(value), array)
    assert ort.OrtValue.from_dlpack(X).shape() == [3, 2]
    with pytest.raises(RuntimeError, match="does not match the size of the OrtValue"):
        value.update_inplace(np.zeros(3, np.float32))
    with pytest.raises(RuntimeError, match="only supported from non-string numpy arrays"):
        ort.OrtValue.ortvalue_from_numpy(np.array(["a"]))
    with pytest.raises(RuntimeError, match="Can't allocate memory on the device"):
        ort.OrtValue.ortvalue_from_numpy(X, "cuda", 0)


def test_values_with_onnx_types_that_numpy_lacks() -> None:
    bits = np.array([0x3F80, 0x4000], np.uint16)  # 1 and 2
    value = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, onnx.TensorProto.BFLOAT16)
    assert value.data_type() == "tensor(bfloat16)"
    assert np.asarray(value.content(), np.float32).tolist() == [1, 2]


def test_floats_of_8_bits_are_bytes_in_numpy() -> None:
    session = opened(content("g (float[n] x) => (float8e4m3fn[n] y) { y = Cast <to = 17> (x) }"))
    x = np.array([1, 2, 500], np.float32)
    (value,) = session.run_with_ort_values(None, {"x": ort.OrtValue.ortvalue_from_numpy(x)})
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_output("y")
    for options in (None, ort.RunOptions()):
        session.run_with_iobinding(binding, options)
        for each in (value, *binding.get_outputs()):
            assert each.data_type() == "tensor(float8e4m3fn)"
    value.update_inplace(np.asarray(value.content()))
    later: Future[Sequence[Any]] = Future()
    session.run_async(None, {"x": x}, lambda outputs, *_: later.set_result(outputs), None)
    arrays = *binding.copy_outputs_to_cpu(), *session.run(None, {"x": x}), *later.result(60)
    for result in (value.numpy(), *arrays):
        assert (result.dtype, result.tolist()) == (np.uint8, [56, 64, 126])


def test_the_assignment_of_layers_is_recorded_when_asked_for() -> None:
    with pytest.raises(state.Fail, match="record_ep_graph_assignment_info"):
        opened().get_provider_graph_assignment_info()
    options = ort.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    session = opened(content("graph (float[2] x) => (float[2] y) { y = Neg (x) }"), options)
    (part,) = session.get_provider_graph_assignment_info()
    assert part.ep_name == "CpuRefExecutionProvider"
    assert [node.op_type for node in part.get_nodes()] == ["ElementwiseUnary"]


def test_a_model_compiler_writes_what_sessions_load(tmp_path: Path) -> None:
    compiler = ort.ModelCompiler(ort.SessionOptions(), TWICE)
    compiler.compile_to_file(tmp_path / "made.onnx")
    session = ort.InferenceSession(tmp_path / "made.onnx", providers=CPU_REF)
    np.testing.assert_array_equal(session.run(["y"], {"x": X})[0], X + X)
    ort.ModelCompiler(ort.SessionOptions(), tmp_path / "made.onnx").compile_to_file()
    assert (tmp_path / "made_ctx.onnx").exists()
    for flag, text in ((1, "Unable to compile any nodes"), (2, "exists already")):
        compiler = ort.ModelCompiler(ort.SessionOptions(), TWICE, flags=flag)
        with pytest.raises(state.Fail, match=text):
            compiler.compile_to_file(tmp_path / "made.onnx")


def test_runs_with_values() -> None:
    value = ort.OrtValue.ortvalue_from_numpy(X)
    y, _ = opened().run_with_ort_values(None, {"x": value})
    np.testing.assert_array_equal(y.numpy(), X + X)
    np.testing.assert_array_equal(opened().run(["y"], {"x": value})[0], X + X)


def test_bound_arrays_are_read_and_written_in_place() -> None:
    session, x = opened(), X.copy()
    binding = session.io_binding()
    y = np.zeros_like(x)
    binding.bind_cpu_input("x", x)
    binding.bind_output("y", "cpu", 0, np.float32, y.shape, y.ctypes.data)
    binding.bind_output("z")
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(y, X + X)
    x[:] = 1
    session.run_with_iobinding(binding)
    assert (y == 2).all()
    first, second = binding.get_outputs()
    assert first.data_ptr() == y.ctypes.data
    assert (second.numpy() == -2).all()
    assert [array.shape for array in binding.copy_outputs_to_cpu()] == [(3, 2), (3, 2)]


def test_the_model_is_written_where_the_options_say(tmp_path: Path) -> None:
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    opened(options=options)
    session = ort.InferenceSession(tmp_path / "optimized.onnx", providers=CPU_REF)
    np.testing.assert_array_equal(session.run(["y"], {"x": X})[0], X + X)


def test_profiles_have_the_form_of_onnx_runtime_s(tmp_path: Path) -> None:
    options = ort.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    session = opened(options=options)
    session.run(None, {"x": X})
    assert session.get_profiling_start_time_ns() > 0
    path = session.end_profiling()
    events = json.loads(Path(path).read_text())
    assert {event["cat"] for event in events} == {"Session", "Node"}
    names = [event["name"] for event in events if event["cat"] == "Session"]
    assert {"model_loading_array", "session_initialization", "model_run"} <= set(names)
    nodes = [event for event in events if event["cat"] == "Node"]
    assert {node["args"]["provider"] for node in nodes} == {"CpuRefExecutionProvider"}
    assert all(event["dur"] >= 0 and event["ts"] >= 0 for event in events)
    assert opened().end_profiling() == ""


@pytest.mark.slow
def test_programs_find_and_import_all_modules() -> None:
    program = (
        "import importlib.util, armpy_compat; armpy_compat.install_as_onnxruntime()\n"
        "assert importlib.util.find_spec('onnxruntime').name == 'onnxruntime'\n"
        "import onnxruntime as ort\n"
        "import onnxruntime.capi._pybind_state as state\n"
        "from onnxruntime.capi.onnxruntime_pybind11_state import Fail, NoSuchFile\n"
        "from onnxruntime.capi import onnxruntime_inference_collection as collection\n"
        "assert importlib.util.find_spec('onnxruntime') is not None\n"
        "assert collection.InferenceSession is ort.InferenceSession\n"
        "assert state.NoSuchFile is NoSuchFile and state.Fail is Fail\n"
        "print(ort.InferenceSession.__module__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout == "armpy_compat.onnxruntime.inference_session\n"


def test_later_runs_write_to_the_values_of_a_binding() -> None:
    session = opened()
    binding = session.io_binding()
    binding.bind_output("y")
    binding.bind_cpu_input("x", X)
    session.run_with_iobinding(binding)
    value = binding.get_outputs()[0]
    np.testing.assert_array_equal(value.numpy(), X + X)
    binding.bind_cpu_input("x", 7 * X)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(value.numpy(), 14 * X)
    assert binding.get_outputs()[0] is value
    binding.bind_cpu_input("x", X[:1].repeat(5, axis=0))
    session.run_with_iobinding(binding)
    assert binding.get_outputs()[0].shape() == [5, 2]
    np.testing.assert_array_equal(value.numpy(), 14 * X)


def test_an_output_that_is_asked_for_twice_is_two_arrays() -> None:
    first, second = opened().run(["y", "y"], {"x": X})
    first[:] = 0
    np.testing.assert_array_equal(second, X + X)


@pytest.mark.slow
def test_loops_run_until_they_end() -> None:
    # Longer than armpy's own limit of 2 seconds: turns read a tensor whose shape differs in each.
    graph = """<ir_version: 9, opset_import: ["" : 17]>
        g (int64 n, float[l] x) => (float[m] y) {
            y = Loop (n, , x) <body = b (int64 i, bool c, float[k] v) => (bool d, float[j] w) {
                d = Identity (c)
                one = Constant <value_floats = [1.0]> ()
                u = Abs (v)
                w = Concat <axis = 0> (u, one)
            }>
        }"""
    model = onnx.parser.parse_model(graph).SerializeToString()
    session = ort.InferenceSession(model, providers=CPU_REF)
    turns, took_s = 1000, 0.0
    while took_s <= 2:
        turns *= 2
        started_s = time.perf_counter()
        (output,) = session.run(None, {"n": np.array(turns), "x": np.zeros(1, np.float32)})
        took_s = time.perf_counter() - started_s
        assert output.shape == (turns + 1,)
