"""Records of networks in compiled models; ``docs/reference/compiled_models.md`` describes them."""

from __future__ import annotations

from typing import Any

from armpy.backend import MemorySource
from armpy.compiler.placement import Placement
from armpy.core.dataclass import dataclass
from armpy.tensor import TensorInfo

MODEL = "model"
"""Name of the section with a `ModelRecord`."""

CONSTANTS = "constants"
"""Name of the section with the elements of constants, each at a multiple of 64 bytes."""


@dataclass(frozen=True, slots=True)
class ArrayRecord:
    """Place of an array's elements: bytes of a section, or what a view of them gives."""

    section: str
    begin: int  # bytes of the section; 0 with a view
    size: int
    # Recipe of `armpy.store.archive.packed_views`, by which the elements are read out of packed
    # ones.
    view: Any  # Any: checked where it is read


@dataclass(frozen=True, slots=True)
class ValueRecord:
    """A value; of a constant, the number of the array with its elements."""

    id: int
    name: str
    info: TensorInfo
    data: int | None


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
    """A variable; values by their numbers, the initial elements by that of the array."""

    value: int
    next_value: int
    initial: int
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
    output_shapes: tuple[tuple[int | None, ...] | None, ...]


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
class PlanRecord:
    """Plan of executing a network; the source and the executed graph by their numbers."""

    source: int
    executed: int
    assignment: tuple[tuple[int, str], ...]
    backend_ids: tuple[tuple[int, str], ...]
    origins: tuple[tuple[int, tuple[int, ...]], ...]
    arenas: tuple[ArenaRecord, ...]
    tensors: tuple[TensorRecord, ...]
    imports: tuple[ImportRecord, ...]
    placement: Placement
    model_options: dict[str, dict[str, bool | int | float | str]]


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """A network: its graphs, which of them is loaded, and its plan if there is one."""

    arrays: tuple[ArrayRecord, ...]
    # Those that control flow runs come before the graphs that run them.
    graphs: tuple[GraphRecord, ...]
    loaded: int  # the graph for all shapes
    plan: PlanRecord | None
