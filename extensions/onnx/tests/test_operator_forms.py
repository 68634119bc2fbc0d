"""Rare forms of operators that ONNX Runtime runs: attributes, ranks, numbers of outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import TensorProto, helper, numpy_helper

import armpy
from armpy.errors import LayerValidationError, ParserError

Arrays = Mapping[str, npt.NDArray[Any]]
BACKENDS = (["CpuRef"], ["NumbaAcc", "CpuRef"])
OPSETS = {"": 18, "ai.onnx.ml": 3, "com.microsoft": 1}
RNG = np.random.default_rng(5)


def model_of(
    kind: str,
    inputs: Arrays,
    constants: Arrays = MappingProxyType({}),
    *,
    order: Sequence[str] = (),
    outputs: Mapping[str, int] = MappingProxyType({"y": TensorProto.FLOAT}),
    domain: str = "",
    opset: int = 0,
    **attributes: Any,
) -> bytes:
    """A model of one node, whose inputs come in an order, or inputs before constants."""
    names = [*order] or [*inputs, *constants]
    node = helper.make_node(kind, names, [*outputs], domain=domain, **attributes)
    infos = [
        helper.make_tensor_value_info(
            name,
            TensorProto.STRING if a.dtype == object else helper.np_dtype_to_tensor_dtype(a.dtype),
            a.shape,
        )
        for name, a in inputs.items()
    ]
    results = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()]
    tensors = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    opsets = {**OPSETS, **({domain: opset} if opset else {})}
    model = helper.make_model(
        helper.make_graph([node], "one", infos, results, tensors),
        opset_imports=[helper.make_opsetid(*pair) for pair in opsets.items()],
        ir_version=8,
    )
    return bytes(model.SerializeToString())


def results_of(content: bytes, inputs: Arrays) -> list[Any]:
    """The outputs on CpuRef, once they are ONNX Runtime's."""
    results = list(armpy.load(content, backends=["CpuRef"]).run(inputs).values())
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    for actual, wanted in zip(results, session.run(None, dict(inputs)), strict=True):
        assert (actual.dtype, actual.shape) == (wanted.dtype, wanted.shape)
        if actual.dtype == object:
            assert actual.tolist() == wanted.tolist()
        else:
            np.testing.assert_allclose(actual, wanted, 1e-4, 1e-5)
    return results


# BatchNormalization


def _parameters(shape: tuple[int, ...]) -> dict[str, npt.NDArray[np.float32]]:
    """Factors, addends, means and variances."""
    return {
        name: np.abs(RNG.standard_normal(shape)).astype(np.float32) + np.float32(0.5)
        for name in ("scale", "bias", "mean", "variance")
    }


@pytest.mark.parametrize("opset", [7, 9, 13])
@pytest.mark.parametrize("shape", [(4, 2, 3), (5,)])
def test_five_outputs_of_batch_normalization_are_of_the_batch(
    opset: int, shape: tuple[int, ...]
) -> None:
    x = {"x": RNG.standard_normal(shape).astype(np.float32)}
    channels = (*shape, 1)[1]
    outputs = dict.fromkeys(["y", "m", "v", "sm", "sd"], TensorProto.FLOAT)
    held = _parameters((channels,))
    content = model_of("BatchNormalization", x, held, outputs=outputs, opset=opset, momentum=0.75)
    _, mean, variance, saved_mean, saved_inverse = results_of(content, x)
    flat = x["x"].reshape(shape[0], channels, -1)
    np.testing.assert_allclose(saved_mean, flat.mean(axis=(0, 2)), 1e-5, 1e-6)
    np.testing.assert_allclose(saved_inverse, 1 / np.sqrt(flat.var(axis=(0, 2)) + 1e-5), 1e-5)
    np.testing.assert_allclose(mean, 0.75 * held["mean"] + 0.25 * saved_mean, 1e-5)
    expected = 0.75 * held["variance"] + 0.25 * flat.var(axis=(0, 2))
    np.testing.assert_allclose(variance, expected, 1e-5)


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3)])
def test_batch_normalization_without_spatial_has_parameters_per_element(
    shape: tuple[int, ...],
) -> None:
    x = {"x": RNG.standard_normal(shape).astype(np.float32)}
    held = _parameters(shape[1:])
    (y,) = results_of(model_of("BatchNormalization", x, held, opset=8, spatial=0), x)
    expected = (x["x"] - held["mean"]) / np.sqrt(held["variance"] + 1e-5)
    np.testing.assert_allclose(y, expected * held["scale"] + held["bias"], 1e-4, 1e-5)


def test_batch_normalization_of_a_vector_has_one_channel() -> None:
    x = {"x": RNG.standard_normal(4).astype(np.float32)}
    results_of(model_of("BatchNormalization", x, _parameters((1,)), opset=15), x)
    refused = model_of("BatchNormalization", x, _parameters((2,)), opset=15)
    with pytest.raises(
        ParserError, match=r"not one element per channel. Expected \(1,\); got \(2,"
    ):
        armpy.load(refused)


