"""Plain data about a model: its file, layers and tensors, and the programs that run them."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from armpy.core.dataclass import dataclass

if TYPE_CHECKING:
    from armpy.compiler import Refusal


class LayerStatus(StrEnum):
    """Status of a layer of a file."""

    RUNS = "runs"
    """On a backend, or on several where it was made into several layers."""
    FUSED = "fused"
    """It is a part of another layer."""
    CONSTANT = "constant"
    """Computed when the model was loaded."""
    DROPPED = "dropped"
    """Removed: its outputs are not read, or it changes nothing."""
    STATE = "state"
    """It keeps, reads or writes a variable, which armpy does around the layers."""
    UNSUPPORTED = "unsupported"
    """armpy does not have the operator."""
    UNPLACED = "unplaced"
    """Not known: shapes are missing, or the model cannot be loaded."""


@dataclass(frozen=True, slots=True)
class LayerFacts:
    """One layer of a model file: one operator."""

    index: int
    """Position in `ModelFacts.layers`."""
    operator: str
    """Operator's name in the file's format: ``CONV_2D``, ``Conv``."""
    name: str
    inside: str
    """Control flow layer and its graph that the layer is in: ``loop/body``; empty in the main
    graph.
    """
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    """`inputs` and `outputs`: Places in `ModelFacts.tensors`; -1 for an operand that is left out.
    """
    shape: tuple[int | None, ...] | None
    """Shape of the first output."""
    type: str
    """Type of the first output, named as in the format."""
    parameters: int = 0
    parameter_bytes: int = 0
    """`parameters` and `parameter_bytes`: Elements of weights and biases that it is the first to
    read, and their bytes in the file.
    """
    macs: int = 0
    """Multiplications that are added up: of convolutions, products of matrices and the like."""
    operations: int = 0
    """Arithmetic operations of all kinds, of which one of `macs` is two."""
    bytes_moved: int = 0
    """Bytes of all operands that it reads and writes, constants included."""
    status: LayerStatus = LayerStatus.UNPLACED
    backends: tuple[str, ...] = ()
    """The backend that runs it."""
    programs: tuple[int, ...] = ()
    """Places in `ModelFacts.programs`."""
    into: str = ""
    """The layer that it is a part of, if it was fused."""
    refusals: tuple[Refusal, ...] = ()
    """Refusals of armpy's layers that it became; each backend's answer once."""
    layer_names: tuple[str, ...] = ()
    """Layers of armpy's network that it became, as profiles and placement reports name them."""


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """One tensor of a model file."""

    index: int
    """Position in `ModelFacts.tensors`."""
    name: str
    inside: str
    """Control flow layer and its graph, as of `LayerFacts`."""
    shape: tuple[int | None, ...] | None
    type: str
    """Type, named as in the format."""
    role: str
    """{"input", "output", "parameter", "constant", "variable", ""}: Empty for what layers hand to
    each other.
    """
    size_bytes: int | None
    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    """`scales` and `zero_points`: Quantisation; empty if not quantised."""
    axis: int | None
    """Axis of the channels that have a scale each."""
    producer: int | None
    """The layer that writes it."""
    consumers: tuple[int, ...]
    """The layers that read it."""


@dataclass(frozen=True, slots=True)
class ProgramFacts:
    """One layer as it is executed: what a backend compiled of many, or one of armpy's network."""

    index: int
    """Position in order of execution."""
    operation: str
    name: str
    backend: str
    """`operation`, `name` and `backend`: ``PreCompiled`` for what a backend compiled."""
    partition: int
    """Number of the subgraph that the backend was given; -1 for copies."""
    layers: tuple[int, ...]
    """The file's layers in it."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Facts of a model, and where its layers went."""

    file_bytes: int
    """Size of the model's file, and of its files of constants; 0 without a file.
    """
    parameters: int
    parameter_bytes: int
    """`parameters` and `parameter_bytes`: Weights and biases: elements, and bytes in the file, each
    tensor counted once.
    """
    macs: int
    operations: int
    """`macs` and `operations`: Of one execution with the shapes that are shown, `macs`
    multiplications that are added up and `operations` arithmetic operations of all kinds; graphs
    that control flow runs are counted once. An unknown dimension counts as 1.
    """
    operators: dict[str, int]
    """Number of uses of each operator, by the file's names, commonest first."""
    unsupported: dict[str, int]
    """Number of uses of each operator that armpy cannot run."""
    problem: str
    """Why it cannot be loaded; empty if it can."""
    layers: tuple[LayerFacts, ...]
    """Layers in the file's order; those of graphs that control flow runs come last."""
    tensors: tuple[TensorFacts, ...]
    programs: tuple[ProgramFacts, ...]
    """Empty as long as the shapes of the inputs are not known."""
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    """`inputs` and `outputs`: Places in `tensors`."""
    is_file: bool
    """Whether the layers are the file's; those of armpy's network where the front-end does not
    list them, or there is no file.
    """
    fix: str = ""
    """Fix for a file that cannot be loaded, from its error."""
