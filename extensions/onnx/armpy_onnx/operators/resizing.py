"""Operators that change the resolution of images."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from armpy.core.numerics import resize as plain
from armpy.core.numerics.rounding import Int64Array
from armpy.graph import Value
from armpy.ops.dense import BatchMatMul
from armpy.ops.elementwise import BinaryOperation
from armpy.ops.movement import BroadcastTo
from armpy.ops.resizing import Resize, ResizeMethod
from armpy.ops.slicing import Gather
from armpy.types import DataType
from armpy_onnx import sampling
from armpy_onnx.blocks import binary, check_table, filled, holds, nearly_equal, reshaped, selected
from armpy_onnx.images import channels_first, channels_last, lifted
from armpy_onnx.node import Node, Operator, OperatorTable
from armpy_onnx.sampling import AxisScaling, Filter, Float64Array, Taps

_FEW_TAPS = 4
"""Number of taps up to which elements are gathered and added up; more are a product with a matrix.
"""

_TABLES = 2
"""Number of tables of taps: positions and weights."""

_SHARPEST = 100.0
"""Limit of the coefficient of cubic interpolation; those in use are -0.5 and -0.75."""

_RULES: tuple[tuple[bool, bool], ...] = ((False, True), (True, False), (False, False))
"""Choices of `Resize`: align_corners, half_pixel_centers."""

_LARGEST_SCALE = float(1 << 62)
"""Limit of scales, so that lengths times them are numbers; axes are refused that are far shorter.
"""

Scalings = Mapping[int, AxisScaling]
"""Scalings of axes, by their numbers."""


# Sizes


def _scalings(node: Node, scales: Sequence[float], sizes: Sequence[int]) -> Scalings:
    """Scaling of each axis, from scales or else from sizes, which may be for some axes only."""
    shape = node.shape(0)
    axes = node.axes(len(shape)) or tuple(range(len(shape)))
    quotients = scales or sizes
    if len(quotients) != len(axes) or len(set(axes)) < len(axes):
        raise node.error(
            "there is not one scale or size per axis",
            expected=f"{len(axes)}",
            actual=len(quotients),
        )
    before = [shape[axis] for axis in axes]
    if scales:
        if not all(0 < scale < math.inf for scale in scales):
            raise node.error(
                "a scale is not positive and finite", expected="above 0", actual=scales
            )
        # Products are those of float32, in which 5 times 2.8 is 14.
        limited = [np.float32(min(scale, _LARGEST_SCALE)) for scale in scales]
        after = [math.floor(size * scale) for size, scale in zip(before, limited, strict=True)]
        factors = list(scales)
    else:
        after, factors = _fitted(node, before, sizes)
    if any(old == 0 != new for old, new in zip(before, after, strict=True)):
        raise node.error("an axis without elements cannot be resized", actual=shape)
    if any(old and new < 1 for old, new in zip(before, after, strict=True)):
        raise node.error("nothing is left of an axis", expected="1 or more", actual=after)
    starts, ends = _region(node, len(axes))
    for position, (axis, factor) in enumerate(zip(axes, factors, strict=True)):
        if axis in _outer_axes(node) and factor == 1:
            starts[position], ends[position] = 0.0, 1.0
    return {
        axis: AxisScaling(old, *numbers)
        for axis, old, *numbers in zip(axes, before, after, factors, starts, ends, strict=True)
        if old  # an axis without elements stays as it is
    }


def _fitted(
    node: Node, before: Sequence[int], sizes: Sequence[int]
) -> tuple[list[int], list[float]]:
    """Sizes and scales where sizes are given; one scale for all if the node asks for it."""
    factors = [size / (old or 1) for size, old in zip(sizes, before, strict=True)]
    policy = node.text("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return list(sizes), factors
    if policy not in ("not_larger", "not_smaller"):
        raise node.error(
            "the attribute 'keep_aspect_ratio_policy' has an unknown value",
            expected="stretch, not_larger or not_smaller",
            actual=policy,
        )
    counted = [factor for factor, old in zip(factors, before, strict=True) if old] or [1.0]
    factor = min(counted) if policy == "not_larger" else max(counted)
    return [math.floor(old * factor + 0.5) for old in before], [factor] * len(before)


def _outer_axes(node: Node) -> range:
    """Axes of batches and channels, along which ONNX Runtime interpolates no region."""
    is_image = len(node.shape(0)) in (4, 5)
    return range(2 if is_image and _mode(node) != "nearest" else 0)


def _region(node: Node, count: int) -> tuple[list[float], list[float]]:
    """Starts and ends of the region that is shown."""
    if not _is_cropped(node) or not node.has(1):
        return [0.0] * count, [1.0] * count
    roi = [float(x) for x in node.numbers(1).reshape(-1)]
    if len(roi) != 2 * count or not all(map(math.isfinite, roi)):
        raise node.error("the region has the wrong form", expected=f"{2 * count}", actual=roi)
    return roi[:count], roi[count:]


# Attributes


def _transformation(node: Node) -> sampling.Transformation:
    """Value of ``coordinate_transformation_mode``; that of older versions if it is missing."""
    if node.version < 11 or node.kind == "Upsample":
        return sampling.TRANSFORMATIONS["asymmetric"]
    name = "coordinate_transformation_mode"
    return node.choice(name, "half_pixel", sampling.TRANSFORMATIONS)


def _is_cropped(node: Node) -> bool:
    """Return whether a region is shown."""
    return _transformation(node) is sampling.TRANSFORMATIONS["tf_crop_and_resize"]


def _rounding(node: Node, axis: AxisScaling) -> sampling.Rounding:
    """Value of ``nearest_mode``; that of older versions if it is missing."""
    if node.version < 11 or node.kind == "Upsample":
        return sampling.ROUNDINGS["ceil" if axis.scale < 1 else "floor"]
    return node.choice("nearest_mode", "round_prefer_floor", sampling.ROUNDINGS)


_MODES = {"bilinear": "linear", **{name: name for name in ("cubic", "linear", "nearest")}}
"""Modes by their names, the oldest one of linear among them."""


def _mode(node: Node) -> str:
    return node.choice("mode", "nearest", _MODES)


# Layers


def _resized(node: Node, scalings: Scalings) -> Value:
    """Resize axis by axis, or in one layer where `Resize` has the same rule."""
    transformation = _transformation(node)
    value = node.value(0)
    is_nearest = _mode(node) == "nearest"
    dims = *value.info.known_shape, *[axis.out_size for axis in scalings.values()]
    if holds(_has_nothing, *dims):
        # No tables of positions, which would be as long as the other axes.
        out_sizes = {axis: scaling.out_size for axis, scaling in scalings.items()}
        shape = [out_sizes.get(axis, size) for axis, size in enumerate(value.info.known_shape)]
        return filled(node, value, shape, 0)
    if is_nearest and any(type(dim) is not int for dim in dims):  # traced
        repeated = _repeated(node, value, scalings)
        resized = _plainly_chosen(node, value, scalings) if repeated is None else repeated
        if resized is not None:
            return resized
    for scaling in scalings.values():
        check_table(node, (scaling.out_size,))
    number = DataType.FLOAT64 if value.info.data_type is DataType.FLOAT64 else DataType.FLOAT32
    if not is_nearest:
        real = node.cast(value, number)
        plainly = _plainly_interpolated(node, real, scalings)
        if plainly is not None:
            return node.cast(plainly, value.info.data_type)
    where = {a: sampling.positions(axis, transformation) for a, axis in scalings.items()}
    if is_nearest:
        chosen = {
            a: sampling.nearest(axis, where[a], _rounding(node, axis))
            for a, axis in scalings.items()
        }
        chosen = {a: at for a, at in chosen.items() if not _is_identity(at, scalings[a].size)}
        rule = _nearest_rule({a: scalings[a] for a in chosen}, chosen)
        resized = _in_one_layer(node, value, scalings, chosen, ResizeMethod.NEAREST_NEIGHBOR, rule)
        if resized is None:
            resized = value
            for axis, indices in chosen.items():
                resized = _gathered(node, resized, axis, indices)
        return _extrapolated(node, resized, scalings, where)
    result = _interpolated(node, real, scalings, where)
    return node.cast(_extrapolated(node, result, scalings, where), value.info.data_type)


def _has_nothing(*dims: int) -> bool:
    """Return whether one of the sizes is 0, so that the output has no elements."""
    return 0 in dims


_REPEATING = {
    ("asymmetric", "floor"),
    ("half_pixel", "round_prefer_floor"),
    ("half_pixel", "round_prefer_ceil"),
}
"""Rules by which images of whole times the size repeat each element."""


def _is_whole(scale: float) -> bool:
    return float(scale).is_integer()


def _repeated(node: Node, value: Value, scalings: Scalings) -> Value | None:
    """An image of traced sizes with each element repeated; None where something else is asked."""
    shape = value.info.known_shape
    rules = {_transformation(node), *(_rounding(node, axis) for axis in scalings.values())}
    is_repeating = any(
        rules == {sampling.TRANSFORMATIONS[transformation], sampling.ROUNDINGS[rounding]}
        for transformation, rounding in _REPEATING
    )
    is_whole = all(holds(_is_whole, axis.scale) for axis in scalings.values())
    if not (is_repeating and is_whole):
        return None
    factors = {a: float(axis.scale) for a, axis in scalings.items()}
    if min([a for a, factor in factors.items() if factor != 1], default=0) < 2:
        return None
    times = lifted([int(factors.get(a, 1)) for a in range(2, len(shape))], 1)
    image = channels_last(node, value)
    batch, *sizes, channels = image.info.known_shape
    apart = [n for size in sizes for n in (size, 1)]
    wide = [n for pair in zip(sizes, times, strict=True) for n in pair]
    image = reshaped(node, image, (batch, *apart, channels))
    image = node.layer(BroadcastTo((batch, *wide, channels)), image)
    larger = [size * count for size, count in zip(sizes, times, strict=True)]
    return channels_first(node, reshaped(node, image, (batch, *larger, channels)), len(shape) - 2)


_NAMED_RULES = {
    sampling.TRANSFORMATIONS[name]: rule
    for name, rule in {
        "half_pixel": (False, True),
        "pytorch_half_pixel": (False, True),
        "align_corners": (True, False),
        "asymmetric": (False, False),
    }.items()
}
"""Rules among `_RULES` that interpolate as ``coordinate_transformation_mode`` says."""


def _plainly_chosen(node: Node, value: Value, scalings: Scalings) -> Value | None:
    """Choose elements by a named rule, whose sizes may be traced; None where it takes others."""
    transformation = _transformation(node)
    rule = _NAMED_RULES.get(transformation)
    changed = {a: axis for a, axis in scalings.items() if axis.size != axis.out_size}
    for axis in scalings.values():
        check_table(node, (axis.out_size,))
        is_same = partial(_is_chosen, rule, transformation, _rounding(node, axis))
        if not holds(is_same, axis.size, axis.out_size, axis.scale):
            return None
    if not changed:
        return value
    return _in_one_layer(node, value, scalings, changed, ResizeMethod.NEAREST_NEIGHBOR, rule)


def _is_chosen(
    rule: tuple[bool, bool] | None,
    transformation: sampling.Transformation,
    rounding: sampling.Rounding,
    size: int,
    out_size: int,
    scale: float,
) -> bool:
    """Return whether `Resize` by a rule takes the same elements."""
    axis = AxisScaling(size, out_size, scale)
    chosen = sampling.nearest(axis, sampling.positions(axis, transformation), rounding)
    return rule is not None and _nearest_rule({0: axis}, {0: chosen}, [rule]) == rule


def _plainly_interpolated(node: Node, value: Value, scalings: Scalings) -> Value | None:
    """Interpolate by a named rule, whose sizes may be traced; None where it has to be found."""
    kernel, transformation = _filter(node), _transformation(node)
    changed = {a: axis for a, axis in scalings.items() if axis.size != axis.out_size}
    is_whole = all(nearly_equal(axis.length, axis.out_size) for axis in scalings.values())
    is_first = transformation is sampling.TRANSFORMATIONS["pytorch_half_pixel"] and any(
        axis.out_size == 1 for axis in changed.values()
    )
    if kernel != Filter("linear", kernel.sharpness) or not is_whole or is_first:
        return None
    for scaling in changed.values():
        check_table(node, (scaling.out_size, sampling.num_taps(scaling, kernel), _TABLES))
    rule = _NAMED_RULES.get(transformation)
    if rule is not None and not changed:
        return value
    return _in_one_layer(node, value, scalings, changed, ResizeMethod.BILINEAR, rule)


def _filter(node: Node) -> Filter:
    """The filter that a node interpolates with."""
    sharpness = node.real("cubic_coeff_a", -0.75)
    if not abs(sharpness) < _SHARPEST:
        raise node.error(
            "the attribute 'cubic_coeff_a' is out of range",
            expected=f"between {-_SHARPEST:g} and {_SHARPEST:g}",
            actual=sharpness,
        )
    return Filter(
        _mode(node),
        sharpness,
        node.flag("antialias"),
        node.flag("exclude_outside"),
    )


def _interpolated(
    node: Node, value: Value, scalings: Scalings, where: Mapping[int, Float64Array]
) -> Value:
    """Interpolate along all axes."""
    kernel = _filter(node)
    for scaling in scalings.values():
        check_table(node, (scaling.out_size, sampling.num_taps(scaling, kernel), _TABLES))
    axis_taps = {a: sampling.taps(axis, where[a], kernel) for a, axis in scalings.items()}
    axis_taps = {a: t for a, t in axis_taps.items() if not _keeps_all(t, scalings[a].size)}
    if kernel == Filter("linear", kernel.sharpness):
        rule = _linear_rule({a: scalings[a] for a in axis_taps}, axis_taps)
        resized = _in_one_layer(node, value, scalings, axis_taps, ResizeMethod.BILINEAR, rule)
        if resized is not None:
            return resized
    for axis, taps in axis_taps.items():
        value = _combined(node, value, axis, taps, scalings[axis].size)
    return value


def _keeps_all(taps: Taps, size: int) -> bool:
    """Return whether every element is its own only part."""
    dense = np.isclose(taps.weights, 1) & (taps.indices == np.arange(len(taps.indices))[:, None])
    return len(taps.indices) == size and bool(dense.any(axis=1).all())


def _is_identity(indices: Int64Array, size: int) -> bool:
    """Return whether every element stays."""
    return len(indices) == size and bool((indices == np.arange(size)).all())


def _nearest_rule(
    scalings: Scalings,
    chosen: Mapping[int, Int64Array],
    rules: Sequence[tuple[bool, bool]] = _RULES,
) -> tuple[bool, bool] | None:
    """The choices with which `Resize` takes the same elements."""
    for align, half in rules:
        if all(
            np.array_equal(
                plain.nearest_positions(
                    axis.size, axis.out_size, align_corners=align, half_pixel_centers=half
                ),
                chosen[a],
            )
            for a, axis in scalings.items()
        ):
            return align, half
    return None


def _linear_rule(scalings: Scalings, taps: Mapping[int, Taps]) -> tuple[bool, bool] | None:
    """The choices with which `Resize` interpolates at the same positions."""
    for align, half in _RULES:
        for a, axis in scalings.items():
            own = plain.real_samples(
                axis.size, axis.out_size, align_corners=align, half_pixel_centers=half
            )
            centres = own.lower * own.lower_weights + own.upper * own.upper_weights
            if not np.allclose(centres, taps[a].centres, rtol=1e-6, atol=1e-5):
                break
        else:
            return align, half
    return None


def _in_one_layer(
    node: Node,
    value: Value,
    scalings: Scalings,
    changed: Mapping[int, object],
    method: ResizeMethod,
    rule: tuple[bool, bool] | None,
) -> Value | None:
    """A `Resize` of an image; None where there is none that does the same."""
    rank = len(value.info.known_shape)
    is_float = value.info.data_type in (DataType.FLOAT32, DataType.FLOAT16)
    if rule is None or not changed or rank not in (3, 4) or not is_float:
        return None
    size = [axis.out_size for _, axis in sorted(scalings.items())]
    sizes = {a: scalings[a].out_size for a in changed}
    shape = value.info.known_shape
    if rank == 4 and set(changed) <= {1, 2}:
        size = [sizes.get(a, shape[a]) for a in (1, 2)]
        return node.layer(Resize((size[0], size[1]), method, *rule), value)
    if min(changed) < 2:
        return None
    size = [sizes.get(a, shape[a]) for a in range(2, rank)]
    both = (size[-2] if rank == 4 else 1, size[-1])
    image = node.layer(Resize(both, method, *rule), channels_last(node, value))
    return channels_first(node, image, rank - 2)


def _gathered(node: Node, value: Value, axis: int, indices: Int64Array) -> Value:
    """Elements of an axis by their numbers."""
    return node.layer(Gather(axis), value, node.constant(indices, DataType.SIGNED32))


def _combined(node: Node, value: Value, axis: int, taps: Taps, size: int) -> Value:
    """Weighted sums of elements along an axis."""
    shape = value.info.known_shape
    out_size, count = taps.indices.shape
    if count > _FEW_TAPS:
        check_table(node, (out_size, size))
        matrix = np.zeros((out_size, size))
        np.add.at(matrix, (np.arange(out_size)[:, None], taps.indices), taps.weights)
        rows = (math.prod(shape[:axis]), size, math.prod(shape[axis + 1 :]))
        product = node.layer(
            BatchMatMul(), node.like(value, matrix[None]), reshaped(node, value, rows)
        )
        return reshaped(node, product, (*shape[:axis], out_size, *shape[axis + 1 :]))
    total: Value | None = None
    column = (out_size, *(1,) * (len(shape) - axis - 1))
    for number in range(count):
        part = _gathered(node, value, axis, taps.indices[:, number])
        weights = node.like(value, taps.weights[:, number].reshape(column))
        part = binary(node, BinaryOperation.MUL, part, weights)
        if total is not None:
            part = binary(node, BinaryOperation.ADD, total, part)
        total = part
    assert total is not None  # a filter has taps
    return total


def _extrapolated(
    node: Node, value: Value, scalings: Scalings, where: Mapping[int, Float64Array]
) -> Value:
    """A constant in place of what lies outside of the input, where the node says so."""
    if not _is_cropped(node):
        return value
    rank = len(value.info.known_shape)
    check_table(node, [scaling.out_size for scaling in scalings.values()])
    outside = np.zeros((1,) * rank, bool)
    for axis, scaling in scalings.items():
        along = (where[axis] < 0) | (where[axis] > scaling.size - 1)
        outside = outside | along.reshape(-1, *(1,) * (rank - axis - 1))
    if not outside.any():
        return value
    number = node.real("extrapolation_value", 0.0)
    return selected(node, node.constant(outside), number, value)


def _resize(node: Node) -> Value:
    if node.version < 11:
        return _resized(node, _scalings(node, _numbers(node, 1), ()))
    scales = _numbers(node, 2)
    sizes = node.ints(3) if node.has(3) and not scales else ()
    if not scales and not sizes:
        raise node.error("neither scales nor sizes are given")
    return _resized(node, _scalings(node, scales, sizes))


def _numbers(node: Node, index: int) -> tuple[float, ...]:
    """Elements of an input that decides; () if it is left out."""
    if not node.has(index):
        return ()
    return tuple(float(number) for number in node.numbers(index).reshape(-1))


def _upsample(node: Node) -> Value:
    if node.version >= 9:
        return _resized(node, _scalings(node, _numbers(node, 1), ()))
    if node.version >= 7:
        scales = [float(scale) for scale in node.attribute("scales", ())]
        return _resized(node, _scalings(node, scales, ()))
    height, width = node.real("height_scale"), node.real("width_scale")
    return _resized(node, _scalings(node, (1.0, 1.0, height, width), ()))


OPERATORS: OperatorTable = {
    "Resize": Operator(_resize, decides=(1, 2, 3)),
    "Upsample": Operator(_upsample, decides=(1,)),
}
