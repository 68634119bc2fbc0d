"""Graphs as Dynamo captures them, and their export for one set of arguments."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch.export import Dim, ExportedProgram
from torch.fx import Graph, GraphModule, Node

from armpy.core.dataclass import dataclass

Argument: TypeAlias = Any  # torch.Tensor is Any for the type checker
"""What Dynamo passes to a graph: a tensor, or a number."""


@dataclass(frozen=True, slots=True)
class GraphInput:
    """One input of a captured graph."""

    name: str
    is_tensor: bool
    # Whether it belongs to a module, and is the same tensor in each call unless the program
    # replaces it: a parameter or a buffer.
    is_weight: bool
    open_axes: tuple[int, ...] = ()  # dimensions whose size may differ from call to call
    # Of a size that is an input of its own: the input and the dimension that have it as well.
    size_of: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class CapturedGraph:
    """A graph that Dynamo captured."""

    module: GraphModule
    inputs: tuple[GraphInput, ...]

    @classmethod
    def of(cls, module: GraphModule, weights: Collection[str] = ()) -> CapturedGraph:
        """Describe a graph by what Dynamo or an exporter notes at its nodes.

        Parameters
        ----------
        weights : collection of str, optional
            Names of inputs that are weights, beside those that Dynamo notes as such.
        """
        nodes = _placeholders(module.graph)
        axes_by_size: dict[object, tuple[int, int]] = {}
        inputs = []
        for index, node in enumerate(nodes):
            value = _value(node)
            if isinstance(value, torch.Tensor):
                open_axes = tuple(i for i, s in enumerate(value.shape) if is_open(s))
                for axis in open_axes:
                    axes_by_size.setdefault(_expression(value.shape[axis]), (index, axis))
                is_weight = node.name in weights or _is_weight(node)
                inputs.append(GraphInput(node.name, True, is_weight, open_axes))
            else:
                inputs.append(GraphInput(node.name, False, False))
        for index, node in enumerate(nodes):
            value = _value(node)
            if is_open(value) and _expression(value) in axes_by_size:
                found = axes_by_size[_expression(value)]
                inputs[index] = GraphInput(node.name, False, False, size_of=found)
        return cls(module, tuple(inputs))

    @property
    def needs_gradients(self) -> bool:
        """Return whether PyTorch would record how to compute gradients of an output."""
        return torch.is_grad_enabled() and any(
            value.requires_grad for value in self._outputs() if isinstance(value, torch.Tensor)
        )

    @property
    def aliased_output(self) -> tuple[int, str] | None:
        """Number of an output, and the input or earlier output whose memory it shares, if any."""
        names = {
            _memory(value): f"input '{node.name}'"
            for node in _placeholders(self.module.graph)
            if isinstance(value := _value(node), torch.Tensor)
        }
        for number, value in enumerate(self._outputs()):
            if isinstance(value, torch.Tensor):
                name = names.setdefault(_memory(value), f"output {number}")
                if name != f"output {number}":
                    return number, name
        return None

    def _outputs(self) -> list[object]:
        """Stand-ins of the outputs."""
        (output,) = self.module.graph.find_nodes(op="output")
        values = output.args[0]
        nodes = values if isinstance(values, (tuple, list)) else (values,)
        return [_value(node) if isinstance(node, Node) else node for node in nodes]

    @property
    def is_empty(self) -> bool:
        """Return whether the graph computes nothing that the program reads."""
        return not self._outputs()

    def sizes_of(self, arguments: Sequence[Argument]) -> tuple[int, ...]:
        """The sizes of a call's tensors that may differ between calls."""
        return tuple(
            [
                arguments[number].shape[axis]
                for number, item in enumerate(self.inputs)
                for axis in item.open_axes
            ]
        )

    def numbers_of(self, arguments: Sequence[Argument]) -> tuple[Argument, ...]:
        """The numbers of a call that are not sizes of its tensors."""
        return tuple(
            [
                argument
                for item, argument in zip(self.inputs, arguments, strict=True)
                if not item.is_tensor and item.size_of is None
            ]
        )

    def tensors_of(self, arguments: Sequence[Argument]) -> list[torch.Tensor]:
        """The tensors among a call's arguments."""
        return [a for item, a in zip(self.inputs, arguments, strict=True) if item.is_tensor]

    def overlaps(self, arguments: Sequence[Argument], written: Sequence[int]) -> bool:
        """Return whether the memory of an argument that is written to is also another one's."""
        spans = {
            number: _span(arguments[number])
            for number, item in enumerate(self.inputs)
            if item.is_tensor
        }
        return any(
            number != other and spans[number][0] < end and begin < spans[number][1]
            for number in written
            for other, (begin, end) in spans.items()
        )

    @property
    def is_fixed(self) -> bool:
        """Return whether all calls have the same sizes and numbers."""
        return all(item.is_tensor and not item.open_axes for item in self.inputs)

    def export(self, arguments: Sequence[Argument], *, opens_axes: bool = True) -> ExportedProgram:
        """Export the graph; its inputs are the tensors among the captured graph's.

        Numbers become constants of the program, but for sizes of tensors. With `opens_axes` the
        sizes that Dynamo holds open stay so, unless the graph needs one as a number.
        """
        shapes = tuple(
            dict.fromkeys(item.open_axes, Dim.AUTO) if opens_axes and item.open_axes else None
            for item in self.inputs
            if item.is_tensor
        )
        module = self._without_numbers(arguments)
        tensors = tuple(self.tensors_of(arguments))
        return torch.export.export(module, tensors, dynamic_shapes=shapes, strict=False)

    def _without_numbers(self, arguments: Sequence[Argument]) -> GraphModule:
        """The graph with tensors as its only inputs."""
        graph = Graph()
        nodes: dict[Node, Node] = {}
        result = graph.graph_copy(self.module.graph, nodes)
        graph.output(result)
        copied = _placeholders(graph)
        after = next(node for node in graph.nodes if node.op != "placeholder")
        for node, item, argument in zip(copied, self.inputs, arguments, strict=True):
            if item.is_tensor:
                continue
            replacement: Any = argument  # Any: a node, or a number in its place
            if item.size_of is not None:
                index, axis = item.size_of
                with graph.inserting_before(after):
                    size = torch.ops.aten.sym_size.int
                    replacement = graph.call_function(size, (copied[index], axis))
            _replace(node, replacement)
            graph.erase_node(node)
        return GraphModule(copy.copy(self.module), graph)


