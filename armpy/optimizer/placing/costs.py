"""What the partitioner is told of costs."""

from __future__ import annotations

from typing import Protocol

from armpy.graph import Layer, Value
from armpy.types import BackendId


class CostTable(Protocol):
    """What each layer, and each tensor that changes the backend, costs; all in one unit.

    Notes
    -----
    Costs are at least 0 and finite; the cheapest placement has the smallest sum.
    """

    def layer(self, layer: Layer, backend_id: BackendId) -> float:
        """One execution of a layer by a backend that takes it."""

    def crossing(self, value: Value, source: BackendId, target: BackendId) -> float:
        """Handing a tensor to another backend, which is paid once per tensor and reader.

        Parameters
        ----------
        source, target : str
            Whose layer writes the tensor, and who reads it; `HOST` for the caller.
        """
