"""Convolutions, pooling and resizing of ONNX files, held against ONNX Runtime."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import armpy
from armpy.errors import ParserError
from armpy.ops.shapes import Padding

from .onnx_nodes import Array, NodeCase, assert_agree, case_name, run_armpy, run_reference

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


@pytest.mark.parametrize(
    ("case", "name"),
    [
        (NodeCase("Conv", (_reals(1, 3, 8), _reals(4, 3, 2))), "Convolution2d"),
        (NodeCase("Conv", (_reals(1, 3, 8, 9), _reals(4, 3, 2, 3))), "Convolution2d"),
        (
            NodeCase("Conv", (_reals(1, 3, 8, 9), _reals(3, 1, 2, 3)), {"group": 3}),
            "DepthwiseConvolution2d",
        ),
        (NodeCase("Conv", (_reals(1, 3, 5, 8, 9), _reals(4, 3, 2, 2, 3))), "Convolution3d"),
        (NodeCase("MaxPool", (_reals(1, 3, 8, 9),), {"kernel_shape": [2, 3]}), "Pooling2d"),
    ],
)
def test_windows_without_padding_are_valid_as_backends_know_it(case: NodeCase, name: str) -> None:
    with armpy.load(case.model.SerializeToString(), backends=["CpuRef"]) as model:
        (padding,) = (
            layer.operation.padding  # type: ignore[attr-defined]
            for layer in model.graph.layers
            if layer.operation.name == name
        )
    assert padding is Padding.VALID


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


def _among_neighbours(size: int) -> NodeCase:
    # As many images as channels, as ONNX's reference takes the one for the other.
    more = {"size": size, "alpha": 0.3, "beta": 0.6, "bias": 1.5}
    return NodeCase("LRN", (_reals(7, 7, 2, 3),), more)


def _normalisations() -> Iterator[NodeCase]:
    for size in (1, 3, 21):
        yield _among_neighbours(size)
    shapes: Sequence[tuple[int, ...]] = ((2, 4), (2, 4, 5), (2, 4, 3, 2, 5))
    for shape in (shapes[0], shapes[2]):
        statistics = (_reals(4), _reals(4), _reals(4), np.abs(_reals(4)))
        yield NodeCase("BatchNormalization", (_reals(*shape), *statistics), {"epsilon": 0.01})
        yield NodeCase("LayerNormalization", (_reals(*shape), _reals(*shape[1:])), {"axis": 1})
    for shape in shapes[1:]:
        inputs = (_reals(*shape), _reals(4), _reals(4))
        yield NodeCase("InstanceNormalization", inputs, {"epsilon": 0.01})
    yield NodeCase("LpNormalization", (_reals(2, 4, 5),), {"axis": 1, "p": 1})
    yield NodeCase("LpNormalization", (np.zeros((2, 3), np.float32),), {"p": 1})
    yield NodeCase("MeanVarianceNormalization", (_reals(2, 3, 4, 5),), {"axes": [2, 3]})


def _unknown_to_onnx_runtime() -> Iterator[NodeCase]:
    for size in (2, 20):
        yield _among_neighbours(size)
    for shape in ((2, 4, 5), (2, 4, 3, 2, 5)):
        inputs = (_reals(*shape), _reals(4), _reals(4))
        yield NodeCase("GroupNormalization", inputs, {"num_groups": 2})
    more = {"strides": [2, 1], "pads": [1, 0, 1, 1], "dilations": [1, 2]}
    for groups, parts in ((1, 1), (2, 4)):
        offsets = 2 * _reals(2, parts * 2 * 6, 3, 5)
        mask = _RNG.uniform(0, 1, (2, parts * 6, 3, 5)).astype(np.float32)
        image, filters = _reals(2, 4, 6, 6), _reals(6, 4 // groups, 3, 2)
        arrays = (image, filters, offsets, _reals(6), mask)
        yield NodeCase("DeformConv", arrays, {"group": groups, "offset_group": parts, **more}, 19)


def _resizes() -> Iterator[NodeCase]:
    """Resize with scales and sizes, of images, lines and volumes."""
    empty = np.array([], np.float32)
    transformations = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
    for shape, sizes in (
        ((1, 2, 6, 5), (1, 2, 9, 15)),
        ((1, 2, 6, 5), (1, 2, 3, 2)),
        ((2, 3, 8), (2, 3, 12)),
        ((1, 2, 4, 6, 5), (1, 2, 8, 3, 10)),
    ):
        image, wanted = _reals(*shape), np.array(sizes, np.int64)
        for transformation in transformations:
            more = {"coordinate_transformation_mode": transformation}
            for mode in ("nearest", "linear", "cubic"):
                if mode == "cubic" and len(shape) != 4:
                    continue
                inputs = (image, None, None, wanted)
                yield NodeCase("Resize", inputs, {"mode": mode, **more}, constants=(3,))
            for rounding in ("floor", "ceil", "round_prefer_ceil"):
                more["nearest_mode"] = rounding
                yield NodeCase("Resize", (image, None, None, wanted), more, constants=(3,))
    for mode in ("nearest", "linear", "cubic"):  # sizes that arrive with each call
        inputs = (_reals(1, 1, 4, 4), None, None, np.array([1, 1, 7, 4]))
        yield NodeCase("Resize", inputs, {"mode": mode})
    image = _reals(1, 2, 6, 5)
    # Five elements times the last factor are less than 14 except in float32.
    for scales in ((1.0, 1.0, 2.0, 3.0), (1.0, 1.0, 0.5, 0.6), (1.0, 1.0, 1.3, 2.8)):
        factors = np.array(scales, np.float32)
        for mode in ("nearest", "linear"):
            for transformation in ("align_corners", "tf_crop_and_resize"):  # without a region
                more = {"mode": mode, "coordinate_transformation_mode": transformation}
                yield NodeCase("Resize", (image, None, factors), more, 13, (2,))
            yield NodeCase("Resize", (image, factors), {"mode": mode}, 10, (1,))
            yield NodeCase("Resize", (image, empty, factors), {"mode": mode}, 11, (1, 2))
            upsampled = (image, np.maximum(factors, 1))
            yield NodeCase("Upsample", upsampled, {"mode": mode}, 9, (1,))
            older = {"mode": mode, "scales": list(map(float, upsampled[1]))}
            yield NodeCase("Upsample", (image,), older, 7)
    for mode in ("linear", "cubic"):
        for exclude in (0, 1):
            attributes = {"mode": mode, "antialias": 1, "exclude_outside": exclude}
            inputs = (_reals(1, 2, 17, 9), None, None, np.array([1, 2, 5, 4], np.int64))
            yield NodeCase("Resize", inputs, attributes, 18, (3,))
    integers = _RNG.integers(0, 255, (1, 2, 4, 4)).astype(np.uint8)
    yield NodeCase("Resize", (integers, None, np.array([1, 1, 2, 2], np.float32)), {}, 13, (2,))


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_regions_of_batches_and_channels_have_no_effect(mode: str) -> None:
    """As in ONNX Runtime, which interpolates images and volumes along their inner axes."""
    sizes = (4, 6, 5)[-2 if mode == "cubic" else 0 :]
    axes = len(sizes) + 2
    region = np.array([*[0.0] * axes, 1, 2, *[0.9] * len(sizes)], np.float32)
    scales = np.array([1, 1, *[2] * len(sizes)], np.float32)
    attributes = {"coordinate_transformation_mode": "tf_crop_and_resize", "mode": mode}
    assert_agree(NodeCase("Resize", (_reals(1, 2, *sizes), region, scales), attributes, 13, (1, 2)))


def _samples() -> Iterator[NodeCase]:
    for mode, padding, aligned in itertools.product(
        ("linear", "nearest", "cubic"), ("zeros", "border", "reflection"), (0, 1)
    ):
        attributes = {"mode": mode, "padding_mode": padding, "align_corners": aligned}
        places = _RNG.uniform(-2.5, 2.5, (2, 7, 9, 2)).astype(np.float32)
        yield NodeCase("GridSample", (_reals(2, 3, 6, 5), places), attributes)
    corners = _RNG.uniform(0, 10, (2, 40, 4)).astype(np.float32)
    scores = _RNG.uniform(0, 1, (2, 3, 40)).astype(np.float32)
    limits: list[Array] = [
        np.array([5], np.int64),
        np.array([0.4], np.float32),
        np.array([0.3], np.float32),
    ]
    for count, centres in itertools.product((2, 3), (0, 1)):
        inputs: list[Array] = [corners, scores, *limits[:count]]
        more = {"center_point_box": centres}
        yield NodeCase("NonMaxSuppression", inputs, more, 11, tuple(range(2, len(inputs))))
    for least in (-np.inf, np.inf):
        inputs = [corners, scores, *limits[:2], np.array([least], np.float32)]
        yield NodeCase("NonMaxSuppression", inputs, {}, 11, (2, 3, 4))


def _regions() -> Iterator[NodeCase]:
    corners = np.sort(_RNG.uniform(-3, 45, (6, 2, 2)), axis=1).reshape(6, 4).astype(np.float32)
    batches = np.array([0, 1, 1, 0, 0, 1], np.int64)
    image = _reals(2, 3, 12, 10)
    for mode, ratio, half in itertools.product(
        ("avg", "max"), (0, 2), ("half_pixel", "output_half_pixel")
    ):
        attributes = {
            **{"output_height": 3, "output_width": 2, "spatial_scale": 0.25},
            **{"mode": mode, "sampling_ratio": ratio, "coordinate_transformation_mode": half},
        }
        if mode == "avg" or ratio:  # ONNX Runtime has a largest number of no samples
            yield NodeCase("RoiAlign", (image, corners, batches), attributes, 16)
    inner = np.clip(np.rint(corners), 0, 39)
    rows = np.concatenate([batches[:, None], inner], axis=1).astype(np.float32)
    sizes = {"pooled_shape": [2, 3], "spatial_scale": 0.25}
    yield NodeCase("MaxRoiPool", (image, rows), sizes)
    for more in ({}, {"strides": [2, 1]}, {"pads": [1, 0, 1, 1], "dilations": [1, 2]}):
        block = np.array([3, 2], np.int64)
        counts = [
            (size + more.get("pads", [0] * 4)[at] + more.get("pads", [0] * 4)[at + 2] - reach)
            // more.get("strides", [1, 1])[at]
            + 1
            for at, (size, reach) in enumerate(
                zip((6, 7), (3, 1 + more.get("dilations", [1, 1])[1]), strict=True)
            )
        ]
        columns = _reals(2, 3 * 6, int(np.prod(counts)))
        inputs = (columns, np.array([6, 7], np.int64), block)
        yield NodeCase("Col2Im", inputs, more, constants=(1, 2))


def _fused() -> Iterator[NodeCase]:
    inputs = (_reals(1, 2, 5, 5), _reals(3, 2, 3, 3), _reals(3))
    for activation, numbers in {
        "Relu": [],
        "Tanh": [],
        "Sigmoid": [],
        "LeakyRelu": [0.2],
        "Clip": [-0.5, 1.5],
        "HardSigmoid": [0.3, 0.4],
    }.items():
        more: dict[str, Any] = {"activation_params": numbers} if numbers else {}
        for others in ((), (_reals(1, 3, 3, 3),)):
            arrays = (*inputs, *others)
            yield NodeCase("com.microsoft.FusedConv", arrays, {"activation": activation, **more})


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "case",
    [*_convolutions(), *_transposed(), *_pools(), *_with_gaps(), *_resizes(), *_samples()],
    ids=case_name,
)
def test_windows_and_places_are_as_onnx_runtime_has_them(case: NodeCase) -> None:
    assert_agree(case, rtol=1e-3 if case.kind == "GridSample" else 1e-4)


@pytest.mark.parametrize("case", [*_normalisations(), *_regions(), *_fused()], ids=case_name)
def test_other_forms_are_as_onnx_runtime_has_them(case: NodeCase) -> None:
    assert_agree(case)


@pytest.mark.slow
@pytest.mark.parametrize("case", [*_unknown_to_onnx_runtime()], ids=case_name)
def test_forms_without_a_kernel_of_onnx_runtime_are_as_onnx_s_reference_has_them(
    case: NodeCase,
) -> None:
    assert_agree(case, reference=run_reference)


_IMAGE = _reals(1, 4, 6, 6)
_FILTERS = _reals(4, 2, 3, 3)


@pytest.mark.parametrize(
    ("case", "match"),
    [
        (NodeCase("Conv", (_reals(4, 6), _FILTERS)), "rank"),
        (NodeCase("Conv", (_reals(1, 4, 2, 2, 2, 2), _FILTERS)), "rank"),
        (NodeCase("Conv", (_IMAGE, _FILTERS), {"group": 3}), "groups"),
        (
            NodeCase("Conv", (_IMAGE, _FILTERS), {"group": 2, "kernel_shape": [3, 2]}),
            "kernel_shape",
        ),
        (NodeCase("Conv", (_IMAGE, _FILTERS), {"group": 2, "strides": [0, 1]}), "strides"),
        (NodeCase("Conv", (_IMAGE, _FILTERS), {"group": 2, "pads": [-1, 0, 0, 0]}), "pads"),
        (NodeCase("Conv", (_IMAGE, _FILTERS), {"group": 2, "auto_pad": "SAME"}), "auto_pad"),
        (NodeCase("ConvTranspose", (_IMAGE, _reals(3, 2, 3, 3))), "groups"),
        (NodeCase("ConvTranspose", (_IMAGE, _FILTERS), {"pads": [9, 9, 9, 9]}), "nothing is left"),
        (NodeCase("MaxPool", (_IMAGE,), {"kernel_shape": [3]}), "kernel_shape"),
        (NodeCase("MaxPool", (_IMAGE,), {"kernel_shape": [2, 2], "pads": [2] * 4}), "padding"),
        (NodeCase("LpPool", (_IMAGE,), {"kernel_shape": [2, 2], "p": 0}), "'p'"),
        (NodeCase("LpNormalization", (_IMAGE,), {"p": 3}), "'p'"),
        (NodeCase("BatchNormalization", (_IMAGE, *[_reals(3)] * 4)), "per channel"),
        (NodeCase("GroupNormalization", (_IMAGE, *[_reals(4)] * 2), {"num_groups": 3}), "groups"),
        (NodeCase("LayerNormalization", (_IMAGE, _reals(6)), {"axis": 4}), "axis"),
        (NodeCase("LayerNormalization", (_IMAGE, _reals(5))), "broadcast"),
        (
            NodeCase("Resize", (_IMAGE, None, np.array([1, 2], np.float32)), {}, 18, (2,)),
            "per axis",
        ),
        (
            NodeCase("Resize", (_IMAGE, None, np.array([1, 1, 0, 1], np.float32)), {}, 18, (2,)),
            "scale",
        ),
        (
            NodeCase("Resize", (_IMAGE, None, np.array([1, 1, 1e9, 1], np.float32)), {}, 18, (2,)),
            "too large",
        ),
        (NodeCase("GridSample", (_IMAGE, _reals(2, 3, 3, 2))), "one grid per image"),
        (NodeCase("GridSample", (_IMAGE, _reals(1, 3, 3, 2)), {"mode": "other"}), "'mode'"),
        (NodeCase("Det", (_reals(2, 3),)), "square"),
        (NodeCase("RoiAlign", (_IMAGE, _reals(2, 5), np.array([0, 0]))), "rois"),
    ],
)
def test_nodes_that_make_no_sense_are_named(case: NodeCase, match: str) -> None:
    with pytest.raises(ParserError, match=match) as error:
        run_armpy(case)
    assert case.kind in str(error.value)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("sizes", [False, True])
def test_an_empty_batch_is_resized(mode: str, sizes: bool) -> None:
    """Its axis stays; it cannot become longer."""
    wanted = np.array([0, 3, 8, 6]) if sizes else np.array([1, 1, 2, 1.5], np.float32)
    for number in (0, 4):
        if sizes and number:
            wanted = np.array([4, 3, 8, 6])
        (output,) = run_armpy(_resize_of(number, wanted, mode))
        assert output.shape == (number, 3, 8, 6)
    with pytest.raises(ParserError, match="an axis without elements cannot be resized"):
        run_armpy(_resize_of(0, np.array([1, 3, 8, 6]), mode))


def _resize_of(number: int, wanted: Array, mode: str) -> NodeCase:
    """A node that resizes images."""
    inputs = [np.ones((number, 3, 4, 4), np.float32), None, None, wanted]
    if wanted.dtype.kind == "f":
        del inputs[1]
    return NodeCase("Resize", inputs, {"mode": mode}, constants=(len(inputs) - 1,))
