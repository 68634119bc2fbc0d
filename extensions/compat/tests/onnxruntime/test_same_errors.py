"""Wrong files, options and inputs raise errors of ONNX Runtime's classes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")

import onnx.helper
import onnx.parser
import onnxruntime as theirs

from armpy_compat import onnxruntime as ours

X = np.ones((2, 3), np.float32)
RELU = "float[2, 3] x) => (float[2, 3] y) { y = Relu (x) }"
WEIGHTS = "float[2, 3] x) => (float[2, 3] y) <float[3] w = {1, 2, 3}> { y = Add (x, w) }"
CPU = {theirs: ["CPUExecutionProvider"], ours: ["CpuRefExecutionProvider"]}


def model_of(text: str, edit: Callable[[Any], object] = lambda model: None) -> bytes:
    """A model's bytes, with a fault."""
    head = '<ir_version: 8, opset_import: ["" : 17]> g ('
    model = onnx.parser.parse_model(head + text)
    edit(model)
    return model.SerializeToString()  # type: ignore[no-any-return]


def beside(**entries: str) -> bytes:
    """A model whose weights lie in another file."""

    def edit(model: Any) -> None:
        weights = model.graph.initializer[0]
        weights.ClearField("float_data")
        weights.data_location = onnx.TensorProto.EXTERNAL
        for key, value in entries.items():
            weights.external_data.add(key=key, value=value)

    return model_of(WEIGHTS, edit)


SOUND = model_of(RELU)

