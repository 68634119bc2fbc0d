"""`InferenceSession` runs models on armpy, with the texts of ONNX Runtime's errors."""

from __future__ import annotations

import queue
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx.parser

from armpy_compat import onnxruntime as ort
from armpy_compat.onnxruntime import native_session
from armpy_compat.onnxruntime.capi import onnxruntime_pybind11_state as state
from armpy_compat.onnxruntime.structured_model import with_inferred_types

HEAD = '<ir_version: 9, opset_import: ["" : 18]>\n'
X = np.arange(6, dtype=np.float32).reshape(3, 2)
CPU_REF = ["CpuRefExecutionProvider"]  # it compiles nothing


def content(text: str) -> bytes:
    """The bytes of a model of one graph."""
    return onnx.parser.parse_model(HEAD + text).SerializeToString()  # type: ignore[no-any-return]


TWICE = content(
    "graph (float[n, 2] x) => (float[n, 2] y, float[n, 2] z) { y = Add (x, x) z = Neg (y) }"
)


def opened(model: bytes = TWICE, options: Any = None) -> ort.InferenceSession:
    """A session that compiles nothing."""
    return ort.InferenceSession(model, options, providers=CPU_REF)


def test_outputs_come_in_the_order_of_their_names() -> None:
    session = opened()
    y, z = session.run(None, {"x": X})
    np.testing.assert_array_equal(y, X + X)
    np.testing.assert_array_equal(z, -y)
    again, first = session.run(["z", "y"], {"x": X})
    np.testing.assert_array_equal(again, z)
    np.testing.assert_array_equal(first, y)


def test_dimensions_of_one_name_may_have_several_sizes() -> None:
    session = opened(
        content(
            "graph (float[n] a, float[n] b) => (float[p] y, float[q] z) {y = Neg (a) z = Neg (b)}"
        )
    )
    for sizes in ((2, 3), (2, 2), (4, 1)):
        a, b = (np.arange(size, dtype=np.float32) for size in sizes)
        for result, array in zip(session.run(None, {"a": a, "b": b}), (a, b), strict=True):
            np.testing.assert_array_equal(result, -array)


@pytest.mark.parametrize("size", ["3", "n", "?"])
def test_sequences_may_be_as_long_as_an_open_dimension(size: str) -> None:
    text = "graph (float[SIZE, 2] x) => (seq(float[m, 2]) y) { y = SplitToSequence <axis = 0> (x) }"
    session = opened(content(text.replace("SIZE", size)))
    for rows in (3,) if size == "3" else (3, 1):
        (parts,) = session.run(None, {"x": X[:rows]})
        np.testing.assert_array_equal(np.stack(parts)[:, 0], X[:rows])


def test_providers_are_armpy_s_backends() -> None:
    available = ort.get_available_providers()
    assert available[-1] == ort.get_all_providers()[-1] == "CPUExecutionProvider"
    assert {"NumbaAccExecutionProvider", "CpuRefExecutionProvider"} <= set(available)
    session = opened()
    assert session.get_providers() == ["CpuRefExecutionProvider", "CPUExecutionProvider"]
    placement = session._sess.model.placement  # type: ignore[union-attr]
    assert placement is None or set(placement.layers_by_backend) == {"CpuRef"}


def test_an_initializer_among_the_inputs_can_be_given() -> None:
    text = "graph (float[2] x, float[2] w = {1, 2}) => (float[2] y) { y = Add (x, w) }"
    session = opened(content(text))
    assert [value.name for value in session.get_inputs()] == ["x"]
    assert [value.name for value in session.get_overridable_initializers()] == ["w"]
    x = np.zeros(2, np.float32)
    assert session.run(None, {"x": x})[0].tolist() == [1, 2]
    assert session.run(None, {"x": x, "w": np.full(2, 5, np.float32)})[0].tolist() == [5, 5]
    assert session.run(None, {"x": x})[0].tolist() == [1, 2]


def test_options_change_the_model() -> None:
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("n", 3)
    assert opened(options=options).get_inputs()[0].shape == [3, 2]


