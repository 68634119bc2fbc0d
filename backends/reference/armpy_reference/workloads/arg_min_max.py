"""CpuRef's ArgMinMax."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import ArgMinMax, ArgMinMaxFunction
from armpy.ops.operation import Array
from armpy.ops.shapes import normalize_axis
from armpy_reference.workload import ReferenceWorkload


class ArgMinMaxWorkload(ReferenceWorkload[ArgMinMax]):
    """Find positions with NumPy, which takes the first of equal elements too."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Find positions of stored elements; scales are positive and keep their order."""
        values = inputs[0]
        axis = normalize_axis(self.operation.axis or 0, values.ndim)
        is_nan = np.isnan(values) if values.dtype.kind == "f" else None
        if is_nan is None or not is_nan.any():
            outputs[0][...] = self._found(values, axis)
            return
        worst = -np.inf if self.operation.function is ArgMinMaxFunction.MAX else np.inf
        found = self._found(np.where(is_nan, values.dtype.type(worst), values), axis)
        # Where even the best is no better than the worst, any number counts more than NaN.
        at_nan = np.take_along_axis(is_nan, np.expand_dims(found, axis), axis).squeeze(axis)
        outputs[0][...] = np.where(at_nan, is_nan.argmin(axis), found)

    def _found(self, values: Array, axis: int) -> Array:
        """Positions in a tensor without NaN."""
        is_max = self.operation.function is ArgMinMaxFunction.MAX
        return np.asarray(values.argmax(axis) if is_max else values.argmin(axis))
