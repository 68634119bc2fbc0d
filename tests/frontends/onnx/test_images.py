"""Convolutions, pooling and resizing of ONNX files, held against ONNX Runtime."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from tests.support.onnx_nodes import Array, NodeCase, assert_agree

_SIZES = {1: (9,), 2: (9, 7), 3: (6, 7, 5)}
_RNG = np.random.default_rng(11)


def _reals(*shape: int) -> Array:
    """Random float32 elements."""
    return _RNG.standard_normal(shape, np.float32)


def _window(rank: int, **more: Any) -> dict[str, Any]:
    """Attributes of windows of 3 over each axis."""
    return {"kernel_shape": [3, 2, 2][:rank], **more}


def _windows(rank: int) -> Iterator[dict[str, Any]]:
    """Attributes of windows in all their forms."""
    yield {}
    yield {"strides": [2, 1, 2][:rank], "pads": [1, 0, 1][:rank] + [0, 1, 1][:rank]}
    yield {"auto_pad": "SAME_UPPER", "strides": [2, 2, 1][:rank]}
    yield {"auto_pad": "SAME_LOWER", "strides": [2, 2, 1][:rank]}
    yield {"auto_pad": "VALID"}


def _convolutions() -> Iterator[NodeCase]:
    for rank, groups in itertools.product((1, 2, 3), (1, 2, 4)):
        for more in (*_windows(rank), {"dilations": [2, 1, 2][:rank]}):
            weights = _reals(8, 4 // groups, *_window(rank)["kernel_shape"])
            image = _reals(2, 4, *_SIZES[rank])
            yield NodeCase("Conv", (image, weights, _reals(8)), {"group": groups, **more})


def _transposed() -> Iterator[NodeCase]:
    for rank, groups in itertools.product((1, 2, 3), (1, 2, 4)):
        for more in (
            *_windows(rank),
            {"dilations": [2, 1, 2][:rank], "strides": [2, 3, 1][:rank]},
            {"strides": [3, 2, 2][:rank], "output_padding": [2, 1, 0][:rank]},
            {"strides": [1, 2, 2][:rank], "pads": [2, 1, 0][:rank] + [1, 1, 1][:rank]},
            {"strides": [2] * rank, "output_shape": [2 * n for n in _SIZES[rank]]},
        ):
            if "auto_pad" in more and max(more.get("strides", [1])) > 1 and rank == 3:
                continue  # ONNX Runtime has other sizes than ONNX's shape inference
            weights = _reals(4, 6 // (2 if groups == 2 else 1), *_window(rank)["kernel_shape"])
            image = _reals(2, 4, *_SIZES[rank])
            filters = weights.shape[1] * groups
            inputs = (image, weights, _reals(filters))
            yield NodeCase("ConvTranspose", inputs, {"group": groups, **more})


def _pools() -> Iterator[NodeCase]:
    for rank in (1, 2, 3):
        image = _reals(2, 3, *_SIZES[rank])
        for more, ceil in itertools.product(_windows(rank), (0, 1)):
            if ceil and "auto_pad" in more:
                continue
            attributes = _window(rank, ceil_mode=ceil, **more)
            yield NodeCase("MaxPool", (image,), attributes)
            yield NodeCase("AveragePool", (image,), attributes)
            yield NodeCase("AveragePool", (image,), {**attributes, "count_include_pad": 1})
            if not ceil:
                yield NodeCase("LpPool", (image,), {**_window(rank, **more), "p": 3})
        for kind in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
            yield NodeCase(kind, (image,))


def _name(case: NodeCase) -> str:
    image = case.inputs[0]
    rank = 0 if image is None else image.ndim - 2
    parts = [case.kind, f"{rank}d", *(f"{name}={what}" for name, what in case.attributes.items())]
    return "-".join(parts).replace(" ", "")


@pytest.mark.parametrize("case", [*_convolutions(), *_transposed(), *_pools()], ids=_name)
def test_windows_are_as_onnx_runtime_has_them(case: NodeCase) -> None:
    assert_agree(case)
