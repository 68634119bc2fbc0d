"""Networks with open sizes, and sizes among their inputs: prepared for the first calls alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx.parser

import armpy
from armpy.ops.operation import Array
from armpy_testing.models.onnx_texts import HEAD
from armpy_testing.preparations import ORDINARY_PROGRAMS, watch_preparations

NETWORKS = {
    "causal mask": """(float[1, L, 8] x) => (float[1, L, 8] y) {
        shape = Shape (x) one = Constant <value_ints = [1]> () length = Gather (shape, one)
        n = Squeeze (length) zero = Constant <value_int = 0> () step = Constant <value_int = 1> ()
        places = Range (zero, n, step) rows = Unsqueeze (places, one)
        hidden = Less (rows, places) low = Constant <value_float = -1e9> ()
        none = Constant <value_float = 0.0> () mask = Where (hidden, low, none)
        turned = Transpose <perm = [0, 2, 1]> (x) scores = MatMul (x, turned)
        masked = Add (scores, mask) parts = Softmax <axis = -1> (masked) y = MatMul (parts, x)
    }""",
    "convolutions": """(float[1, 3, H, W] x, float[16, 3, 3, 3] a, float[16, 1, 3, 3] b,
            float[16, 16, 3, 3] c, float[32, 16, 1, 1] d) => (float[1, 32, I, J] y) {
        p = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (x, a) q = Relu (p)
        r = Conv <strides = [2, 2], pads = [1, 1, 1, 1], group = 16> (q, b) s = Relu (r)
        t = Conv <pads = [1, 1, 1, 1]> (s, c) u = Add (s, t)
        none = Constant <value = float[0] {}> ()
        scales = Constant <value_floats = [1.0, 1.0, 2.0, 2.0]> ()
        v = Resize <mode = "nearest"> (u, none, scales) w = Add (v, q) y = Conv (w, d)
    }""",
    "pointwise convolutions": """(float[N, 16, 2, 2] x, float[48, 16, 1, 1] a,
            float[24, 48, 1, 1] b, float[40, 24] c) => (float[N, 40] y) {
        p = Conv (x, a) q = Relu (p) r = Conv (q, b) s = GlobalAveragePool (r)
        t = Flatten (s) y = Gemm <transB = 1> (t, c)
    }""",
    "sound": """(float[1, 1, L] x, float[16, 1, 64] a, float[16, 16, 3] b) => (float[1, 16, M] y) {
        p = Conv <strides = [16], pads = [32, 32]> (x, a) q = Relu (p)
        y = Conv <strides = [2], pads = [1, 1]> (q, b)
    }""",
    "speech": """(float[1, 1, L] x, float[8, 1, 10] a, float[8, 8, 2] b, float[8, 2, 16] c)
            => (float[1, 8, M] y) {
        p = Conv <strides = [5]> (x, a) q = Conv <strides = [2]> (p, b)
        r = Conv <strides = [2]> (q, b) y = Conv <pads = [8, 8], group = 4> (r, c)
    }""",
    "best": """(float[4, N] x, int64[1] k) => (float[4, M] y, int64[4, M] i) {
        y, i = TopK (x, k)
    }""",
    "resized": """(float[N, 3, H, W] x, float[N, 5, I, J] like)
            => (float[N, 3, I, J] y, float[N, 3, I, J] z, float[N, 3, I, J] u,
            float[N, 3, H, W] same) {
        shape = Shape <start = 2> (like) own = Shape (x)
        none = Constant <value = float[0] {}> () whole = Shape <end = 2> (x)
        sizes = Concat <axis = 0> (whole, shape)
        y = Resize <mode = "linear"> (x, none, none, sizes)
        z = Resize <mode = "linear", coordinate_transformation_mode = "align_corners">
            (x, none, none, sizes)
        u = Resize <mode = "linear", coordinate_transformation_mode = "asymmetric">
            (x, none, none, sizes)
        same = Resize <mode = "linear"> (x, none, none, own)
    }""",
    "nearest": """(float[N, 3, H, W] x, float[N, 5, I, J] like)
            => (float[N, 3, I, J] y, float[N, 3, I, J] z, float[N, 3, H, W] same) {
        shape = Shape <start = 2> (like) own = Shape (x)
        none = Constant <value = float[0] {}> () whole = Shape <end = 2> (x)
        sizes = Concat <axis = 0> (whole, shape)
        y = Resize <coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">
            (x, none, none, sizes)
        z = Resize <nearest_mode = "round_prefer_ceil"> (x, none, none, sizes)
        same = Resize (x, none, none, own)
    }""",
    "window": """(float[N, 8] x, int64[1] start, int64[1] limit) => (float[M, 8] y) {
        zero = Constant <value_ints = [0]> () step = Constant <value_int = 1> ()
        rows = Slice (x, start, limit, zero) s = Squeeze (start) l = Squeeze (limit)
        places = Range (s, l, step) p = Cast <to = 1> (places)
        column = Constant <value_ints = [1]> () q = Unsqueeze (p, column) y = Add (rows, q)
    }""",
    "both directions": """(float[L, N, 6] x, float[2, 20, 6] w, float[2, 20, 5] r)
            => (float[L, 2, N, 5] y) {
        y = LSTM <hidden_size = 5, direction = "bidirectional"> (x, w, r)
    }""",
    "step of a decoder": """(float[N, 1, 8] x, float[N, P, 8] past, float[64, 8] table)
            => (float[N, 1, 8] y, float[1, 8] z) {
        n = Shape <end = 1> (past) p = Shape <start = 1, end = 2> (past)
        zero = Constant <value_ints = [0]> () one = Constant <value_ints = [1]> ()
        last = Constant <value_ints = [-1]> () place = Unsqueeze (p, zero)
        times = Concat <axis = 0> (n, one) places = Tile (place, times)
        wide = Expand (place, times) sum = Add (places, wide) two = Constant <value_ints = [2]> ()
        half = Div (sum, two) index = Unsqueeze (half, last) q = GatherND (table, index)
        y = Add (x, q) z = GatherND (table, place)
    }""",
    "products of many": """(float[N, 3, L, 9] a, float[N, 3, L, 9] b, float[N, 3, 9, M] c,
            float[1, 9, M] d) => (float[N, 3, L, L] y, float[N, 3, L, M] z, float[N, 3, L, M] u) {
        turned = Transpose <perm = [0, 1, 3, 2]> (b) y = MatMul (a, turned) z = MatMul (a, c)
        u = MatMul (a, d)
    }""",
    "means of every second": """(float[N, 3, H, W] x) => (float[N, 3] y, float[N, 3, I, J] z) {
        axes = Constant <value_ints = [2, 3]> () two = Constant <value_ints = [2, 2]> ()
        first = Constant <value_ints = [0, 1]> () whole = Constant <value_ints = [999, 999]> ()
        z = Slice (x, first, whole, axes, two) y = ReduceMean <keepdims = 0> (z, axes)
    }""",
    "mirrored ends": """(float[N, L] x) => (float[N, M] y) {
        pads = Constant <value_ints = [0, 8, 0, 5]> () y = Pad <mode = "reflect"> (x, pads)
    }""",
    "normalized groups": """(float[N, 3, H, W] x, float[3, 8, 3, 3] w) => (float[N, 8, I, J] y) {
        p = ConvTranspose <strides = [2, 2], pads = [1, 1, 1, 1], output_padding = [1, 1]> (x, w)
        groups = Constant <value_ints = [0, 4, -1]> () q = Reshape (p, groups)
        one = Constant <value_floats = [1.0, 1.0, 1.0, 1.0]> ()
        zero = Constant <value_floats = [0.0, 0.0, 0.0, 0.0]> ()
        r = InstanceNormalization (q, one, zero) shape = Shape (p) y = Reshape (r, shape)
    }""",
}
"""Networks, in ONNX's textual form."""

