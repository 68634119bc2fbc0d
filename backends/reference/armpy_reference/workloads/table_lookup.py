"""CpuRef's TableLookup."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.ops import TableLookup
from armpy.ops.operation import Array
from armpy_reference.workload import ReferenceWorkload

_NAN = object()
"""Key of NaN, which does not equal itself."""


class TableLookupWorkload(ReferenceWorkload[TableLookup]):
    """Look each element up in a dictionary."""

    def compute(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Look up; of equal keys the last one counts."""
        elements, keys, values, default = inputs
        out = outputs[0].reshape(-1)
        places = {_key(key): place for place, key in enumerate(keys.tolist())}
        out[...] = default.reshape(())
        for index, element in enumerate(elements.reshape(-1).tolist()):
            place = places.get(_key(element))
            if place is not None:
                out[index] = values[place]


def _key(element: object) -> object:
    """Return the key of an element."""
    return element if element == element else _NAN  # noqa: PLR0124 - NaN alone differs from itself
