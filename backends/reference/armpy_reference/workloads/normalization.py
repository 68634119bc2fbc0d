"""CpuRef's Normalization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import Normalization
from armpy.ops.operation import Array
from armpy.ops.shapes import normalize_axes
from armpy_reference.quantization import Float32Array
from armpy_reference.reals import from_real, to_real
from armpy_reference.workload import ReferenceWorkload


class NormalizationWorkload(ReferenceWorkload[Normalization]):
    """Add up squares along one axis after the other."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute in float32; round once."""
        operation = self.operation
        values = to_real(inputs[0], self.input_infos[0])
        sums: Float32Array = np.square(values)
        for axis in normalize_axes(operation.axes, values.ndim):
            sums = _window_sums(sums, axis, operation.radius)
        scaled = np.float32(operation.k) + np.float32(operation.alpha) * sums
        result = values * np.power(scaled, np.float32(-operation.beta))
        outputs[0][...] = from_real(result, self.info.outputs[0])


def _window_sums(values: Float32Array, axis: int, radius: int) -> Float32Array:
    """Sums of each element and its neighbours along an axis."""
    rows = np.moveaxis(values, axis, -1)
    sums = rows.copy()
    for distance in range(1, min(radius, rows.shape[-1] - 1) + 1):
        sums[..., distance:] += rows[..., :-distance]
        sums[..., :-distance] += rows[..., distance:]
    return np.moveaxis(sums, -1, axis)
