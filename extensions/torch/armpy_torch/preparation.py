"""Exported programs, made ready for conversion: functional, decomposed, with what refuses them.

Notes
-----
The exporter of PyTorch converts the operators of its table as they are, attention and LSTM among
them, and has PyTorch decompose the others. Of both, armpy takes calls that are proved
(`operator_calls`); an operator that is not is decomposed as well where that leaves proved ones.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import OutputKind
from torch.fx import GraphModule, Node
from torch.onnx._internal.exporter import _decomp, _dispatching, _registration
from torch.utils._pytree import tree_leaves

from armpy.core.dataclass import dataclass
from armpy_torch.capture import is_open
from armpy_torch.fused_layers import FUSED_LAYERS
from armpy_torch.operator_calls import OperatorCall, unproved_reason

_log = logging.getLogger(__name__)

OPSET = 23
"""The operator set: the first with Attention, as PyTorch's function of that purpose."""

WRITES = (OutputKind.USER_INPUT_MUTATION, OutputKind.BUFFER_MUTATION)

_ASSERTIONS = frozenset(
    {
        torch.ops.aten._assert_tensor_metadata.default,
        torch.ops.aten.sym_constrain_range.default,
        torch.ops.aten.sym_constrain_range_for_size.default,
    }
)
"""Operators that compute nothing, and hold for all tensors of a program's types."""

_TRIED_SIZES = 64
"""How many sizes of an open axis a program is tried for."""


