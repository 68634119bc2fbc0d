"""Cases of operations that multiply with weights and add up."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from armpy.ops import (
    BatchMatMul,
    BlockwiseFullyConnected,
    Convolution2d,
    DepthwiseConvolution2d,
    FullyConnected,
    FusedActivation,
    Operation,
    Padding,
    TransposeConvolution2d,
)
from armpy.ops.operation import Array
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataLayout, DataType
from armpy_conformance.comparison.seeded_values import Values, between, grid, rows
from armpy_conformance.sampling.case_template import (
    CaseTemplate,
    Scale,
    Selection,
    Types,
    common,
    every,
    is_hybrid,
    of,
)

NCHW = DataLayout.NCHW

_ALL_QUANTIZED = of(DataType.QASYMM_S8, DataType.QASYMM_U8, DataType.QSYMM_S16)
_EIGHT_BITS = of(DataType.QASYMM_S8, DataType.QASYMM_U8)
_UNSIGNED = of(DataType.QASYMM_U8)
_HALF_RANGE = 74
"""Standard deviation of a stored 8-bit element that is as likely anywhere."""


def _infos(
    template: CaseTemplate, types: Types, axis: int | None = None
) -> list[TensorInfo | None]:
    """Input, weights and bias; the bias's scale follows from the others' scales."""
    infos: list[TensorInfo | None] = []
    for index, shape in enumerate(template.shapes[:3]):
        data_type = types[index]
        quantization = None
        if data_type.is_quantized:
            scale = template.scales[min(index, len(template.scales) - 1)]
            quantization = scale.of(data_type)
            if index == 1 and axis is not None and shape is not None:
                steps = [quantization.scale * (1 + i % 5) / 4 for i in range(shape[axis])]
                quantization = Quantization.per_axis(steps, axis)
        if index == 2 and shape is not None and not data_type.is_float:
            quantization = _bias_quantization(infos)
        infos.append(None if shape is None else TensorInfo(shape, data_type, quantization))
    return infos


def _bias_quantization(infos: Sequence[TensorInfo | None]) -> Quantization | None:
    """Input scale times weight scales."""
    first, weights = infos[0], infos[1]
    if first is None or weights is None or weights.quantization is None:
        return None
    steps = [first.scale * step for step in weights.quantization.scales]
    if weights.quantization.axis is None:
        return Quantization.per_tensor(steps[0])
    return Quantization.per_axis(steps, 0)


def per_output(template: CaseTemplate, types: Types) -> list[TensorInfo | None]:
    """Weights with a scale per output channel, on their first axis."""
    return _infos(template, types, 0)


def per_last(template: CaseTemplate, types: Types) -> list[TensorInfo | None]:
    """Weights with a scale per output channel, on their last axis."""
    return _infos(template, types, 3)


def output_scale(inputs: Sequence[TensorInfo | None], data_type: DataType) -> Quantization:
    """A scale for which sums spread over most of the range and some leave it."""
    first, weights = inputs[0], inputs[1]
    if first is None or weights is None or weights.shape is None:
        return Scale(1.0).of(data_type)
    depth = math.prod(weights.known_shape) // max(weights.known_shape[0], 1)
    stored = _HALF_RANGE * (256 if data_type is DataType.QSYMM_S16 else 1)
    spread = first.scale * stored * weights.scale * _HALF_RANGE * math.sqrt(max(depth, 1))
    return Quantization.per_tensor(spread / stored, Scale(1.0, 0.2).of(data_type).zero_point)


def bias_elements(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Elements of a bias that are large enough to be missed."""
    if info.data_type.is_float:
        return grid(rng, info)
    # Sums of 16-bit elements are 256 times as large; those that have 64 bits for it.
    reach = 5_000_000 if info.data_type is DataType.SIGNED64 else 20_000
    return between(-reach, reach)(rng, info)


_BASE = CaseTemplate(
    "",
    Convolution2d(),
    (),
    values=(grid, grid, bias_elements),
    scales=(Scale(1 / 16, 0.2), Scale(1 / 64, -0.1)),
    constants=(1, 2),
    infos=_infos,
    output_scale=output_scale,
)


def line(
    label: str,
    operation: Operation,
    shapes: Sequence[tuple[int, ...] | None],
    types: Selection = common,
    **changes: object,
) -> CaseTemplate:
    """A line with weights and bias as constants."""
    usual = replace(_BASE, label=label, operation=operation, shapes=shapes, types=types)
    return replace(usual, **changes)  # type: ignore[arg-type]  # columns by name


def case_templates() -> Iterator[CaseTemplate]:
    """Lines of the table."""
    yield from _convolutions()
    yield from _depthwise()
    yield from _transposed()
    yield from _fully_connected()
    yield from _blocks()
    yield from _matrix_products()


def _not_hybrid(types: Types) -> bool:
    """Select what computes in one number system."""
    return not is_hybrid(types)


def sums(
    operation: Operation, shapes: Sequence[tuple[int, ...]], per_axis: object = None
) -> Iterator[CaseTemplate]:
    """Sums that are the output: with constant weights, others, and several scales."""
    plain = line("sums", operation, shapes, _EIGHT_BITS, gives_sums=True)
    yield plain
    yield plain.at_run_time()
    if per_axis is not None:
        yield line("sums-per-axis", operation, shapes, _EIGHT_BITS, infos=per_axis, gives_sums=True)


