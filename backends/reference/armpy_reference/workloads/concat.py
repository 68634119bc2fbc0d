"""CpuRef's Concat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.core.numerics.integer_functions import concatenated
from armpy.ops import Concat
from armpy.ops.operation import Array
from armpy.ops.shapes import normalize_axis
from armpy.tensor import TensorInfo
from armpy_reference.quantization import parameters_of
from armpy_reference.quantized.lookup_table import table_of
from armpy_reference.workload import ReferenceWorkload


class ConcatWorkload(ReferenceWorkload[Concat]):
    """Copy each input into its place, through a table where it is quantised differently."""

    def prepare(self) -> None:
        """Work out each input's place and its table."""
        output = self.info.outputs[0]
        axis = normalize_axis(self.operation.axis, len(output.known_shape))
        self.places: list[tuple[slice, ...]] = []
        self.tables: list[Array | None] = []
        start = 0
        for info in self.info.inputs:
            size = info.known_shape[axis] if info else 0
            self.places.append((slice(None),) * axis + (slice(start, start + size),))
            same = info is None or info.quantization == output.quantization
            self.tables.append(None if same or info is None else _table(info, output))
            start += size

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Copy; any data type."""
        for values, place, table in zip(inputs, self.places, self.tables, strict=True):
            outputs[0][place] = values if table is None else table[values.view(np.uint8)]


def _table(source: TensorInfo, target: TensorInfo) -> Array:
    """Requantisation table of 8-bit numbers."""
    return table_of(concatenated(parameters_of(source), parameters_of(target)), source, target)
