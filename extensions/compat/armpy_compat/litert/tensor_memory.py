"""Memory of inputs and outputs that callers may hold views of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from armpy.ops.operation import Array


class TensorMemory:
    """Arrays by tensor index; a view keeps all of them.

    Notes
    -----
    The base of every view is this object and not an array, so that the number of references to it
    says whether a caller holds a view or a slice of one.
    """

    __slots__ = ("__array_interface__", "arrays")

    def __init__(self, arrays: Mapping[int, Array]) -> None:
        self.arrays = dict(arrays)
        self.__array_interface__: dict[str, Any] = {}  # Any: as NumPy defines it

    def view(self, array: Array) -> Array:
        """View an array of this memory in place; others are returned as they are."""
        if not any(array is own for own in self.arrays.values()):
            return array
        # NumPy keeps this object with the view, and this object its arrays.
        self.__array_interface__ = array.__array_interface__
        return np.asarray(self)
