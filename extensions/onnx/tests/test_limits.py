"""Sizes in small files do not keep converters busy: limits come before tables are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper

import armpy
from armpy.errors import ParserError
from armpy.ops.operation import Array

RUNTIME = armpy.Runtime(armpy.RuntimeOptions(backends=["CpuRef"]))
TOO_LARGE = (
    "table that is too large|needs too much memory|dimensions that no array can have"
    "|larger than the memory limit"
)


def load(
    kind: str,
    shape: Sequence[int],
    constants: Mapping[str, Array] | None = None,
    outputs: Sequence[str] = ("y0",),
    **attributes: Any,
) -> None:
    """Load a model of one node whose first input has a shape, and the others are constants.

    A constant by the name of "x" is in the input's place.
    """
    constants = constants or {}
    node = helper.make_node(kind, list(dict.fromkeys(("x", *constants))), outputs, **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)] * ("x" not in constants),
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs[:1]],
        [numpy_helper.from_array(array, name) for name, array in constants.items() if name],
    )
    opsets = [helper.make_opsetid("", 21)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    armpy.load(model.SerializeToString(), front_end="onnx", runtime=RUNTIME).close()


def resize(scale: float, shape: tuple[int, ...], **attributes: Any) -> None:
    """Resize along the last axis."""
    scales = np.array([*(1,) * (len(shape) - 1), scale], np.float32)
    empty = np.zeros(0, np.float32)
    load("Resize", shape, {"roi": empty, "scales": scales}, **attributes)


def integers(*numbers: int) -> Array:
    """A constant."""
    return np.array(numbers, np.int64)


CASES: Mapping[str, Callable[[], None]] = {
    "long lines": lambda: resize(5e7, (1, 1, 2), mode="linear"),
    "long lines of steps": lambda: resize(5e8, (1, 1, 2), mode="nearest"),
    "wide filters": lambda: resize(1e-5, (1, 1, 1 << 27), mode="cubic", antialias=1),
    "matrices of filters": lambda: resize(1e-2, (1, 1, 1 << 20), mode="linear", antialias=1),
    "grids": lambda: load("AffineGrid", (1, 2, 3), {"s": integers(1, 1, 1 << 14, 1 << 14)}),
    "patches": lambda: load(
        "Col2Im", (1, 25, 1 << 24), {"s": integers(4100, 4100), "b": integers(5, 5)}
    ),
    "weights of tones": lambda: load(
        "MelWeightMatrix",
        (1,),
        {
            "x": np.array(1 << 15),
            "l": np.array(1 << 14),
            "r": np.array(8192),
            "a": np.array(0, np.float32),
            "b": np.array(4000, np.float32),
        },
    ),
    "frames": lambda: load(
        "STFT", (1, 1 << 20, 1), {"s": np.array(1), "": integers(), "l": np.array(1 << 12)}
    ),
    "images with positions": lambda: load(
        "MaxPool", (1 << 31, 1 << 10, 1, 1), outputs=("y0", "i"), kernel_shape=[1, 1]
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_few_sizes_ask_for_is_held_against_limits_first(case: str) -> None:
    with pytest.raises(ParserError, match=TOO_LARGE):
        CASES[case]()


HUGE = 1 << 20


@pytest.mark.parametrize("ceil_mode", [0, 1])
@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("kind", ["AveragePool", "LpPool", "MaxPool"])
def test_windows_far_larger_than_the_image_make_no_larger_image(
    kind: str, axes: int, ceil_mode: int
) -> None:
    """A quarter of a window further each time: all four windows that are there meet all of it."""
    side = [5] + [1] * (axes - 1)
    attributes: dict[str, Any] = {"count_include_pad": 1} if kind == "AveragePool" else {}
    node = helper.make_node(
        kind,
        ["x"],
        ["y"],
        kernel_shape=[HUGE, *side[1:]],
        strides=[HUGE // 4, *side[1:]],
        pads=([HUGE - 5] + [0] * (axes - 1)) * 2,
        ceil_mode=ceil_mode,
        **attributes,
    )
    x = np.arange(1, 11, dtype=np.float32).reshape(1, 2, *side)
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    opsets = [helper.make_opsetid("", 22)]
    data = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    model = armpy.load(data, backends=["CpuRef"], memory_limit_bytes=HUGE)
    rows = x.reshape(2, 5).astype(np.float64)
    expected = {
        "AveragePool": rows.sum(axis=1) / HUGE,
        "LpPool": np.sqrt((rows**2).sum(axis=1)),
        "MaxPool": rows.max(axis=1),
    }[kind]
    output = model.run({"x": x})["y"].reshape(2, 4)
    np.testing.assert_allclose(output, np.repeat(expected[:, None], 4, axis=1), rtol=1e-6)
