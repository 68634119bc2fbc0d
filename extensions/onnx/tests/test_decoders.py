"""Attention of decoders, whose lengths arrive as values and whose cache grows or is a buffer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

import armpy
from armpy.execution.programs.symbolic_programs import ORDINARY_PLANS
from armpy.ops.operation import Array
from tests.support.preparations import watch_preparations

HEADS, GROUPS, SIZE, POSITIONS = 4, 2, 16, 40
CACHE = ("past_key", "past_value")
RNG = np.random.default_rng(3)


TOTALS = {
    "mask": [
        helper.make_node("Shape", ["mask"], ["shape"]),
        helper.make_node("Gather", ["shape", "one"], ["size"]),
        helper.make_node("Cast", ["size"], ["total"], to=TensorProto.INT32),
    ],
    "input": [],
    "last": [
        helper.make_node("ReduceMax", ["last"], ["most"], keepdims=0),
        helper.make_node("Cast", ["one"], ["one32"], to=TensorProto.INT32),
        helper.make_node("Add", ["most", "one32"], ["total"]),
    ],
}
"""Nodes that give the number of keys: from the mask's shape, an input, or the last keys."""


def decoder(batch: int = 1, total: str = "mask", **attributes: Any) -> bytes:
    """Grouped attention; the mask's shape says how many keys there are, `last` how many count."""
    angles = RNG.uniform(0, 6, (POSITIONS, SIZE // 2))
    weights = {
        "cosines": np.cos(angles).astype(np.float32),
        "sines": np.sin(angles).astype(np.float32),
        "one": np.array(1),
    }
    nodes = [
        *TOTALS[total],
        helper.make_node(
            "GroupQueryAttention",
            [*("query", "key", "value"), *CACHE, "last", "total", "cosines", "sines"],
            ["y", "present_key", "present_value"],
            domain="com.microsoft",
            num_heads=HEADS,
            kv_num_heads=GROUPS,
            do_rotary=1,
            **attributes,
        ),
    ]
    reals = {
        "query": [batch, "length", HEADS * SIZE],
        "key": [batch, "length", GROUPS * SIZE],
        "value": [batch, "length", GROUPS * SIZE],
        "past_key": [batch, GROUPS, "past", SIZE],
        "past_value": [batch, GROUPS, "past", SIZE],
    }
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in reals.items()
    ]
    inputs.append(helper.make_tensor_value_info("last", TensorProto.INT32, [batch]))
    inputs.append(helper.make_tensor_value_info("mask", TensorProto.FLOAT, [batch, "total"]))
    if total == "input":
        inputs.append(helper.make_tensor_value_info("total", TensorProto.INT32, []))
    shapes = {"y": 3, "present_key": 4, "present_value": 4}
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * rank)
        for name, rank in shapes.items()
    ]
    constants = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "decoder", inputs, outputs, constants)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString())


def operands(length: int, total: int, past: int, last: list[int]) -> dict[str, Array]:
    """Random operands of one call."""
    batch = len(last)
    shapes = {
        "query": (batch, length, HEADS * SIZE),
        "key": (batch, length, GROUPS * SIZE),
        "value": (batch, length, GROUPS * SIZE),
        "past_key": (batch, GROUPS, past, SIZE),
        "past_value": (batch, GROUPS, past, SIZE),
        "mask": (batch, total),
    }
    feeds: dict[str, Array] = {
        name: RNG.normal(size=shape).astype(np.float32) for name, shape in shapes.items()
    }
    feeds["last"] = np.array(last, np.int32)
    return feeds


def assert_close(data: bytes, own: dict[str, Array], feeds: dict[str, Array]) -> None:
    """Compare with ONNX Runtime: the output, and the keys and values that count."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(data, options, ["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    for name, expected in zip(names, session.run(names, feeds), strict=True):
        assert own[name].shape == expected.shape
        for batch, last in enumerate(feeds["last"]):
            count = (slice(None),) * 2 if name == "y" else (slice(None), slice(0, last + 1))
            np.testing.assert_allclose(
                own[name][batch][count], expected[batch][count], rtol=1e-4, atol=1e-5
            )


@pytest.mark.slow
@pytest.mark.parametrize("room", [0, POSITIONS], ids=["growing", "buffer"])
@pytest.mark.parametrize("total", TOTALS)
def test_lengths_are_prepared_once_for_all(
    total: str, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared: list[int] = []
    past = 0  # while it is loaded
    watch_preparations(monkeypatch, lambda: prepared.append(past))
    data = decoder(total=total)
    model = armpy.load(data, num_threads=1)
    for past in range(5, POSITIONS - 2):
        feeds = operands(1, past + 1, room or past, [past])
        if total == "input":
            feeds["total"] = np.array(past + 1, np.int32)
        own = dict(model.run(feeds))
        if past % 8 == 0:
            assert_close(data, own, feeds)
    assert max(prepared) <= 5 + ORDINARY_PLANS


@pytest.mark.parametrize("backend", ["CpuRef", pytest.param("NumbaAcc", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("sizes", "attributes"),
    [
        ((1, 9, 8, [8, 5]), {}),  # several lengths
        ((1, 9, 8, [8, 5]), {"local_window_size": 3}),
        ((1, 9, 20, [8]), {}),  # a buffer with room
        ((3, 9, 20, [8]), {"softcap": 2.0}),
        ((6, 6, 20, [5]), {}),  # a first prompt
    ],
)
def test_sequences_agree_with_onnx_runtime(
    sizes: tuple[int, int, int, list[int]], attributes: dict[str, Any], backend: str
) -> None:
    data, feeds = decoder(len(sizes[3]), **attributes), operands(*sizes)
    model = armpy.load(data, num_threads=1, backends=[backend])
    assert_close(data, dict(model.run(feeds)), feeds)


@pytest.mark.parametrize("last", [-2, 9, 1 << 30, -(1 << 31)])
def test_lengths_outside_of_the_cache_are_an_error(last: int) -> None:
    model = armpy.load(decoder(), num_threads=1, backends=["CpuRef"])
    with pytest.raises(armpy.ArmpyError, match="out of range"):
        model.run(operands(1, 9, 8, [last]))
