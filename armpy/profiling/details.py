"""Details of layers in a profile: what each layer of the optimised network is."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from armpy.core.dataclass import dataclass


class ProfilingDetails(enum.IntEnum):
    """Details that a profile has of layers beside their times.

    References
    ----------
    Arm NN ProfilingDetailsMethod.
    """

    UNDEFINED = 0
    """Nothing."""
    WITH_EVENTS = 1
    """Tensors and attributes."""
    ONLY = 2
    """Tensors and attributes; Arm NN's JSON has no measurements then."""


@dataclass(frozen=True, slots=True)
class TensorDetails:
    """A tensor of a layer."""

    name: str
    """Name of the operand, such as ``weights``."""
    data_type: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LayerDetails:
    """A layer of the optimised network."""

    name: str
    operation: str
    backend: str
    graph: str
    """Graph of control flow that the layer lies in, as for `armpy.profiling.ProfilingEvent`."""
    inputs: tuple[TensorDetails, ...]
    outputs: tuple[TensorDetails, ...]
    attributes: Mapping[str, str]
