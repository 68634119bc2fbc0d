"""CpuRef's BitCast."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import BitCast
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class BitCastWorkload(ReferenceWorkload[BitCast]):
    """Views of bytes."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Copy bytes; numbers stored in bytes that are not full have their signs put in place."""
        target = self.info.outputs[0].data_type
        out = outputs[0]
        if target.bits < 8:
            bits = inputs[0].astype(np.int64) & ((1 << target.bits) - 1)
            if target.is_narrow:
                highest = target.integer_range[1]
                bits = np.where(bits > highest, bits - (1 << target.bits), bits)
            out[...] = bits.astype(out.dtype)
            return
        source = np.ascontiguousarray(inputs[0])
        out[...] = np.frombuffer(source.tobytes(), out.dtype).reshape(out.shape)
