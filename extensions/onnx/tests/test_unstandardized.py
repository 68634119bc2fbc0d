"""Operators that ONNX Runtime takes in ONNX's domain although the standard does not have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx

import armpy
from armpy.errors import ParserError
from armpy_onnx.messages.checking import WITHOUT_SCHEMA
from armpy_onnx.operators import operator_of

from .onnx_nodes import NodeCase, assert_agree, case_name, run_armpy

X = np.random.default_rng(5).standard_normal((2, 3, 5, 6)).astype(np.float32)
SIX = np.linspace(-1, 2, 6, dtype=np.float32)


CASES = [
    NodeCase(kind, [X, *constants], attributes, opset, tuple(range(1, 1 + len(constants))))
    for kind, opset, constants, attributes in (
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
    )
]


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_they_give_what_onnx_runtime_gives(case: NodeCase) -> None:
    pytest.importorskip("onnxruntime")
    assert_agree(case)


def test_they_may_lie_in_a_branch() -> None:
    case = NodeCase("Scale", [X], {"scale": -3.0}, 9)
    model = case.model
    outputs = [onnx.helper.make_tensor_value_info("y0", onnx.TensorProto.FLOAT, None)]
    branch = onnx.helper.make_graph(model.graph.node, "branch", [], outputs)
    node = onnx.helper.make_node("If", ["k"], ["y0"], then_branch=branch, else_branch=branch)
    del model.graph.node[:]
    model.graph.node.append(node)
    model.graph.input.append(onnx.helper.make_tensor_value_info("k", onnx.TensorProto.BOOL, []))
    outcome = armpy.load(model.SerializeToString(), backends=["CpuRef"]).run({"x0": X, "k": True})
    np.testing.assert_array_equal(outcome["y0"], -3 * X)


def test_each_has_a_converter_and_a_case() -> None:
    assert {case.kind for case in CASES} == set(WITHOUT_SCHEMA)
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
    run_armpy(NodeCase("Scale", [X], {}, 13))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kind", ["SkipLayerNormalization", "Wrong"])
def test_no_others_are_taken_without_a_schema(kind: str) -> None:
    with pytest.raises(ParserError, match=f"not supported: {kind} \\(1\\)"):
        run_armpy(NodeCase(kind, [X], {}, 13))


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
        run_armpy(NodeCase(kind, [X], attributes, 9))
