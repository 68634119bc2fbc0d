"""Quantised products of ONNX files, beside ONNX Runtime and integers written out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

pytest.importorskip("onnx")

import onnx
from onnx import TensorProto, helper, numpy_helper

import armpy
from armpy.errors import ParserError

from .onnx_saturation import skip_where_onnx_runtime_saturates

Array = npt.NDArray[Any]  # Any: every element type occurs

MICROSOFT = "com.microsoft"


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Array],
    outputs: Mapping[str, int],
    constants: Mapping[str, Array],
) -> bytes:
    """A file of some nodes; an output has the first input's rank, a scale none."""
    rank, ranks = next(iter(inputs.values())).ndim, {"scale": 0, "point": 0}
    graph = helper.make_graph(
        nodes,
        "graph",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in inputs.items()
        ],
        [
            helper.make_tensor_value_info(name, kind, [None] * ranks.get(name, rank))
            for name, kind in outputs.items()
        ],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    sets = [helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=10)
    return bytes(model.SerializeToString())


def run(
    node: onnx.NodeProto,
    inputs: Mapping[str, Array],
    kind: int,
    constants: Mapping[str, Array],
    backend: str = "CpuRef",
) -> Array:
    """The output of a file of one node."""
    file = model_of([node], inputs, dict.fromkeys(node.output, kind), constants)
    model = armpy.load(file, front_end="onnx", backends=[backend, "CpuRef"])
    return np.asarray(model.run(dict(inputs))[node.output[0]])


def peer(
    node: onnx.NodeProto, inputs: Mapping[str, Array], kind: int, constants: Mapping[str, Array]
) -> Array:
    """What ONNX Runtime gives."""
    runtime = pytest.importorskip("onnxruntime")
    file = model_of([node], inputs, dict.fromkeys(node.output, kind), constants)
    session = runtime.InferenceSession(file, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, dict(inputs))[0])


def integers(seed: int, shape: tuple[int, ...], dtype: Any) -> Array:
    """Bytes over the whole range."""
    limits = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape).astype(dtype)