@dataclass(frozen=True, slots=True)
class PreparedProgram:
    """A program without writes, of operators that armpy takes and some that it refuses."""

    program: ExportedProgram
    refusals: Mapping[Node, str]  # operators that PyTorch has to run, with reasons
    # Raises AssertionError for tensors that the program does not hold for. PyTorch finds sizes
    # while it traces, and more while it decomposes; the module of a program alone compares them.
    guards: Callable[..., None]

    @classmethod
    def of(cls, program: ExportedProgram) -> PreparedProgram:
        """Prepare a program."""
        program = registry_decomposed(program)
        refusals = _refusals(program)
        if rules := {
            node.target: rule
            for node in refusals
            if (rule := _decompositions().get(node.target)) is not None
        }:
            try:
                finer = program.run_decompositions(rules)
            except Exception as error:  # noqa: BLE001  # PyTorch's decompositions may raise anything
                names = ", ".join(sorted(map(str, rules)))
                _log.info("no decomposition of %s: %s", names, first_lines(error))
            else:
                if not _refusals(finer):
                    program, refusals = finer, {}
        return cls(program, refusals, getattr(program.module(), "_guards_fn", _hold_for_all))

    def trial_tensors(self) -> Iterator[list[torch.Tensor]]:
        """Tensors without memory for which the program should hold, if guards limit it at all."""
        names = self.program.graph_signature.user_inputs
        nodes = {node.name: node for node in self.program.graph.find_nodes(op="placeholder")}
        stand_ins = [nodes[name].meta["val"] for name in names]
        shapes = [value.shape for value in stand_ins if isinstance(value, torch.Tensor)]
        open_sizes = [size for shape in shapes for size in shape if is_open(size)]
        if not self.program._guards_code or not open_sizes:
            return
        hints = {size.node.expr: size.node.hint for size in open_sizes}
        for symbol, limits in self.program.range_constraints.items():
            least = max(2, int(limits.lower))  # PyTorch never traces 0 and 1 as open sizes
            for value in range(least, int(min(limits.upper, least + _TRIED_SIZES)) + 1):
                values = {**hints, symbol: value}
                yield [
                    torch.empty(
                        [
                            int(size.node.expr.xreplace(values)) if is_open(size) else int(size)
                            for size in shape
                        ],
                        device="meta",
                    )
                    for shape in shapes
                ]

    def takes(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Return whether the program holds for a call's tensors."""
        try:
            self.guards(*tensors)
        except AssertionError:
            return False
        return True


def _hold_for_all(*tensors: torch.Tensor) -> None:
    """Guards of a program without inputs."""


def registry_decomposed(program: ExportedProgram) -> ExportedProgram:
    """The same program, without writes, of operators that the exporter has ONNX operators for.

    What it can neither convert nor decompose is left in it.
    """
    with torch.fx.experimental._config.patch(backed_size_oblivious=True):  # as the exporter does
        result = without_writes(program).run_decompositions(dict(_exporters_decompositions()))
    for module in _graph_modules(result):
        for node in module.graph.nodes:
            if node.target in _ASSERTIONS and not node.users:
                module.graph.erase_node(node)
        module.recompile()
    return result


def without_writes(program: ExportedProgram) -> ExportedProgram:
    """The same program, in which no operator writes: writes are in the signature alone."""
    if any(
        getattr(node.target, "_schema", None) and node.target._schema.is_mutable
        for node in program.graph.nodes
    ):
        return program.run_decompositions({})
    return program


def written_by(program: ExportedProgram) -> tuple[str, ...]:
    """Names of what a program of `without_writes` writes to: inputs, or buffers in it."""
    specs = program.graph_signature.output_specs
    return tuple(spec.target for spec in specs if spec.kind in WRITES)


@cache
def converters() -> _registration.ONNXRegistry:
    """The exporter's converters of operators.

    ``torch.onnx.export`` makes this table for each graph, which takes longer than most graphs do.
    The modules are not public: .ci/servers tries the versions of PyTorch that are named there.
    """
    return _registration.ONNXRegistry.from_torchlib(opset_version=OPSET)


@cache
def _exporters_decompositions() -> Mapping[Any, Callable[..., Any]]:
    """PyTorch's decompositions of the operators that the exporter does not convert."""
    converted = set(_decomp.get_onnx_implemented_overloads(converters()))
    table = _decomp.create_onnx_friendly_decomposition_table(converted)
    return {**table, torch.ops.aten.copy.default: _copied}


def _copied(tensor: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """``aten.copy``, which writes become; the exporter's function for it does not broadcast."""
    return source.to(tensor.dtype).expand(tensor.shape).clone()


@cache
def _decompositions() -> Mapping[Any, Callable[..., Any]]:
    """PyTorch's decompositions into core operators, by operator."""
    return {**torch.export.default_decompositions(), **FUSED_LAYERS}


def first_lines(error: BaseException) -> str:
    """The text of an error of PyTorch's without what follows: traces, hints, whole graphs."""
    return str(error).strip().partition("\n\n")[0] or type(error).__name__


def call_of(node: Node) -> OperatorCall:
    """What a node calls, with stand-ins of the tensors."""
    args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda item: item.meta.get("val"))
    return OperatorCall.of(node, args, kwargs)


def _refusals(program: ExportedProgram) -> dict[Node, str]:
    """Operators that armpy refuses, with reasons."""
    refusals: dict[Node, str] = {}
    for module in _graph_modules(program):
        for node in module.graph.nodes:
            if node.op == "call_function" and (reason := _refusal_of(node)):
                refusals[node] = reason
    inner = [node for node in refusals if node.graph is not program.graph]
    for node in program.graph.nodes if refusals else ():
        if isinstance(node.target, torch._ops.HigherOrderOperator):
            refusals[node] = "is control flow, which is not divided"
    for node in inner:  # of a branch or loop, which runs as a whole
        refusals[node] = refusals.pop(node)
    return refusals


def _refusal_of(node: Node) -> str:
    """Why an operator of a decomposed program does not run on armpy by itself, if so."""
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        return ""
    nodes = [node, *node.all_input_nodes]
    values = [value for n in nodes for value in tree_leaves(n.meta.get("val"))]
    if any(isinstance(value, torch.Tensor) and value.is_complex() for value in values):
        return "computes with complex numbers (torch.view_as_real makes real ones of them)"
    if draws_random_numbers(node):
        return "draws random numbers from PyTorch's generator"
    if _dispatching.dispatch(node, converters())[0] is None:
        return "has no ONNX operators in PyTorch's exporter"
    results = tree_leaves(node.meta.get("val"))
    if isinstance(node.target, torch._ops.OpOverload) and any(
        isinstance(value, torch.Tensor) for value in results
    ):
        return unproved_reason(call_of(node).signature)
    return ""


def draws_random_numbers(node: Node) -> bool:
    """Return whether an operator draws random numbers."""
    tags: Collection[object] = getattr(node.target, "tags", ())
    if torch.Tag.nondeterministic_seeded not in tags or _argument(node, "train") is False:
        return False
    return _argument(node, "dropout_p") != 0.0


def _argument(node: Node, name: str) -> object:
    """The value of an operator's argument, perhaps its default; None if it has no such one."""
    return dict(OperatorCall(node.target, node.args, node.kwargs).arguments).get(name)


def _graph_modules(program: ExportedProgram) -> Iterator[GraphModule]:
    """The program's graph, and those of its branches and loops."""
    for module in program.graph_module.modules():
        if isinstance(module, GraphModule):
            yield module
