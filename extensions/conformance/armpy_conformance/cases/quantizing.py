"""Cases of operations that convert elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from armpy.ops import BitCast, Cast, Dequantize, Quantize
from armpy.ops.operation import NUMBER_TYPES, Array
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_conformance.comparison.seeded_values import anything, between
from armpy_conformance.sampling.case_template import CaseTemplate, Scale, Types, every, of

_QUANTIZED = tuple(t for t in DataType if t.is_quantized)
_FLOATS = (DataType.FLOAT32, DataType.FLOAT16)
_SMALL = tuple(t for t in DataType if t.is_bit_pattern or t.is_narrow)
_CAST_TYPES = tuple(t for t in NUMBER_TYPES if t not in _SMALL)
_HUBS = (DataType.FLOAT32, DataType.SIGNED32)
"""Types that every type is cast from and to."""


def case_templates() -> Iterator[CaseTemplate]:
    """Lines of the table."""
    yield from _quantize()
    yield from _dequantize()
    yield from _bit_casts()
    for target in _CAST_TYPES:
        sources = _CAST_TYPES if target in _HUBS else _HUBS
        yield CaseTemplate(
            f"to-{target.name.lower()}",
            Cast(),
            ((3, 5),),
            of(*(source for source in sources if source is not target)),
            (between(0, 2 if target is DataType.BOOLEAN else 100),),
            output_types=(target,),
        )
    small = CaseTemplate(
        "to-small",
        Cast(),
        ((3, 5),),
        of(DataType.FLOAT32),
        (between(-1000, 1000),),
        output_types=_SMALL,
    )
    yield small
    yield replace(
        small, label="to-infinity", operation=Cast(saturate=False), output_types=_SMALL[1:3]
    )
    yield replace(small, label="from-small", types=of(*_SMALL), output_types=(DataType.FLOAT32,))
    yield CaseTemplate(
        "saturating",
        Cast(),
        ((3, 5),),
        of(DataType.FLOAT32),
        (between(-1e6, 1e6),),
        output_types=(DataType.SIGNED8, DataType.UNSIGNED8, DataType.SIGNED16),
    )
    yield CaseTemplate(
        "truncating",
        Cast(),
        ((3, 5),),
        of(*_FLOATS),
        output_types=(DataType.SIGNED32, DataType.SIGNED8, DataType.SIGNED64),
    )
    yield CaseTemplate(
        "scalar", Cast(), ((),), of(DataType.FLOAT32), output_types=(DataType.SIGNED32,)
    )


def _bit_casts() -> Iterator[CaseTemplate]:
    """BitCast of every type to integers that are as large; hand-worked cases change the size."""
    whole = {t.bits: t for t in DataType if t.name.startswith("UNSIGNED")}
    for source in NUMBER_TYPES:
        target = whole[source.bits]
        if source is target:
            target = DataType[source.name.removeprefix("UN")]
        yield CaseTemplate(f"to-{target.name.lower()}", BitCast(target), ((3, 5),), of(source))


def _quantize() -> Iterator[CaseTemplate]:
    """Quantize: every pair of types once or more."""
    plain = CaseTemplate(
        "floats",
        Quantize(),
        ((3, 5, 7),),
        of(*_FLOATS),
        output=Scale(1 / 32, 0.2),
        output_types=_QUANTIZED,
    )
    yield plain
    yield replace(plain, label="scalar", shapes=((),), output_types=(DataType.QASYMM_S8,))
    yield CaseTemplate(
        "to-even",
        Quantize(rounds_to_even=True),
        ((3, 5, 7),),
        of(*_FLOATS),
        (halves,),
        output=Scale(1 / 4, 0.2),
        output_types=_QUANTIZED,
    )
    for side, where in (("lowest", -1.0), ("highest", 1.0)):
        yield replace(
            plain,
            label=f"{side}-zero-point",
            types=of(DataType.FLOAT32),
            output=Scale(1 / 16, where),
            output_types=(DataType.QASYMM_S8, DataType.QASYMM_U8),
        )
    for label, output in (("coarser", Scale(1 / 8, 0.2)), ("finer", Scale(1 / 50, -0.3))):
        yield CaseTemplate(
            f"requantize-{label}",
            Quantize(),
            ((3, 5, 7),),
            lambda types: types[0].is_quantized,
            output=output,
            output_types=_QUANTIZED if label == "coarser" else (DataType.QASYMM_S8,),
        )
    yield CaseTemplate(
        "integers",
        Quantize(),
        ((3, 5),),
        of(DataType.SIGNED32),
        (between(-500, 500),),
        output=Scale(1 / 8, 0.2),
        output_types=(DataType.QASYMM_S8, DataType.QASYMM_U8, DataType.QSYMM_S16),
        infos=_scaled_integers,
    )
    yield CaseTemplate(
        "to-integers",
        Quantize(),
        ((3, 5),),
        of(DataType.QASYMM_S8, DataType.QSYMM_S16),
        output_types=(DataType.SIGNED32,),
        output_scale=lambda inputs, data_type: Quantization.per_tensor(2.0**-12),
        infos=None,
    )
    yield CaseTemplate(
        "per-axis",
        Quantize(),
        ((3, 5, 4),),
        of(DataType.FLOAT32),
        output_types=(
            *(DataType.QSYMM_S8, DataType.QASYMM_S8),
            *(DataType.QASYMM_U8, DataType.QSYMM_S16),
        ),
        output_scale=lambda inputs, data_type: Quantization.per_axis((0.1, 0.05, 0.025), 0),
    )


def halves(rng: np.random.Generator, info: TensorInfo) -> Array:
    """Steps of an eighth: half of them lie between two quantised elements."""
    return (rng.integers(-64, 64, info.known_shape) / 8).astype(info.data_type.dtype)


def _scaled_integers(template: CaseTemplate, types: Types) -> list[TensorInfo | None]:
    return [
        TensorInfo(shape, types[0], Quantization.per_tensor(1 / 64)) for shape in template.shapes
    ]


def _dequantize() -> Iterator[CaseTemplate]:
    yield CaseTemplate(
        "plain",
        Dequantize(),
        ((3, 5, 7),),
        lambda types: types[0].is_quantized,
        output_types=_FLOATS,
    )
    yield CaseTemplate(
        "integers",
        Dequantize(),
        ((3, 5),),
        of(DataType.SIGNED32),
        output_types=_FLOATS,
        infos=_scaled_integers,
    )
    yield CaseTemplate(
        "half", Dequantize(), ((3, 5),), of(DataType.FLOAT16), output_types=(DataType.FLOAT32,)
    )
    yield CaseTemplate(
        "scalar", Dequantize(), ((),), of(DataType.QASYMM_S8), output_types=_FLOATS[:1]
    )
    yield CaseTemplate(
        "per-axis",
        Dequantize(),
        ((2, 4, 3),),
        of(DataType.QSYMM_S8, DataType.QASYMM_S8, DataType.QASYMM_U8),
        (anything,),
        output_types=_FLOATS[:1],
        infos=_per_axis,
    )
    yield CaseTemplate(
        "highest-zero-point",
        Dequantize(),
        ((3, 5),),
        lambda types: every(types) and types[0].is_quantized,
        scales=(Scale(1 / 16, 1.0),),
        output_types=_FLOATS[:1],
    )


def _per_axis(template: CaseTemplate, types: Types) -> list[TensorInfo | None]:
    """A tensor with scales along its second axis."""
    quantization = Quantization.per_axis((0.1, 0.05, 0.025, 1.0), 1)
    return [TensorInfo(shape, types[0], quantization) for shape in template.shapes]
