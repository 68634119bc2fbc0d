"""Cases of weighted operations, pooling and reductions: large sums, unusual scales, far reaches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from armpy.ops import (
    ArgMinMax,
    ArgMinMaxFunction,
    BatchMatMul,
    Convolution2d,
    DepthwiseConvolution2d,
    FullyConnected,
    FusedActivation,
    Operation,
    Padding,
    Pooling2d,
    PoolingAlgorithm,
    Reduce,
    ReduceOperation,
    Resize,
    ResizeMethod,
    TransposeConvolution2d,
)
from armpy.ops.operation import Array
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataLayout, DataType
from armpy_conformance.cases import weighted
from armpy_conformance.comparison.seeded_values import anything, between, few, grid, thorough
from armpy_conformance.sampling.case_template import (
    CaseTemplate,
    OutputScale,
    Scale,
    Types,
    every,
    of,
)

_QUANTIZED = of(DataType.QASYMM_S8, DataType.QASYMM_U8, DataType.QSYMM_S16)
_FLOAT_AND_BYTES = of(DataType.FLOAT32, DataType.QASYMM_S8)
_FACTORS = {"finest": 1 / 3000, "fine": 1 / 20, "coarse": 6.0}
"""Of an output's scale: sums that saturate, that do so by chance, that are small."""

_REACHES: dict[str, dict[str, object]] = {
    "far-padding": {"padding": ((3, 2), (2, 4)), "stride": (2, 1)},
    "stride-3": {"stride": (3, 4)},
    "stride-3-same": {"stride": (3, 4), "padding": Padding.SAME},
    "nchw-uneven": {
        "padding": ((0, 1), (2, 0)),
        "stride": (1, 2),
        "data_layout": DataLayout.NCHW,
    },
}


def case_templates() -> Iterator[CaseTemplate]:
    """Lines of the table."""
    yield from _scales()
    yield from _reaches()
    yield from _transposed_reaches()
    yield from _large()
    yield from _pooling()
    yield from _reductions()
    yield from _half_precision_sums()
    yield from _resizing()


def _scaled(factor: float) -> OutputScale:
    """The usual output's scale times a factor."""

    def scale(inputs: Sequence[TensorInfo | None], data_type: DataType) -> Quantization:
        usual = weighted.output_scale(inputs, data_type)
        return Quantization.per_tensor(usual.scale * factor, usual.zero_point)

    return scale


_WEIGHTED: dict[str, tuple[Operation, Sequence[tuple[int, ...]]]] = {
    "convolution": (Convolution2d(), ((2, 6, 5, 3), (4, 3, 3, 3), (4,))),
    "depthwise": (DepthwiseConvolution2d(), ((2, 6, 5, 4), (1, 3, 3, 4), (4,))),
    "transposed": (TransposeConvolution2d(stride=(2, 2)), ((2, 4, 3, 3), (4, 3, 3, 3), (4,))),
    "matrix": (FullyConnected(), ((9, 12), (7, 12), (7,))),
}


def _scales() -> Iterator[CaseTemplate]:
    """Multipliers far from 1, with one scale and with one per channel."""
    for label, factor in _FACTORS.items():
        for name, (operation, shapes) in _WEIGHTED.items():
            line = weighted.line(label, operation, shapes, _QUANTIZED, output_scale=_scaled(factor))
            yield line
            infos = weighted.per_last if name == "depthwise" else weighted.per_output
            yield replace(line, label=f"{label}-per-axis", infos=infos)
        yield weighted.line(
            label,
            BatchMatMul(),
            ((3, 7, 12), (3, 12, 5)),
            _QUANTIZED,
            constants=(),
            output_scale=_scaled(factor),
        )
    for operation, shapes in _WEIGHTED.values():
        yield weighted.line(
            "long-bias",
            operation,
            shapes,
            of(DataType.QASYMM_S8),
            values=(grid, grid, between(-3_000_000, 3_000_000)),
            output_scale=_scaled(100.0),
        )
    for activation in (FusedActivation.RELU, FusedActivation.RELU6, FusedActivation.RELU1):
        for operation, shapes in _WEIGHTED.values():
            yield weighted.line(
                f"wide-{activation.name.lower()}",
                operation.with_attributes(activation=activation),
                shapes,
                _QUANTIZED,
                scales=(Scale(1 / 200, 0.2), Scale(1 / 100, -0.1)),
            )


