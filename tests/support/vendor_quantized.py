"""Faults of kernels for 8 bits: requantising, rounding, tiles."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from tests.support.planted_faults import (
    Call,
    Fault,
)
from tests.support.vendor_numbers import (
    BINARY,
    CONV,
    DEPTHWISE,
    attribute,
    both,
    info,
    is_padded,
    is_uneven,
    kind,
    many,
    shape_of,
    wrong,
)

# --- Whole numbers


def is_quantized(call: Call) -> bool:
    return call.results[0].quantization is not None and call.outputs[0].dtype.itemsize == 1


def scale(of: TensorInfo) -> float:
    assert of.quantization is not None
    return of.quantization.scales[0]


def zero(of: TensorInfo) -> int:
    return 0 if of.quantization is None else of.quantization.zero_points[0]


def per_channel(call: Call) -> bool:
    found = call.infos[1] if len(call.infos) > 1 else None
    return (
        is_quantized(call)
        and found is not None
        and found.quantization is not None
        and len(found.quantization.scales) > 1
    )


def first_scale(call: Call) -> None:
    """All channels have the scale of the first."""
    found = info(call, 1).quantization
    assert found is not None
    scales = np.array(found.scales)
    result, output = call.results[0], call.outputs[0]
    ratio = np.divide(scales[0], scales, out=np.ones_like(scales), where=scales != 0)
    if len(scales) == output.shape[-1]:
        moved = (output.astype(np.float64) - zero(result)) * ratio + zero(result)
        low, high = result.data_type.integer_range
        output[...] = np.clip(np.rint(moved), low, high)


def lowest_wraps(call: Call) -> None:
    low, high = np.iinfo(call.outputs[0].dtype).min, np.iinfo(call.outputs[0].dtype).max
    call.outputs[0][call.outputs[0] == low] = high


def highest_wraps(call: Call) -> None:
    low, high = np.iinfo(call.outputs[0].dtype).min, np.iinfo(call.outputs[0].dtype).max
    call.outputs[0][call.outputs[0] == high] = low


def without_lowest(call: Call) -> None:
    """Symmetric range for everything."""
    if call.outputs[0].dtype == np.int8:
        np.maximum(call.outputs[0], -127, out=call.outputs[0])


def quantized_by(function: Callable[[Array], Array]) -> Callable[[Call], None]:
    def effect(call: Call) -> None:
        result, x = call.results[0], call.inputs[0]
        if x is None or result.quantization is None or len(result.quantization.scales) > 1:
            return
        low, high = result.data_type.integer_range
        steps = function(x.astype(np.float64) / scale(result)) + zero(result)
        call.outputs[0][...] = np.clip(np.nan_to_num(steps), low, high)

    return effect


def not_relative_to_zero(call: Call) -> None:
    """The fused Relu is at a stored 0."""
    np.maximum(call.outputs[0], 0, out=call.outputs[0])


def sums(call: Call) -> Array | None:
    """Of a dense layer, as whole numbers."""
    x, weights = call.inputs[0], call.inputs[1]
    if call.operation.name != "FullyConnected" or x is None or weights is None:
        return None
    rows = x.reshape(-1, weights.shape[1]).astype(np.int64) - zero(info(call))
    return rows @ (weights.astype(np.int64) - zero(info(call, 1))).T


def beyond(bits: int) -> Callable[[Call], bool]:
    """A sum has more bits."""

    def condition(call: Call) -> bool:
        found = sums(call) if is_quantized(call) else None
        return found is not None and bool(found.size and (np.abs(found) >= 1 << (bits - 1)).any())

    return condition


def scale_of_left(call: Call) -> None:
    """A sum for which both operands have the first one's scale."""
    a, b = call.inputs[0], call.inputs[1]
    if a is None or b is None:
        return
    result = call.results[0]
    total = scale(info(call)) * (
        a.astype(np.float64) - zero(info(call)) + b.astype(np.float64) - zero(info(call, 1))
    )
    low, high = result.data_type.integer_range
    call.outputs[0][...] = np.clip(np.rint(total / scale(result)) + zero(result), low, high)