def _replace(node: Node, replacement: Any) -> None:  # Any: as above
    """Let the users of a node read another node, or a number."""
    for user in [*node.users]:
        user.args = torch.fx.map_arg(user.args, lambda n: replacement if n is node else n)
        user.kwargs = torch.fx.map_arg(user.kwargs, lambda n: replacement if n is node else n)


def _placeholders(graph: Graph) -> list[Node]:
    return list(graph.find_nodes(op="placeholder"))


def _value(node: Node) -> object:
    """The stand-in that Dynamo, or an exporter, has computed for a node."""
    return node.meta.get("example_value", node.meta.get("val"))


def is_open(size: object) -> bool:
    """Return whether a size may differ from call to call."""
    return isinstance(size, torch.SymInt) and size.node.maybe_as_int() is None


def _expression(size: Any) -> object:  # Any: a SymInt
    """What two equal open sizes have in common."""
    return size.node.expr


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """Addresses of a tensor's first element and of the end of its last."""
    begin = tensor.data_ptr()
    if not tensor.numel():
        return begin, begin
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    last = sum((size - 1) * stride for size, stride in steps)
    return begin, begin + (last + 1) * tensor.element_size()


def _memory(tensor: torch.Tensor) -> object:
    """What two tensors over the same memory have in common."""
    return tensor.untyped_storage()._cdata


def _is_weight(node: Node) -> bool:
    """Return whether Dynamo found a tensor as a parameter or buffer of a module."""
    notes: Mapping[str, object] = node.meta.get("tensor_dict", {})
    is_parameter = isinstance(_value(node), torch.nn.Parameter)
    return is_parameter or notes.get("_dynamo_static_input_type") is not None