def _reaches() -> Iterator[CaseTemplate]:
    """Windows that begin and end far outside of the image."""
    for label, options in _REACHES.items():
        layout = options.get("data_layout")
        image = (2, 4, 7, 9) if layout is DataLayout.NCHW else (2, 7, 9, 4)
        for operation, weights in (
            (Convolution2d(), (3, 3, 2, 4)),
            (Convolution2d(dilation=(2, 3)), (3, 3, 2, 4)),
            (DepthwiseConvolution2d(), (1, 2, 3, 4)),
            (DepthwiseConvolution2d(dilation=(3, 2)), (1, 2, 3, 4)),
        ):
            changed = operation.with_attributes(**options)
            dilated = "-dilated" if operation.dilation != (1, 1) else ""
            channels = weights[0] if isinstance(operation, Convolution2d) else weights[3]
            shapes = (image, weights, (channels,))
            yield weighted.line(f"{label}{dilated}", changed, shapes, _FLOAT_AND_BYTES)
        if label == "far-padding":
            continue
        for algorithm in PoolingAlgorithm:
            pool = Pooling2d(algorithm, (3, 4)).with_attributes(**options)
            types = _FLOAT_AND_BYTES
            if algorithm is PoolingAlgorithm.L2:
                types = of(DataType.FLOAT32)
            name = f"{algorithm.name.lower()}-{label}"
            yield CaseTemplate(name, pool, (image,), types, (grid,))


def _transposed_reaches() -> Iterator[CaseTemplate]:
    """Transposed windows that are cut off, or that reach less far than the output."""
    kernel, bias = (2, 3, 4, 3), (2,)
    variants: dict[str, dict[str, object]] = {
        "cut": {"padding": ((1, 2), (2, 1)), "stride": (2, 3)},
        "cut-short": {"padding": ((2, 0), (0, 3)), "stride": (1, 1)},
        "same-3": {"padding": Padding.SAME, "stride": (3, 3)},
        "apart": {"padding": ((0, 1), (1, 0)), "stride": (5, 6)},
        "smaller": {"stride": (2, 2), "output_shape": (2, 8, 7, 2)},
        "larger": {"stride": (2, 2), "output_shape": (2, 10, 12, 2)},
        "nchw-cut": {
            "padding": ((1, 1), (1, 2)),
            "stride": (3, 2),
            "data_layout": DataLayout.NCHW,
        },
    }
    for label, options in variants.items():
        image = (2, 3, 4, 5) if options.get("data_layout") is DataLayout.NCHW else (2, 4, 5, 3)
        operation = TransposeConvolution2d().with_attributes(**options)
        yield weighted.line(label, operation, (image, kernel, bias), _FLOAT_AND_BYTES)


def _large() -> Iterator[CaseTemplate]:
    """Layers that do not fit into a block of a cache's size."""
    for operation, image, weights in (
        (Convolution2d(padding=Padding.SAME), (1, 40, 41, 24), (6, 3, 3, 24)),
        (DepthwiseConvolution2d(padding=Padding.SAME, stride=(2, 1)), (1, 90, 45, 16), None),
        (TransposeConvolution2d(stride=(2, 2)), (1, 42, 41, 3), (20, 3, 3, 3)),
        (FullyConnected(), (2300, 60), (70, 60)),
        (BatchMatMul(), (2, 1100, 200), (2, 200, 50)),
    ):
        if isinstance(operation, BatchMatMul):
            shapes: Sequence[tuple[int, ...]] = (image, weights or ())
            yield weighted.line("large", operation, shapes, of(DataType.QASYMM_S8), constants=())
            continue
        shapes = (image, weights or (1, 3, 3, 16), (weights[0] if weights else 16,))
        is_apart = isinstance(operation, DepthwiseConvolution2d)
        types = _FLOAT_AND_BYTES if is_apart else of(DataType.QASYMM_S8)
        yield weighted.line("large", operation, shapes, types)


