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
from armpy.ops.operation import Array
from armpy_testing.preparations import ORDINARY_PROGRAMS, watch_preparations

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
    watch_preparations(monkeypatch, lambda _: prepared.append(past))
    data = decoder(total=total)
    model = armpy.load(data, num_threads=1)
    for past in range(5, POSITIONS - 2):
        feeds = operands(1, past + 1, room or past, [past])
        if total == "input":
            feeds["total"] = np.array(past + 1, np.int32)
        own = dict(model.run(feeds))
        if past % 8 == 0:
            assert_close(data, own, feeds)
    assert max(prepared) <= 5 + ORDINARY_PROGRAMS


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


@pytest.mark.parametrize("backend", ["CpuRef", pytest.param("NumbaAcc", marks=pytest.mark.slow)])
@pytest.mark.parametrize("shares", [False, True], ids=["growing", "shared"])
def test_a_state_fills_the_past(backend: str, shares: bool) -> None:
    model = armpy.load(decoder(), num_threads=1, backends=[backend])
    state = model.state(limit=12, share_buffers=shares)
    assert state.pairs == {"past_key": "present_key", "past_value": "present_value"}
    room = 12 if shares else 0
    past: dict[str, Array] = {name: np.zeros((1, GROUPS, room, SIZE), np.float32) for name in CACHE}
    length = 0
    for count in (3, 1, 1, 4, 1):
        feeds = operands(count, length + count, room or length, [length + count - 1]) | past
        expected = model.run(feeds)
        step = state.run({name: array for name, array in feeds.items() if name not in CACHE})
        np.testing.assert_array_equal(step["y"], expected["y"])
        past = {name: expected[name.replace("past", "present")] for name in CACHE}
        length += count
        assert (set(step), state.length) == ({"y"}, length)
    feeds = operands(3, 13, length, [12])
    with pytest.raises(armpy.InvalidArgumentError, match=r"state is full.*10, and 3 more"):
        state.run({name: array for name, array in feeds.items() if name not in CACHE})


@pytest.mark.parametrize(
    ("inputs", "outputs", "pairs"),
    [
        ("past_key_values.0.key", "present.0.key", 1),
        ("past_key_values.0.decoder.value", "present.0.decoder.value", 1),
        ("past_key_values.3.key", "present_key_values.3.key", 1),
        ("past_key_self_0", "present_key_self_0", 1),
        ("past", "present", 1),
        ("past_1", "present_1", 1),
        ("state", "stateN", 1),
        ("h c", "hn cn", 2),
        ("state_in", "state_out", 1),
        ("cached_len_0", "new_cached_len_0", 1),
        ("past_key_values.0.encoder.key", "present.0.decoder.key", 0),
        ("in", "out", 0),
        ("tokens", "logits", 0),
    ],
)
def test_pairs_are_known_by_exporters_names(inputs: str, outputs: str, pairs: int) -> None:
    names = [*zip(inputs.split(), outputs.split(), strict=True)]
    tensors = [
        [helper.make_tensor_value_info(each, TensorProto.FLOAT, [1, None]) for each in pair]
        for pair in names
    ]
    nodes = [helper.make_node("Identity", [before], [after]) for before, after in names]
    firsts, seconds = zip(*tensors, strict=True)
    graph = helper.make_graph(nodes, "states", firsts, seconds)
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    model = armpy.load(data.SerializeToString(), backends=["CpuRef"])
    if pairs:
        assert model.state().pairs == dict(names)
        return
    with pytest.raises(armpy.InvalidArgumentError, match="not known by names"):
        model.state()


def test_a_past_of_another_type_is_no_pair() -> None:
    infos = [
        helper.make_tensor_value_info(name, kind, [1, 2])
        for name, kind in (("past", TensorProto.FLOAT), ("present", TensorProto.INT64))
    ]
    node = helper.make_node("Cast", ["past"], ["present"], to=TensorProto.INT64)
    graph = helper.make_graph([node], "states", infos[:1], infos[1:])
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    with pytest.raises(armpy.InvalidArgumentError, match=r"of one type and shape: none; got \{\}"):
        armpy.load(data.SerializeToString(), backends=["CpuRef"]).state()


@pytest.mark.slow
def test_shared_buffers_are_written_in_place() -> None:
    model = armpy.load(decoder(), num_threads=1)
    state, room = model.state(limit=POSITIONS, share_buffers=True), POSITIONS
    past = {name: np.zeros((1, GROUPS, room, SIZE), np.float32) for name in CACHE}
    places = []
    forks = []
    for length in range(12):
        feeds = operands(1, length + 1, room, [length]) | past
        expected = model.run(feeds)
        others = {name: array for name, array in feeds.items() if name not in CACHE}
        forks += [(state.fork(), others, expected["y"])] if length == 8 else []
        np.testing.assert_array_equal(state.run(others)["y"], expected["y"])
        past = {name: expected[name.replace("past", "present")] for name in CACHE}
        places.append({array.ctypes.data for array in state._past.values()})
        # A step that fails before its layers run, or in the first one, loses nothing.
        for last in (-2, -(1 << 31), 1 << 30, room) if length else ():
            with pytest.raises(armpy.ArmpyError, match="out of range"):
                state.run(others | {"last": np.array([last], np.int32)})
        assert state.length == length + 1
    assert places[4:7] == [places[4]] * 3
    for fork, others, output in forks:
        np.testing.assert_array_equal(fork.run(others)["y"], output)
