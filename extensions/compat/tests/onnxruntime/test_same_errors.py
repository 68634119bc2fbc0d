"""Wrong files, options and inputs raise errors of ONNX Runtime's classes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
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
    "a missing library": lambda o: o.register_custom_ops_library("/nothing.so"),
}

CALLS: dict[str, Callable[[Any], object]] = {
    "no feed": lambda s: s.run(None, None),
    "a list as the feed": lambda s: s.run(None, [X]),
    "an unknown output": lambda s: s.run(["q"], {"x": X}),
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
    "an empty binding": lambda s: s.run_with_iobinding(s.io_binding()),
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


def test_texts_of_faults_of_the_graph() -> None:
    for name in (
        "an input that nothing writes",
        "a cycle",
        "an unknown domain",
        "another type of an output",
    ):
        texts = []
        for engine in CPU:
            with pytest.raises(Exception) as caught:  # noqa: PT011 - the text is compared
                opened(engine, FILES[name])
            texts.append(str(caught.value))
        assert texts[1] == texts[0]
