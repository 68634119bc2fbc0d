"""Samples of builtin operators on LiteRT."""

from __future__ import annotations

from armpy.ops.operation import Array
from tests.differential.litert_oracle import run_litert
from tests.support.tflite_samples.making import Sample


def by_litert(sample: Sample) -> list[Array]:
    """LiteRT's outputs: of its reference kernel, or of the other one where there is none."""
    try:
        return run_litert(sample.file, sample.inputs)
    except (RuntimeError, ValueError):
        return run_litert(sample.file, sample.inputs, reference=False)