def test_initializers_of_the_options_replace_the_model_s() -> None:
    model = onnx.load_model_from_string(
        content("graph (float[2] x) => (float[2] y) { y = Add (x, w) }")
    )
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(2, np.float32), "w"))
    options = ort.SessionOptions()
    options.add_initializer("w", ort.OrtValue.ortvalue_from_numpy(np.full(2, 7, np.float32)))
    session = opened(model.SerializeToString(), options)
    assert session.run(None, {"x": np.zeros(2, np.float32)})[0].tolist() == [7, 7]


def _beside(length: int) -> bytes:
    """A model whose initializer lies in the file `w.data`, from its fifth byte on."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> '
        "g (float[2] x) => (float[2] y) <float[2] w = {0, 0}> { y = Add (x, w) }"
    )
    (tensor,) = model.graph.initializer
    tensor.ClearField("float_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", "w.data"), ("offset", "4"), ("length", str(length))):
        tensor.external_data.add(key=key, value=value)
    return bytes(model.SerializeToString())


_CONTENTS = np.array([9, 1, 2, 9], np.float32).tobytes()


@pytest.mark.parametrize("way", ["memory", "folder"])
def test_external_data_of_a_model_in_memory_is_read(way: str, tmp_path: Path) -> None:
    options = ort.SessionOptions()
    if way == "memory":
        files = ["w.data"], [_CONTENTS], [len(_CONTENTS)]
        options.add_external_initializers_from_files_in_memory(*files)
    else:
        (tmp_path / "w.data").write_bytes(_CONTENTS)
        entry = "session.model_external_initializers_file_folder_path"
        options.add_session_config_entry(entry, str(tmp_path))
    (output,) = opened(_beside(8), options).run(None, {"x": np.ones(2, np.float32)})
    np.testing.assert_array_equal(output, [2, 3])


def test_sessions_do_not_interfere_and_run_in_many_threads() -> None:
    sessions = [
        opened(),
        opened(content("graph (float[n, 2] x) => (float[n, 2] y) { y = Mul (x, x) }")),
    ]
    expected = [X + X, X * X]
    wrong: list[str] = []

    def call(number: int) -> None:
        for _ in range(50):
            which = number % 2
            (y,) = sessions[which].run(["y"], {"x": X})
            if not np.array_equal(y, expected[which]):
                wrong.append(f"thread {number}")

    threads = [threading.Thread(target=call, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_run_async_calls_back_on_another_thread() -> None:
    calls: queue.Queue[tuple[Any, ...]] = queue.Queue()

    def callback(*arguments: Any) -> None:
        calls.put((*arguments, threading.current_thread()))

    session = opened()
    for x in (X, X[0]):
        session.run_async(["y"], {"x": x}, callback, "data")
    first, second = sorted((calls.get(timeout=60), calls.get(timeout=60)), key=lambda c: len(c[2]))
    np.testing.assert_array_equal(first[0][0], X + X)
    assert (first[1:3], second[0]) == (("data", ""), [])
    assert "Invalid rank for input: x" in second[2]
    assert threading.current_thread() not in (first[3], second[3])


def test_terminate_ends_calls() -> None:
    options = ort.RunOptions()
    session = opened()
    np.testing.assert_array_equal(session.run(["y"], {"x": X}, options)[0], X + X)
    options.terminate = True
    with pytest.raises(state.Fail, match="Exiting due to terminate flag being set to true"):
        session.run(None, {"x": X}, options)
    options.terminate = False
    options.only_execute_path_to_fetches = True
    np.testing.assert_array_equal(session.run(["y"], {"x": X}, options)[0], X + X)


@pytest.mark.parametrize("output", ["y", "seq"])
def test_outputs_are_inferred_when_they_are_asked_for(
    output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inference takes a process, so that it would take longer than opening a small session."""
    texts = {
        "y": "graph (float[n, 2] x) => (y) { y = Neg (x) }",
        "seq": "graph (float[n, 2] x) => (seq(float) y) { y = SequenceConstruct (x) }",
    }
    inferred = []

    def infer(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
        inferred.append(model)
        return with_inferred_types(model)

    monkeypatch.setattr(native_session, "with_inferred_types", infer)
    session = opened(content(texts[output]))
    session.run(None, {"x": X})
    session.run(["y"], {"x": X})
    assert len(inferred) == 0
    types = {"y": ("tensor(float)", ["n", 2]), "seq": ("seq(tensor(float))", [])}
    for _ in range(2):
        (described,) = session.get_outputs()
        assert (described.type, described.shape) == types[output]
    assert len(inferred) == 1
