"""Sizes in small files do not keep converters busy: limits come before tables are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

import armpy
from armpy.errors import ParserError

from .onnx_nodes import Array, NodeCase, run_armpy

RUNTIME = armpy.Runtime(armpy.RuntimeOptions(backends=["CpuRef"]))
TOO_LARGE = (
    "table that is too large|needs too much memory|dimensions that no array can have"
    "|larger than the memory limit"
)


def load(
    kind: str,
    shape: Sequence[int],
    *constants: Array | None,
    outputs: int = 1,
    **attributes: Any,
) -> None:
    """Load a model of one node whose first input has a shape, and the others are constants."""
    x = np.broadcast_to(np.float32(0), shape)  # which takes no memory
    numbers = tuple(range(1, len(constants) + 1))
    case = NodeCase(kind, [x, *constants], attributes, 21, numbers, outputs)
    armpy.load(case.model.SerializeToString(), front_end="onnx", runtime=RUNTIME).close()


def resize(scale: float, shape: tuple[int, ...], **attributes: Any) -> None:
    """Resize along the last axis."""
    scales = np.array([*(1,) * (len(shape) - 1), scale], np.float32)
    load("Resize", shape, None, scales, **attributes)


def integers(*numbers: int) -> Array:
    """A constant."""
    return np.array(numbers, np.int64)


def load_mels(num_bins: int, length: int) -> None:
    """Load a matrix of weights of tones, all of whose operands are constants."""
    numbers = [np.array(number) for number in (num_bins, length, 8192)]
    edges = [np.array(edge, np.float32) for edge in (0, 4000)]
    run_armpy(NodeCase("MelWeightMatrix", [*numbers, *edges], constants=(0, 1, 2, 3, 4)))


CASES: Mapping[str, Callable[[], None]] = {
    "long lines": lambda: resize(5e7, (1, 1, 2), mode="linear"),
    "long lines of steps": lambda: resize(5e8, (1, 1, 2), mode="nearest"),
    "wide filters": lambda: resize(1e-5, (1, 1, 1 << 27), mode="cubic", antialias=1),
    "matrices of filters": lambda: resize(1e-2, (1, 1, 1 << 20), mode="linear", antialias=1),
    "grids": lambda: load("AffineGrid", (1, 2, 3), integers(1, 1, 1 << 14, 1 << 14)),
    "patches": lambda: load("Col2Im", (1, 25, 1 << 24), integers(4100, 4100), integers(5, 5)),
    "weights of tones": lambda: load_mels(1 << 15, 1 << 14),
    "frames": lambda: load("STFT", (1, 1 << 20, 1), np.array(1), None, np.array(1 << 12)),
    "images with positions": lambda: load(
        "MaxPool", (1 << 31, 1 << 10, 1, 1), outputs=2, kernel_shape=[1, 1]
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
    attributes |= {"kernel_shape": [HUGE, *side[1:]], "strides": [HUGE // 4, *side[1:]]}
    attributes |= {"pads": ([HUGE - 5] + [0] * (axes - 1)) * 2, "ceil_mode": ceil_mode}
    x = np.arange(1, 11, dtype=np.float32).reshape(1, 2, *side)
    data = NodeCase(kind, [x], attributes, 22).model.SerializeToString()
    model = armpy.load(data, backends=["CpuRef"], memory_limit_bytes=HUGE)
    rows = x.reshape(2, 5).astype(np.float64)
    expected = {
        "AveragePool": rows.sum(axis=1) / HUGE,
        "LpPool": np.sqrt((rows**2).sum(axis=1)),
        "MaxPool": rows.max(axis=1),
    }[kind]
    output = np.asarray(model(x)).reshape(2, 4)
    np.testing.assert_allclose(output, np.repeat(expected[:, None], 4, axis=1), rtol=1e-6)
