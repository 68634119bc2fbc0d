"""Layers that run other graphs: one of two, or one again and again."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Protocol, runtime_checkable

from armpy.core.dataclass import dataclass
from armpy.ops.operation import Operand, OperandInfos, Operation, require
from armpy.tensor import Shape, TensorInfo, format_shape, shapes_agree
from armpy.types import DataType

__all__ = ["If", "While"]


@runtime_checkable
class Subgraph(Protocol):
    """Graph as definitions need it; `armpy.graph.Graph` is one."""

    @property
    def input_infos(self) -> tuple[TensorInfo, ...]:
        """Info of each input."""

    @property
    def output_infos(self) -> tuple[TensorInfo, ...]:
        """Info of each output."""


class ControlFlow(Operation):
    """An operation whose attributes are graphs, which the layer runs.

    Notes
    -----
    The core executes such layers itself, unless a backend supports the layer and every layer
    of its graphs. Graphs may hold control flow themselves; they have no variables.
    """

    __slots__ = ()

    has_data_dependent_outputs: ClassVar[bool] = True

    @property
    @abstractmethod
    def graphs(self) -> tuple[tuple[str, Subgraph], ...]:
        """The graphs with the names that messages and reports give them."""

    @abstractmethod
    def _known_outputs(self, inputs: OperandInfos) -> tuple[TensorInfo, ...]:
        """Check the graphs against the inputs; return the known facts of the outputs."""

    def infer(
        self, inputs: OperandInfos, declared: Sequence[TensorInfo | None] = ()
    ) -> tuple[TensorInfo, ...]:
        """Check the operands and graphs; see `Operation.infer`.

        Raises
        ------
        LayerValidationError
            If the operands or graphs do not go together.
        """
        known = self._known_outputs(inputs)
        infos = [declared[i] if i < len(declared) else None for i in range(len(known))]
        for number, (info, own) in enumerate(zip(infos, known, strict=True)):
            if info is not None:
                _require_same_type(f"output {number}", info, own, "the layer", "its graphs")
        pairs = zip(infos, known, strict=True)
        # The graphs' declarations are known even where an input's rank is not.
        return super().infer(inputs, [i if i and i.shape is not None else own for i, own in pairs])

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """Shapes as far as the graphs' outputs say them."""
        return tuple(info.shape for info in self._known_outputs(inputs))


@dataclass(frozen=True, slots=True)
class If(ControlFlow):
    """Run one of two graphs.

    Notes
    -----
    condition BOOLEAN of one element; inputs as of the graphs. Output shapes are known as far as
    both graphs agree, else those of the graph that runs.

    References
    ----------
    NNAPI IF; TFLite IF.
    """

    then_graph: Subgraph
    else_graph: Subgraph
    """`then_graph` and `else_graph`: they take the inputs after the condition and give the outputs:
    equally many, of equal types and quantisation.
    """

    inputs: ClassVar[tuple[Operand, ...]] = (Operand("condition"), Operand("input", variadic=True))
    outputs: ClassVar[tuple[Operand, ...]] = (Operand("output", variadic=True),)

    @property
    def graphs(self) -> tuple[tuple[str, Subgraph], ...]:
        """``then`` and ``else``."""
        return (("then", self.then_graph), ("else", self.else_graph))

    @property
    def num_outputs(self) -> int:
        """Number of the graphs' outputs."""
        return len(self.then_graph.output_infos)

    def _known_outputs(self, inputs: OperandInfos) -> tuple[TensorInfo, ...]:
        """Return the known outputs of both graphs."""
        require(len(inputs) > 0, "the condition is missing")
        _require_condition(inputs[0], "the condition")
        for name, graph in self.graphs:
            _require_inputs(name, graph, inputs[1:])
        outputs = self.then_graph.output_infos, self.else_graph.output_infos
        require(
            len(outputs[0]) == len(outputs[1]),
            "the graphs give different numbers of outputs",
            expected=f"{len(outputs[0])} (then)",
            actual=f"{len(outputs[1])} (else)",
        )
        pairs = list(zip(*outputs, strict=True))
        for number, (info, other) in enumerate(pairs):
            _require_same_type(f"output {number}", info, other, "then", "else")
        return tuple(_common_info(info, other) for info, other in pairs)