@pytest.mark.parametrize("points", ["constant", "given", "per-row-and-column"])
@pytest.mark.parametrize("dtypes", [(np.uint8, np.int8), (np.int8, np.int8), (np.uint8, np.uint8)])
@pytest.mark.parametrize("has_weights", [False, True])
def test_integer_products_take_zero_points_off_wherever_these_come_from(
    points: str, dtypes: tuple[type, type], has_weights: bool
) -> None:
    a, b = integers(1, (2, 4, 7), dtypes[0]), integers(2, (7, 5), dtypes[1])
    sizes = ((4,), (5,)) if points == "per-row-and-column" else ((), ())
    a_point, b_point = (integers(3 + i, sizes[i], dtypes[i]) for i in range(2))
    inputs: dict[str, Array] = {"a": a}
    constants: dict[str, Array] = {}
    (constants if has_weights else inputs)["b"] = b
    (constants if points == "constant" else inputs).update(a_point=a_point, b_point=b_point)
    node = helper.make_node("MatMulInteger", ["a", "b", "a_point", "b_point"], ["y"])
    wide = a.astype(np.int32) - a_point.astype(np.int32).reshape(-1, 1)
    expected = wide @ (b.astype(np.int32) - b_point)
    got = run(node, inputs, TensorProto.INT32, constants)
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("group", [2, 4])
@pytest.mark.parametrize("point", ["constant", "given", "per-channel"])
def test_integer_convolutions_pad_with_the_zero_point(point: str, group: int) -> None:
    x, w = integers(1, (1, 4, 6, 5), np.uint8), integers(2, (8, 4 // group, 3, 3), np.uint8)
    x_point = np.array(77, np.uint8)
    w_point = integers(3, (8,) if point == "per-channel" else (), np.uint8)
    constants = {"w": w, "w_point": w_point}
    inputs = {"x": x}
    (inputs if point == "given" else constants)["x_point"] = x_point
    node = helper.make_node(
        "ConvInteger", ["x", "w", "x_point", "w_point"], ["y"], group=group, pads=[1, 2, 0, 1]
    )
    padded = np.pad(x.astype(np.int64) - 77, ((0, 0), (0, 0), (1, 0), (2, 1)))
    filters = w.astype(np.int64) - w_point.reshape(-1, 1, 1, 1)
    views = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    parts = (
        np.einsum("nihwyx,oiyx->nohw", image, share)
        for image, share in zip(np.split(views, group, 1), np.split(filters, group, 0), strict=True)
    )
    expected = np.concatenate(list(parts), 1)
    got = run(node, inputs, TensorProto.INT32, constants)
    np.testing.assert_array_equal(got, expected)


def test_integer_convolutions_of_each_channel_run_on_numba_acc() -> None:
    x, w = integers(1, (1, 4, 6, 5), np.uint8), integers(2, (4, 1, 3, 3), np.int8)
    node = helper.make_node("ConvInteger", ["x", "w", "x_point"], ["y"], group=4)
    inputs = {"x": x, "x_point": np.array(77, np.uint8)}
    file = model_of([node], inputs, {"y": TensorProto.INT32}, {"w": w})
    got = armpy.load(file, front_end="onnx", backends=["NumbaAcc"]).run(inputs)["y"]
    np.testing.assert_array_equal(got, run(node, inputs, TensorProto.INT32, {"w": w}))


@pytest.mark.parametrize("is_real", [False, True])
@pytest.mark.parametrize("is_turned", [False, True])
def test_gemm_takes_zero_points_of_columns(is_turned: bool, is_real: bool) -> None:
    rng = np.random.default_rng(3)
    a, b = integers(1, (3, 8), np.uint8), integers(2, (8, 5), np.uint8)
    constants: dict[str, Array] = {
        "a_scale": np.array(0.02, np.float32),
        "a_point": np.array(100, np.uint8),
        "b": b.T.copy() if is_turned else b,
        "b_scale": rng.uniform(0.01, 0.1, 5).astype(np.float32),
        "b_point": integers(5, (5,), np.uint8),
        "c": rng.integers(-900, 900, 5).astype(np.int32),
        "y_scale": np.array(0.7, np.float32),
        "y_point": np.array(99, np.uint8),
    }
    names = ["a", *constants][: 7 if is_real else 9]
    node = helper.make_node(
        "QGemm", names, ["y"], domain=MICROSOFT, transB=int(is_turned), alpha=1.5
    )
    sums = (a.astype(int) - 100) @ (b.astype(int) - constants["b_point"]) + constants["c"]
    expected = sums * constants["b_scale"].astype(float) * 0.02 * 1.5
    kind = TensorProto.FLOAT if is_real else TensorProto.UINT8
    got = run(node, {"a": a}, kind, constants)
    if is_real:
        np.testing.assert_allclose(got, expected, rtol=1e-5)
    else:
        steps = np.clip(np.rint(expected / 0.7) + 99, 0, 255)
        assert abs(got.astype(int) - steps).max() <= 1


def test_products_of_rows_and_columns_with_scales_of_their_own() -> None:
    a, b = integers(1, (3, 8), np.uint8), integers(2, (8, 4), np.uint8)
    rng = np.random.default_rng(3)
    constants = {
        "a_scale": rng.uniform(0.01, 0.1, 3).astype(np.float32),
        "a_point": integers(4, (3,), np.uint8),
        "b_scale": rng.uniform(0.01, 0.1, 4).astype(np.float32),
        "b_point": integers(5, (4,), np.uint8),
        "y_scale": np.array(0.7, np.float32),
        "y_point": np.array(99, np.uint8),
        "b": b,
    }
    names = ["a", "a_scale", "a_point", "b", "b_scale", "b_point", "y_scale", "y_point"]
    node = helper.make_node("QLinearMatMul", names, ["y"])
    left = (a - constants["a_point"].astype(float)[:, None]) * constants["a_scale"][:, None]
    right = (b - constants["b_point"].astype(float)) * constants["b_scale"]
    expected = np.clip(np.rint(left @ right / np.float32(0.7)) + 99, 0, 255)
    got = run(node, {"a": a}, TensorProto.UINT8, constants)
    assert abs(got.astype(int) - expected).max() <= 1


@pytest.mark.parametrize("dtypes", [(np.uint8, np.int8), (np.int8, np.int8), (np.int8, np.uint8)])
@pytest.mark.parametrize("per_column", [False, True])
def test_quantised_products_are_within_a_step_of_onnx_runtime(
    dtypes: tuple[type, type], per_column: bool
) -> None:
    if dtypes == (np.uint8, np.int8):
        skip_where_onnx_runtime_saturates()
    a, b = integers(1, (5, 32), dtypes[0]), integers(2, (32, 6), dtypes[1])
    rng = np.random.default_rng(3)
    constants = {
        "a_scale": np.array(0.02, np.float32),
        "a_point": np.array(3, dtypes[0]),
        "b_scale": rng.uniform(0.01, 0.1, 6 if per_column else ()).astype(np.float32),
        "b_point": np.zeros(6 if per_column else (), dtypes[1]),
        "y_scale": np.array(0.7, np.float32),
        "y_point": np.array(9, dtypes[0]),
        "b": b,
    }
    names = ["a", "a_scale", "a_point", "b", "b_scale", "b_point", "y_scale", "y_point"]
    node = helper.make_node("QLinearMatMul", names, ["y"])
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtypes[0]))
    feeds = {"a": a}
    if dtypes == (np.int8, np.uint8):  # which ONNX Runtime does not take
        left = (a - 3.0) * 0.02
        steps = np.rint(left @ (b * constants["b_scale"].astype(float)) / 0.7) + 9
        expected = np.clip(steps, -128, 127).astype(np.int8)
    else:
        expected = peer(node, feeds, kind, constants)
    got = run(node, feeds, kind, constants)
    assert got.dtype == expected.dtype
    assert abs(got.astype(int) - expected).max() <= 1


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
    constants: dict[str, Array] = {
        "a_scale": np.array(1, np.float32),
        "b_scale": np.array(b_scale, np.float32),
        "y_scale": np.array(y_scale, np.float32),
        "point": np.array(0, np.int8),
        "y_point": np.array(3, np.int8),
        "b": np.array([[1, 4], [2, 1]], np.int8),
    }
    names = ["a", "a_scale", "point", "b", "b_scale", "point", "y_scale", "y_point"]
    node = helper.make_node("QLinearMatMul", names, ["y"])
    feeds = {"a": np.array([[2, 3]], np.int8)}
    file = model_of([node], feeds, {"y": TensorProto.INT8}, constants)
    backends = [backend] if backend == "CpuRef" else [backend, "CpuRef"]
    np.testing.assert_array_equal(armpy.load(file, backends=backends)(feeds["a"]), [expected])


