"""Operators that ONNX Runtime takes in ONNX's domain although the standard does not have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx
from onnx import TensorProto, helper, numpy_helper

import armpy
from armpy.errors import ParserError
from armpy.ops.operation import Array
from armpy_onnx.messages.checking import WITHOUT_SCHEMA
from armpy_onnx.operators import operator_of

X = np.random.default_rng(5).standard_normal((2, 3, 5, 6)).astype(np.float32)
SIX = np.linspace(-1, 2, 6, dtype=np.float32)


def file_of(
    kind: str, version: int, constants: list[Array], attributes: dict[str, Any], *, inside: bool
) -> bytes:
    """A model of one node, which lies in a branch or in the graph."""
    names = [f"c{number}" for number in range(len(constants))]
    nodes = [helper.make_node(kind, ["x", *names], ["y"], **attributes)]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)]
    if inside:
        branch = helper.make_graph(nodes, "branch", [], [y])
        nodes = [helper.make_node("If", ["k"], ["y"], then_branch=branch, else_branch=branch)]
        inputs.append(helper.make_tensor_value_info("k", TensorProto.BOOL, []))
    named = zip(constants, names, strict=True)
    held = [numpy_helper.from_array(array, name) for array, name in named]
    graph = helper.make_graph(nodes, "g", inputs, [y], held)
    opsets = [helper.make_opsetid("", version)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return bytes(model.SerializeToString())


CASES: list[tuple[str, int, list[Array], dict[str, Any]]] = [
    ("Affine", 9, [], {"alpha": 2.5, "beta": -1.5}),
    ("Crop", 9, [], {"border": [1, 0, 2, 3]}),
    ("Crop", 7, [], {"border": [2, 1, 0, 0], "scale": [3, 4]}),
    ("DynamicSlice", 9, [np.array([1, -3]), np.array([9, -1])], {}),
    ("DynamicSlice", 9, [np.array([-4]), np.array([2**40]), np.array([3])], {}),
    ("ImageScaler", 9, [], {"scale": 0.5, "bias": [1.0, -2.0, 3.0]}),
    ("LayerNormalization", 13, [SIX, SIX[::-1].copy()], {"axis": -1}),
    ("LayerNormalization", 16, [SIX], {"epsilon": 0.25}),
    ("MeanVarianceNormalization", 8, [], {}),
    ("MeanVarianceNormalization", 7, [], {"across_channels": 1}),
    ("MeanVarianceNormalization", 7, [], {"across_channels": 1, "normalize_variance": 0}),
    ("MeanVarianceNormalization", 1, [], {"normalize_variance": 0}),
    ("ParametricSoftplus", 9, [], {"alpha": 0.5, "beta": 3.0}),
    ("Scale", 9, [], {"scale": -3.0}),
    ("ScaledTanh", 9, [], {"alpha": 1.7, "beta": 0.6}),
    ("SimplifiedLayerNormalization", 9, [SIX], {}),
    ("SimplifiedLayerNormalization", 21, [SIX], {"axis": -1, "epsilon": 0.125}),
    ("ThresholdedRelu", 9, [], {"alpha": 0.75}),
]


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize(("kind", "version", "constants", "attributes"), CASES)
def test_they_give_what_onnx_runtime_gives(
    kind: str, version: int, constants: list[Array], attributes: dict[str, Any], inside: bool
) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    data = file_of(kind, version, constants, attributes, inside=inside)
    feeds = {"x": X, "k": np.array(True)} if inside else {"x": X}
    (expected,) = onnxruntime.InferenceSession(data).run(None, feeds)
    actual = armpy.load(data, backends=["CpuRef"]).run(feeds)["y"]
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-6)


def test_each_has_a_converter_and_a_case() -> None:
    assert {kind for kind, *_ in CASES} == set(WITHOUT_SCHEMA)
    assert all(operator_of(kind) for kind in WITHOUT_SCHEMA)


def test_all_that_onnx_runtime_has_are_known() -> None:
    """Except its own copies of tensors, and operators for which it has a schema but no kernel."""
    pytest.importorskip("onnxruntime")
    state = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")
    schemas = onnx.defs.get_all_schemas_with_history()
    standard = {(schema.name, schema.since_version) for schema in schemas if schema.domain == ""}
    kernels = {kernel.op_name for kernel in state.get_all_opkernel_def() if kernel.domain == ""}
    with_schema = {
        schema.name
        for schema in state.get_all_operator_schema()
        if schema.domain == ""
        and not schema.deprecated
        and (schema.name, schema.since_version) not in standard
        and schema.name in kernels
    }
    assert with_schema - {"MemcpyFromHost", "MemcpyToHost"} == set(WITHOUT_SCHEMA)


def test_nothing_is_printed_of_operators_of_the_first_years(
    capfd: pytest.CaptureFixture[str],
) -> None:
    armpy.load(file_of("Scale", 13, [], {}, inside=False), backends=["CpuRef"]).close()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kind", ["SkipLayerNormalization", "Wrong"])
def test_no_others_are_taken_without_a_schema(kind: str) -> None:
    with pytest.raises(ParserError, match=f"not supported: {kind} \\(1\\)"):
        armpy.load(file_of(kind, 13, [], {}, inside=False), backends=["CpuRef"])


@pytest.mark.parametrize(
    ("kind", "attributes", "message"),
    [
        ("Crop", {"border": [3, 0, 3, 0]}, "nothing is left of the image"),
        ("Crop", {"border": [1, 1]}, "border or scale has the wrong length"),
        ("Crop", {"border": [0, 0, 0, 0], "scale": [2**62, 1]}, "nothing is left"),
        (
            "ImageScaler",
            {"bias": [1.0]},
            r"'bias' does not have one number per channel. Expected 3; got 1",
        ),
    ],
)
def test_attributes_that_do_not_fit_are_named(
    kind: str, attributes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ParserError, match=message):
        armpy.load(file_of(kind, 9, [], attributes, inside=False), backends=["CpuRef"])
