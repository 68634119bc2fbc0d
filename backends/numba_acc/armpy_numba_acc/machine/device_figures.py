"""Speed and power of processors of a kind against CpuRef, as ``armpy calibrate`` measured them."""

from __future__ import annotations

from dataclasses import replace

from armpy.backend import DeviceFigures, PerformanceFigures
from armpy.types import DataType
from armpy_numba_acc.machine.processors.features import Processor


def _both(ratio: float) -> PerformanceFigures:
    """Time and power: a processor's power is the time that its threads compute."""
    return PerformanceFigures(ratio, ratio)


_AVX2 = DeviceFigures(
    tensors={
        DataType.FLOAT32: _both(0.18),
        DataType.QASYMM_S8: _both(0.13),
        DataType.FLOAT16: _both(0.06),
        DataType.QASYMM_U8: _both(0.09),
        DataType.SIGNED32: _both(0.63),
        DataType.BOOLEAN: _both(0.79),
        # Not among the workloads of ``armpy calibrate``: geometric means of layers that are
        # compiled for these types (transposition and padding, of QSYMM_S16 sums and maxima too).
        DataType.QSYMM_S16: _both(0.26),
        DataType.QASYMM_U16: _both(0.37),
        DataType.QSYMM_S8: _both(0.25),
        DataType.UNSIGNED32: _both(0.32),
        DataType.UNSIGNED8: _both(0.33),
    },
    scalars={
        DataType.FLOAT32: _both(0.53),
        DataType.FLOAT16: _both(0.41),
        DataType.SIGNED32: _both(0.53),
        DataType.BOOLEAN: _both(0.61),
        # No layer's first input is such a scalar; these are the figures of scalars of their size.
        DataType.UNSIGNED32: _both(0.53),
        DataType.UNSIGNED8: _both(0.61),
    },
    if_=_both(0.27),
    while_=_both(0.17),
)
"""AMD Zen 3: AVX2 without VNNI."""

_VNNI = replace(
    _AVX2,
    tensors={
        **_AVX2.tensors,
        DataType.FLOAT32: _both(0.19),
        DataType.QASYMM_S8: _both(0.14),
        DataType.FLOAT16: _both(0.09),
    },
    if_=_both(0.76),
    while_=_both(0.12),
)
"""Intel Xeon with VNNI; types that were not measured there have the figures of `_AVX2`."""


def device_figures(processor: Processor) -> DeviceFigures | None:
    """Figures of processors with the same instructions; None if none were measured."""
    if processor.features & {"avx512vnni", "avxvnni"}:
        return _VNNI
    return _AVX2 if "avx2" in processor.features else None
