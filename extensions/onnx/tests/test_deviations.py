"""Files that deviate from ONNX: what ONNX Runtime runs is run, the rest is refused by name."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx

import armpy
from armpy.errors import ParserError
from armpy_onnx.messages.inference import inferred_graph

from .onnx_deviations import (
    DEVIATIONS,
    ODD_TEXT,
    REFUSALS,
    RELU,
    Array,
    Deviation,
    X,
    branched,
    imports,
    misnamed,
    model,
    node,
    value,
)


def check(output: Array, expected: Array, name: str) -> None:
    """Compare an output."""
    if expected.dtype == object:
        np.testing.assert_array_equal(output, expected, name)
    else:
        np.testing.assert_allclose(output, expected, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.fixture(scope="module")
def runtime() -> armpy.Runtime:
    return armpy.Runtime(armpy.RuntimeOptions(backends=["CpuRef"]))


@pytest.mark.parametrize("case", DEVIATIONS, ids=str)
def test_harmless_deviations_are_tolerated(case: Deviation, runtime: armpy.Runtime) -> None:
    with armpy.load(case.model, front_end="onnx", runtime=runtime) as loaded:
        outputs = loaded.run(dict(case.inputs))
    assert outputs.keys() == case.expected.keys()
    for name, expected in case.expected.items():
        assert outputs[name].dtype == expected.dtype
        check(outputs[name], expected, case.name)


@pytest.mark.slow
def test_onnx_runtime_tolerates_them() -> None:
    """Except a sparse Constant that is an output, for which it has no kernel."""
    engine = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    options = engine.SessionOptions()
    options.log_severity_level = 4
    for case in DEVIATIONS:
        if case.name.endswith("`sparse_value`: Constant"):
            continue
        session = engine.InferenceSession(case.model, options, providers=["CPUExecutionProvider"])
        names = [argument.name for argument in session.get_outputs()]
        for name, output in zip(names, session.run(None, dict(case.inputs)), strict=True):
            check(output, case.expected[name], case.name)


@pytest.mark.parametrize("reason", REFUSALS)
def test_what_cannot_be_understood_is_refused_by_node_and_field(
    reason: str, runtime: armpy.Runtime
) -> None:
    contents, message = REFUSALS[reason]
    with pytest.raises(ParserError, match=message):
        armpy.load(contents, front_end="onnx", runtime=runtime)


def test_all_faults_are_in_one_error(runtime: armpy.Runtime) -> None:
    nodes = [node("Relu", "x x", "a"), node("Cast", "a", "b"), node("LeakyRelu", "b", odd=1)]
    message = "Relu_0.*inputs is wrong.*'to' is missing.*'odd': the operator has no such attribute"
    with pytest.raises(ParserError, match=message):
        armpy.load(model(nodes), runtime=runtime)


def test_inner_graphs_are_checked(runtime: armpy.Runtime) -> None:
    inner = onnx.helper.make_graph([node("Relu", "x x", "a")], "then", [], [value("a")])
    with pytest.raises(ParserError, match="Relu 'Relu_0': the number of inputs"):
        armpy.load(branched(inner), runtime=runtime)


def test_names_that_are_not_utf_8_are_written_with_escapes(runtime: armpy.Runtime) -> None:
    contents = misnamed(model([node("Relu", "zzzz")], inputs=[value("zzzz")]))
    with armpy.load(contents, runtime=runtime) as loaded:
        np.testing.assert_array_equal(loaded.run({ODD_TEXT: X})["y"], RELU)


@pytest.mark.slow  # it starts two processes
def test_shapes_are_inferred_in_a_process_of_their_own() -> None:
    """The package's inference ends it with a segmentation fault for the second model."""
    plain = onnx.load_model_from_string(model(outputs=[onnx.ValueInfoProto(name="y")]))
    graph = inferred_graph(plain)
    assert graph is not None
    assert [dim.dim_value for dim in graph.output[0].type.tensor_type.shape.dim] == [2]
    encoded = [
        node("Scaler", "x", "s", domain="ai.onnx.ml", offset=[0.0], scale=[1.0]),
        node("LabelEncoder", "s", domain="ai.onnx.ml", keys_floats=[2.0], values_strings=["a"]),
    ]
    outputs = [value("y", None, onnx.TensorProto.STRING)]
    imported = imports(("", 18), ("ai.onnx.ml", 3))
    fatal = onnx.load_model_from_string(model(encoded, outputs=outputs, change=imported))
    assert inferred_graph(fatal) is None
