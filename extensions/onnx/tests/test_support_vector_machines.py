"""Support vector machines, of the domain ai.onnx.ml, against ONNX Runtime."""

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
KERNELS = ["LINEAR", "POLY", "RBF", "SIGMOID"]
WORDS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"]
FEATURES = 5
ROWS = np.random.default_rng(7).normal(size=(60, FEATURES)).astype(np.float32)
CLASSIFIED = (TensorProto.INT64, TensorProto.FLOAT)
NAMED = (TensorProto.STRING, TensorProto.FLOAT)
Arrays = list[npt.NDArray[Any]]


def model_of(
    kind: str,
    rows: npt.NDArray[Any],
    outputs: Sequence[int],
    attributes: Mapping[str, Any],
    num_rows: int | None = len(ROWS),
) -> bytes:
    """A model of one node ``svm``."""
    shape = (num_rows, FEATURES)[-rows.ndim :]
    results = [f"y{number}" for number in range(len(outputs))]
    node = helper.make_node(kind, ["x"], results, "svm", domain=DOMAIN, **attributes)
    element_type = helper.np_dtype_to_tensor_dtype(rows.dtype)
    graph = helper.make_graph(
        [node],
        "one",
        [helper.make_tensor_value_info("x", element_type, shape)],
        [
            helper.make_tensor_value_info(name, t, None)
            for name, t in zip(results, outputs, strict=True)
        ],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return bytes(model.SerializeToString())


def check(
    kind: str,
    rows: npt.NDArray[Any],
    outputs: Sequence[int],
    backends: Sequence[str] = ("CpuRef",),
    **attributes: Any,
) -> Arrays:
    """Compare types, shapes and elements with ONNX Runtime, whose outputs are returned."""
    runtime = pytest.importorskip("onnxruntime")
    content = model_of(kind, rows, outputs, attributes)
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    expected: Arrays = session.run(None, {"x": rows})
    with armpy.load(content, backends=[*backends]) as model:
        actual = list(model.run({"x": rows}).values())
    for array, other in zip(actual, expected, strict=True):
        assert (array.dtype, array.shape) == (other.dtype, other.shape)
        if other.dtype.kind == "f":
            np.testing.assert_allclose(array, other, 1e-4, 1e-5)
        else:
            np.testing.assert_array_equal(array, other)
    return expected


def machine(num_classes: int, kernel: str, shares: bool = False) -> dict[str, Any]:
    """Attributes of a classifier with random support vectors, of which each class has several."""
    draw = np.random.default_rng(num_classes)
    sizes = [3 + number % 3 for number in range(num_classes)]
    count, pairs = sum(sizes), num_classes * (num_classes - 1) // 2

    def numbers(size: int) -> list[float]:
        return [float(number) for number in draw.normal(size=size).astype(np.float32)]

    attributes = {
        "kernel_type": kernel,
        "kernel_params": [0.2, 0.3, 3.0],
        "classlabels_ints": [10 + 3 * number for number in range(num_classes)],
        "vectors_per_class": sizes,
        "support_vectors": numbers(count * FEATURES),
        "coefficients": numbers((num_classes - 1) * count),
        "rho": numbers(pairs),
    }
    if shares:
        attributes["prob_a"] = (-np.abs(numbers(pairs)) - 0.5).tolist()
        attributes["prob_b"] = numbers(pairs)
    return attributes


@pytest.mark.sampled(7)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("num_classes", [2, 3, 6])
@pytest.mark.parametrize("shares", [False, True], ids=["scores", "probabilities"])
def test_classifiers_of_each_kernel(kernel: str, num_classes: int, shares: bool) -> None:
    labels, scores = check(
        "SVMClassifier", ROWS, CLASSIFIED, **machine(num_classes, kernel, shares)
    )
    assert len(set(labels.tolist())) > 1
    if shares:
        np.testing.assert_allclose(scores.sum(axis=1), 1, 1e-5)


@pytest.mark.parametrize("kind", ["SVMClassifier", "SVMRegressor"])
def test_scores_of_coefficients_that_cancel_each_other_keep_their_digits(kind: str) -> None:
    """Classes that lie close have many vectors with the largest coefficients of both signs."""
    count = 400
    vectors = np.random.default_rng(3).normal(size=(2 * count, FEATURES)).astype(np.float32)
    coefficients = np.repeat(np.array([100, -100], np.float32), count)
    distances = np.square(ROWS.astype(np.float64)[:, None] - vectors).sum(axis=2)
    expected = np.exp(-0.5 * distances) @ coefficients.astype(np.float64) + 0.25
    attributes: dict[str, Any] = {
        "kernel_type": "RBF",
        "kernel_params": [0.5, 0.0, 3.0],
        "support_vectors": vectors.ravel().tolist(),
        "coefficients": coefficients.tolist(),
        "rho": [0.25],
    }
    if kind == "SVMRegressor":
        outputs: tuple[int, ...] = (TensorProto.FLOAT,)
        attributes["n_supports"] = 2 * count
    else:
        outputs = CLASSIFIED
        attributes |= {"classlabels_ints": [0, 1], "vectors_per_class": [count, count]}
    with armpy.load(model_of(kind, ROWS, outputs, attributes), backends=["CpuRef"]) as model:
        scores = [*model.run({"x": ROWS}).values()][-1][:, 0]
    largest = np.abs(100 * np.exp(-0.5 * distances)).max()
    np.testing.assert_allclose(np.abs(scores), np.abs(expected), 1e-6, 1e-6 * largest)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("num_classes", [2, 4])
def test_transformed_probabilities(word: str, num_classes: int) -> None:
    attributes = machine(num_classes, "RBF", shares=True)
    check("SVMClassifier", ROWS, CLASSIFIED, post_transform=word, **attributes)


@pytest.mark.parametrize("word", WORDS)
def test_transformed_scores_of_pairs(word: str) -> None:
    attributes = machine(4, "SIGMOID")
    check("SVMClassifier", ROWS, CLASSIFIED, post_transform=word, **attributes)


@pytest.mark.parametrize("word", WORDS[:-1])
def test_transformed_scores_of_two_classes(word: str) -> None:
    attributes = machine(2, "RBF")
    check("SVMClassifier", ROWS, CLASSIFIED, post_transform=word, **attributes)


def test_the_probit_of_one_score_stands_beside_zero() -> None:
    # ONNX Runtime does not write the second column.
    runtime = pytest.importorskip("onnxruntime")
    content = model_of(
        "SVMClassifier", ROWS, CLASSIFIED, {**machine(2, "RBF"), "post_transform": "PROBIT"}
    )
    expected = runtime.InferenceSession(content).run(None, {"x": ROWS})
    with armpy.load(content, backends=["CpuRef"]) as model:
        labels, scores = model(ROWS)
    np.testing.assert_array_equal(labels, expected[0])
    np.testing.assert_allclose(scores[:, 0], expected[1][:, 0], 1e-4, 1e-5)
    np.testing.assert_array_equal(scores[:, 1], 0)


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("num_classes", [1, 2, 3])
@pytest.mark.parametrize("positive", [False, True], ids=["mixed", "positive"])
def test_classifiers_without_support_vectors(word: str, num_classes: int, positive: bool) -> None:
    numbers = np.random.default_rng(num_classes).normal(size=num_classes * FEATURES)
    check(
        "SVMClassifier",
        ROWS,
        CLASSIFIED,
        kernel_type="RBF",  # which does not count
        kernel_params=[0.5, 0.0, 3.0],
        classlabels_ints=[4, 2, 9][:num_classes],
        coefficients=(np.abs(numbers) if positive else numbers).tolist(),
        rho=[0.25] * num_classes,
        post_transform=word,
    )


def test_two_classes_without_support_vectors_whose_probabilities_do_not_count() -> None:
    check(
        "SVMClassifier",
        ROWS,
        CLASSIFIED,
        kernel_params=[0.0, 0.0, 0.0],
        classlabels_ints=[0, 1],
        coefficients=np.random.default_rng(2).normal(size=2 * FEATURES).tolist(),
        rho=[0.25],
        prob_a=[1.0],
        prob_b=[0.5],
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("num_classes", [2, 3])
@pytest.mark.parametrize("shares", [False, True], ids=["scores", "probabilities"])
def test_labels_that_are_strings(num_classes: int, shares: bool) -> None:
    attributes = machine(num_classes, "RBF", shares)
    del attributes["classlabels_ints"]
    names = ["no", "jä", "oui"][:num_classes]
    check("SVMClassifier", ROWS, NAMED, classlabels_strings=names, **attributes)


def test_the_number_of_rows_may_follow_from_the_call() -> None:
    runtime = pytest.importorskip("onnxruntime")
    attributes = machine(3, "RBF", shares=True)
    content = model_of("SVMClassifier", ROWS, CLASSIFIED, attributes, num_rows=None)
    session = runtime.InferenceSession(content)
    with armpy.load(content, backends=["CpuRef"]) as model:
        for count in (1, 7):
            labels, scores = model(ROWS[:count])
            expected = session.run(None, {"x": ROWS[:count]})
            np.testing.assert_array_equal(labels, expected[0])
            np.testing.assert_allclose(scores, expected[1], 1e-4, 1e-5)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.int32])