def _rounded_once(
    make: type[Convolution2d | DepthwiseConvolution2d],
    shapes: Sequence[tuple[int, ...]],
    per_axis: object,
) -> Iterator[CaseTemplate]:
    """Sums that are rounded once: with one scale of the weights, several, and an activation."""
    yield line("once", make(padding=Padding.SAME, rounds_once=True), shapes, _EIGHT_BITS)
    clamped = make(activation=FusedActivation.RELU6, rounds_once=True)
    yield line("once-per-axis", clamped, shapes, _EIGHT_BITS, infos=per_axis)


def _zero_points(operation: Operation, shapes: Sequence[tuple[int, ...]]) -> Iterator[CaseTemplate]:
    """One line per end of the range that a zero point can be at."""
    for name, where in (("lowest", -1.0), ("highest", 1.0)):
        scales = (Scale(1 / 16, where), Scale(1 / 64, 0.0))
        yield line(f"{name}-zero-point", operation, shapes, _UNSIGNED, scales=scales)


def hybrid(
    operation: Operation,
    shapes: Sequence[tuple[int, ...]],
    low: int,
    per_axis: bool,
    infos: object = _infos,
) -> CaseTemplate:
    """Float inputs that quantise to themselves, and quantised weights."""
    label = "hybrid-per-axis" if per_axis else "hybrid"
    scales = (Scale(1.0), Scale(1 / 64, 0.0))
    values = (rows(low, 127), grid, bias_elements)
    return line(label, operation, shapes, is_hybrid, values=values, scales=scales, infos=infos)


def _far_from_1(
    operation: Operation, shapes: Sequence[tuple[int, ...]], asymmetric: bool
) -> Iterator[CaseTemplate]:
    """Float inputs whose scales per row are 1/4 and 2, all positive, all negative."""
    # With a zero point the limits are 255 steps apart, and 0 is one of them.
    limits = ((-128, 127), (0, 255), (-255, 0)) if asymmetric else ((-127, 127), (-127, 127))
    for number, (low, high) in enumerate(limits):
        step = (0.25, 2.0, 4.0)[number]
        line = replace(
            hybrid(operation, shapes, low, False),
            label=f"hybrid-{'asymmetric-' if asymmetric else ''}step-{step}",
        )
        yield replace(line, values=(rows(low, high, step), grid, bias_elements))
    label = f"hybrid-{'asymmetric-' if asymmetric else ''}zeros-first"
    line = hybrid(operation, shapes, -127, False)
    yield replace(line, label=label, values=(_zeros_first(asymmetric), grid, bias_elements))


def _zeros_first(asymmetric: bool) -> Values:
    """Make a batch item of zeros, and others that reach further below 0 than above."""
    draw_rows = rows(-195, 60) if asymmetric else rows(-127, 60)

    def make(rng: np.random.Generator, info: TensorInfo) -> Array:
        array = draw_rows(rng, info)
        array[0] = 0
        return array

    return make


def _convolutions() -> Iterator[CaseTemplate]:
    kernel, bias = (4, 3, 3, 3), (4,)
    plain = line("basic", Convolution2d(), ((2, 6, 5, 3), kernel, bias), _not_hybrid)
    yield plain
    yield plain.at_run_time()
    shapes = ((2, 6, 5, 3), kernel, bias)
    yield from _zero_points(Convolution2d(padding=Padding.SAME), shapes)
    yield from sums(Convolution2d(padding=Padding.SAME), shapes, per_output)
    yield from _rounded_once(Convolution2d, shapes, per_output)
    for label, image, weights in (
        ("one-element", (1, 1, 1, 1), (1, 1, 1, 1)),
        ("pointwise", (1, 5, 3, 17), (9, 1, 1, 17)),
        ("kernel-as-image", (2, 3, 4, 2), (5, 3, 4, 2)),
        ("many-channels", (1, 4, 4, 33), (19, 3, 3, 33)),
    ):
        yield line(label, Convolution2d(), (image, weights, (weights[0],)))
    yield line("per-axis", Convolution2d(), shapes, _ALL_QUANTIZED, infos=per_output)
    yield line(
        "per-axis-same",
        Convolution2d(padding=Padding.SAME, stride=(2, 2)),
        shapes,
        _EIGHT_BITS,
        infos=per_output,
    )
    yield hybrid(Convolution2d(), shapes, -127, False)
    yield hybrid(Convolution2d(), shapes, -128, True, per_output)
    yield from _far_from_1(Convolution2d(), shapes, asymmetric=False)


