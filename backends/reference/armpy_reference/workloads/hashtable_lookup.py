"""CpuRef's HashtableLookup."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.ops import HashtableLookup
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload


class HashtableLookupWorkload(ReferenceWorkload[HashtableLookup]):
    """Search the keys by halving and copy."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Copy; any data type."""
        lookups, keys, values = inputs
        out, hits = outputs
        out[...] = "" if out.dtype.hasobject else 0
        at = np.searchsorted(keys, lookups)
        is_hit = np.zeros(len(lookups), bool)
        inside = at < len(keys)
        is_hit[inside] = keys[at[inside]] == lookups[inside]
        out[is_hit] = values[at[is_hit]]
        hits[...] = is_hit