def as_stored(call: Call) -> None:
    """Inputs of other scales are copied as they are stored."""
    given = [a for a in call.inputs if a is not None]
    call.outputs[0][...] = np.concatenate(given, attribute(call, "axis"))


def scales_differ(call: Call) -> bool:
    return is_quantized(call) and len({scale(i) for i in call.infos if i is not None}) > 1


def product_is_larger(call: Call) -> bool:
    return is_quantized(call) and scale(info(call)) * scale(info(call, 1)) > scale(call.results[0])


def one_less(call: Call) -> None:
    """Cut where it is rounded: every other element is a step lower."""
    flat = call.outputs[0].reshape(-1)
    low = np.iinfo(flat.dtype).min
    flat[::2] -= (flat[::2] > low).astype(flat.dtype)


def zero_points(which: int) -> Callable[[Call], bool]:
    return lambda call: (
        is_quantized(call)
        and len(call.infos) > which
        and call.infos[which] is not None
        and zero(info(call, which)) != 0
    )


def corner(call: Call) -> None:
    """The first window is wrong."""
    call.outputs[0].reshape(-1)[:1].view(np.uint8)[0] ^= 0x20


def width_rest(tile: int) -> Callable[[Call], bool]:
    return lambda call: (
        call.outputs[0].ndim == 4
        and call.outputs[0].shape[2] > tile
        and call.outputs[0].shape[2] % tile > 0
    )


def window(size: int) -> Callable[[Call], bool]:
    return lambda call: shape_of(call, 1)[1:3] == (size, size)


def call_info(call: Call) -> TensorInfo:
    return call.results[0]


# --- Programs