FILES: dict[str, bytes] = {
    "empty": b"",
    "garbage": b"\xff\xfe not a model",
    "a text": b"hello world, this is a text\n",
    "half a model": SOUND[: len(SOUND) // 2],
    "a model without its end": SOUND[:-3],
    "no graph": model_of(RELU, lambda m: m.ClearField("graph")),
    "a newer form": model_of(RELU, lambda m: setattr(m, "ir_version", 99)),
    "no form": model_of(RELU, lambda m: m.ClearField("ir_version")),
    "a newer opset": model_of(RELU, lambda m: setattr(m.opset_import[0], "version", 99)),
    "no opset": model_of(RELU, lambda m: m.ClearField("opset_import")),
    "an unknown operator": model_of(RELU.replace("Relu", "Nope")),
    "an operator of a newer opset": model_of(RELU.replace("Relu", "Gelu")),
    "a domain that is not imported": model_of(RELU.replace("Relu", "made.up.Relu")),
    "an unknown domain": model_of(
        RELU.replace("Relu", "made.up.Relu"),
        lambda m: m.opset_import.append(onnx.helper.make_opsetid("made.up", 1)),
    ),
    "an input that nothing writes": model_of(RELU.replace("(x) }", "(q) }")),
    "an output that nothing writes": model_of(RELU.replace("y = Relu", "q = Relu")),
    "too many inputs": model_of(RELU.replace("(x) }", "(x, x) }")),
    "too few inputs": model_of(RELU.replace("(x) }", "() }")),
    "too many outputs": model_of(RELU.replace("y = Relu", "y, z = Relu")),
    "a name written twice": model_of(RELU.replace("}", "y = Relu (x) }")),
    "a cycle": model_of(RELU.replace("Relu (x)", "Add (x, z) z = Relu (y)")),
    "two inputs of one name": model_of(RELU, lambda m: m.graph.input.append(m.graph.input[0])),
    "another type of an output": model_of(RELU.replace("(float[2, 3] y", "(int64[2, 3] y")),
    "types that differ": model_of(
        "float[2, 3] x, int64[2, 3] i) => (float[2, 3] y) { y = Add (x, i) }"
    ),
    "complex numbers that are added": model_of(
        "complex64[2, 3] x) => (complex64[2, 3] y) { y = Add (x, x) }"
    ),
    "texts that are added": model_of("string[2] x) => (string[2] y) { y = Add (x, x) }"),
    "integers with a logarithm": model_of("int32[2] x) => (int32[2] y) { y = Log (x) }"),
    "real numbers as indices": model_of(
        "float[2, 3] x, float[1] i) => (float[1, 3] y) { y = Gather (x, i) }"
    ),
    "a truth value among sums": model_of(
        "float[2] x, bool[2] b) => (float[2] y) { y = Sum (x, x, b) }"
    ),
    "shapes that do not broadcast": model_of(
        "float[2, 3] x, float[2, 4] z) => (float[2, 3] y) { y = Add (x, z) }"
    ),
    "depths that differ": model_of(RELU.replace("Relu (x)", "MatMul (x, x)")),
    "a missing attribute": model_of(RELU.replace("Relu", "Cast")),
    "an unknown attribute": model_of(RELU.replace("Relu", "Relu <nope = 3>")),
    "an attribute of another type": model_of(RELU.replace("Relu", 'LeakyRelu <alpha = "a">')),
    "an axis out of range": model_of(RELU.replace("Relu", "Softmax <axis = 5>")),
    "a repeated axis": model_of(RELU.replace("Relu", "Transpose <perm = [0, 0]>")),
    "too few weights": model_of(WEIGHTS, lambda m: m.graph.initializer[0].dims.append(4)),
    "weights in a missing file": beside(location="gone.bin", offset="0", length="12"),
    "weights in another folder": beside(location="../gone.bin", offset="0", length="12"),
    "weights at an absolute path": beside(location="/gone.bin", offset="0", length="12"),
    "weights that are nowhere": beside(offset="0"),
}

OPTIONS: dict[str, Callable[[Any], object]] = {
    "a text for threads": lambda o: setattr(o, "intra_op_num_threads", "a"),
    "a number for a text": lambda o: setattr(o, "logid", 1),
    "a text for a truth value": lambda o: setattr(o, "enable_profiling", "x"),
    "an unknown attribute": lambda o: setattr(o, "nope", 1),
    "an unknown entry": lambda o: o.get_session_config_entry("a"),
    "an entry that is a number": lambda o: o.add_session_config_entry("a", 3),
    "an entry without a key": lambda o: o.add_session_config_entry("", "a"),
    "a size that is a text": lambda o: o.add_free_dimension_override_by_name("a", "b"),
    "an initializer that is a number": lambda o: o.add_initializer("w", 3),
    "names without values": lambda o: o.add_external_initializers(["a"], []),
    "threads beyond 32 bits": lambda o: setattr(o, "intra_op_num_threads", 2**70),
    "None for a truth value": lambda o: setattr(o, "enable_profiling", []),
    "a list as the key of an entry": lambda o: o.add_session_config_entry([], "a"),
    "a number as the key that is read": lambda o: o.get_session_config_entry(1),
    "a size beyond 64 bits": lambda o: o.add_free_dimension_override_by_name("a", 2**70),
    "a list as the name of a size": lambda o: o.add_free_dimension_override_by_name([], 2),
    "a number as the name of an initializer": lambda o: o.add_initializer(1, None),
    "a text as the options of a provider": lambda o: o.add_provider("CPUExecutionProvider", "a"),
    "a text as names": lambda o: o.add_external_initializers("a", []),
    "a number as a library": lambda o: o.register_custom_ops_library(1),
    "a missing library": lambda o: o.register_custom_ops_library("/nothing.so"),
}

CALLS: dict[str, Callable[[Any], object]] = {
    "no feed": lambda s: s.run(None, None),
    "a list as the feed": lambda s: s.run(None, [X]),
    "an unknown output": lambda s: s.run(["q"], {"x": X}),
    "an unknown input": lambda s: s.run(None, {"q": X}),
    "an unknown input beside the right one": lambda s: s.run(None, {"x": X, "q": X}),
    "no input": lambda s: s.run(None, {}),
    "another type of real numbers": lambda s: s.run(None, {"x": X.astype(np.float64)}),
    "integers": lambda s: s.run(None, {"x": X.astype(np.int32)}),
    "truth values": lambda s: s.run(None, {"x": X.astype(bool)}),
    "texts": lambda s: s.run(None, {"x": X.astype(str)}),
    "a smaller rank": lambda s: s.run(None, {"x": X[0]}),
    "a larger rank": lambda s: s.run(None, {"x": X[None]}),
    "other sizes": lambda s: s.run(None, {"x": np.ones((3, 3), np.float32)}),
    "no rows": lambda s: s.run(None, {"x": X[:0]}),
    "a text": lambda s: s.run(None, {"x": "a"}),
    "a text as the outputs": lambda s: s.run("y", {"x": X}),
    "a number as an output": lambda s: s.run([1], {"x": X}),
    "options that are a number": lambda s: s.run(None, {"x": X}, 3),
    "complex numbers": lambda s: s.run(None, {"x": X.astype(np.complex64)}),
    "times": lambda s: s.run(None, {"x": X.astype("datetime64[s]")}),
    "a NumPy scalar": lambda s: s.run(None, {"x": np.float32(1)}),
    "None": lambda s: s.run(None, {"x": None}),
    "a dictionary": lambda s: s.run(None, {"x": {}}),
    "a set": lambda s: s.run(None, {"x": {1}}),
    "lists of two lengths": lambda s: s.run(None, {"x": [[1.0], [1.0, 2.0]]}),
    "a list of texts": lambda s: s.run(None, {"x": ["a"]}),
    "no values": lambda s: s.run_with_ort_values(None, {}),
    "arrays as values": lambda s: s.run_with_ort_values(None, {"x": X}),
    "an unknown binding": lambda s: s.io_binding().bind_cpu_input("q", X),
    "a number as the name of a binding": lambda s: s.io_binding().bind_cpu_input(1, X),
    "a list to bind": lambda s: s.io_binding().bind_cpu_input("x", [1.0]),
    "a number as the callback": lambda s: s.run_async(None, {"x": X}, 3, None),
    "a mapping as the outputs": lambda s: s.run({"y": 1}, {"x": X}),
    "a number as dynamic options": lambda s: s.set_ep_dynamic_options(3),
    "a number as providers": lambda s: s.set_providers(3),
    "an empty binding": lambda s: s.run_with_iobinding(s.io_binding()),
}


BINDINGS: dict[str, tuple[object, ...]] = {
    "an unknown output": ("q", "cpu", 0, np.float32, [2, 3], X.ctypes.data),
    "a device that is a number": ("y", 1, 0, np.float32, [2, 3], X.ctypes.data),
    "a device number that is a text": ("y", "cpu", "a", np.float32, [2, 3], X.ctypes.data),
    "a type that is a number of none": ("y", "cpu", 0, -1, [2, 3], X.ctypes.data),
    "a type that is a list": ("y", "cpu", 0, [1], [2, 3], X.ctypes.data),
    "a type that is no type": ("y", "cpu", 0, "no type", [2, 3], X.ctypes.data),
    "a shape that is a text": ("y", "cpu", 0, np.float32, "ab", X.ctypes.data),
    "a shape of texts": ("y", "cpu", 0, np.float32, ["a"], X.ctypes.data),
    "an address beyond 64 bits": ("y", "cpu", 0, np.float32, [2, 3], 2**70),
    "an address that is a list": ("y", "cpu", 0, np.float32, [2, 3], [1]),
}

VALUES: dict[str, Callable[[Any], object]] = {
    "a list as an array": lambda e: e.OrtValue.ortvalue_from_numpy([1.0]),
    "a device that is a number": lambda e: e.OrtValue.ortvalue_from_numpy(X, 3),
    "a type that is a number of none": lambda e: e.OrtValue.ortvalue_from_shape_and_type([1], -1),
    "a type that is a list": lambda e: e.OrtValue.ortvalue_from_shape_and_type([1], [1]),
    "texts": lambda e: e.OrtValue.ortvalue_from_shape_and_type([1], np.str_),
    "a shape that is a text": lambda e: e.OrtValue.ortvalue_from_shape_and_type("a", np.float32),
    "None with a type": lambda e: e.OrtValue.ortvalue_from_numpy_with_onnx_type(None, 1),
    "a type that is a text": lambda e: e.OrtValue.ortvalue_from_numpy_with_onnx_type(X, "a"),
    "an update of texts": lambda e: e.OrtValue.ortvalue_from_numpy(X).update_inplace(
        np.full((2, 3), "a")
    ),
    "an update by a list": lambda e: e.OrtValue.ortvalue_from_numpy(X).update_inplace([1]),
    "a device without a number": lambda e: e.OrtDevice.make("cpu", None),
    "a sparse tensor of None": lambda e: e.SparseTensor.sparse_coo_from_numpy(
        [3], None, None, e.OrtDevice.make("cpu", 0)
    ),
    "a seed that is a list": lambda e: e.set_seed(["a"]),
    "a severity that is an array": lambda e: e.set_default_logger_severity(X),
    "threads that are None": lambda e: e.set_global_thread_pool_sizes(None, 0),
    "an empty key of a run": lambda e: e.RunOptions().add_run_config_entry("", "a"),
    "a flag that is a text": lambda e: setattr(e.RunOptions(), "terminate", "a"),
}

TARGETS: dict[str, npt.NDArray[Any]] = {
    "more rows": np.zeros((4, 3), np.float32),
    "no rows": np.zeros((0, 3), np.float32),
    "another rank": np.zeros((1, 2, 3), np.float32),
    "as many elements": np.zeros((3, 2), np.float32),
    "a scalar": np.zeros((), np.float32),
    "fewer bits": np.zeros((2, 3), np.float16),
    "more bits": np.zeros((2, 3), np.float64),
    "integers": np.zeros((2, 3), np.int32),
    "complex numbers": np.zeros((2, 3), np.complex64),
}


def error_of(call: Callable[[], object]) -> str:
    """The name of the class of a call's error."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the kind is what is compared
        call()
    return type(caught.value).__name__


def opened(engine: Any, source: object) -> Any:
    """A session of an engine."""
    return engine.InferenceSession(source, providers=CPU[engine])


@pytest.mark.parametrize("name", FILES)
def test_faulty_models(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(FILES[name])
    for source in (str(path), FILES[name]):
        kinds = [error_of(lambda engine=engine: opened(engine, source)) for engine in CPU]  # type: ignore[misc]  # noqa: B023 - called at once
        assert kinds[1] == kinds[0]


@pytest.mark.parametrize("source", ["/nothing/model.onnx", "/", "", None, 3])
def test_what_is_not_a_model_file(source: object) -> None:
    kinds = [error_of(lambda engine=engine: opened(engine, source)) for engine in CPU]  # type: ignore[misc]
    assert kinds[1] == kinds[0]


@pytest.mark.parametrize("name", OPTIONS)
def test_wrong_options(name: str) -> None:
    kinds = [error_of(lambda e=engine: OPTIONS[name](e.SessionOptions())) for engine in CPU]  # type: ignore[misc]
    assert kinds[1] == kinds[0]


@pytest.mark.parametrize("name", CALLS)
def test_wrong_calls(name: str) -> None:
    kinds = [error_of(lambda e=engine: CALLS[name](opened(e, SOUND))) for engine in CPU]  # type: ignore[misc]
    assert kinds[1] == kinds[0]


@pytest.mark.parametrize("name", BINDINGS)
def test_wrong_memory_to_bind(name: str) -> None:
    sessions = [opened(engine, SOUND) for engine in CPU]
    kinds = [error_of(lambda s=s: s.io_binding().bind_output(*BINDINGS[name])) for s in sessions]  # type: ignore[misc]
    assert kinds[1] == kinds[0]


@pytest.mark.parametrize("name", VALUES)
def test_wrong_values(name: str) -> None:
    kinds = [error_of(lambda engine=engine: VALUES[name](engine)) for engine in CPU]  # type: ignore[misc]
    assert kinds[1] == kinds[0]


@pytest.mark.parametrize("shape", ["[2, 3]", "[n, 3]", "[]"])
@pytest.mark.parametrize("name", TARGETS)
def test_outputs_are_neither_repeated_nor_cast_into_a_bound_array(name: str, shape: str) -> None:
    model = model_of(RELU.replace("(float[2, 3] y)", f"(float{shape} y)"))
    kinds = []
    for engine in CPU:
        session, target = opened(engine, model), np.full_like(TARGETS[name], 7)
        binding = session.io_binding()
        binding.bind_cpu_input("x", X)

        def run(binding: Any = binding, session: Any = session, target: Any = target) -> None:
            place = (target.dtype.type, target.shape, target.ctypes.data)
            binding.bind_output("y", "cpu", 0, *place)
            session.run_with_iobinding(binding)

        kinds.append(error_of(run))
        assert (target == 7).all()
    assert kinds == ["RuntimeError", "RuntimeError"]