def test_classifiers_take_other_numbers(dtype: Any) -> None:
    rows = (ROWS * 2).astype(dtype)
    check("SVMClassifier", rows, CLASSIFIED, **machine(3, "RBF", shares=True))


def test_a_vector_is_one_row() -> None:
    check("SVMClassifier", ROWS[0], CLASSIFIED, **machine(3, "RBF", shares=True))


def test_certain_scores_have_probabilities_near_zero_and_one() -> None:
    attributes = machine(3, "LINEAR", shares=True)
    check("SVMClassifier", ROWS * 1000, CLASSIFIED, **attributes)


def test_points_that_are_close_and_far_from_zero_have_exact_distances() -> None:
    attributes = machine(3, "RBF")
    vectors = np.reshape(attributes["support_vectors"], (-1, FEATURES)) + 1000
    attributes["support_vectors"] = vectors.reshape(-1).tolist()
    check("SVMClassifier", ROWS + np.float32(1000), CLASSIFIED, **attributes)


@pytest.mark.sampled(7)
@pytest.mark.parametrize("kernel", KERNELS)
def test_numba_acc_gives_the_same(kernel: str) -> None:
    pytest.importorskip("numba")
    backends = ("NumbaAcc", "CpuRef")
    check("SVMClassifier", ROWS, CLASSIFIED, backends, **machine(3, kernel, shares=True))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("one_class", [0, 1])