@pytest.mark.parametrize("backend", ["CpuRef", "NumbaAcc"])
def test_dynamic_quantisation_and_its_products_are_those_of_onnx_runtime(backend: str) -> None:
    skip_where_onnx_runtime_saturates()
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, (3, 16)).astype(np.float32)
    quantize = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "scale", "point"])
    node = helper.make_node(
        "DynamicQuantizeMatMul", ["x", "b", "b_scale", "b_point", "c"], ["y"], domain=MICROSOFT
    )
    constants = {
        "b": integers(2, (16, 6), np.int8),
        "b_scale": np.array(0.02, np.float32),
        "b_point": np.array(5, np.int8),
        "c": rng.normal(0, 1, 6).astype(np.float32),
    }
    got = run(node, {"x": x}, TensorProto.FLOAT, constants, backend)
    np.testing.assert_allclose(
        got, peer(node, {"x": x}, TensorProto.FLOAT, constants), rtol=1e-4, atol=1e-5
    )
    for values in (x, np.zeros_like(x), np.abs(x)):
        outputs = {"y": TensorProto.UINT8, "scale": TensorProto.FLOAT, "point": TensorProto.UINT8}
        file = model_of([quantize], {"x": values}, outputs, {})
        model = armpy.load(file, front_end="onnx", backends=[backend, "CpuRef"])
        runtime = pytest.importorskip("onnxruntime")
        session = runtime.InferenceSession(file, providers=["CPUExecutionProvider"])
        results = model.run({"x": values})
        for name, theirs in zip(outputs, session.run(None, {"x": values}), strict=True):
            np.testing.assert_array_equal(results[name], theirs)


