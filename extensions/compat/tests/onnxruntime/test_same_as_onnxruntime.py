"""Sessions describe and compute the same as ONNX Runtime's."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")

import onnx.parser
import onnxruntime as theirs

from armpy_compat import onnxruntime as ours
from armpy_compat.onnxruntime.capi import onnxruntime_pybind11_state as our_state
from armpy_testing.shared import shared_file, shared_files

HEAD = '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>\n'
X = np.linspace(-1, 2, 6, dtype=np.float32).reshape(2, 3)
CPU_REF = ["CpuRefExecutionProvider"]
META = (
    *("producer_name", "graph_name", "domain", "description", "graph_description", "version"),
    "custom_metadata_map",
)

GRAPHS = {
    "open dimensions": "g (float[n, 3] x) => (float[n, 3] y) { y = Relu (x) }",
    "an output without a shape": "g (float[2, 3] x) => (float[] y) { y = Transpose (x) }",
    "an output without a shape, of open ones": "g (float[n, 3] x) => (float[] y, int64[] z)"
    " { y = Transpose (x) z = Shape (x) }",
    "a declared name for a known size": "g (float[2, 3] x) => (float[m, k] y) { y = Neg (x) }",
    "a scalar": "g (float[n, 3] x) => (float y) { y = ReduceSum <keepdims = 0> (x) }",
    "types": "g (float[2, 3] x) => (bool[2, 3] y, int64[2] z, float16[2, 3] h)"
    " { y = Greater (x, x) z = Shape (x) h = Cast <to = 10> (x) }",
    "a sequence": "g (float[2, 3] x) => (seq(float[2, 3]) y) { y = SequenceConstruct (x, x) }",
    "strings": "g (float[2, 3] x) => (string[2, 3] y)"
    ' { y = ai.onnx.ml.LabelEncoder <keys_floats = [-1.0], values_strings = ["low"]> (x) }',
    "maps": "g (float[2, 3] x) => (seq(map(int64, float)) y)"
    " { y = ai.onnx.ml.ZipMap <classlabels_int64s = [5, 6, 7]> (x) }",
    "maps of texts": "g (float[2, 3] x) => (seq(map(string, float)) y)"
    ' { y = ai.onnx.ml.ZipMap <classlabels_strings = ["a", "b", "c"]> (x) }',
    "an initializer among the inputs": "g (float[2, 3] x, float[3] w = {1, 2, 3})"
    " => (float[2, 3] y) { y = Add (x, w) }",
}


def described(arguments: Any) -> list[tuple[str, str, list[object]]]:
    """Names, types and shapes."""
    return [(argument.name, argument.type, list(argument.shape)) for argument in arguments]


def assert_same_description(genuine: Any, session: ours.InferenceSession) -> None:
    """Inputs, outputs and metadata agree."""
    for of in ("get_inputs", "get_outputs", "get_overridable_initializers"):
        assert described(getattr(session, of)()) == described(getattr(genuine, of)()), of
    expected, actual = genuine.get_modelmeta(), session.get_modelmeta()
    assert {name: getattr(actual, name) for name in META} == {
        name: getattr(expected, name) for name in META
    }


def assert_same_results(genuine: Any, session: ours.InferenceSession, feed: Any) -> None:
    """Outputs agree in kind, type, shape and elements."""
    expected, actual = genuine.run(None, feed), session.run(None, feed)
    assert len(actual) == len(expected)
    for output, other in zip(actual, expected, strict=True):
        assert type(output) is type(other)
        if isinstance(other, np.ndarray):
            assert (output.dtype, output.shape) == (other.dtype, other.shape)
        if isinstance(other, np.ndarray) and other.dtype.kind == "f":
            largest = float(np.abs(other).max())
            np.testing.assert_allclose(output, other, rtol=0, atol=1e-4 * largest)
        elif isinstance(other, np.ndarray) or isinstance(other[0], np.ndarray):
            np.testing.assert_array_equal(output, other)
        else:
            assert output == other


@pytest.mark.parametrize("name", GRAPHS)
def test_small_models(name: str) -> None:
    content = onnx.parser.parse_model(HEAD + GRAPHS[name]).SerializeToString()
    genuine = theirs.InferenceSession(content, providers=["CPUExecutionProvider"])
    session = ours.InferenceSession(content, providers=CPU_REF)
    assert_same_description(genuine, session)
    assert_same_results(genuine, session, {"x": X})


@pytest.mark.slow
@pytest.mark.parametrize(
    "golden", shared_files("golden", "onnx__*.npz"), ids=lambda path: path.stem
)
def test_trained_models(golden: Path) -> None:
    path = shared_file("models", "onnx", golden.stem.removeprefix("onnx__") + ".onnx")
    genuine = theirs.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    session = ours.InferenceSession(str(path), providers=CPU_REF)
    assert_same_description(genuine, session)
    with np.load(golden) as data:
        case = min(key.split("/")[0] for key in data.files if "/" in key)
        names = [argument.name for argument in genuine.get_inputs()]
        feed = {name: data[f"{case}/in{index}"] for index, name in enumerate(names)}
    assert_same_results(genuine, session, feed)


def test_an_output_without_a_type() -> None:
    model = onnx.parser.parse_model(HEAD + GRAPHS["open dimensions"])
    model.graph.output[0].ClearField("type")
    content = model.SerializeToString()
    genuine = theirs.InferenceSession(content, providers=["CPUExecutionProvider"])
    session = ours.InferenceSession(content, providers=CPU_REF)
    assert_same_description(genuine, session)
    assert_same_results(genuine, session, {"x": X})


@pytest.mark.parametrize("shape", [(), (1,), (2,), (1, 1), (0,)])
@pytest.mark.parametrize("output", ["float[] y", "float y"])
def test_arrays_are_taken_where_the_file_declares_a_scalar(
    shape: tuple[int, ...], output: str
) -> None:
    text = f"g (int64 x) => ({output}) {{ y = Cast <to = 1> (x) }}"
    content = onnx.parser.parse_model(HEAD + text).SerializeToString()
    options = theirs.SessionOptions()
    options.log_severity_level = 4
    genuine = theirs.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    session = ours.InferenceSession(content, providers=CPU_REF)
    x = np.ones(shape, np.int64)
    expected = genuine.run(None, {"x": x})[0]
    results = [session.run(None, {"x": x})[0]]
    done = threading.Event()

    def take(outputs: Any, data: object, error: str) -> None:
        results.extend(outputs)
        done.set()

    session.run_async(None, {"x": x}, take, None)
    assert done.wait(60)
    assert [(result.shape, result.tolist()) for result in results] == [
        (expected.shape, expected.tolist())
    ] * 2


def test_options_and_enumerations_have_the_same_names_and_defaults() -> None:
    for kind in ("SessionOptions", "RunOptions"):
        genuine, options = getattr(theirs, kind)(), getattr(ours, kind)()
        names = [name for name in dir(genuine) if not name.startswith("_")]
        assert [name for name in names if not hasattr(options, name)] == _LACKING[kind]
        for name in names:
            value = getattr(genuine, name)
            if not callable(value):
                assert getattr(options, name) == getattr(value, "value", value), name
    for name in (
        "GraphOptimizationLevel",
        "ExecutionMode",
        "OrtCompileApiFlags",
        "OrtSparseFormat",
    ):
        members = {key: member.value for key, member in getattr(theirs, name).__members__.items()}
        assert {member.name: member.value for member in getattr(ours, name)} == members


_LACKING: dict[str, list[str]] = {
    "SessionOptions": [
        "add_provider_for_devices",
        "clear_ep_context_data_read_func",
        "set_ep_context_data_read_func",
    ],
    "RunOptions": [],
}


def test_errors_have_the_same_names() -> None:
    state = theirs.capi.onnxruntime_pybind11_state
    names = [
        name
        for name, kind in vars(state).items()
        if isinstance(kind, type) and issubclass(kind, Exception) and name != "DeviceReset"
    ]
    assert names
    assert [name for name in names if not issubclass(getattr(our_state, name), Exception)] == []


def test_sessions_have_the_same_methods() -> None:
    names = [name for name in dir(theirs.InferenceSession) if not name.startswith("_")]
    lacking = [name for name in names if not hasattr(ours.InferenceSession, name)]
    assert lacking == [
        "create_ortvalue_from_shape_and_type",
        "release_captured_graph",
    ]
