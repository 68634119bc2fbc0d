"""Classical models, of the domain ai.onnx.ml, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import TensorProto, helper

import armpy
from armpy.errors import ParserError

DOMAIN = "ai.onnx.ml"
Arrays = Sequence[npt.NDArray[Any]]
GENERATOR = np.random.default_rng(3)
ROWS = np.round(GENERATOR.normal(size=(40, 5)), 1).astype(np.float32)


def model_of(
    kind: str, inputs: Arrays, outputs: Sequence[int], version: int = 3, **attributes: Any
) -> bytes:
    """A model of one node."""
    names = [f"x{number}" for number in range(len(inputs))]
    results = [f"y{number}" for number in range(len(outputs))]
    node = helper.make_node(kind, names, results, domain=DOMAIN, **attributes)
    graph = helper.make_graph(
        [node],
        "one",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in zip(names, inputs, strict=True)
        ],
        [
            helper.make_tensor_value_info(name, t, None)
            for name, t in zip(results, outputs, strict=True)
        ],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, version)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return bytes(model.SerializeToString())


def check(
    kind: str, inputs: Arrays, outputs: Sequence[int], version: int = 3, **attributes: Any
) -> None:
    """Compare with ONNX Runtime: types, shapes, elements."""
    runtime = pytest.importorskip("onnxruntime")
    content = model_of(kind, inputs, outputs, version, **attributes)
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    feeds = {f"x{number}": array for number, array in enumerate(inputs)}
    expected = session.run(None, feeds)
    with armpy.load(content, backends=["CpuRef"]) as model:
        outputs_found = list(model.run(feeds).values())
    for actual, other in zip(outputs_found, expected, strict=True):
        assert (actual.dtype, actual.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(actual, other, 1e-4, 1e-5)


def trees(
    kind: str, ids: Sequence[int], amounts: Sequence[float] = (), seed: int = 0
) -> dict[str, Any]:
    """Attributes of three random trees of depth 3, whose leaves have weights of some targets."""
    draw = np.random.default_rng(seed)
    attributes: dict[str, list[Any]] = {}

    def add(**values: Any) -> None:
        for name, value in values.items():
            attributes.setdefault(name, []).append(value)

    modes = [f"BRANCH_{word}" for word in ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ")]
    for tree in range(3):
        for number in range(15):
            is_leaf = number >= 7
            add(
                nodes_treeids=tree,
                nodes_nodeids=number,
                nodes_featureids=int(draw.integers(5)),
                nodes_modes="LEAF" if is_leaf else modes[draw.integers(6)],
                nodes_values=float(draw.choice(ROWS.reshape(-1))),
                nodes_truenodeids=0 if is_leaf else 2 * number + 1,
                nodes_falsenodeids=0 if is_leaf else 2 * number + 2,
                nodes_missing_value_tracks_true=int(draw.integers(2)),
            )
            for target in ids if is_leaf else ():
                weight = float(draw.choice(amounts) if amounts else draw.normal())
                add(
                    **{
                        f"{kind}_treeids": tree,
                        f"{kind}_nodeids": number,
                        f"{kind}_ids": target,
                        f"{kind}_weights": weight,
                    }
                )
    return attributes


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_tree_regressors(aggregate: str) -> None:
    attributes = trees("target", (0, 1, 2))
    rows = ROWS.copy()
    rows[::7, 1] = np.nan
    check(
        "TreeEnsembleRegressor",
        [rows],
        [TensorProto.FLOAT],
        n_targets=3,
        aggregate_function=aggregate,
        **{**attributes, "base_values": [0.5, -1.0, 2.0]},
    )


@pytest.mark.parametrize("word", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
def test_tree_classifiers_of_several_classes(word: str) -> None:
    check(
        "TreeEnsembleClassifier",
        [ROWS],
        [TensorProto.INT64, TensorProto.FLOAT],
        classlabels_int64s=[7, 3, 5],
        post_transform=word,
        **trees("class", (0, 1, 2)),
    )


@pytest.mark.parametrize("word", ["NONE", "LOGISTIC"])
@pytest.mark.parametrize("amounts", [(), (0.1, 0.2, 0.3)], ids=["mixed", "shares"])
@pytest.mark.parametrize(("ids", "base"), [((0,), {}), ((0,), {"base_values": [0.25]}), ((1,), {})])
def test_tree_classifiers_of_two_classes(
    word: str, amounts: Sequence[float], ids: Sequence[int], base: Mapping[str, Any]
) -> None:
    check(
        "TreeEnsembleClassifier",
        [ROWS],
        [TensorProto.INT64, TensorProto.FLOAT],
        classlabels_int64s=[10, 20],
        post_transform=word,
        **trees("class", ids, amounts),
        **base,
    )


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.int32])
def test_trees_take_other_numbers(dtype: Any) -> None:
    check(
        "TreeEnsembleClassifier",
        [(ROWS * 3).astype(dtype)],
        [TensorProto.INT64, TensorProto.FLOAT],
        classlabels_int64s=[1, 2, 3],
        **trees("class", (0, 1, 2)),
    )


@pytest.mark.parametrize("word", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
def test_linear_models(word: str) -> None:
    numbers = GENERATOR.normal(size=15).tolist()
    check(
        "LinearRegressor",
        [ROWS],
        [TensorProto.FLOAT],
        coefficients=numbers,
        intercepts=numbers[:3],
        targets=3,
        post_transform=word,
    )
    check(
        "LinearClassifier",
        [ROWS],
        [TensorProto.INT64, TensorProto.FLOAT],
        coefficients=numbers,
        intercepts=numbers[:3],
        classlabels_ints=[2, 4, 9],
        post_transform=word,
    )


@pytest.mark.parametrize("word", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_a_linear_classifier_with_one_score_has_two_classes(word: str) -> None:
    check(
        "LinearClassifier",
        [ROWS],
        [TensorProto.INT64, TensorProto.FLOAT],
        coefficients=[1.0, -2.0, 0.5, 0.25, 1.5],
        intercepts=[0.1],
        classlabels_ints=[5, 6],
        post_transform=word,
    )


@pytest.mark.parametrize(
    ("kind", "inputs", "output", "attributes"),
    [
        ("Binarizer", [ROWS], TensorProto.FLOAT, {"threshold": 0.5}),
        ("Scaler", [ROWS], TensorProto.FLOAT, {"offset": [1.0, 2, 3, 4, 5], "scale": [0.5] * 5}),
        ("Scaler", [ROWS.astype(np.int64)], TensorProto.FLOAT, {"offset": [1.0], "scale": [2.0]}),
        ("Normalizer", [ROWS], TensorProto.FLOAT, {"norm": "MAX"}),
        ("Normalizer", [ROWS], TensorProto.FLOAT, {"norm": "L1"}),
        ("Normalizer", [ROWS], TensorProto.FLOAT, {"norm": "L2"}),
        (
            "Imputer",
            [np.where(ROWS > 0.5, np.nan, ROWS).astype(np.float32)],
            TensorProto.FLOAT,
            {"imputed_value_floats": [1.0, 2, 3, 4, 5], "replaced_value_float": float("nan")},
        ),
        (
            "Imputer",
            [ROWS.astype(np.int64)],
            TensorProto.INT64,
            {"imputed_value_int64s": [9], "replaced_value_int64": 1},
        ),
        (
            "FeatureVectorizer",
            [ROWS, ROWS[:, :2].copy()],
            TensorProto.FLOAT,
            {"inputdimensions": [5, 2]},
        ),
        ("ArrayFeatureExtractor", [ROWS, np.array([[3, 0]])], TensorProto.FLOAT, {}),
        (
            "OneHotEncoder",
            [np.array([3, 1, 7, 1])],
            TensorProto.FLOAT,
            {"cats_int64s": [1, 2, 3], "zeros": 1},
        ),
        (
            "LabelEncoder",
            [np.array([[3, 1], [9, 1]])],
            TensorProto.FLOAT,
            {"keys_int64s": [1, 3], "values_floats": [0.5, 1.5], "default_float": 7.0},
        ),
        (
            "LabelEncoder",
            [np.array([0.5, np.nan, 2], np.float32)],
            TensorProto.INT64,
            {"keys_floats": [0.5, float("nan")], "values_int64s": [4, 5], "default_int64": -3},
        ),
    ],
)
def test_features(kind: str, inputs: Arrays, output: int, attributes: Mapping[str, Any]) -> None:
    check(kind, inputs, [output], 4, **attributes)


def test_a_map_of_probabilities_is_the_tensor_of_its_values() -> None:
    labels = helper.make_node("LinearClassifier", ["x"], ["label", "scores"], domain=DOMAIN)
    labels.attribute.append(helper.make_attribute("coefficients", [1.0, -1.0]))
    labels.attribute.append(helper.make_attribute("classlabels_ints", [0, 1]))
    maps = helper.make_node("ZipMap", ["scores"], ["p"], domain=DOMAIN, classlabels_int64s=[0, 1])
    map_type = helper.make_map_type_proto(
        TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, [])
    )
    graph = helper.make_graph(
        [labels, maps],
        "zip",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 1])],
        [
            helper.make_tensor_value_info("label", TensorProto.INT64, None),
            helper.make_value_info("p", helper.make_sequence_type_proto(map_type)),
        ],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 3)]
    content = helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()
    with armpy.load(content, backends=["CpuRef"]) as model:
        outputs = model.run({"x": np.array([[1], [2]], np.float32)})
        named = model.metadata.outputs["p"]
    assert (named.labels, named.label_kind) == (("0", "1"), "axis")
    np.testing.assert_array_equal(outputs["p"], [[1, -1], [2, -2]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes_truenodeids": 99}, "a node that another one names does not exist"),
        ({"nodes_truenodeids": 0}, "the nodes are not trees"),
        ({"nodes_featureids": 5}, "a node's feature is out of range"),
        ({"nodes_modes": "BRANCH_ODD"}, "a node's mode is unknown"),
        ({"target_ids": 1}, "a leaf's target is out of range"),
        ({"target_nodeids": 1}, "is not a leaf"),
        ({"nodes_nodeids": 1}, "two nodes of a tree"),
    ],
)
def test_trees_that_are_none_are_refused(change: Mapping[str, Any], message: str) -> None:
    attributes = trees("target", (0,))
    for name, value in change.items():
        attributes[name][0] = value
    content = model_of(
        "TreeEnsembleRegressor", [ROWS], [TensorProto.FLOAT], n_targets=1, **attributes
    )
    with pytest.raises(ParserError, match=f"TreeEnsembleRegressor.*{message}"):
        armpy.load(content, backends=["CpuRef"])


def test_labels_that_are_strings_are_given_as_strings() -> None:
    content = model_of(
        "LinearClassifier",
        [ROWS],
        [TensorProto.STRING, TensorProto.FLOAT],
        coefficients=[*[1.0] * 5, *[-1.0] * 5],
        classlabels_strings=["a", "b"],
    )
    with armpy.load(content, backends=["CpuRef"]) as model:
        labels, scores = model(ROWS)
    assert labels.tolist() == [["a", "b"][number] for number in scores.argmax(axis=1)]
    assert set(labels) == {"a", "b"}


def test_of_two_classes_with_scores_the_better_one_is_the_label() -> None:
    attributes = trees("class", (0, 1), (0.1, 0.2, 0.3))
    content = model_of(
        "TreeEnsembleClassifier",
        [ROWS],
        [TensorProto.INT64, TensorProto.FLOAT],
        classlabels_int64s=[10, 20],
        **attributes,
    )
    with armpy.load(content, backends=["CpuRef"]) as model:
        labels, scores = model(ROWS)
    np.testing.assert_array_equal(labels, np.where(scores[:, 1] > scores[:, 0], 20, 10))
    assert len(set(labels.tolist())) == 2
