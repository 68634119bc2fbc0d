"""GroupQueryAttention whose softmax has a sink, against its definition in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from onnx import TensorProto, helper, numpy_helper

import armpy

HEADS, GROUPS, SIZE, LENGTH = 4, 2, 8, 5
NAMES = ("q", "k", "v")


def _feed(dtype: type[np.floating[Any]], factor: float) -> dict[str, npt.NDArray[Any]]:
    """Queries, keys and values."""
    draw = np.random.default_rng(3)
    heads = {"q": HEADS, "k": GROUPS, "v": GROUPS}
    return {
        name: (factor * draw.standard_normal((2, LENGTH, count * SIZE))).astype(dtype)
        for name, count in heads.items()
    }


def _model(kind: int, sinks: npt.NDArray[Any] | None, **attributes: Any) -> bytes:
    """A model of one node without a past."""
    held = {"seqlens": np.full(2, LENGTH - 1, np.int32), "total": np.array([LENGTH], np.int32)}
    inputs = [*NAMES, "", "", *held]
    if sinks is not None:
        inputs += [*[""] * 4, "sinks"]
        held["sinks"] = sinks
    attributes.update(num_heads=HEADS, kv_num_heads=GROUPS)
    node = helper.make_node(
        "GroupQueryAttention", inputs, ["y", "pk", "pv"], domain="com.microsoft", **attributes
    )
    infos = [
        helper.make_tensor_value_info(
            name, kind, [2, LENGTH, (HEADS if name == "q" else GROUPS) * SIZE]
        )
        for name in NAMES
    ]
    results = [helper.make_tensor_value_info(name, kind, None) for name in ("y", "pk", "pv")]
    constants = [numpy_helper.from_array(array, name) for name, array in held.items()]
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph([node], "one", infos, results, constants)
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return bytes(model.SerializeToString())


def _defined(
    feed: dict[str, npt.NDArray[Any]], sinks: npt.NDArray[Any], window: int
) -> npt.NDArray[np.float64]:
    """The output in float64."""
    q, k, v = (
        feed[name].astype(np.float64).reshape(2, LENGTH, -1, SIZE).transpose(0, 2, 1, 3)
        for name in NAMES
    )
    k, v = (np.repeat(part, HEADS // GROUPS, axis=1) for part in (k, v))
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(SIZE)
    distance = np.arange(LENGTH)[:, None] - np.arange(LENGTH)
    scores[..., (distance < 0) | (distance >= window)] = -np.inf
    column = np.broadcast_to(sinks.astype(np.float64)[:, None, None], (2, HEADS, LENGTH, 1))
    scores = np.concatenate([scores, column], 3)
    powers = np.exp(scores - scores.max(axis=3, keepdims=True))
    weights = (powers / powers.sum(axis=3, keepdims=True))[..., :-1]
    return (weights @ v).transpose(0, 2, 1, 3).reshape(2, LENGTH, -1)  # type: ignore[no-any-return]


@pytest.mark.parametrize("window", [-1, 2])
@pytest.mark.parametrize("factor", [1.0, 12.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("sinks", [None, (0.5, -1.0, 30.0, -60.0)])
def test_a_sink_takes_a_share_of_the_softmax(
    window: int,
    factor: float,
    dtype: type[np.floating[Any]],
    sinks: tuple[float, ...] | None,
) -> None:
    kind = TensorProto.FLOAT if dtype is np.float32 else TensorProto.FLOAT16
    array = None if sinks is None else np.array(sinks, dtype)
    smooth = {} if sinks is not None else {"smooth_softmax": 1}
    content = _model(kind, array, local_window_size=window, **smooth)
    feed = _feed(dtype, factor)
    y = armpy.load(content, backends=["CpuRef"]).run(feed)["y"]
    assert y.dtype == dtype
    expected = _defined(feed, np.zeros(HEADS) if array is None else array, max(window, 0) or LENGTH)
    tolerance = 1e-5 if dtype is np.float32 else 1e-3
    np.testing.assert_allclose(y, expected, tolerance, tolerance * factor)


def test_sinks_are_those_of_onnx_runtime() -> None:
    runtime = pytest.importorskip("onnxruntime")
    content = _model(TensorProto.FLOAT, np.array([0.5, -1, 2, 0], np.float32), softcap=1.5)
    feed = _feed(np.float32, 1.0)
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    expected = session.run(["y"], feed)[0]
    y = armpy.load(content, backends=["CpuRef"]).run(feed)["y"]
    np.testing.assert_allclose(y, expected, 1e-4, 1e-5)