def _pooling() -> Iterator[CaseTemplate]:
    """Sums of many elements; means of few whose halves are rounded."""
    for algorithm in (PoolingAlgorithm.AVERAGE, PoolingAlgorithm.MAX):
        name = algorithm.name.lower()
        far = Pooling2d(algorithm, (20, 15), (5, 4), ((8, 10), (7, 9)))
        yield CaseTemplate(f"{name}-far", far, ((2, 6, 7, 3),), _FLOAT_AND_BYTES, (grid,))
        for label, size in (("pairs", (2, 2)), ("threes", (3, 1)), ("many", (9, 8))):
            pool = Pooling2d(algorithm, size, (1, 1), Padding.SAME)
            yield CaseTemplate(f"{name}-{label}", pool, ((2, 12, 11, 3),), _integers, (thorough,))


def _added(types: Types) -> bool:
    """Integers that Reduce adds up: of plain bytes it gives extremes alone."""
    return _integers(types) and types[0] not in (DataType.SIGNED8, DataType.UNSIGNED8)


def _reductions() -> Iterator[CaseTemplate]:
    """Sums of many large integers, and ties."""
    for label, factor in (("fine", 1 / 30), ("coarse", 3.0)):
        for operation in (ReduceOperation.SUM, ReduceOperation.MEAN):
            yield CaseTemplate(
                f"{operation.name.lower()}-wide-{label}",
                Reduce(operation, (0, 2)),
                ((5, 40, 7),),
                _added if label == "fine" else _QUANTIZED,
                (thorough,),
                (Scale(1 / 20, 0.3),),
                Scale(factor, -0.1),
            )
    yield CaseTemplate(
        "prod-wraps",
        Reduce(ReduceOperation.PROD, (0,)),
        ((5, 40),),
        lambda types: _added(types) and not types[0].is_quantized,
        (thorough,),
    )
    for function in ArgMinMaxFunction:
        name = function.name.lower()
        yield CaseTemplate(
            f"{name}-many-ties", ArgMinMax(function, 1), ((5, 40, 3),), every, (few,)
        )


def _half_precision_sums() -> Iterator[CaseTemplate]:
    """Sums of float16 that are a hundredth too small where each step is rounded to float16."""
    for operation, shapes in (
        (FullyConnected(), ((4, 300), (3, 300), None)),
        (Convolution2d(), ((4, 3, 3, 32), (3, 3, 3, 32), None)),
        (BatchMatMul(), ((2, 4, 300), (2, 300, 3))),
        (Reduce(ReduceOperation.SUM, (1,)), ((4, 300),)),
    ):
        yield CaseTemplate(
            "half-precision-sums",
            operation,
            shapes,
            lambda types: set(types) == {DataType.FLOAT16},
            (_slightly_above_quarters, _ones),
            constants=(1,) if isinstance(operation, FullyConnected | Convolution2d) else (),
        )


def _slightly_above_quarters(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Elements that each row repeats: adding one to a large float16 loses the excess."""
    rows = info.known_shape[0]
    first = ((np.arange(rows) % 4 + 3) / 4 + 0.02).reshape(
        rows, *(1,) * (len(info.known_shape) - 1)
    )
    return np.broadcast_to(first, info.known_shape).astype(info.data_type.dtype)


def _ones(rng: np.random.Generator, info: TensorInfo) -> Array:
    return np.ones(info.known_shape, info.data_type.dtype)


def _integers(types: Types) -> bool:
    """Select what adds up exactly in whatever order."""
    return not types[0].is_float and types[0] is not DataType.BOOLEAN


def _resizing() -> Iterator[CaseTemplate]:
    """Resize with each of its types and options; factors of all kinds."""
    sizes = (((5, 7), (13, 3)), ((4, 6), (9, 11)), ((8, 9), (3, 9)), ((3, 2), (1, 17)))
    for method in ResizeMethod:
        for label, options in (
            ("plain", {}),
            ("align", {"align_corners": True}),
            ("half", {"half_pixel_centers": True}),
        ):
            for before, after in sizes:
                yield CaseTemplate(
                    f"{method.name.lower()}-{label}-{before[0]}-to-{after[0]}",
                    Resize(after, method).with_attributes(**options),
                    ((2, *before, 3),),
                    every if (label, before) == ("half", (5, 7)) else _RESIZED,
                    (anything,),
                )


_RESIZED = of(DataType.FLOAT32, DataType.QASYMM_S8, DataType.QASYMM_U8, DataType.QSYMM_S16)
