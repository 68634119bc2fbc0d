"""Support vector machines, of the domain ai.onnx.ml, against ONNX Runtime."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import TensorProto

import armpy
from armpy.errors import ParserError

from .onnx_nodes import NodeCase, assert_agree, case_name, run_armpy, run_ort, with_results

CLASSIFIER, REGRESSOR = "ai.onnx.ml.SVMClassifier", "ai.onnx.ml.SVMRegressor"
KERNELS = ["LINEAR", "POLY", "RBF", "SIGMOID"]
WORDS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"]
FEATURES = 5
ROWS = np.random.default_rng(7).normal(size=(60, FEATURES)).astype(np.float32)
CLASSIFIED = (TensorProto.INT64, TensorProto.FLOAT)
NAMED = (TensorProto.STRING, TensorProto.FLOAT)
RESULT = (TensorProto.FLOAT,)

classified = partial(with_results, CLASSIFIER, [ROWS], CLASSIFIED)


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


def classifiers() -> Iterator[NodeCase]:
    for kernel, num_classes in itertools.product(KERNELS, (2, 3, 6)):
        yield classified(**machine(num_classes, kernel))
    for num_classes, word in itertools.product((2, 4), WORDS):
        yield classified(post_transform=word, **machine(num_classes, "RBF", shares=True))
    for word in WORDS:
        yield classified(post_transform=word, **machine(4, "SIGMOID"))
        if word != "PROBIT":
            yield classified(post_transform=word, **machine(2, "RBF"))
    for dtype in (np.float64, np.int64, np.int32):
        rows = (ROWS * 2).astype(dtype)
        yield with_results(CLASSIFIER, [rows], CLASSIFIED, **machine(3, "RBF", shares=True))
    yield with_results(CLASSIFIER, [ROWS[0]], CLASSIFIED, **machine(3, "RBF", shares=True))
    for num_classes, shares in itertools.product((2, 3), (False, True)):
        attributes = machine(num_classes, "RBF", shares)
        del attributes["classlabels_ints"]
        names = ["no", "jä", "oui"][:num_classes]
        yield with_results(CLASSIFIER, [ROWS], NAMED, classlabels_strings=names, **attributes)


def without_vectors() -> Iterator[NodeCase]:
    for word, num_classes, is_positive in itertools.product(WORDS, (1, 2, 3), (False, True)):
        numbers = np.random.default_rng(num_classes).normal(size=num_classes * FEATURES)
        yield classified(
            kernel_type="RBF",  # which does not count
            kernel_params=[0.5, 0.0, 3.0],
            classlabels_ints=[4, 2, 9][:num_classes],
            coefficients=(np.abs(numbers) if is_positive else numbers).tolist(),
            rho=[0.25] * num_classes,
            post_transform=word,
        )
    yield classified(  # probabilities do not count
        kernel_params=[0.0, 0.0, 0.0],
        classlabels_ints=[0, 1],
        coefficients=np.random.default_rng(2).normal(size=2 * FEATURES).tolist(),
        rho=[0.25],
        prob_a=[1.0],
        prob_b=[0.5],
    )


def regressors() -> Iterator[NodeCase]:
    vectors = np.random.default_rng(4).normal(size=4 * FEATURES).tolist()
    for one_class, kernel in itertools.product((0, 1), KERNELS):
        attributes: dict[str, Any] = {"kernel_type": kernel, "rho": [0.2]}
        attributes["kernel_params"] = [0.3, 0.7, 2.0]
        with_vectors = {"support_vectors": vectors, "n_supports": 4, "one_class": one_class}
        coefficients = [0.5, -1.0, 2.0, 1.0]
        regressor = partial(with_results, REGRESSOR, [ROWS], RESULT)
        yield regressor(coefficients=coefficients, **with_vectors, **attributes)
        if kernel == "RBF":  # which does not count without vectors
            yield regressor(coefficients=[*coefficients, 0.0], one_class=one_class, **attributes)


def extreme_numbers() -> Iterator[NodeCase]:
    """Probabilities near 0 and 1, and points that are close and far from 0."""
    certain = machine(3, "LINEAR", shares=True)
    yield with_results(CLASSIFIER, [ROWS * 1000], CLASSIFIED, **certain)
    far = machine(3, "RBF")
    far["support_vectors"] = (np.array(far["support_vectors"]) + 1000).tolist()
    yield with_results(CLASSIFIER, [ROWS + np.float32(1000)], CLASSIFIED, **far)


@pytest.mark.parametrize(
    "case",
    [*classifiers(), *without_vectors(), *regressors(), *extreme_numbers()],
    ids=case_name,
)
def test_machines_agree_with_onnx_runtime(case: NodeCase) -> None:
    assert_agree(case)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", KERNELS)
def test_machines_agree_on_the_accelerator(kernel: str) -> None:
    assert_agree(classified(**machine(3, kernel, shares=True)), ("NumbaAcc", "CpuRef"))


def test_the_number_of_rows_may_follow_from_the_call() -> None:
    case = classified(**machine(3, "RBF", shares=True))
    model = case.model
    model.graph.input[0].type.tensor_type.shape.dim[0].Clear()
    with armpy.load(model.SerializeToString(), backends=["CpuRef"]) as loaded:
        for count in (1, 7):
            for result, expected in zip(loaded(ROWS[:count]), run_ort(case), strict=True):
                np.testing.assert_allclose(result, expected[:count], 1e-4, 1e-5)


@pytest.mark.parametrize("kind", [CLASSIFIER, REGRESSOR])
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
    if kind == REGRESSOR:
        outputs: tuple[int, ...] = RESULT
        attributes["n_supports"] = 2 * count
    else:
        outputs = CLASSIFIED
        attributes |= {"classlabels_ints": [0, 1], "vectors_per_class": [count, count]}
    scores = run_armpy(with_results(kind, [ROWS], outputs, **attributes))[-1][:, 0]
    largest = np.abs(100 * np.exp(-0.5 * distances)).max()
    np.testing.assert_allclose(np.abs(scores), np.abs(expected), 1e-6, 1e-6 * largest)


def test_the_probit_of_one_score_stands_beside_zero() -> None:
    case = classified(post_transform="PROBIT", **machine(2, "RBF"))
    expected = run_ort(case)  # which does not write the second column
    labels, scores = run_armpy(case)
    np.testing.assert_array_equal(labels, expected[0])
    np.testing.assert_allclose(scores[:, 0], expected[1][:, 0], 1e-4, 1e-5)
    np.testing.assert_array_equal(scores[:, 1], 0)


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
    about = "vectors_per_class" if value == [1] else name
    with pytest.raises(ParserError, match=f"SVMClassifier.*'{about}'"):
        run_armpy(classified(**attributes))


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
    about = "support_vectors" if name == "n_supports" else name
    with pytest.raises(ParserError, match=f"SVMRegressor.*'{about}'"):
        run_armpy(with_results(REGRESSOR, [ROWS], RESULT, **attributes))
