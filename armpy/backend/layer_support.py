"""Layer support: a backend's answer to the question whether it can run a layer."""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from armpy.core.dataclass import dataclass
from armpy.errors import ArmpyError

if TYPE_CHECKING:  # an import here slows every start of a compiled model
    from armpy.graph import Graph, Layer
    from armpy.ops.operation import OperandInfos, Operation
    from armpy.tensor import TensorInfo


class ReasonCode(enum.Enum):
    """Reason why a layer is not supported, for programs; the text is for people."""

    OPERATION = "operation"
    EXTENSION = "extension"
    DATA_TYPE = "data_type"
    RANK = "rank"
    SHAPE = "shape"
    ATTRIBUTE = "attribute"
    QUANTIZATION = "quantization"
    CONSTANT = "constant"
    DEVICE = "device"
    COMPILATION = "compilation"
    PREPARATION = "preparation"
    EXECUTION = "execution"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Support:
    """Yes, or no with a reason.

    An answer is carried as it is from the backend to reports.

    Examples
    --------
    >>> bool(Support.yes())
    True
    >>> Support.no(ReasonCode.RANK, "input has rank 5, at most 4 is supported").text
    'input has rank 5, at most 4 is supported'
    """

    is_supported: bool
    code: ReasonCode | None = None
    """Why not, for programs; None for a yes."""
    text: str = ""
    """Why not, for people; empty for a yes."""
    error: ArmpyError | None = field(default=None, compare=False)
    """The backend's error, without traceback and causes, if it failed to answer, compile, prepare
    or execute; set by the core alone."""

    @classmethod
    def yes(cls) -> Support:
        """The layer is supported."""
        return _YES

    @classmethod
    def no(cls, code: ReasonCode, text: str) -> Support:
        """The layer is not supported; name the operand, the rule and the actual value."""
        return cls(False, code, text)

    def __bool__(self) -> bool:
        return self.is_supported


# One object for all: each layer of a network is asked about, and most are supported.
_YES = Support(True)


class ILayerSupport(ABC):
    """Says which layers a backend can run."""

    @abstractmethod
    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        """Say whether one layer can run.

        Parameters
        ----------
        operation : Operation
            Operands whose constant values became attributes are filled in.
        inputs : sequence of (TensorInfo or None)
            Valid under the operation's own rules; dimensions may be unknown.

        Returns
        -------
        Support
            Layers that it accepts must be prepared and executed without error.
        """

    def are_layers_supported(self, layers: Sequence[Layer]) -> Sequence[Support]:
        """Say for each of many layers of a network whether it can run.

        Override it if a query takes as long for one layer as for many.
        """
        return [self.is_layer_supported(x.operation, x.input_infos, x.output_infos) for x in layers]

    def is_layer_supported_in(self, layer: Layer, graph: Graph) -> Support:
        """Say whether a layer can run beside its neighbours; yes by default.

        Asked only if `is_layer_supported` has said yes, and wherever there is a graph.

        Parameters
        ----------
        graph : Graph
            The network that it is a layer of: `Graph.producers` and `Graph.consumers` have its
            neighbours.

        Notes
        -----
        For devices that run a layer only with the layers before or after it, such as an
        activation that they have no command for and fuse. Backends in processes of their own are
        not asked it.
        """
        return Support.yes()