SIZES: dict[str, Sequence[dict[str, int]]] = {
    "causal mask": [{"L": n} for n in (20, 33, 64, 18, 47, 90)],
    "convolutions": [
        {"H": 4 * h, "W": 4 * w} for h, w in ((20, 17), (24, 30), (40, 33), (19, 36), (30, 22))
    ],
    "pointwise convolutions": [{"N": n} for n in (8, 12, 7, 9, 13, 15)],
    "sound": [{"L": n} for n in (700, 1000, 999, 641, 1234, 870, 905)],
    # Rows of odd and even lengths, of which the stride leaves out the last element or none.
    "speech": [{"L": n} for n in (900, 1000, 1011, 917, 1016, 981, 1103)],
    "best": [{"N": n, "k": k} for n, k in ((30, 3), (40, 7), (41, 11), (20, 20), (64, 30))],
    "both directions": [{"L": n, "N": 2} for n in (10, 9, 12, 21, 17, 30)],
    "step of a decoder": [
        {"N": n, "P": p} for n, p in ((5, 7), (9, 9), (6, 10), (7, 11), (5, 31), (8, 57))
    ],
    "products of many": [
        {"N": n, "L": length, "M": m}
        for n, length, m in (
            (2, 20, 5),
            (3, 33, 40),
            (5, 17, 21),
            (4, 30, 3),
            (2, 70, 16),
            (7, 9, 65),
        )
    ],
    "means of every second": [
        {"N": 2, "H": h, "W": w} for h, w in ((20, 31), (32, 40), (48, 28), (30, 65), (40, 33))
    ],
    "mirrored ends": [{"N": 3, "L": n} for n in (40, 33, 100, 12, 64)],
    "normalized groups": [
        {"N": 2, "H": h, "W": w} for h, w in ((8, 19), (5, 32), (10, 27), (13, 22), (7, 25))
    ],
    "resized": [
        {"N": 1, "H": h, "W": w, "I": i, "J": j}
        for h, w, i, j in ((20, 30, 40, 61), (33, 19, 70, 37), (25, 27, 49, 80), (18, 35, 7, 70))
    ],
    "nearest": [
        {"N": n, "H": h, "W": w, "I": i, "J": j}
        for n, h, w, i, j in (
            (2, 20, 30, 5, 7),
            (3, 33, 19, 14, 11),
            (2, 64, 96, 6, 9),
            (4, 25, 27, 49, 80),
            (2, 18, 35, 7, 70),
        )
    ],
    "window": [
        {"N": n, "start": start, "limit": limit}
        for n, start, limit in ((30, 3, 24), (40, 7, 39), (41, 1, 15), (60, 30, 52), (64, 12, 63))
    ],
}


