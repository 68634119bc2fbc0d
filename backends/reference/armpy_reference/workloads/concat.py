"""CpuRef's Concat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.ops import Concat
from armpy.ops.operation import Array
from armpy.ops.shapes import normalize_axis
from armpy.tensor import TensorInfo
from armpy_reference.quantization import round_half_away, scale_of
from armpy_reference.workload import ReferenceWorkload


class ConcatWorkload(ReferenceWorkload[Concat]):
    """Copy each input into its place, through a table where it is quantised differently."""

    def prepare(self) -> None:
        """Work out each input's place and its table."""
        output = self.info.outputs[0]
        axis = normalize_axis(self.operation.axis, len(output.known_shape))
        self.places: list[tuple[slice, ...]] = []
        self.tables: list[npt.NDArray[np.integer[Any]] | None] = []
        start = 0
        for info in self.info.inputs:
            size = info.known_shape[axis] if info else 0
            self.places.append((slice(None),) * axis + (slice(start, start + size),))
            same = info is None or info.quantization == output.quantization
            self.tables.append(None if same or info is None else requantization(info, output))
            start += size

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Copy; any data type."""
        for values, place, table in zip(inputs, self.places, self.tables, strict=True):
            outputs[0][place] = values if table is None else table[values.view(np.uint8)]


def requantization(source: TensorInfo, target: TensorInfo) -> npt.NDArray[np.integer[Any]]:
    """What each number of 8 bits of one quantisation is in another.

    Returns
    -------
    ndarray, uint8 or int8, shape (256,)
        By the number's bit pattern.

    Notes
    -----
    In float32, rounding half away from zero, saturating. Signed numbers are shifted into the
    unsigned range, where products are rounded otherwise than around 0.

    References
    ----------
    TFLite ``ConcatenationWithScaling``; NNAPI CONCATENATION.
    """
    lowest, _ = source.data_type.integer_range
    scale = scale_of(source) * (np.float32(1) / scale_of(target))
    bias = np.float32(lowest - source.zero_point) * scale
    rounded = round_half_away(np.arange(256, dtype=np.float32) * scale + bias)
    stored = np.clip(rounded + (target.zero_point - lowest), 0, 255) + lowest
    # The lowest number's pattern is 128 where numbers are signed.
    return np.roll(np.asarray(stored, source.data_type.dtype), lowest)