# Pad


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "pads"),
    [((3, 2), (0, 2, 0, 0)), ((4,), (9, 5)), ((1, 3), (2, 7, 1, 0)), ((3, 4), (-1, 7, 1, 0))],
)
def test_reflection_goes_to_and_fro_where_it_is_longer_than_the_axis(
    shape: tuple[int, ...], pads: tuple[int, ...]
) -> None:
    x = {"x": np.arange(np.prod(shape), dtype=np.float32).reshape(shape)}
    held = {"pads": np.array(pads, np.int64)}
    widths = np.array(pads).reshape(2, -1).T
    cut = x["x"][tuple(slice(max(-before, 0), None) for before, _ in widths)]
    expected = np.pad(cut, np.maximum(widths, 0), "reflect")
    for backends in BACKENDS:  # ONNX Runtime refuses it
        model = armpy.load(model_of("Pad", x, held, mode="reflect"), backends=backends)
        np.testing.assert_array_equal(model.run(x)["y"], expected)


# ai.onnx.ml


@pytest.mark.parametrize("shape", [(), (1,), (2, 2)])
@pytest.mark.parametrize("keys", [np.array([1, 2]), np.array([1, np.nan])])
@pytest.mark.parametrize("values", [np.array([5, 6]), np.array([0.5, 6]), np.array(["a", "b"])])
def test_a_label_encoder_keeps_the_shape(
    shape: tuple[int, ...], keys: npt.NDArray[Any], values: npt.NDArray[Any]
) -> None:
    if keys.dtype.kind == "f" and values.dtype.kind == "i":
        pytest.skip("ONNX Runtime has no encoder of float64 to int64")
    x = {"x": np.resize([keys[1], keys[0], keys.dtype.type(9)], shape).astype(keys.dtype)}
    stored = values.astype(object) if values.dtype.kind == "U" else values
    kind = TensorProto.STRING if stored.dtype == object else None
    content = model_of(
        "LabelEncoder",
        x,
        domain="ai.onnx.ml",
        opset=4,
        outputs={"y": kind or helper.np_dtype_to_tensor_dtype(values.dtype)},
        keys_tensor=numpy_helper.from_array(keys),
        values_tensor=numpy_helper.from_array(stored),
    )
    (y,) = results_of(content, x)
    assert y.shape == shape


def test_the_first_of_equal_keys_counts() -> None:
    x = {"x": np.array(["a", "b", "c"], object)}
    content = model_of(
        "LabelEncoder",
        x,
        domain="ai.onnx.ml",
        outputs={"y": TensorProto.INT64},
        keys_strings=["a", "b", "a"],
        values_int64s=[5, 6, 7],
    )
    assert results_of(content, x)[0].tolist() == [5, 6, -1]


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 2, 3)])
def test_vectors_of_features_are_rows(shape: tuple[int, ...]) -> None:
    values = RNG.standard_normal(shape).astype(np.float32)
    x = {"x0": values, "x1": values}
    sizes: dict[str, Any] = {"inputdimensions": [3, 2]}
    results_of(model_of("FeatureVectorizer", x, domain="ai.onnx.ml", **sizes), x)


@pytest.mark.slow
@pytest.mark.parametrize("words", [False, True])
def test_an_element_that_is_no_category_is_an_error_without_zeros(words: bool) -> None:
    categories: dict[str, Any] = {"cats_strings": ["1", "2"]} if words else {"cats_int64s": [1, 2]}
    x = {"x": np.array([2, 1, 2])}
    if words:
        x = {"x": x["x"].astype("U").astype(object)}
    content = model_of("OneHotEncoder", x, domain="ai.onnx.ml", zeros=0, **categories)
    assert results_of(content, x)[0].tolist() == [[0, 1], [1, 0], [0, 1]]
    other = {"x": np.array([2, 1, 3])}
    if words:
        other = {"x": other["x"].astype("U").astype(object)}
    for backends in BACKENDS:
        model = armpy.load(content, backends=backends)
        with pytest.raises(LayerValidationError, match=r"OneHotEncoder.*an element is no category"):
            model.run(other)
        assert model.run(x)["y"].tolist() == [[0, 1], [1, 0], [0, 1]]


# com.microsoft


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_distances_between_rows(metric: str, dtype: type[np.floating[Any]]) -> None:
    first, other = RNG.standard_normal((4, 3)), RNG.standard_normal((2, 3))
    x = {"a": first.astype(dtype), "b": other.astype(dtype)}
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    outputs = {"y": kind}
    content = model_of("CDist", x, domain="com.microsoft", outputs=outputs, metric=metric)
    (y,) = results_of(content, x)
    squares = ((x["a"][:, None] - x["b"].astype(np.float64)) ** 2).sum(axis=2)
    np.testing.assert_allclose(y, squares if metric == "sqeuclidean" else np.sqrt(squares), 1e-6)


def test_the_distance_of_a_row_from_itself_is_small() -> None:
    x = {"a": (1000 + RNG.standard_normal((3, 2))).astype(np.float32)}
    content = model_of("CDist", x, order=["a", "a"], domain="com.microsoft", metric="euclidean")
    y = armpy.load(content, backends=["CpuRef"]).run(x)["y"]
    assert np.abs(np.diag(y)).max() < 1e-3