def inputs_of(graph: onnx.GraphProto, sizes: dict[str, int]) -> dict[str, Array]:
    """Random inputs; those that have a size's name are that size."""
    rng = np.random.default_rng(sum(sizes.values()))
    arrays: dict[str, Array] = {}
    for value in graph.input:
        if value.name in {known.name for known in graph.initializer}:
            continue
        dims = value.type.tensor_type.shape.dim
        shape = [dim.dim_value or sizes[dim.dim_param] for dim in dims]
        if value.name in sizes:
            arrays[value.name] = np.full(shape, sizes[value.name], np.int64)
        else:
            arrays[value.name] = rng.normal(size=shape).astype(np.float32)
    return arrays


def model_of(text: str) -> onnx.ModelProto:
    """The model of a network's text; its inputs of fixed sizes are weights."""
    model = onnx.parser.parse_model(f"{HEAD}graph {text}")
    rng = np.random.default_rng(1)
    for value in [*model.graph.input]:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        if len(shape) > 1 and all(shape):
            weights = rng.normal(0, 0.3, shape).astype(np.float32)
            model.graph.initializer.append(onnx.numpy_helper.from_array(weights, value.name))
    return model


@pytest.mark.parametrize("name", NETWORKS)
def test_sizes_after_the_third_need_no_preparation_and_compute_as_a_fresh_load(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    proto = model_of(NETWORKS[name])
    prepared: list[int] = []
    calls: list[dict[str, Any]] = []  # Any: arrays
    data = proto.SerializeToString()

    def load() -> armpy.Model:
        return armpy.load(data, backends=["NumbaAcc", "CpuRef"], num_threads=1)

    inputs = [inputs_of(proto.graph, sizes) for sizes in SIZES[name]]
    with monkeypatch.context() as patch:
        watch_preparations(patch, lambda _: prepared.append(len(calls)))
        model = load()
        for feeds in inputs:
            calls.append(dict(model.run(feeds)))
    assert max(prepared) <= ORDINARY_PROGRAMS
    for number in (ORDINARY_PROGRAMS, *range(len(calls) - 2, len(calls))):
        expected: dict[str, Any] = dict(load().run(inputs[number]))
        for output, values in expected.items():
            np.testing.assert_array_equal(calls[number][output], values, err_msg=output)


def test_stages_after_shapes_that_values_decide_are_prepared_for_all_of_these(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stages = range(4)
    nodes = "".join(
        f"p{n} = Relu (x{n}) q{n} = NonZero (p{n}) r{n} = Reshape (q{n}, all)"
        f" s{n} = Gather (x{n}, r{n}) x{n + 1} = Sub (s{n}, one) "
        for n in stages
    )
    text = f"""g (float[90] x0) => (float[N] x4) {{
        all = Constant <value_ints = [-1]> () one = Constant <value_floats = [1.0]> () {nodes}
    }}"""
    file = onnx.parser.parse_model(HEAD + text).SerializeToString()
    model = armpy.load(file, backends=["NumbaAcc", "CpuRef"], num_threads=1)
    prepared: list[int] = []
    watch_preparations(monkeypatch, lambda _: prepared.append(number))
    for number in range(9):
        x = expected = np.arange(90, dtype=np.float32) - 10 * number + 0.5
        for _ in stages:
            expected = expected[expected > 0] - 1
        np.testing.assert_array_equal(model.run({"x0": x})["x4"], expected)
    # Nothing but the empty programs in front of what finds positions, after the first stage.
    assert prepared.count(number) == len(stages) - 1
