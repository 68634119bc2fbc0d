"""Layout of a file with an optimised network; ``docs/optimized_networks.md`` describes it."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from armpy.backend import MemorySource
from armpy.optimizer.placement import Placement
from armpy.tensor import TensorInfo

MAGIC = b"armpyNet"
VERSION = 1
"""Of the format; another one is not read."""

HEADER = struct.Struct("<8sIIQQ32s")
"""Magic, version, zero, bytes of the text, bytes of the file, SHA-256 of all that follows."""

ALIGNMENT_BYTES = 64
"""Every constant begins at a multiple of this, counted from the file's beginning."""


def padding(position: int) -> int:
    """Bytes up to the next multiple of the alignment."""
    return -position % ALIGNMENT_BYTES


@dataclass(frozen=True, slots=True)
class ValueRecord:
    """A value; of a constant, position and size of its elements in the file."""

    id: int
    name: str
    info: TensorInfo
    data: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class LayerRecord:
    """A layer; inputs and outputs are numbers of values."""

    id: int
    name: str
    operation: str
    attributes: dict[str, Any]  # Any: read as the operation declares them
    inputs: tuple[int | None, ...]
    outputs: tuple[int, ...]
    origins: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VariableRecord:
    """A variable; values by their numbers, the initial elements by position and size."""

    value: int
    next_value: int
    initial: tuple[int, int]
    key: Any  # Any: text, numbers, None, and lists of them


@dataclass(frozen=True, slots=True)
class GraphRecord:
    """A graph; graphs that its layers run come before it and are numbers."""

    values: tuple[ValueRecord, ...]
    layers: tuple[LayerRecord, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    output_names: tuple[str, ...]
    variables: tuple[VariableRecord, ...]
    default_shapes: tuple[tuple[int, ...] | None, ...]


@dataclass(frozen=True, slots=True)
class ArenaRecord:
    """An arena of the memory plan."""

    backend_id: str
    factory_id: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class TensorRecord:
    """A planned tensor; value and arena by their numbers."""

    value: int
    arena: int
    offset_bytes: int
    lifetime: tuple[int, int]


@dataclass(frozen=True, slots=True)
class ImportRecord:
    """A tensor that a backend reads in another one's memory."""

    value: int
    backend_id: str
    factory_id: str
    source: MemorySource


@dataclass(frozen=True, slots=True)
class NetworkRecord:
    """Everything; the last two graphs are the source and the executed graph."""

    graphs: tuple[GraphRecord, ...]
    assignment: tuple[tuple[int, str], ...]
    backend_ids: tuple[tuple[int, str], ...]
    origins: tuple[tuple[int, tuple[int, ...]], ...]
    arenas: tuple[ArenaRecord, ...]
    tensors: tuple[TensorRecord, ...]
    imports: tuple[ImportRecord, ...]
    placement: Placement
    model_options: dict[str, dict[str, bool | int | float | str]]
