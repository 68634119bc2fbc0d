"""Classical models, of the domain ai.onnx.ml, against ONNX Runtime."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper

import armpy
from armpy.errors import ParserError

from .onnx_nodes import Array, NodeCase, assert_agree, case_name, run_armpy, with_results

DOMAIN = "ai.onnx.ml"
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
GENERATOR = np.random.default_rng(3)
ROWS = np.round(GENERATOR.normal(size=(40, 5)), 1).astype(np.float32)


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


def tree_cases() -> Iterator[NodeCase]:
    rows = ROWS.copy()
    rows[::7, 1] = np.nan
    regressor = partial(with_results, f"{DOMAIN}.TreeEnsembleRegressor", [rows], [FLOAT], 3)
    attributes = trees("target", (0, 1, 2))
    for aggregate in ("SUM", "AVERAGE", "MIN", "MAX"):
        aggregated = {"aggregate_function": aggregate, "base_values": [0.5, -1.0, 2.0]}
        yield regressor(n_targets=3, **aggregated, **attributes)
    kind, results = f"{DOMAIN}.TreeEnsembleClassifier", [INT64, FLOAT]
    classifier = partial(with_results, kind, [ROWS], results, 3)
    attributes = trees("class", (0, 1, 2))
    for word in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"):
        yield classifier(post_transform=word, classlabels_int64s=[7, 3, 5], **attributes)
    for dtype in (np.float64, np.int64, np.int32):
        numbers = [(ROWS * 3).astype(dtype)]
        yield with_results(kind, numbers, results, 3, classlabels_int64s=[1, 2, 3], **attributes)
    for word, amounts, (ids, base) in itertools.product(
        ("NONE", "LOGISTIC"),
        ((), (0.1, 0.2, 0.3)),
        (((0,), {}), ((0,), {"base_values": [0.25]}), ((1,), {})),
    ):
        one_score = trees("class", ids, amounts)
        yield classifier(post_transform=word, classlabels_int64s=[10, 20], **one_score, **base)


def linear_cases() -> Iterator[NodeCase]:
    numbers = GENERATOR.normal(size=15).tolist()
    three: dict[str, Any] = {"coefficients": numbers, "intercepts": numbers[:3]}
    one: dict[str, Any] = {"coefficients": [1.0, -2.0, 0.5, 0.25, 1.5], "intercepts": [0.1]}
    regressor = partial(with_results, f"{DOMAIN}.LinearRegressor", [ROWS], [FLOAT], 3)
    classifier = partial(with_results, f"{DOMAIN}.LinearClassifier", [ROWS], [INT64, FLOAT], 3)
    for word in ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"):
        yield regressor(post_transform=word, targets=3, **three)
        yield classifier(post_transform=word, classlabels_ints=[2, 4, 9], **three)
        if word != "SOFTMAX_ZERO":
            yield classifier(post_transform=word, classlabels_ints=[5, 6], **one)


def feature_cases() -> Iterator[NodeCase]:
    rows: Sequence[tuple[str, Sequence[Array | None], int, dict[str, Any]]] = (
        ("Scaler", [ROWS], FLOAT, {"offset": [1.0, 2, 3, 4, 5], "scale": [0.5] * 5}),
        ("Scaler", [ROWS.astype(np.int64)], FLOAT, {"offset": [1.0], "scale": [2.0]}),
        ("Normalizer", [ROWS], FLOAT, {"norm": "MAX"}),
        ("Normalizer", [ROWS], FLOAT, {"norm": "L1"}),
        ("Normalizer", [ROWS], FLOAT, {"norm": "L2"}),
        (
            "Imputer",
            [np.where(ROWS > 0.5, np.nan, ROWS).astype(np.float32)],
            FLOAT,
            {"imputed_value_floats": [1.0, 2, 3, 4, 5], "replaced_value_float": float("nan")},
        ),
        (
            "Imputer",
            [ROWS.astype(np.int64)],
            INT64,
            {"imputed_value_int64s": [9], "replaced_value_int64": 1},
        ),
        ("ArrayFeatureExtractor", [ROWS, np.array([[3, 0]])], FLOAT, {}),
        ("OneHotEncoder", [np.array([3, 1, 7, 1])], FLOAT, {"cats_int64s": [1, 2, 3], "zeros": 1}),
        *(
            ("FeatureVectorizer", [vectors, vectors], FLOAT, {"inputdimensions": [3, 2]})
            for vectors in (ROWS[0, :3].copy(), ROWS[:, :3].copy(), ROWS[:4, :3].reshape(2, 2, 3))
        ),
        (
            "LabelEncoder",
            [np.array([[3, 1], [9, 1]])],
            FLOAT,
            {"keys_int64s": [1, 3], "values_floats": [0.5, 1.5], "default_float": 7.0},
        ),
        (
            "LabelEncoder",
            [np.array([0.5, np.nan, 2], np.float32)],
            INT64,
            {"keys_floats": [0.5, float("nan")], "values_int64s": [4, 5], "default_int64": -3},
        ),
    )
    for kind, inputs, output, attributes in rows:
        yield with_results(f"{DOMAIN}.{kind}", inputs, [output], 4, **attributes)


@pytest.mark.parametrize("case", [*tree_cases(), *linear_cases(), *feature_cases()], ids=case_name)
def test_models_agree_with_onnx_runtime(case: NodeCase) -> None:
    assert_agree(case)


def test_a_map_of_probabilities_is_the_tensor_of_its_values() -> None:
    labels = helper.make_node("LinearClassifier", ["x"], ["label", "scores"], domain=DOMAIN)
    labels.attribute.append(helper.make_attribute("coefficients", [1.0, -1.0]))
    labels.attribute.append(helper.make_attribute("classlabels_ints", [0, 1]))
    maps = helper.make_node("ZipMap", ["scores"], ["p"], domain=DOMAIN, classlabels_int64s=[0, 1])
    map_type = helper.make_map_type_proto(INT64, helper.make_tensor_type_proto(FLOAT, []))
    graph = helper.make_graph(
        [labels, maps],
        "zip",
        [helper.make_tensor_value_info("x", FLOAT, [2, 1])],
        [
            helper.make_tensor_value_info("label", INT64, None),
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
        ({"nodes_featureids": None}, "'nodes_featureids' has the wrong length"),
    ],
)
def test_trees_that_are_none_are_refused(change: Mapping[str, Any], message: str) -> None:
    attributes = trees("target", (0,))
    for name, value in change.items():
        attributes[name][0] = value
        if value is None:
            del attributes[name][0]
    kind = f"{DOMAIN}.TreeEnsembleRegressor"
    case = with_results(kind, [ROWS], [FLOAT], 3, n_targets=1, **attributes)
    with pytest.raises(ParserError, match=f"TreeEnsembleRegressor.*{message}"):
        run_armpy(case)


def test_of_two_classes_with_scores_the_better_one_is_the_label() -> None:
    attributes = trees("class", (0, 1), (0.1, 0.2, 0.3))
    kind = f"{DOMAIN}.TreeEnsembleClassifier"
    labels, scores = run_armpy(
        with_results(kind, [ROWS], [INT64, FLOAT], 3, classlabels_int64s=[10, 20], **attributes)
    )
    np.testing.assert_array_equal(labels, np.where(scores[:, 1] > scores[:, 0], 20, 10))
    assert len(set(labels.tolist())) == 2
