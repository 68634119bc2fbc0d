"""CpuRef's MaxPoolWithIndices."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from armpy.ops import MaxPoolWithIndices
from armpy.ops.operation import Array
from armpy_reference.pools import meetings, neutral, window_axes
from armpy_reference.workload import ReferenceWorkload


class MaxPoolWithIndicesWorkload(ReferenceWorkload[MaxPoolWithIndices]):
    """Compare the windows' elements one by one, for all windows at once."""

    def prepare(self) -> None:
        """Lay the windows over the image."""
        operation = self.operation
        self._sizes = self.input_infos[0].known_shape[1:-1]
        self._axes = window_axes(
            self._sizes,
            operation.pool_size,
            operation.stride,
            operation.padding,
            operation.dilation,
        )

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Write maxima and positions: of equal elements, and of NaNs, the first one counts."""
        images, (largest, positions) = inputs[0], outputs
        largest[...] = neutral(np.maximum, images.dtype)
        positions[...] = -1
        places = np.arange(math.prod(self._sizes)).reshape(*self._sizes, 1)
        for pairs in itertools.product(*map(meetings, self._axes)):
            windows = tuple(windows for windows, _ in pairs)
            elements = tuple(elements for _, elements in pairs)
            values = images[(slice(None), *elements)]
            best = largest[(slice(None), *windows)]
            index = positions[(slice(None), *windows)]
            is_new = (values > best) | (index < 0) | (np.isnan(values) & ~np.isnan(best))
            best[is_new] = values[is_new]
            np.copyto(index, places[elements], where=is_new)
