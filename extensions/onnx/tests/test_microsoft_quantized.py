"""Quantised layers of ONNX Runtime's tools, held against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import TensorProto

import armpy
from armpy.errors import ParserError

from .onnx_nodes import Array, NodeCase, assert_agree, run_armpy, run_ort
from .onnx_saturation import skip_where_onnx_runtime_saturates

_RNG = np.random.default_rng(21)
_FLOAT, _INT32, _UINT8 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.UINT8


def _reals(*shape: int) -> Array:
    return _RNG.uniform(-1, 1, shape).astype(np.float32)


def _bytes(*shape: int, dtype: type = np.uint8) -> Array:
    limits = np.iinfo(dtype)
    return _RNG.integers(limits.min, limits.max + 1, shape).astype(dtype)


def _number(number: float) -> Array:
    return np.array(number, np.float32)


def _point(number: int, dtype: type = np.uint8) -> Array:
    return np.array(number, dtype)


def _case(
    kind: str,
    inputs: Sequence[Array | None],
    results: Sequence[tuple[int, int]],
    constants: Sequence[int] | None = None,
    **attributes: Any,
) -> NodeCase:
    """A node; without a choice, all but the first input are constants."""
    fixed = tuple(range(1, len(inputs)) if constants is None else constants)
    name, count = f"com.microsoft.{kind}", len(results)
    return NodeCase(name, inputs, attributes, constants=fixed, outputs=count, results=results)


def _attentions() -> Iterator[NodeCase]:
    batch, length, heads, width = 2, 5, 2, 8
    x, bias, scale = _bytes(batch, length, width), _reals(3 * width), _number(0.02)
    lengths = np.array([5, 3], np.int32)
    past = _reals(2, batch, heads, 3, width // heads)
    for dtype in (np.uint8, np.int8):
        weights = _bytes(width, 3 * width, dtype=dtype)
        middle = _point(120 if dtype is np.uint8 else 0, dtype)
        arrays: list[Array | None] = [x, weights, bias, scale, scale, lengths, _point(128), middle]
        result_types = [(_FLOAT, 3)]
        yield _case("QAttention", arrays, result_types, num_heads=heads)
        yield _case("QAttention", arrays[:5], result_types, num_heads=heads, unidirectional=1)
        scales = _RNG.uniform(0.01, 0.02, 3 * width).astype(np.float32)
        arrays_by_head: list[Array | None] = [
            *arrays[:4],
            scales,
            None,
            _point(128),
            np.full(3 * width, middle),
        ]
        yield _case("QAttention", arrays_by_head, result_types, num_heads=heads)
    results = [(_FLOAT, 3), (_FLOAT, 5)]
    arrays = [*arrays[:5], None, *arrays[6:], past]
    yield _case("QAttention", arrays, results, range(1, 8), num_heads=heads, unidirectional=1)


def _embeddings() -> Iterator[NodeCase]:
    ids, segments = (_RNG.integers(0, high, (2, 6)).astype(np.int32) for high in (20, 2))
    mask = (np.arange(6) < np.array([[6], [4]])).astype(np.int32)
    tables = [_bytes(20, 8), _bytes(10, 8), _bytes(2, 8), _bytes(8), _bytes(8)]
    scales = [_number(0.01 * number) for number in range(1, 6)]
    points = [_point(100 + number) for number in range(5)]
    results = [(_FLOAT, 3), (_INT32, 1)]
    arrays = [ids, segments, *tables, mask, *scales, *points]
    yield _case("QEmbedLayerNormalization", arrays, results, range(2, 18))
    without = [*scales[:2], None, *scales[3:], *points[:2], None, *points[3:]]
    plain = [ids, None, *tables[:2], None, *tables[3:], None, *without]
    yield _case("QEmbedLayerNormalization", plain, results, range(2, 18))


def _gathered() -> Iterator[NodeCase]:
    ids = np.array([[0, 5], [3, 3]], np.int64)
    result_types, three = [(_FLOAT, 3)], (0, 2, 3)
    scales = _RNG.uniform(0.1, 1, (6, 2)).astype(np.float32)
    name = "GatherBlockQuantized"
    sizes: dict[str, Any] = {"block_size": 16}
    yield _case(name, [_bytes(6, 16), ids, scales], result_types, three, bits=4, **sizes)
    yield _case(
        name, [_bytes(6, 16), ids, scales, _bytes(6, 1)], result_types, three, bits=4, **sizes
    )
    yield _case(name, [_bytes(6, 32), ids, scales], result_types, three, bits=8, **sizes)
    yield _case(
        name, [_bytes(6, 32), ids, scales, _bytes(6, 2)], result_types, three, bits=8, **sizes
    )


def _halves() -> Iterator[NodeCase]:
    """Scales of which many results lie halfway between two steps, and an odd zero point."""
    whole = [_number(0.25), _point(99)]
    pair = [_bytes(3, 4), _number(0.125), _point(3), _bytes(4), _number(0.25), _point(200), *whole]
    for kind in ("QLinearAdd", "QLinearMul"):
        yield _case(kind, pair, [(_UINT8, 2)], (1, 2, 4, 5, 6, 7))
    image = [_bytes(1, 2, 6, 6), _number(0.125), _point(3), *whole]
    yield _case("QLinearAveragePool", image, [(_UINT8, 4)], kernel_shape=[2, 2])
    yield _case("QLinearGlobalAveragePool", image, [(_UINT8, 4)], channels_last=0)
    yield _case("QLinearLeakyRelu", image, [(_UINT8, 4)], alpha=0.5)
    few = _RNG.integers(-4, 5, (6, 2)).astype(np.int8)
    factors = [_bytes(3, 6), _number(0.125), _point(100), few, _number(0.5), _point(0, np.int8)]
    for shape in (None, (2,), (1, 2), (3, 2), (3, 1), (1,), ()):
        addend = None if shape is None else _RNG.integers(-90, 90, shape).astype(np.int32)
        for number in (0.25, 0.1875):
            steps = [_number(number), _point(99)]
            yield _case("QGemm", [*factors, addend, *steps], [(_UINT8, 2)])
        yield _case("QGemm", [*factors, addend], [(_FLOAT, 2)])


def _others() -> Iterator[NodeCase]:
    sides = [_bytes(2, 1, 4), _number(0.1), _point(3), _bytes(3, 4), _number(0.2), _point(200)]
    inputs = [_RNG.integers(0, 2, (3, 4)).astype(bool), *sides, _number(0.15), _point(99)]
    yield _case("QLinearWhere", inputs, [(_UINT8, 3)], (2, 3, 5, 6, 7, 8))
    for activation, more in (
        ("Relu", {}),
        ("LeakyRelu", {"activation_alpha": 0.2}),
        ("Sigmoid", {}),
    ):
        factors = [_reals(3, 4), _reals(5, 4), _reals(5)]
        names: dict[str, Any] = {"activation": activation, "transB": 1, **more}
        yield _case("FusedGemm", factors, [(_FLOAT, 2)], **names)
    sides = [_bytes(3, 6), _number(0.03), _point(100), _bytes(6, 2), _number(0.2), _point(9)]
    for shape in ((2,), (1, 2), (3, 2), (3, 1), (1,), ()):
        addend = _RNG.integers(-9000, 9000, shape).astype(np.int32)
        yield _case("QGemm", [*sides, addend, _number(3.7), _point(99)], [(_UINT8, 2)])
        yield _case("QGemm", [*sides, addend], [(_FLOAT, 2)])
    order = _RNG.integers(0, 4, 64).astype(np.int32)
    scales = _RNG.uniform(0.1, 1, 20).astype(np.float32)
    arrays = [_reals(2, 64), _bytes(5, 4, 8), scales, None, order]
    sizes: dict[str, Any] = {"K": 64, "N": 5, "bits": 4, "block_size": 16}
    yield _case("MatMulNBits", arrays, [(_FLOAT, 2)], **sizes)


_CASES = [*_attentions(), *_embeddings(), *_gathered(), *_halves(), *_others()]


@pytest.mark.parametrize("number", range(len(_CASES)), ids=lambda n: f"{_CASES[n].kind}-{n}")
def test_quantised_layers_agree_with_onnx_runtime(number: int) -> None:
    if _CASES[number].kind == "com.microsoft.QAttention":
        skip_where_onnx_runtime_saturates()
    assert_agree(_CASES[number])


def test_rows_of_another_order_have_the_zero_points_of_their_blocks() -> None:
    # ONNX Runtime 1.31 takes 8 for all zero points where there is an order.
    order = _RNG.integers(0, 2, 32).astype(np.int32)
    x, packed, scales, points = _reals(2, 32), _bytes(3, 2, 8), _reals(3, 2), _bytes(3)
    numbers = np.stack([packed & 15, packed >> 4], -1).reshape(3, 32).astype(np.float32)
    point_pairs = np.stack([points & 15, points >> 4], -1).astype(np.float32)
    inputs = [x, packed, scales.reshape(-1), points, order]
    case = _case("MatMulNBits", inputs, [(_FLOAT, 2)], K=32, N=3, bits=4, block_size=16)
    expected = x @ ((numbers - point_pairs[:, order]) * scales[:, order]).T
    np.testing.assert_allclose(run_armpy(case)[0], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("per_channel", [False, True])
def test_recurrent_layers_of_bytes_are_near_those_of_onnx_runtime(
    dtype: type, per_channel: bool
) -> None:
    if dtype is np.int8:
        skip_where_onnx_runtime_saturates()
    length, batch, depth, units = 4, 2, 6, 5
    shape = (2, 4 * units) if per_channel else (2,)
    scales = [_RNG.uniform(0.003, 0.004, shape).astype(np.float32) for _ in range(2)]
    point: Array = np.full(shape, 0 if dtype is np.int8 else 128, dtype)
    weights = [_bytes(2, size, 4 * units, dtype=dtype) for size in (depth, units)]
    bias = _reals(2, 8 * units)
    arrays = [_reals(length, batch, depth), *weights, bias, None, None, None, None]
    case = _case(
        "DynamicQuantizeLSTM",
        [*arrays, scales[0], point, scales[1], point],
        [(_FLOAT, 4), (_FLOAT, 3), (_FLOAT, 3)],
        direction="bidirectional",
        hidden_size=units,
    )
    for own, wanted in zip(run_armpy(case), run_ort(case), strict=True):
        np.testing.assert_allclose(own, wanted, atol=0.02)  # steps of x are some 1/128


@pytest.mark.slow
@pytest.mark.parametrize("per_channel", [False, True])
def test_constant_weights_of_bytes_make_a_plain_lstm(per_channel: bool) -> None:
    """Known weights are constants of the LSTM, so that no layer of the model needs CpuRef."""
    depth, units = 256, 256  # larger than constants that the compiler folds
    shape = (1, 4 * units) if per_channel else (1,)
    scales = [_RNG.uniform(0.0003, 0.0004, shape).astype(np.float32) for _ in range(2)]
    points: list[Array] = [np.full(shape, point, np.uint8) for point in (120, 131)]
    weights = [_bytes(1, size, 4 * units) for size in (depth, units)]
    arrays = [
        _reals(4, 2, depth),
        *weights,
        *[None] * 5,
        scales[0],
        points[0],
        scales[1],
        points[1],
    ]
    constants = [number for number, array in enumerate(arrays) if number and array is not None]
    results = [(_FLOAT, 4)]
    cases = [
        _case("DynamicQuantizeLSTM", arrays, results, chosen, hidden_size=units)
        for chosen in (constants, [])
    ]
    known, computed = (run_armpy(case)[0] for case in cases)
    np.testing.assert_array_equal(known, computed)
    content = cases[0].model.SerializeToString()
    with armpy.load(content, backends=["NumbaAcc", "CpuRef"]) as model:
        np.testing.assert_allclose(model(arrays[0]), known, atol=1e-6)
        assert model.placement is not None
        assert {str(backend) for backend in model.placement.layers_by_backend} == {"NumbaAcc"}


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (
            _case("QAttention", [_reals(1, 2, 4), *[_bytes(4, 12)] * 4], [(_FLOAT, 3)]),
            "input 0 has the wrong type",
        ),
        (
            _case(
                "GatherBlockQuantized",
                [_bytes(4, 8), np.zeros((1, 1), np.int64), _reals(4, 1)],
                [(_FLOAT, 3)],
                block_size=0,
            ),
            "attribute 'block_size' is not positive",
        ),
        (
            _case(
                "MatMulNBits",
                [_reals(1, 32), _bytes(2, 2, 8), _reals(4), None, np.full(32, 2, np.int32)],
                [(_FLOAT, 2)],
                K=32,
                N=2,
                block_size=16,
            ),
            "a block index is out of range",
        ),
        (
            _case("QLinearAdd", [*[_reals(2), _number(1), None] * 2, _number(1)], [(_FLOAT, 1)]),
            "the output has the wrong type",
        ),
        (
            _case("FusedGemm", [_reals(2, 2)] * 2, [(_FLOAT, 2)], activation="LeakyRelu"),
            "the activation lacks parameters",
        ),
    ],
)
def test_wrong_operands_name_the_node(case: NodeCase, message: str) -> None:
    with pytest.raises(ParserError, match=f"com.microsoft.*{message}"):
        run_armpy(case)


def test_scales_that_overflow_give_no_warning() -> None:
    image = [_bytes(1, 2, 6, 6), _number(1e-45), _point(3), _number(3e38), _point(99)]
    case = _case("QLinearGlobalAveragePool", image, [(_UINT8, 4)], channels_last=0)
    np.testing.assert_array_equal(run_armpy(case)[0], 99)
