"""Forms of operators that ONNX's own suite does not have, against ONNX Runtime.

Older operator sets, rare attributes, ranks and numbers of outputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import TensorProto

import armpy
from armpy.errors import LayerValidationError, ParserError

from .onnx_nodes import Array, NodeCase, assert_agree, case_name, run_armpy, with_results

BACKENDS = (["CpuRef"], ["NumbaAcc", "CpuRef"])
RNG = np.random.default_rng(5)
X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
IMAGE = np.arange(1 * 8 * 2 * 3, dtype=np.float32).reshape(1, 8, 2, 3)
ONES = X[:, :1].copy()
FLOAT = TensorProto.FLOAT


def ints(*numbers: int) -> Array:
    """A vector of int64."""
    return np.array(numbers, np.int64)


def number(value: float) -> Array:
    """A scalar of float32."""
    return np.array(value, np.float32)


REDUCTIONS = (
    *("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"),
    *("ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"),
)

MOVEMENTS: Sequence[tuple[str, int, Mapping[str, Any], Sequence[Array | None]]] = (
    ("Reshape", 7, {}, [X, ints(0, -1)]),
    ("Reshape", 13, {}, [X[:, :0], ints(0, 0, 7)]),
    ("Reshape", 13, {}, [X[:, :0], ints(2, -1, 4)]),
    ("Flatten", 7, {"axis": 2}, [X]),
    ("Flatten", 13, {"axis": -1}, [X]),
    ("Squeeze", 7, {"axes": [1]}, [ONES]),
    ("Squeeze", 11, {}, [ONES]),
    ("Unsqueeze", 7, {"axes": [0, 3]}, [X]),
    ("Unsqueeze", 11, {"axes": [-1, 0]}, [X]),
    ("Tile", 7, {}, [X, ints(1, 2, 3)]),
    ("Concat", 11, {"axis": -2}, [X, ONES]),
    ("Split", 7, {"axis": 2}, [X]),
    ("Split", 7, {"axis": 2, "split": [1, 3]}, [X]),
    ("Split", 11, {"axis": -1}, [X]),
    ("Split", 13, {"axis": 1}, [X, ints(1, 2)]),
    ("Slice", 7, {"starts": [1, -3], "ends": [2, -1], "axes": [1, 2]}, [X]),
    ("Slice", 9, {"starts": [0, 1], "ends": [1, 100]}, [X]),
    ("Slice", 10, {}, [X, ints(-1), ints(-100), ints(2), ints(-2)]),
    ("Slice", 13, {}, [X, ints(1, 0), ints(2**62, 9), ints(-1, 0)]),
    ("Slice", 13, {}, [X, ints(3), ints(-(2**63)), ints(2), ints(-1)]),
    ("Pad", 7, {"pads": [0, 1, 2, 1, 0, -1], "value": 2.5}, [X]),
    ("Pad", 7, {"pads": [0, 1, 2, 0, 0, 3], "mode": "reflect"}, [X]),
    ("Pad", 7, {"pads": [1, 1, 5, 0, 0, 3], "mode": "edge"}, [X]),
    ("Pad", 11, {}, [X, ints(0, 0, -2, 0, 1, 1), number(-1)]),
    ("Pad", 18, {"mode": "edge"}, [X, ints(2, 1), None, ints(-1)]),
    ("Pad", 19, {"mode": "wrap"}, [X, ints(2, 4), None, ints(2)]),
    ("Gather", 11, {"axis": -1}, [X, ints(-1, -4)]),
    ("GatherND", 11, {}, [X, np.array([[1, -1], [0, 2]])]),
    ("Scatter", 9, {"axis": 1}, [X, np.array([[[2], [0]]]), X[:1, :2, :1] + 5]),
    ("ScatterND", 11, {}, [X, np.array([[1], [0]]), X[::-1].copy()]),
    ("ConstantOfShape", 9, {}, [ints(2, 3)]),
    ("Range", 11, {}, [number(3), number(-2), number(-0.5)]),
    ("OneHot", 9, {"axis": 0}, [ints(1, -1, 7), ints(3), X[0, 0, :2]]),
    ("TopK", 7, {"k": 2, "axis": 1}, [X]),
    ("TopK", 10, {"axis": 0}, [X, ints(1)]),
    ("CumSum", 11, {"exclusive": 1, "reverse": 1}, [X, np.array(-2, np.int32)]),
    ("Compress", 9, {"axis": 1}, [X, np.array([True, False, True])]),
    ("DepthToSpace", 7, {"blocksize": 2}, [IMAGE]),
    ("Hardmax", 7, {}, [X]),
    ("Hardmax", 11, {"axis": -1}, [X]),
    ("ArgMin", 12, {"axis": -1, "select_last_index": 1}, [np.round(X)]),
    ("Unique", 11, {"sorted": 0}, [np.round(X)]),
    *((kind, 7, {"axes": [0, 2], "keepdims": 0}, [X]) for kind in REDUCTIONS),
    *((kind, 11, {"axes": [-1]}, [X]) for kind in REDUCTIONS),
    *((kind, 18, {"keepdims": 0}, [X, ints(1, -1)]) for kind in REDUCTIONS),
)
"""Operator, version of the operator set, attributes, inputs of which all but one are constants."""


def movements() -> Iterator[NodeCase]:
    for kind, version, attributes, inputs in MOVEMENTS:
        outputs = {"Split": 2, "TopK": 2, "Unique": 4}.get(kind, 1)
        constants = tuple(range(1, len(inputs)))
        yield NodeCase(kind, inputs, attributes, version, constants, outputs)


def batch_parameters(shape: tuple[int, ...]) -> list[Array]:
    """Factors, addends, means and variances."""
    return [(np.abs(RNG.standard_normal(shape)) + 0.5).astype(np.float32) for _ in range(4)]


def batch_normalizations() -> Iterator[NodeCase]:
    kind = "BatchNormalization"
    for shape in ((4, 2, 3), (5,)):  # of a batch, with its statistics; a vector is one channel
        inputs = [RNG.standard_normal(shape).astype(np.float32)]
        inputs += batch_parameters(((*shape, 1)[1],))
        for opset in (7, 9, 13):
            yield NodeCase(kind, inputs, {"momentum": 0.75}, opset, (1, 2, 3, 4), 5)
    for own_shape in ((2, 3, 4), (2, 3)):  # with parameters of each element
        inputs = [
            RNG.standard_normal(own_shape).astype(np.float32),
            *batch_parameters(own_shape[1:]),
        ]
        yield NodeCase(kind, inputs, {"spatial": 0}, 8, (1, 2, 3, 4))
    vector = RNG.standard_normal(4).astype(np.float32)
    yield NodeCase(kind, [vector, *batch_parameters((1,))], {}, 15, (1, 2, 3, 4))


def elementwise() -> Iterator[NodeCase]:
    for bounds in ({}, {"min": -0.5}, {"max": 0.25}, {"min": -0.5, "max": 0.25}):
        yield NodeCase("Clip", [X], bounds, 6)
    yield NodeCase("Mean", [X, X[0], X[0, 0]])
    yield NodeCase("Shrink", [(8 * X).astype(np.int32)], {"lambd": 1.5, "bias": 1.0})
    yield NodeCase("com.microsoft.Gelu", [X])
    yield NodeCase("com.microsoft.QuickGelu", [X])
    yield NodeCase("com.microsoft.QuickGelu", [X], {"alpha": 0.7})


def distances() -> Iterator[NodeCase]:
    for metric, dtype in (("euclidean", np.float32), ("sqeuclidean", np.float64)):
        rows = [RNG.standard_normal((count, 3)).astype(dtype) for count in (4, 2)]
        yield NodeCase("com.microsoft.CDist", rows, {"metric": metric})


@pytest.mark.parametrize(
    "case", [*movements(), *batch_normalizations(), *elementwise(), *distances()], ids=case_name
)
def test_forms_agree_with_onnx_runtime(case: NodeCase) -> None:
    assert_agree(case)


REFUSED: Sequence[tuple[NodeCase, str]] = (
    (NodeCase("GridSample", [X, X]), "image or grid has the wrong rank. Expected rank 4 or 5"),
    (
        NodeCase("AffineGrid", [X[:1], ints(1, 1, 4)], constants=(1,)),
        r"matrices or size have the wrong shape.*got \(1, 3, 4\) and",
    ),
    (
        NodeCase(
            "MaxRoiPool",
            [IMAGE, np.zeros((1, 5), np.float32)],
            {"pooled_shape": [1, 1], "spatial_scale": 0.0},
        ),
        "regions of the input cannot be found.*'spatial_scale' above 0",
    ),
    (NodeCase("ConvTranspose", [IMAGE, X]), "weights have the wrong rank. Expected rank 4"),
    (
        NodeCase("DepthToSpace", [IMAGE], {"blocksize": 2, "mode": "XYZ"}),
        "'mode' has an unknown value. Expected DCR or CRD; got XYZ",
    ),
    (NodeCase("Gemm", [X, X[0]]), "a factor is not a matrix. Expected rank 2"),
    (
        NodeCase("RNN", [X, X, X[0]], {"hidden_size": 4}, outputs=2),
        "input 2 has the wrong rank. Expected 3",
    ),
    (
        NodeCase("RotaryEmbedding", [X[None], *[X[0, :, :1]] * 2], {"rotary_embedding_dim": 3}, 23),
        "the number of features to rotate is odd, 0 or too large",
    ),
    (NodeCase("LayerNormalization", [number(1), number(1)]), "a single number cannot be norm"),
    (
        NodeCase("Reshape", [X[:, :0], ints(0, 0, -1)], constants=(1,)),
        "the size that is left out is not known",
    ),
    (
        NodeCase("CausalConvWithState", [IMAGE, X], {}, 27, outputs=2),
        "the input has the wrong rank",
    ),
    (
        NodeCase("CausalConvWithState", [X, X], {}, 27, outputs=2),
        r"the weights have the wrong shape. Expected \(3, 1, k\); got \(2, 3, 4\)",
    ),
    (NodeCase("Where", [X > 0, None, X]), "input 1 is missing"),
    (
        NodeCase("SoftmaxCrossEntropyLoss", [X, None]),
        r"the number of operands is wrong. Expected 2 to 3 tensors; got 2, without \[1\]",
    ),
)


@pytest.mark.parametrize(("case", "message"), REFUSED, ids=lambda value: getattr(value, "kind", ""))
def test_operands_that_do_not_fit_are_refused(case: NodeCase, message: str) -> None:
    with pytest.raises(armpy.ArmpyError, match=f"{case.kind}.*{message}"):
        run_armpy(case)


def test_parameters_of_a_vector_are_one_channel_s() -> None:
    inputs = [RNG.standard_normal(4).astype(np.float32), *batch_parameters((2,))]
    message = r"not one element per channel. Expected \(1,\); got \(2,"
    with pytest.raises(ParserError, match=message):
        run_armpy(NodeCase("BatchNormalization", inputs, {}, 15, (1, 2, 3, 4)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "pads"),
    [((3, 2), (0, 2, 0, 0)), ((4,), (9, 5)), ((1, 3), (2, 7, 1, 0)), ((3, 4), (-1, 7, 1, 0))],
)
def test_reflection_goes_to_and_fro_where_it_is_longer_than_the_axis(
    shape: tuple[int, ...], pads: tuple[int, ...]
) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    widths = np.array(pads).reshape(2, -1).T
    cut = x[tuple(slice(max(-before, 0), None) for before, _ in widths)]
    expected = np.pad(cut, np.maximum(widths, 0), "reflect")
    case = NodeCase("Pad", [x, ints(*pads)], {"mode": "reflect"}, 18, (1,))
    for backends in BACKENDS:  # ONNX Runtime refuses it
        np.testing.assert_array_equal(run_armpy(case, backends)[0], expected)


@pytest.mark.slow
@pytest.mark.parametrize("words", [False, True])
def test_an_element_that_is_no_category_is_an_error_without_zeros(words: bool) -> None:
    categories: dict[str, Any] = {"cats_strings": ["1", "2"]} if words else {"cats_int64s": [1, 2]}
    known, unknown = np.array([2, 1, 2]), np.array([2, 1, 3])
    if words:
        known, unknown = (array.astype("U").astype(object) for array in (known, unknown))
    case = with_results("ai.onnx.ml.OneHotEncoder", [known], [FLOAT], zeros=0, **categories)
    for backends in BACKENDS:
        model = armpy.load(case.model.SerializeToString(), backends=backends)
        with pytest.raises(LayerValidationError, match=r"OneHotEncoder.*an element is no category"):
            model(unknown)
        assert np.asarray(model(known)).tolist() == [[0, 1], [1, 0], [0, 1]]


def test_the_distance_of_a_row_from_itself_is_small() -> None:
    rows = (1000 + RNG.standard_normal((3, 2))).astype(np.float32)
    case = NodeCase("com.microsoft.CDist", [rows, rows], {"metric": "euclidean"})
    assert np.abs(np.diag(run_armpy(case)[0])).max() < 1e-3
