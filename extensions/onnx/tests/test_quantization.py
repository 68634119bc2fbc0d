"""Quantised products of ONNX files, beside ONNX Runtime and integers written out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import TensorProto

from armpy.errors import ParserError

from .onnx_nodes import Array, NodeCase, assert_agree, case_name, run_armpy, run_ort
from .onnx_saturation import skip_where_onnx_runtime_saturates

INT32, INT8, UINT8, FLOAT = (
    *(TensorProto.INT32, TensorProto.INT8),
    *(TensorProto.UINT8, TensorProto.FLOAT),
)


def integers(seed: int, shape: tuple[int, ...], dtype: Any) -> Array:
    """Bytes over the whole range."""
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)


def quantized(
    kind: str,
    inputs: list[Array | None],
    result: int,
    constants: tuple[int, ...] = (),
    **attributes: Any,
) -> NodeCase:
    """A node with one output; all but the first input are constants if none are named."""
    constants = constants or tuple(range(1, len(inputs)))
    return NodeCase(kind, inputs, attributes, constants=constants, results=[(result, None)])


@pytest.mark.parametrize(
    ("sizes", "constants"),
    [(((), ()), (2, 3)), (((), ()), (1,)), (((4,), (5,)), (1,)), (((4,), (5,)), (4,))],
    ids=["constant points", "given points", "points of rows", "everything given"],
)
@pytest.mark.parametrize("dtypes", [(np.uint8, np.int8), (np.int8, np.int8), (np.uint8, np.uint8)])
def test_integer_products_take_zero_points_off_wherever_these_come_from(
    sizes: tuple[tuple[int, ...], ...], constants: tuple[int, ...], dtypes: tuple[type, type]
) -> None:
    a, b = integers(1, (2, 4, 7), dtypes[0]), integers(2, (7, 5), dtypes[1])
    a_point, b_point = (integers(3 + i, sizes[i], dtypes[i]) for i in range(2))
    wide = a.astype(np.int32) - a_point.astype(np.int32).reshape(-1, 1)
    expected = wide @ (b.astype(np.int32) - b_point)
    inputs: list[Array | None] = [a, b, a_point, b_point]
    (result,) = run_armpy(quantized("MatMulInteger", inputs, INT32, constants))
    assert result.dtype == np.int32
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("group", "size", "constants"), [(2, (), (1, 2, 3)), (4, (8,), (1, 2, 3)), (2, (8,), (1, 3))]
)
def test_integer_convolutions_pad_with_the_zero_point(
    group: int, size: tuple[int, ...], constants: tuple[int, ...]
) -> None:
    x, w = integers(1, (1, 4, 6, 5), np.uint8), integers(2, (8, 4 // group, 3, 3), np.uint8)
    w_point = integers(3, size, np.uint8)
    inputs: list[Array | None] = [x, w, np.array(77, np.uint8), w_point]
    padded = np.pad(x.astype(np.int64) - 77, ((0, 0), (0, 0), (1, 0), (2, 1)))
    filters = w.astype(np.int64) - w_point.reshape(-1, 1, 1, 1)
    views = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    parts = (
        np.einsum("nihwyx,oiyx->nohw", image, share)
        for image, share in zip(np.split(views, group, 1), np.split(filters, group, 0), strict=True)
    )
    attributes: dict[str, Any] = {"group": group, "pads": [1, 2, 0, 1]}
    (result,) = run_armpy(quantized("ConvInteger", inputs, INT32, constants, **attributes))
    np.testing.assert_array_equal(result, np.concatenate(list(parts), 1))


@pytest.mark.parametrize("is_real", [False, True])
@pytest.mark.parametrize("is_turned", [False, True])
def test_gemm_takes_zero_points_of_columns(is_turned: bool, is_real: bool) -> None:
    rng = np.random.default_rng(3)
    a, b = integers(1, (3, 8), np.uint8), integers(2, (8, 5), np.uint8)
    b_scale, b_point = rng.uniform(0.01, 0.1, 5).astype(np.float32), integers(5, (5,), np.uint8)
    c = rng.integers(-900, 900, 5).astype(np.int32)
    inputs: list[Array | None] = [a, np.array(0.02, np.float32), np.array(100, np.uint8)]
    inputs += [b.T.copy() if is_turned else b, b_scale, b_point, c]
    if not is_real:
        inputs += [np.array(0.7, np.float32), np.array(99, np.uint8)]
    attributes: dict[str, Any] = {"transB": int(is_turned), "alpha": 1.5}
    (result,) = run_armpy(
        quantized("com.microsoft.QGemm", inputs, FLOAT if is_real else UINT8, **attributes)
    )
    sums = (a.astype(int) - 100) @ (b.astype(int) - b_point) + c
    expected = sums * b_scale.astype(float) * 0.02 * 1.5
    if is_real:
        np.testing.assert_allclose(result, expected, rtol=1e-5)
    else:
        steps = np.clip(np.rint(expected / 0.7) + 99, 0, 255)
        assert abs(result.astype(int) - steps).max() <= 1


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_products_of_rows_and_columns_with_scales_of_their_own(dtype: type) -> None:
    a, b = integers(1, (3, 8), dtype), integers(2, (8, 4), np.uint8)
    rng = np.random.default_rng(3)
    a_scale, b_scale = (rng.uniform(0.01, 0.1, n).astype(np.float32) for n in (3, 4))
    a_point, b_point = integers(4, (3,), dtype), integers(5, (4,), np.uint8)
    scale: Array = np.array(0.7, np.float32)
    point: Array = np.array(9, dtype)
    inputs: list[Array | None] = [a, a_scale, a_point, b, b_scale, b_point, scale, point]
    left = (a - a_point.astype(float)[:, None]) * a_scale[:, None]
    right = (b - b_point.astype(float)) * b_scale
    limits = np.iinfo(dtype).min, np.iinfo(dtype).max
    expected = np.clip(np.rint(left @ right / np.float32(0.7)) + 9, *limits)
    (result,) = run_armpy(quantized("QLinearMatMul", inputs, UINT8 if dtype is np.uint8 else INT8))
    assert abs(result.astype(int) - expected).max() <= 1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", ["CpuRef", "NumbaAcc"])
@pytest.mark.parametrize(
    ("b_scale", "y_scale", "expected"),
    [
        (0.0, 1e-45, [3, 3]),
        (1e-45, -0.0, [-128, -128]),
        (1e-45, -1e-45, [-5, -8]),
        (-1e-45, 1e-38, [3, 3]),
        (np.inf, 0.0, [127, 127]),
        (np.inf, -0.5, [-128, -128]),
    ],
)
def test_constant_scales_without_a_usual_quotient_give_onnxs_answer(
    backend: str, b_scale: float, y_scale: float, expected: list[int]
) -> None:
    """Expected values are onnx.reference's; the sums are 8 and 11."""
    scales = [np.array(scale, np.float32) for scale in (1, b_scale, y_scale)]
    a, b = np.array([[2, 3]], np.int8), np.array([[1, 4], [2, 1]], np.int8)
    zero, three = np.array(0, np.int8), np.array(3, np.int8)
    inputs: list[Array | None] = [a, scales[0], zero, b, scales[1], zero, scales[2], three]
    case = quantized("QLinearMatMul", inputs, INT8)
    np.testing.assert_array_equal(run_armpy(case, [backend, "CpuRef"])[0], [expected])


