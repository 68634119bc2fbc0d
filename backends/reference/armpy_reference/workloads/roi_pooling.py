"""CpuRef's RoiPooling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.core.numerics.rounding import round_half_away
from armpy.ops import RoiPooling
from armpy.ops.operation import Array
from armpy.types import DataLayout
from armpy_reference.reals import to_real
from armpy_reference.regions import scaled_regions
from armpy_reference.workload import ReferenceWorkload


class RoiPoolingWorkload(ReferenceWorkload[RoiPooling]):
    """Take the maxima along rows, then along columns, of stored elements."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Compute region by region in NHWC order, which views give for NCHW.

        Raises
        ------
        LayerValidationError
            If a region cannot be used.
        """
        operation = self.operation
        values, stored, batches = inputs
        out = outputs[0]
        if operation.data_layout is DataLayout.NCHW:
            values, out = values.transpose(0, 2, 3, 1), out.transpose(0, 2, 3, 1)
        rois = to_real(stored, self.input_infos[1])
        regions = scaled_regions(operation, rois, batches, values.shape, self.info.name)
        height, width = operation.output_size
        for batch, region, target in zip(batches, round_half_away(regions), out, strict=True):
            image, (x1, y1, x2, y2) = values[batch], region
            rows = self._maxima(image, _parts(y1, y2, height, image.shape[0]))
            columns = _parts(x1, x2, width, image.shape[1])
            target[...] = self._maxima(rows.swapaxes(0, 1), columns).swapaxes(0, 1)

    def _maxima(self, values: Array, parts: Sequence[slice]) -> Array:
        """Maxima of parts of the first axis; real 0 for empty ones."""
        empty = np.full(values.shape[1:], self.input_infos[0].zero_point, values.dtype)
        return np.stack([values[p].max(axis=0) if p.start < p.stop else empty for p in parts])


def _parts(start: np.float32, end: np.float32, count: int, size: int) -> list[slice]:
    """Bins of a region along an axis with `size` elements."""
    step = max(end - start + np.float32(1), np.float32(1)) / np.float32(count)
    numbers = np.arange(count, dtype=np.float32)
    starts = np.floor(numbers * step + start)
    ends = np.ceil((numbers + np.float32(1)) * step + start)
    pairs = zip(np.minimum(starts, size), np.minimum(ends, size), strict=True)
    return [slice(int(first), int(last)) for first, last in pairs]
