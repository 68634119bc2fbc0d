"""Samples of operators with weights, and of windows, reductions, normalisation and images."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from armpy_testing.models.tflite_writer import OptionValue, SparseDimension, Sparsity
from tests.differential.tflite_samples.making import EVERY, QUANTIZED, Arg, Draw, Family, One, ints

WEIGHTED = (
    *("FLOAT32", "FLOAT64", "FLOAT16"),
    *("FLOAT32 of INT8", "FLOAT32 of INT8 per channel", "FLOAT32 of UINT8", "FLOAT32 of INT4"),
    *("FLOAT32 of INT4 per channel", "FLOAT32 of FLOAT16"),
    *("INT8", "INT8 of INT8 per channel", "INT8 of INT4", "INT8 of INT4 per channel"),
    *("UINT8", "INT16 of INT8", "INT16 of INT8 per channel", "INT16 of INT8, bias INT32"),
    *("INT16 of INT4", "INT16 of INT4 per channel", "FLOAT32 of sparse FLOAT32"),
    *("FLOAT32 of INT8, asymmetric", "INT8 of INT8, no bias", "FLOAT32, no bias"),
    *("FLOAT32 of sparse INT8", "INT8 of sparse INT8", "INT8 to INT16", "INT16 to INT8"),
)
"""Kinds of input, of weights where these differ, and how they are quantised."""

_INPUTS: dict[str, tuple[str, float, int]] = {
    "INT8": ("INT8", 0.03, -4),
    "UINT8": ("UINT8", 0.03, 124),
    "INT16": ("INT16", 0.0002, 0),
}


def _parts(kind: str) -> tuple[str, str, bool, str]:
    """Types of input and weights, whether these have a scale per channel, what else is said."""
    kind, _, more = kind.partition(", ")
    of, _, weights = kind.split(" to ")[0].partition(" of ")
    per_channel = weights.endswith(" per channel")
    weights = weights.removesuffix(" per channel")
    if kind.startswith("INT8 to") or kind.startswith("INT16 to"):
        weights = "INT8"
    return of, weights or of, per_channel, more


def packed(values: np.ndarray, bits: int) -> bytes:
    """Elements of 4 or 2 bits, the first ones in the lowest bits."""
    per_byte = 8 // bits
    flat = np.zeros(-(-values.size // per_byte) * per_byte, np.uint8)
    flat[: values.size] = values.reshape(-1).astype(np.uint8) & (2**bits - 1)
    shifted = flat.reshape(-1, per_byte) << np.arange(0, 8, bits, dtype=np.uint8)
    return bytes(np.bitwise_or.reduce(shifted, axis=1).astype(np.uint8))


def sparse(arg: Arg) -> Arg:
    """A matrix or filter, of which a part is 0, with its last axis stored sparsely."""
    assert arg.values is not None
    values = arg.values * (np.arange(arg.values.size).reshape(arg.values.shape) % 3 == 0)
    values = values.astype(arg.values.dtype)
    rows = values.reshape(-1, values.shape[-1])
    segments, indices, nonzero = [0], [], []
    for row in rows:
        places = np.flatnonzero(row)
        indices += places.tolist()
        nonzero += row[places].tolist()
        segments.append(len(indices))
    rank = values.ndim
    dimensions = [SparseDimension(size) for size in values.shape[:-1]]
    last = SparseDimension(segments=tuple(segments), indices=tuple(indices))
    sparsity = Sparsity(tuple(range(rank)), (*dimensions, last))
    raw = np.array(nonzero, values.dtype).tobytes()
    return replace(arg, values=values, raw=raw, sparsity=sparsity, is_constant=True)


def weights_of(draw: Draw, shape: tuple[int, ...], axis: int) -> tuple[str, Arg, bool, str]:
    """Type of the input, the weights, and the other properties of the kind."""
    of, kind, per_channel, more = _parts(draw.kind)
    is_sparse, kind = kind.startswith("sparse "), kind.removeprefix("sparse ")
    if kind.startswith("FLOAT"):
        arg = draw(*shape, kind=kind, low=-1, high=1)
    else:
        scale: float | list[float] = 0.02
        if per_channel:
            scale = [0.01 * (1 + i % 3) for i in range(shape[axis])]
        reach = {"INT4": 7}.get(kind, 127)
        quantised = f"{kind} quantised"
        zero_point = 118 if kind == "UINT8" else 0
        low = 0 if kind == "UINT8" else -reach
        arg = draw(
            *shape, kind=quantised, low=low, high=reach + 1, scale=scale, zero_point=zero_point
        )
        arg = replace(arg, axis=axis)
        bits = 4 if kind == "INT4" else None
        if bits is not None and arg.values is not None:
            arg = replace(arg, raw=packed(arg.values, bits))
    arg = sparse(arg) if is_sparse else arg
    return of, arg.constant, per_channel, more


def _input(draw: Draw, of: str, *shape: int) -> Arg:
    """The input of a weighted operator."""
    if of not in _INPUTS:
        return draw(*shape, kind=of)
    _, scale, zero_point = _INPUTS[of]
    return draw(*shape, kind=f"{of} quantised", scale=scale, zero_point=zero_point)


def _bias(draw: Draw, source: Arg, weights: Arg, count: int, more: str) -> Arg | None:
    """The bias that goes with input and weights."""
    if "no bias" in more:
        return None
    if source.scale is None:
        return draw(count, kind="FLOAT32" if source.type == "FLOAT16" else source.type).constant
    kind = "INT64" if source.type == "INT16" and "INT32" not in more else "INT32"
    scales = np.atleast_1d(np.asarray(weights.scale)) * np.asarray(source.scale)
    values = draw.rng.integers(-300, 300, count).astype(kind.lower())
    scale = scales.tolist() if scales.size > 1 else float(scales[0])
    return Arg(kind, values, scale=scale, is_constant=True)


def _output(draw: Draw, of: str) -> Arg:
    """The output of a weighted operator."""
    target = draw.kind.partition(" to ")[2] or of
    if target not in _INPUTS:
        return draw.out(of)
    _, _, zero_point = _INPUTS[target]
    return draw.out(
        f"{target} quantised", scale=0.0008 if target == "INT16" else 0.2, zero_point=zero_point
    )


_WINDOW: dict[str, OptionValue] = {"padding": "SAME", "stride_w": 1, "stride_h": 2}


def _convolved(
    draw: Draw,
    image: tuple[int, ...],
    shape: tuple[int, ...],
    axis: int,
    options: dict[str, OptionValue],
    version: int = 3,
) -> One:
    """A convolution of some kind."""
    of, weights, _, more = weights_of(draw, shape, axis)
    source = _input(draw, of, *image)
    bias = _bias(draw, source, weights, shape[axis], more)
    tolerance = 0.02 if of == "FLOAT32" and weights.scale is not None else 1e-5
    out = _output(draw, of)
    if "bias INT32" in more and draw.operator == "CONV_2D":
        options = options | {"quantized_bias_type": "INT32"}
    return One([source, weights, bias], [out], options, version, steps=1, tolerance=tolerance)


def _conv(operator: str, draw: Draw) -> Iterator[One]:
    fused: dict[str, OptionValue] = {"fused_activation_function": "RELU6"}
    yield _convolved(draw, (2, 6, 5, 4), (3, 3, 3, 4), 0, _WINDOW | fused)
    if "sparse" not in draw.kind:
        yield _convolved(draw, (1, 5, 5, 4), (4, 1, 1, 4), 0, _WINDOW | {"stride_h": 1})
        yield _convolved(draw, (1, 5, 5, 4), (4, 3, 3, 2), 0, _WINDOW | {"stride_h": 1})


def _depthwise(operator: str, draw: Draw) -> Iterator[One]:
    options = _WINDOW | {"stride_w": 2, "depth_multiplier": 1}
    yield _convolved(draw, (2, 6, 5, 4), (1, 3, 3, 4), 3, options)
    options = options | {"depth_multiplier": 2, "stride_h": 1, "stride_w": 1}
    yield _convolved(draw, (1, 6, 5, 2), (1, 3, 3, 4), 3, options)


def _transposed(operator: str, draw: Draw) -> Iterator[One]:
    of, weights, _, more = weights_of(draw, (3, 3, 3, 4), 0)
    source = _input(draw, of, 1, 3, 2, 4)
    bias = _bias(draw, source, weights, 3, more)
    options: dict[str, OptionValue] = {"padding": "SAME", "stride_h": 2, "stride_w": 2}
    args = [ints(1, 6, 4, 3), weights, source, *([] if bias is None else [bias])]
    if "bias INT32" in more:
        options["quantized_bias_type"] = "INT32"
    tolerance = 0.02 if of == "FLOAT32" and weights.scale is not None else 1e-5
    yield One(args, [_output(draw, of)], options, 3, steps=1, tolerance=tolerance)


def _dense(operator: str, draw: Draw) -> Iterator[One]:
    of, weights, _, more = weights_of(draw, (3, 8), 0)
    source = _input(draw, of, 5, 8)
    bias = _bias(draw, source, weights, 3, more)
    options: dict[str, OptionValue] = {
        "fused_activation_function": "RELU",
        "asymmetric_quantize_inputs": "asymmetric" in more,
    }
    if "bias INT32" in more:
        options["quantized_bias_type"] = "INT32"
    tolerance = 0.02 if of == "FLOAT32" and weights.scale is not None else 1e-5
    out = _output(draw, of)
    yield One([source, weights, bias], [out], options, 9, steps=1, tolerance=tolerance)


def _volumes(operator: str, draw: Draw) -> Iterator[One]:
    options: dict[str, OptionValue] = {"padding": "SAME", "stride_d": 1, "stride_h": 2}
    options |= {"stride_w": 2}
    if operator == "CONV_3D":
        for bias in ([], [draw(3).constant]):
            args = [draw(1, 3, 4, 5, 2), draw(2, 2, 3, 2, 3).constant, *bias]
            yield One(args, [draw.out()], options)
    else:
        for bias in ([], [draw(3).constant]):
            shape = ints(1, 3, 4, 6, 3)
            args = [shape, draw(2, 2, 3, 3, 2).constant, draw(1, 3, 2, 3, 2), *bias]
            yield One(args, [draw.out()], options)


def _products(operator: str, draw: Draw) -> Iterator[One]:
    of, kind, _, more = _parts(draw.kind)
    if kind.startswith("FLOAT32 of"):
        return
    source = _input(draw, of, 2, 3, 4)
    weights = _input(draw, kind, 2, 4, 5)
    if of == "FLOAT32" and kind == "INT8":
        weights = draw(2, 4, 5, kind="INT8 quantised", scale=0.02, zero_point=0).constant
    target = draw.out("INT32") if "to INT32" in more else _output(draw, of)
    options: dict[str, OptionValue] = {"adj_x": False, "adj_y": False}
    options["asymmetric_quantize_inputs"] = "asymmetric" in more
    tolerance = 0.02 if kind == "INT8" and of == "FLOAT32" else 1e-5
    yield One([source, weights], [target], options, 4, steps=1, tolerance=tolerance)
    if of == kind:
        options = options | {"adj_y": True}
        weights = _input(draw, kind, 1, 5, 4)
        yield One([source, weights], [target], options, 4, steps=1, tolerance=tolerance)


def _pool(operator: str, draw: Draw) -> Iterator[One]:
    options = _WINDOW | {"filter_width": 2, "filter_height": 3, "fused_activation_function": "RELU"}
    version = 1 if operator == "L2_POOL_2D" else 2
    yield One([draw(2, 6, 5, 3)], [draw.out()], options, version, steps=1)


def _reduce(operator: str, draw: Draw) -> Iterator[One]:
    low, high = (1, 3) if operator == "REDUCE_PROD" and draw.kind not in QUANTIZED else (None, None)
    for axes, keeps in (((1,), True), ((0, 2), False)):
        options: dict[str, OptionValue] = {"keep_dims": keeps}
        is_sum = operator in ("SUM", "MEAN", "REDUCE_PROD")
        source = draw(2, 3, 4, low=low, high=high)
        out = draw.out(scale=0.2 if operator == "SUM" and draw.kind in QUANTIZED else None)
        yield One([source, ints(*axes)], [out], options, 2, steps=int(is_sum))


def _position(operator: str, draw: Draw) -> Iterator[One]:
    for kind in ("INT32", "INT64"):
        source = draw(2, 3, 9)
        yield One([source, ints(2, shape=())], [draw.out(kind)], {"output_type": kind})
        yield One(
            [source, ints(1, kind="INT64", shape=())], [draw.out(kind)], {"output_type": kind}
        )


def _softmax(operator: str, draw: Draw) -> Iterator[One]:
    points = {"INT8": (1 / 256, -128), "UINT8": (1 / 256, 0), "INT16": (1 / 32768, 0)}
    scale, zero_point = points.get(draw.kind.split()[0], (None, None))
    source = draw(3, 8, scale=None if "16" not in draw.kind else 0.001)
    if operator == "LOG_SOFTMAX":
        scale, zero_point = 16 / 256, {"INT8": 127, "UINT8": 255}.get(draw.kind.split()[0], 0)
        yield One([source], [draw.out(scale=scale, zero_point=zero_point)], steps=1)
        return
    yield One([source], [draw.out(scale=scale, zero_point=zero_point)], {"beta": 1.0}, steps=1)


def _softmax_to_16(operator: str, draw: Draw) -> Iterator[One]:
    out = draw.out("INT16 quantised", scale=1 / 65536, zero_point=-32768)
    yield One([draw(3, 8, kind="INT8 quantised")], [out], {"beta": 1.0}, steps=1)


def _unit(operator: str, draw: Draw) -> Iterator[One]:
    points = {"INT8": (1 / 128, 0), "UINT8": (1 / 128, 128)}
    scale, zero_point = points.get(draw.kind.split()[0], (None, None))
    yield One([draw(3, 8)], [draw.out(scale=scale, zero_point=zero_point)], {}, steps=1)


def _resize(operator: str, draw: Draw) -> Iterator[One]:
    for corners, centers in ((False, False), (True, False), (False, True)):
        options: dict[str, OptionValue] = {"align_corners": corners, "half_pixel_centers": centers}
        yield One([draw(1, 3, 4, 2), ints(5, 6)], [draw.out()], options, 3, steps=1)


def _projection(operator: str, draw: Draw) -> Iterator[One]:
    for kind in ("SPARSE", "DENSE"):
        args = [draw(3, 4, kind="FLOAT32").constant, draw(5, 2), draw(5, kind="FLOAT32", low=0)]
        yield One(args, [draw.out("INT32")], {"type": kind})


def _densify(operator: str, draw: Draw) -> Iterator[One]:
    yield One([sparse(draw(4, 6))], [draw.out()], {})


FAMILY: Family = [
    (("DENSIFY",), ("FLOAT32", "FLOAT16", "INT8 quantised"), _densify),
    (("CONV_2D",), WEIGHTED, _conv),
    (("DEPTHWISE_CONV_2D",), WEIGHTED, _depthwise),
    (("TRANSPOSE_CONV",), WEIGHTED, _transposed),
    (("FULLY_CONNECTED",), WEIGHTED, _dense),
    (("CONV_3D", "CONV_3D_TRANSPOSE"), EVERY, _volumes),
    (
        ("BATCH_MATMUL",),
        (
            *("FLOAT32", "INT8", "INT16", "UINT8", "FLOAT32 of INT8", "FLOAT16", "INT32"),
            *("FLOAT32 of INT8, asymmetric", "INT8, to INT32", "INT16 of INT8"),
        ),
        _products,
    ),
    (("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"), EVERY, _pool),
    (
        (
            *("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ANY"),
            "REDUCE_ALL",
        ),
        EVERY,
        _reduce,
    ),
    (("ARG_MAX", "ARG_MIN"), EVERY, _position),
    (("SOFTMAX", "LOG_SOFTMAX"), EVERY, _softmax),
    (("SOFTMAX",), ("INT8 to INT16",), _softmax_to_16),
    (("L2_NORMALIZATION",), EVERY, _unit),
    (("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"), EVERY, _resize),
    (("LSH_PROJECTION",), ("FLOAT32", "INT32", "INT64", "INT8", "UINT8"), _projection),
]