def test_halves_go_to_even_on_every_backend() -> None:
    x = np.arange(-200, 200, dtype=np.float32) / 4
    constants: dict[str, Array] = {
        "scale": np.array(0.5, np.float32),
        "point": np.array(7, np.int8),
    }
    node = helper.make_node("QuantizeLinear", ["x", "scale", "point"], ["y"])
    expected = np.clip(np.rint(x * 2) + 7, -128, 127)
    for backend in ("CpuRef", "NumbaAcc"):
        got = run(node, {"x": x}, TensorProto.INT8, constants, backend)
        np.testing.assert_array_equal(got, expected)


def test_scales_of_blocks_that_do_not_fit_are_named_with_the_node() -> None:
    constants: dict[str, Array] = {
        "scale": np.ones((2, 3), np.float32),
        "point": np.zeros((2, 3), np.int8),
    }
    node = helper.make_node(
        "DequantizeLinear", ["x", "scale", "point"], ["y"], "blocks", axis=1, block_size=2
    )
    with pytest.raises(ParserError, match=r"DequantizeLinear 'blocks'.*one element per block"):
        run(node, {"x": np.zeros((2, 8), np.int8)}, TensorProto.FLOAT, constants)


def test_weights_of_another_type_than_bytes_are_refused() -> None:
    node = helper.make_node("MatMulInteger", ["a", "b"], ["y"], "product")
    inputs = {"a": np.zeros((2, 2), np.int8)}
    with pytest.raises(ParserError, match="product"):
        run(node, inputs, TensorProto.INT32, {"b": np.zeros((2, 2), np.float32)})


@pytest.mark.parametrize("points", ["none", "bytes", "floats"])
@pytest.mark.parametrize(("bits", "block"), [(4, 16), (4, 32), (8, 32)])
def test_weights_of_few_bits_in_blocks_are_those_of_onnx_runtime(
    bits: int, block: int, points: str
) -> None:
    depth, units, rng = 80, 6, np.random.default_rng(bits)
    blocks = -(-depth // block)
    constants: dict[str, Array] = {
        "b": integers(1, (units, blocks, block * bits // 8), np.uint8),
        "scales": rng.uniform(0.01, 0.1, units * blocks).astype(np.float32),
    }
    names = ["x", "b", "scales"]
    if points != "none":
        names.append("points")
        row = -(-blocks * bits // 8)
        constants["points"] = integers(2, (units * row,), np.uint8)
        if points == "floats":
            constants["points"] = rng.uniform(0, 15, units * blocks).astype(np.float32)
    if points == "floats" and bits == 8:
        pytest.skip("ONNX Runtime takes floats for 4 bits only")
    node = helper.make_node(
        *("MatMulNBits", names, ["y"]),
        domain=MICROSOFT,
        K=depth,
        N=units,
        bits=bits,
        block_size=block,
    )
    x = rng.normal(0, 1, (2, 3, depth)).astype(np.float32)
    got = run(node, {"x": x}, TensorProto.FLOAT, constants)
    expected = peer(node, {"x": x}, TensorProto.FLOAT, constants)
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=2e-3)


def test_inputs_of_8_bits_are_those_of_onnx_runtime() -> None:
    rng = np.random.default_rng(4)
    constants: dict[str, Array] = {
        "b": integers(1, (9, 4, 16), np.uint8),
        "scales": rng.uniform(0.01, 0.1, 36).astype(np.float32),
        "points": integers(2, (18,), np.uint8),
    }
    sizes = {"K": 128, "N": 9, "bits": 4, "block_size": 32}
    exact, coarse = (
        helper.make_node(
            *("MatMulNBits", ["x", *constants], ["y"]),
            domain=MICROSOFT,
            accuracy_level=level,
            **sizes,
        )
        for level in (0, 4)
    )
    feeds = {"x": rng.normal(0, 1, (1, 128)).astype(np.float32)}
    got = run(coarse, feeds, TensorProto.FLOAT, constants)
    expected = peer(coarse, feeds, TensorProto.FLOAT, constants)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-3)
    assert np.abs(got - run(exact, feeds, TensorProto.FLOAT, constants)).max() > 1e-3