def test_regressors(kernel: str, one_class: int) -> None:
    vectors = np.random.default_rng(4).normal(size=(4, FEATURES))
    check(
        "SVMRegressor",
        ROWS,
        [TensorProto.FLOAT],
        kernel_type=kernel,
        kernel_params=[0.3, 0.7, 2.0],
        support_vectors=vectors.reshape(-1).tolist(),
        coefficients=[0.5, -1.0, 2.0, 1.0],
        rho=[0.2],
        n_supports=4,
        one_class=one_class,
    )


@pytest.mark.parametrize("one_class", [0, 1])
def test_regressors_without_support_vectors(one_class: int) -> None:
    check(
        "SVMRegressor",
        ROWS,
        [TensorProto.FLOAT],
        kernel_type="RBF",  # which does not count
        kernel_params=[0.5, 0.0, 0.0],
        coefficients=[0.5, -1.0, 2.0, 1.0, 0.0],
        rho=[0.2],
        one_class=one_class,
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("coefficients", [1.0] * 3),
        ("support_vectors", [1.0] * 7),
        ("vectors_per_class", [3, 4]),
        ("vectors_per_class", [3, -4, 5]),
        ("rho", [0.5]),
        ("prob_a", [0.5]),
        ("prob_b", []),
        ("kernel_params", [0.5]),
        ("kernel_type", "ODD"),
        ("classlabels_ints", []),
        ("classlabels_ints", [1]),
    ],
)
def test_damaged_classifiers_are_refused(name: str, value: object) -> None:
    attributes = machine(3, "RBF", shares=True)
    if value == []:
        del attributes[name]
    else:
        attributes[name] = value
    content = model_of("SVMClassifier", ROWS, CLASSIFIED, attributes)
    about = "vectors_per_class" if value == [1] else name
    with pytest.raises(ParserError, match=f"SVMClassifier 'svm'.*'{about}'"):
        armpy.load(content, backends=["CpuRef"])


@pytest.mark.parametrize(
    ("name", "value"),
    [("coefficients", [1.0]), ("support_vectors", [1.0] * 7), ("rho", None), ("n_supports", 3)],
)
def test_damaged_regressors_are_refused(name: str, value: object) -> None:
    attributes: dict[str, Any] = {
        "kernel_type": "RBF",
        "kernel_params": [0.3, 0.7, 2.0],
        "support_vectors": [1.0] * (2 * FEATURES),
        "coefficients": [1.0, 2.0],
        "rho": [0.0],
        "n_supports": 2,
    }
    attributes.pop(name) if value is None else attributes.update({name: value})
    content = model_of("SVMRegressor", ROWS, [TensorProto.FLOAT], attributes)
    about = "support_vectors" if name == "n_supports" else name
    with pytest.raises(ParserError, match=f"SVMRegressor 'svm'.*'{about}'"):
        armpy.load(content, backends=["CpuRef"])
