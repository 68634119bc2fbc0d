"""A captured graph of which armpy takes parts; PyTorch runs the operators between them.

Notes
-----
PyTorch's partitioner (``torch.fx.passes``) joins neighbouring operators that armpy takes. Each
partition is a captured graph again: it has its own sizes, weights and networks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner, Partition
from torch.fx.passes.operator_support import OperatorSupportBase
from torch.fx.passes.utils.fuser_utils import fuse_by_partitions

from armpy.core.dataclass import dataclass
from armpy.errors import UnimplementedError
from armpy_torch.capture import Argument, CapturedGraph
from armpy_torch.preparation import PreparedProgram, draws_random_numbers, written_by

CompilePart: TypeAlias = "Callable[[CapturedGraph], Callable[..., Sequence[object]]]"
"""Makes the function that runs a partition."""


@dataclass(frozen=True, slots=True)
class PartitionedProgram:
    """A functional graph whose partitions run on armpy."""

    module: GraphModule
    inputs: tuple[int, ...]  # numbers of the tensors among the captured graph's inputs
    written: tuple[int, ...]  # inputs that the first results are written to
    prepared: PreparedProgram

    @classmethod
    def of(
        cls,
        graph: CapturedGraph,
        prepared: PreparedProgram,
        compile_part: CompilePart,
    ) -> PartitionedProgram:
        """Partition a graph, of which armpy refuses some operators.

        Raises
        ------
        UnimplementedError
            If nothing is left for armpy, or the parts would draw random numbers in another order.
        """
        program, refusals = prepared.program, prepared.refusals
        tensors = tuple(number for number, item in enumerate(graph.inputs) if item.is_tensor)
        module, inputs = _with_constants(program)
        weights = [
            *(node.name for node in module.graph.find_nodes(op="get_attr")),
            *(
                node.name
                for node, number in zip(inputs, tensors, strict=True)
                if graph.inputs[number].is_weight
            ),
        ]
        if not _partition(module, refusals, weights, compile_part):
            raise refusal_of_all(refusals)
        targets = {node.name: number for node, number in zip(inputs, tensors, strict=True)}
        return cls(module, tensors, tuple(targets[name] for name in written_by(program)), prepared)

    def has_weights_of(self, arguments: Sequence[Argument]) -> bool:
        """Return True: each partition compares its own weights."""
        return True

    def run(self, arguments: Sequence[Argument]) -> tuple[object, ...]:
        """Compute the outputs, and write to the inputs that the graph writes to."""
        results = self.module(*[arguments[number] for number in self.inputs])
        for number, result in zip(self.written, results, strict=False):
            with torch.no_grad():
                arguments[number].copy_(result)
        return tuple(results[len(self.written) :])


def refusal_of_all(refusals: Mapping[Node, str]) -> UnimplementedError:
    """An error that names operators, each once, with the reason that armpy refuses it."""
    reasons = dict.fromkeys(f"{node.target} {reason}" for node, reason in refusals.items())
    return UnimplementedError(
        "armpy does not take all operators of the graph",
        actual=", ".join(reasons),
        fix="Leave these operators to PyTorch; model.eval() removes those of training",
    )


class _TakenOperators(OperatorSupportBase):
    """Nodes that armpy takes."""

    def __init__(self, refusals: Mapping[Node, str]) -> None:
        self._refusals = refusals

    def is_node_supported(self, submodules: object, node: Node) -> bool:
        return node.op == "call_function" and node not in self._refusals


class _PartModule(torch.nn.Module):
    """A partition, in the place that PyTorch's partitioner gives it."""

    def __init__(self, run: Callable[..., Sequence[object]]) -> None:
        super().__init__()
        self.forward = run


def _with_constants(program: ExportedProgram) -> tuple[GraphModule, list[Node]]:
    """The program's graph with constants as attributes, and its other inputs."""
    module = program.graph_module
    tensors = {**program.state_dict, **program.constants}
    inputs = []
    nodes = module.graph.find_nodes(op="placeholder")
    for number, (node, spec) in enumerate(
        zip(nodes, program.graph_signature.input_specs, strict=True)
    ):
        if spec.kind == InputKind.USER_INPUT:
            inputs.append(node)
            continue
        name = f"constant_{number}"
        module.register_buffer(name, tensors[spec.target], persistent=False)
        with module.graph.inserting_after(nodes[-1]):
            constant = module.graph.get_attr(name)
        constant.meta = node.meta
        node.replace_all_uses_with(constant)
        module.graph.erase_node(node)
    return module, inputs


def _partition(
    module: GraphModule,
    refusals: Mapping[Node, str],
    weights: Sequence[str],
    compile_part: CompilePart,
) -> bool:
    """Replace what armpy takes by partitions; return whether that was possible."""
    partitioner = CapabilityBasedPartitioner(
        module, _TakenOperators(refusals), allows_single_node_partition=True
    )
    parts = [part for part in partitioner.propose_partitions() if _computes(part)]
    random = _random_operators(module)
    fuse_by_partitions(module, [part.nodes for part in parts], always_return_tuple=True)
    if not parts or random != _random_operators(module):  # PyTorch's generator has one order
        return False
    for node in module.graph.find_nodes(op="call_module"):
        graph = CapturedGraph.of(module.get_submodule(node.target), weights)
        module.set_submodule(node.target, _PartModule(compile_part(graph)))
    module.recompile()
    return True


def _computes(part: Partition) -> bool:
    """Return whether a partition has an operator on tensors."""
    return any(isinstance(node.target, torch._ops.OpOverload) for node in part.nodes)


def _random_operators(module: GraphModule) -> list[str]:
    """Names of operators that draw random numbers, in the order in which they run."""
    return [node.name for node in module.graph.nodes if draws_random_numbers(node)]
