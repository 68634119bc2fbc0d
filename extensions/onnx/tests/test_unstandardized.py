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


RNG = np.random.default_rng(6)
IMAGES = RNG.standard_normal((2, 3, 5, 6)).astype(np.float32)
BOXES = np.array([[0, 0, 1, 1], [0.8, 0.1, 0.2, 1.3], [-0.1, 0.5, 0.4, 0.5]], np.float32)
WHICH, WORDS = np.array([0, 1, 1], np.int32), RNG.integers(-(2**15), 2**15, (9, 4))
MASK = (RNG.random((1, 1, 5, 6)) < 0.7).astype(np.int32)

ROWS: tuple[tuple[str, Any, Any, Any, Any], ...] = (
    (
        "ConvTransposeWithDynamicPads",
        [IMAGES, IMAGES[0, :, None, :3, :3].copy(), np.array([1, 0, 2, 1]), SIX[:1].copy()],
        {"kernel_shape": [3, 3], "strides": [2, 2]},
        (),
        (),
    ),
    *(
        (
            "CropAndResize",
            [IMAGES, BOXES, WHICH, np.array(sizes, np.int32)],
            {"mode": mode, "extrapolation_value": 2.0},
            (3,),
            (),
        )
        for mode in ("bilinear", "nearest")
        for sizes in ((3, 4), (1, 7))
    ),
    ("ExpandDims", [IMAGES, np.array(-2, np.int32)], {}, (), [(1, None)]),
    *(("Inverse", [IMAGES[..., :m, :m].copy()], {}, (), ()) for m in (1, 2, 5)),
    *(
        (
            "MatMulBnb4",
            [
                RNG.standard_normal((2, 32)).astype(np.float32),
                RNG.integers(0, 256, 48).astype(np.uint8),
                np.linspace(0.5, 2, 6, dtype=np.float32),
            ],
            {"K": 32, "N": 3, "block_size": 16, "quant_type": table},
            (1, 2),
            (),
        )
        for table in (0, 1)
    ),
    (
        "MatMulInteger16",
        [WORDS.T.astype(np.int16), WORDS.astype(np.int16)],
        {},
        (),
        [(onnx.TensorProto.INT32, 2)],
    ),
    (
        "MaxpoolWithMask",
        [IMAGES, MASK],
        {"kernel_shape": [3, 2], "strides": [1, 2], "pads": [1, 0, 1, 1]},
        (),
        (),
    ),
    *(
        (
            "NGramRepeatBlock",
            [np.array([[1, 2, 3, 1, 2], [0, 0, 0, 0, 0]]), IMAGES[0, :2, 0].copy()],
            {"ngram_size": length},
            (),
            [(1, 2)],
        )
        for length in (1, 3, 8)
    ),
    ("UnfoldTensor", [IMAGES], {"dim": 2, "size": 3, "step": 2}, (), [(1, None)]),
)
MICROSOFT = [
    NodeCase(f"com.microsoft.{kind}", inputs, attributes, 17, constants, results=results)
    for kind, inputs, attributes, constants, results in ROWS
]


@pytest.mark.parametrize("case", [*CASES, *MICROSOFT], ids=case_name)
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