@dataclass(frozen=True, slots=True)
class While(ControlFlow):
    """Run a graph as long as another one says so.

    Notes
    -----
    inputs as of the graphs; outputs as of the body: the values after the last turn, or the inputs
    without one. A shape is known as far as input and body output agree; otherwise it may change
    from turn to turn.

    References
    ----------
    NNAPI WHILE (which need not hand out all carried values); TFLite WHILE.
    """

    condition_graph: Subgraph
    """Takes all inputs and gives one BOOLEAN: whether there is another turn."""
    body_graph: Subgraph
    """Takes all inputs. Output number i is input number i of the next turn; inputs without such an
    output stay.
    """

    inputs: ClassVar[tuple[Operand, ...]] = (Operand("input", variadic=True),)
    outputs: ClassVar[tuple[Operand, ...]] = (Operand("output", variadic=True),)

    @property
    def graphs(self) -> tuple[tuple[str, Subgraph], ...]:
        """``condition`` and ``body``."""
        return (("condition", self.condition_graph), ("body", self.body_graph))

    @property
    def num_outputs(self) -> int:
        """Number of the body's outputs."""
        return len(self.body_graph.output_infos)

    def _known_outputs(self, inputs: OperandInfos) -> tuple[TensorInfo, ...]:
        """Return the outputs that are the same whether there are turns or not."""
        for name, graph in self.graphs:
            _require_inputs(name, graph, inputs)
        conditions = self.condition_graph.output_infos
        require(
            len(conditions) == 1,
            "the condition graph has the wrong number of outputs",
            expected="1",
            actual=str(len(conditions)),
        )
        _require_condition(conditions[0], "the condition graph's output")
        carried = self.body_graph.output_infos
        require(
            len(carried) <= len(inputs),
            "the body gives more outputs than there are inputs to carry them on",
            expected=f"at most {len(inputs)}",
            actual=str(len(carried)),
        )
        pairs = [(before, after) for before, after in zip(inputs, carried, strict=False) if before]
        for number, (before, after) in enumerate(pairs):
            _require_same_type(f"carried value {number}", before, after, "the input", "the body")
        return tuple(_common_info(before, after) for before, after in pairs)


def _require_condition(info: TensorInfo | None, noun: str) -> None:
    """Check that a tensor is one truth value."""
    require(
        info is not None
        and info.data_type is DataType.BOOLEAN
        and not any(dim not in (1, None) for dim in info.shape or ()),
        f"{noun} is not one truth value",
        expected="BOOLEAN of one element",
        actual=str(info),
    )


def _require_inputs(name: str, graph: Subgraph, inputs: OperandInfos) -> None:
    """Check a graph's inputs against the layer's arguments."""
    wanted = graph.input_infos
    require(
        len(wanted) == len(inputs),
        f"the {name} graph takes another number of inputs than the layer hands it",
        expected=str(len(wanted)),
        actual=str(len(inputs)),
    )
    for number, (info, actual) in enumerate(zip(wanted, inputs, strict=True)):
        if actual is None:
            continue
        _require_same_type(f"input {number}", info, actual, f"the {name} graph", "the layer")
        require(
            shapes_agree(info.shape, actual.shape),
            f"input {number} of the {name} graph has another shape than the layer's",
            expected=format_shape(info.shape),
            actual=format_shape(actual.shape),
        )


def _require_same_type(
    noun: str, info: TensorInfo, other: TensorInfo, one_side: str, other_side: str
) -> None:
    """Check that two tensors have the same type and quantisation."""
    if info.data_type is other.data_type and info.quantization == other.quantization:
        return  # before texts are made: graphs may have many inputs
    require(
        False,
        f"{noun} has different types for {one_side} and for {other_side}",
        expected=str(info.with_shape(None)),
        actual=str(other.with_shape(None)),
    )


def _common_info(info: TensorInfo, other: TensorInfo) -> TensorInfo:
    """Info of a tensor that is the one or the other; None for dimensions that differ."""
    shape: Shape | None = None
    if info.shape is not None and other.shape is not None and len(info.shape) == len(other.shape):
        pairs = zip(info.shape, other.shape, strict=True)
        shape = tuple(a if a == b else None for a, b in pairs)
    return TensorInfo(shape, info.data_type, info.quantization)
