"""Samples of builtin operators on LiteRT."""

from __future__ import annotations

from armpy.ops.operation import Array
from armpy_testing.litert_oracle import run_litert
from tests.differential.tflite_samples.making import Sample

OPTIMISED = {
    ("LOCAL_RESPONSE_NORMALIZATION", "FLOAT32"): "sums channels c - radius to c + radius - 1",
    ("SUM", "INT8 quantised"): "gives other elements in each run",
    ("SUM", "INT16 quantised"): "gives other elements in each run",
}
"""Operators and kinds whose reference kernel is wrong, and how; the optimised one is right."""


def by_litert(sample: Sample) -> list[Array]:
    """LiteRT's outputs: of its reference kernel, or of the other one where there is no right one.

    References
    ----------
    TFLite ``reference_ops.h``, ``LocalResponseNormalization``.
    """
    if (sample.operator, sample.kind) in OPTIMISED:
        return run_litert(sample.file, sample.inputs, reference=False)
    try:
        return run_litert(sample.file, sample.inputs)
    except (RuntimeError, ValueError):
        return run_litert(sample.file, sample.inputs, reference=False)
