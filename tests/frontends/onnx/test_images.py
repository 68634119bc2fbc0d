"""Convolutions, pooling and resizing of ONNX files, held against ONNX Runtime."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from tests.support.onnx_nodes import Array, NodeCase, assert_agree, run_reference

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


def _with_gaps() -> Iterator[NodeCase]:
    for rank in (1, 2, 3):
        gaps = {"dilations": [2, 1, 2][:rank], "pads": [1, 1, 0][:rank] + [0, 1, 1][:rank]}
        image = _reals(2, 3, *_SIZES[rank])
        for more in (gaps, {**gaps, "ceil_mode": 1, "strides": [2, 2, 1][:rank]}):
            attributes = _window(rank, **more)
            yield NodeCase("MaxPool", (image,), attributes)
            yield NodeCase("MaxPool", (image,), attributes, outputs=2)
            yield NodeCase("MaxPool", (image,), {**attributes, "storage_order": 1}, outputs=2)
            yield NodeCase("AveragePool", (image,), attributes)
            yield NodeCase("AveragePool", (image,), {**attributes, "count_include_pad": 1})
    image = _RNG.integers(-9, 9, (2, 3, 9, 7)).astype(np.int8)
    for count in (1, 2):
        yield NodeCase("MaxPool", (image,), _window(2), opset=12, outputs=count)


@pytest.mark.parametrize("case", list(_with_gaps()), ids=_name)
def test_windows_with_gaps_and_positions_are_as_onnx_runtime_has_them(case: NodeCase) -> None:
    assert_agree(case)


def _among_neighbours(size: int) -> NodeCase:
    # As many images as channels, as ONNX's reference takes the one for the other.
    more = {"size": size, "alpha": 0.3, "beta": 0.6, "bias": 1.5}
    return NodeCase("LRN", (_reals(7, 7, 2, 3),), more)


def _normalisations() -> Iterator[NodeCase]:
    for size in (1, 3, 21):
        yield _among_neighbours(size)
    for shape in ((2, 4), (2, 4, 5), (2, 4, 3, 5), (2, 4, 3, 2, 5)):
        vectors = (_reals(4), _reals(4))
        statistics = (_reals(4), np.abs(_reals(4)))
        inputs = (_reals(*shape), *vectors, *statistics)
        yield NodeCase("BatchNormalization", inputs, {"epsilon": 0.01})
        if len(shape) > 2:
            yield NodeCase("InstanceNormalization", (_reals(*shape), *vectors), {"epsilon": 0.01})
        for axis in (-1, 1):
            inner = (_reals(*shape[axis:]), _reals(*shape[axis:]))
            rows = (_reals(*shape), *inner)
            yield NodeCase("LayerNormalization", rows, {"axis": axis}, outputs=3)
            yield NodeCase("LayerNormalization", rows[:2], {"axis": axis})
        yield NodeCase("LpNormalization", (_reals(*shape),), {"axis": 1, "p": 1})
        yield NodeCase("LpNormalization", (_reals(*shape),), {"axis": 0, "p": 2})
    yield NodeCase("LpNormalization", (np.zeros((2, 3), np.float32),), {"p": 1})
    yield NodeCase("MeanVarianceNormalization", (_reals(2, 3, 4, 5),))
    yield NodeCase("MeanVarianceNormalization", (_reals(2, 3, 4, 5),), {"axes": [2, 3]})


@pytest.mark.parametrize("case", list(_normalisations()), ids=_name)
def test_normalisations_are_as_onnx_runtime_has_them(case: NodeCase) -> None:
    assert_agree(case)


def _unknown_to_onnx_runtime() -> Iterator[NodeCase]:
    for size in (2, 4, 20):
        yield _among_neighbours(size)
    for shape in ((2, 4, 5), (2, 4, 3, 5), (2, 4, 3, 2, 5)):
        inputs = (_reals(*shape), _reals(4), _reals(4))
        yield NodeCase("GroupNormalization", inputs, {"num_groups": 2})


@pytest.mark.parametrize("case", list(_unknown_to_onnx_runtime()), ids=_name)
def test_normalisations_are_as_onnx_reference_has_them(case: NodeCase) -> None:
    assert_agree(case, reference=run_reference)