@pytest.mark.parametrize("backend", ["CpuRef", "NumbaAcc"])
def test_products_with_dynamic_scales_are_those_of_onnx_runtime(backend: str) -> None:
    skip_where_onnx_runtime_saturates()
    rng = np.random.default_rng(0)
    x, c = (rng.normal(0, 1, shape).astype(np.float32) for shape in ((3, 16), 6))
    inputs: list[Array | None] = [x, integers(2, (16, 6), np.int8), np.array(0.02, np.float32)]
    inputs += [np.array(5, np.int8), c]
    case = quantized("com.microsoft.DynamicQuantizeMatMul", inputs, FLOAT)
    assert_agree(case, [backend, "CpuRef"])


def test_scales_of_blocks_that_do_not_fit_are_named_with_the_node() -> None:
    inputs: list[Array | None] = [np.zeros((2, 8), np.int8), np.ones((2, 3), np.float32)]
    inputs.append(np.zeros((2, 3), np.int8))
    with pytest.raises(ParserError, match=r"DequantizeLinear.*one element per block"):
        run_armpy(quantized("DequantizeLinear", inputs, FLOAT, axis=1, block_size=2))


def test_weights_of_another_type_than_bytes_are_refused() -> None:
    inputs: list[Array | None] = [np.zeros((2, 2), np.int8), np.zeros((2, 2), np.float32)]
    with pytest.raises(ParserError, match="MatMulInteger"):
        run_armpy(quantized("MatMulInteger", inputs, INT32))


def products_of_few_bits() -> Iterator[NodeCase]:
    depth, units = 80, 6
    for bits, block in ((4, 16), (4, 32), (8, 32)):
        rng, blocks = np.random.default_rng(bits), -(-depth // block)
        x = rng.normal(0, 1, (2, 3, depth)).astype(np.float32)
        packed = integers(1, (units, blocks, block * bits // 8), np.uint8)
        scales = rng.uniform(0.01, 0.1, units * blocks).astype(np.float32)
        sizes: dict[str, Any] = {"K": depth, "N": units, "bits": bits, "block_size": block}
        points = [None, integers(2, (units * -(-blocks * bits // 8),), np.uint8)]
        if bits == 4:  # ONNX Runtime takes floats for 4 bits only
            points.append(rng.uniform(0, 15, units * blocks).astype(np.float32))
        for point in points:
            inputs: list[Array | None] = [x, packed, scales]
            inputs += [] if point is None else [point]
            yield quantized("com.microsoft.MatMulNBits", inputs, FLOAT, **sizes)


@pytest.mark.parametrize("case", [*products_of_few_bits()], ids=case_name)
def test_weights_of_few_bits_in_blocks_are_those_of_onnx_runtime(case: NodeCase) -> None:
    np.testing.assert_allclose(run_armpy(case)[0], run_ort(case)[0], rtol=1e-3, atol=2e-3)


def test_inputs_of_8_bits_are_those_of_onnx_runtime() -> None:
    rng = np.random.default_rng(4)
    inputs: list[Array | None] = [
        rng.normal(0, 1, (1, 128)).astype(np.float32),
        integers(1, (9, 4, 16), np.uint8),
        rng.uniform(0.01, 0.1, 36).astype(np.float32),
        integers(2, (18,), np.uint8),
    ]
    sizes: dict[str, Any] = {"K": 128, "N": 9, "bits": 4, "block_size": 32}
    exact, coarse = (
        quantized("com.microsoft.MatMulNBits", inputs, FLOAT, accuracy_level=level, **sizes)
        for level in (0, 4)
    )
    (result,) = run_armpy(coarse)
    np.testing.assert_allclose(result, run_ort(coarse)[0], rtol=1e-4, atol=1e-3)
    assert np.abs(result - run_armpy(exact)[0]).max() > 1e-3