INT8: dict[str, Callable[[], Fault]] = {
    "int8/scale-of-first-channel": wrong(f"{CONV} {DEPTHWISE}", per_channel, first_scale),
    "int8/scales-beyond-16": wrong(
        f"{CONV} {DEPTHWISE}",
        lambda c: per_channel(c) and len(info(c, 1).quantization.scales) > 16,  # type: ignore[union-attr]
    ),
    "int8/bias-per-channel": wrong(
        f"{CONV} {DEPTHWISE}",
        lambda c: per_channel(c) and len(c.inputs) > 2 and c.inputs[2] is not None,
    ),
    "int8/zero-scale-channel": wrong(
        CONV,
        lambda c: per_channel(c) and 0.0 in info(c, 1).quantization.scales,  # type: ignore[union-attr]
    ),
    "int8/lowest-wraps": wrong("", is_quantized, lowest_wraps),
    "int8/highest-wraps": wrong(f"{CONV} FullyConnected", is_quantized, highest_wraps),
    "int8/symmetric-range": wrong("", is_quantized, without_lowest),
    "int8/quantize-cuts": wrong(
        "Quantize",
        lambda c: c.inputs[0] is not None and c.inputs[0].dtype.kind == "f",
        quantized_by(np.trunc),
    ),
    "int8/quantize-halves-up": wrong(
        "Quantize",
        lambda c: c.inputs[0] is not None and c.inputs[0].dtype.kind == "f",
        quantized_by(lambda x: np.floor(x + 0.5)),
    ),
    "int8/requantize": wrong(
        "Quantize",
        lambda c: (
            c.inputs[0] is not None
            and c.inputs[0].dtype.itemsize == 1
            and {"u", "i"} == {c.inputs[0].dtype.kind, c.outputs[0].dtype.kind}
        ),
    ),
    "int8/relu-at-stored-0": wrong(
        f"{CONV} {BINARY} FullyConnected {DEPTHWISE}",
        lambda c: is_quantized(c) and getattr(attribute(c, "activation"), "name", "") == "RELU",
        not_relative_to_zero,
    ),
    "int8/relu6-has-no-6": wrong(
        CONV, lambda c: is_quantized(c) and attribute(c, "activation").name == "RELU6", corner
    ),
    "int8/sums-of-16-bits": wrong("FullyConnected", beyond(16), corner),
    "int8/sums-of-24-bits": wrong("FullyConnected", beyond(24), corner),
    "int8/padding-is-0": wrong(CONV, lambda c: zero_points(0)(c) and is_padded(c), corner),
    "int8/zero-of-weights": wrong(f"FullyConnected {CONV}", zero_points(1)),
    "int8/scale-of-left": wrong(BINARY, both(scales_differ, kind("ADD")), scale_of_left),
    "int8/large-product": wrong(BINARY, both(product_is_larger, kind("MUL"))),
    "int8/concat-as-stored": wrong("Concat", scales_differ, as_stored),
    "int8/average-cuts": wrong(
        "Pooling2d",
        lambda c: is_quantized(c) and attribute(c, "algorithm").name == "AVERAGE",
        one_less,
    ),
    "int8/resize-cuts": wrong(
        "Resize", lambda c: is_quantized(c) and attribute(c, "method").name == "BILINEAR", one_less
    ),
    "int8/mean-of-many": wrong(
        "Reduce",
        lambda c: (
            is_quantized(c)
            and kind("MEAN")(c)
            and np.asarray(c.inputs[0]).size // max(1, c.outputs[0].size) > 128
        ),
    ),
    "int8/16-bits": wrong(CONV, lambda c: c.outputs[0].dtype == np.int16),
    "int8/softmax-batch": wrong(
        "Softmax",
        lambda c: is_quantized(c) and many(c),
        lambda c: c.outputs[0].__setitem__(slice(1, None), c.outputs[0][:1]),
    ),
    "int8/prelu-positive": wrong("Prelu", is_quantized, one_less),
    "int8/hard-swish": wrong(
        "Activation", lambda c: is_quantized(c) and kind("HARD_SWISH")(c), one_less
    ),
    "int8/maximum-of-unlike": wrong(
        BINARY, lambda c: scales_differ(c) and kind("MAXIMUM", "MINIMUM")(c)
    ),
    "int8/compare-as-stored": wrong(
        "Comparison",
        lambda c: (
            info(c).quantization is not None and info(c).quantization != info(c, 1).quantization
        ),
    ),
    "int8/pad-with-stored-0": wrong(
        "Pad", lambda c: is_quantized(c) and zero(call_info(c)) != 0, corner
    ),
    "tiles/width-rest-8": wrong(CONV, width_rest(8)),
    "tiles/height-rest-4": wrong(
        f"{CONV} {DEPTHWISE}",
        lambda c: c.outputs[0].shape[1] > 4 and c.outputs[0].shape[1] % 4 == 3,
    ),
    "tiles/1x1-with-stride": wrong(
        CONV, lambda c: window(1)(c) and max(attribute(c, "stride")) > 1
    ),
    "tiles/1x1-with-padding": wrong(CONV, lambda c: window(1)(c) and is_padded(c)),
    "tiles/3x3-with-stride": wrong(
        DEPTHWISE, lambda c: window(3)(c) and attribute(c, "stride") == (2, 2)
    ),
    "tiles/5x5": wrong(CONV, window(5)),
    "tiles/7x7-stem": wrong(CONV, lambda c: window(7)(c) and attribute(c, "stride") == (2, 2)),
    "tiles/window-not-square": wrong(CONV, lambda c: len(set(shape_of(c, 1)[1:3])) > 1),
    "tiles/stride-beyond-window": wrong(
        f"{CONV} Pooling2d",
        lambda c: (attribute(c, "pool_size") or shape_of(c, 1)[1:3]) < attribute(c, "stride"),
    ),
    "tiles/padding-at-one-side-int8": wrong(CONV, lambda c: is_quantized(c) and is_uneven(c)),
    "tiles/global-pool": wrong(
        "Pooling2d", lambda c: attribute(c, "pool_size") == shape_of(c)[1:3] and shape_of(c)[1] > 4
    ),
    "tiles/batch-of-3": wrong(
        f"{CONV} {DEPTHWISE} Pooling2d", lambda c: c.outputs[0].shape[0] == 3
    ),
}