def _depthwise() -> Iterator[CaseTemplate]:
    kernel, bias = (1, 3, 3, 4), (4,)
    shapes = ((2, 6, 5, 4), kernel, bias)
    plain = line("basic", DepthwiseConvolution2d(), shapes, _not_hybrid)
    yield plain
    yield plain.at_run_time()
    yield from _zero_points(DepthwiseConvolution2d(padding=Padding.SAME), shapes)
    yield from sums(DepthwiseConvolution2d(padding=Padding.SAME), shapes, per_last)
    yield from _rounded_once(DepthwiseConvolution2d, shapes, per_last)
    for label, image, weights in (
        ("one-element", (1, 1, 1, 1), (1, 1, 1, 1)),
        ("multiplier-nchw", (1, 3, 5, 5), (1, 3, 3, 6)),
        ("many-channels", (1, 5, 5, 33), (1, 3, 3, 33)),
    ):
        layout = NCHW if label.endswith("nchw") else DataLayout.NHWC
        operation = DepthwiseConvolution2d(data_layout=layout)
        yield line(label, operation, (image, weights, (weights[3],)))
    yield line("per-axis", DepthwiseConvolution2d(), shapes, _ALL_QUANTIZED, infos=per_last)
    yield hybrid(DepthwiseConvolution2d(), shapes, -128, False)
    yield hybrid(DepthwiseConvolution2d(), shapes, -128, True, per_last)


def _transposed() -> Iterator[CaseTemplate]:
    kernel, bias = (4, 3, 3, 3), (4,)
    shapes = ((1, 4, 3, 3), kernel, bias)
    make = TransposeConvolution2d
    plain = line("basic", make(stride=(2, 2)), shapes, _not_hybrid)
    yield plain
    yield plain.at_run_time()
    stretched = make(stride=(2, 2), output_shape=(2, 10, 8, 4))
    yield line("output-shape", stretched, ((2, 4, 3, 3), kernel, bias))
    yield from _zero_points(make(padding=Padding.SAME, stride=(2, 2)), shapes)
    yield from sums(make(stride=(2, 2)), shapes, per_output)
    yield line("one-element", make(), ((1, 1, 1, 1), (1, 1, 1, 1), (1,)))
    yield line("per-axis", make(), shapes, _ALL_QUANTIZED, infos=per_output)
    yield hybrid(make(), shapes, -127, False)


def _fully_connected() -> Iterator[CaseTemplate]:
    weights, bias = (7, 5), (7,)
    shapes = ((3, 5), weights, bias)
    plain = line("basic", FullyConnected(), shapes, _not_hybrid)
    yield plain
    yield plain.at_run_time()
    yield from _zero_points(FullyConnected(), shapes)
    yield from sums(FullyConnected(), shapes, per_output)
    for label, image, matrix in (
        ("one-element", (1, 1), (1, 1)),
        ("image", (2, 2, 2, 3), (4, 12)),
        ("odd-size", (1, 65), (33, 65)),
    ):
        yield line(label, FullyConnected(), (image, matrix, (matrix[0],)))
    yield line("per-axis", FullyConnected(), shapes, _ALL_QUANTIZED, infos=per_output)
    yield hybrid(FullyConnected(), shapes, -127, False)
    yield hybrid(FullyConnected(), shapes, -127, True, per_output)
    uneven = FullyConnected(asymmetric_quantize_inputs=True)
    yield replace(hybrid(uneven, shapes, -128, False), label="hybrid-asymmetric")
    yield from _far_from_1(FullyConnected(), shapes, asymmetric=False)
    yield from _far_from_1(uneven, shapes, asymmetric=True)


def _blocks() -> Iterator[CaseTemplate]:
    """Weights of few bits, the last block of which goes on after the depth."""
    numbers = between(0, 255)
    for bits in (2, 4, 8):
        operation = BlockwiseFullyConnected(bits)
        yield CaseTemplate(
            f"{bits}-bits",
            operation,
            ((2, 3, 40), (5, 3, 2 * bits), (5, 3), (5, 3), (5,)),
            values=(grid, numbers, grid, between(0, (1 << bits) - 1), grid),
        )
        shapes = (1, 64), (9, 2, 4 * bits), (9, 2)
        yield CaseTemplate(
            f"{bits}-bits-no-points", operation, shapes, values=(grid, numbers, grid)
        )
    yield CaseTemplate(
        "quantized-input",
        BlockwiseFullyConnected(4, quantizes_input=True),
        ((1, 64), (9, 2, 16), (9, 2)),
        values=(rows(-127, 127), numbers, grid),
    )


def _matrix_products() -> Iterator[CaseTemplate]:
    for label, operation, x, y, types in (
        ("basic", BatchMatMul(), (3, 5), (5, 4), every),
        ("batch", BatchMatMul(), (2, 3, 4, 5), (2, 3, 5, 2), every),
        ("one-element", BatchMatMul(), (1, 1), (1, 1), common),
        ("odd-size", BatchMatMul(), (17, 33), (33, 9), common),
        ("row-by-column", BatchMatMul(), (1, 31), (31, 1), common),
    ):
        yield line(label, operation, (x, y), types, constants=())
        if label == "batch":
            yield line(f"{label}-constant", operation, (x, y), types, constants=(1,))
    for shapes in (((3, 5), (5, 4)), ((2, 1, 4, 5), (3, 5, 2))):
        label = f"sums-{len(shapes[0])}"
        yield line(label, BatchMatMul(), shapes, _EIGHT_BITS, constants=(), gives_sums=True)
