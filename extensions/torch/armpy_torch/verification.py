"""Results of armpy beside PyTorch's: of whole graphs, and of single operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from armpy.errors import UnimplementedError
from armpy.execution import Runtime
from armpy.model import Model
from armpy.types import DataType
from armpy_torch.conversion import convert
from armpy_torch.operator_calls import OperatorCall, unproved_reason
from armpy_torch.preparation import draws_random_numbers, first_lines
from armpy_torch.tensors import array_of, tensor_of

_TOLERANCES: Mapping[torch.dtype, float] = {
    torch.float64: 1e-6,
    torch.float32: 1e-4,
    torch.float16: 4e-3,
    torch.bfloat16: 2e-2,
}
"""Relative errors that single operators may have; other types are equal."""

NO_RESULT = "no result"
"""Beginning of a text about a call that armpy refuses."""

_GRAPH_FACTOR = 10
"""By how much larger the errors of whole graphs may be, in which roundings add up."""

_TYPES: Mapping[torch.dtype, DataType] = {
    torch.bfloat16: DataType.BFLOAT16,
    torch.bool: DataType.BOOLEAN,
    torch.float16: DataType.FLOAT16,
    torch.float32: DataType.FLOAT32,
    torch.float64: DataType.FLOAT64,
    torch.int16: DataType.SIGNED16,
    torch.int32: DataType.SIGNED32,
    torch.int64: DataType.SIGNED64,
    torch.int8: DataType.SIGNED8,
    torch.uint8: DataType.UNSIGNED8,
}
"""Types of results that single operators are compared in."""


def difference(actual: Any, expected: Any, *, of_graph: bool = True) -> str:
    """How results differ from PyTorch's; empty if they do not.

    Infinities and NaN have to be in the same places; zeros of both signs are equal. Any: nested
    tensors and numbers.
    """
    pairs = tree_leaves(actual), tree_leaves(expected)
    if len(pairs[0]) != len(pairs[1]):
        return f"{len(pairs[0])} results, {len(pairs[1])} in PyTorch"
    for number, (ours, theirs) in enumerate(zip(*pairs, strict=True)):
        if not isinstance(theirs, torch.Tensor):
            if ours != theirs:
                return f"result {number} is {ours}, {theirs} in PyTorch"
            continue
        for what in ("dtype", "shape"):
            if getattr(ours, what) != getattr(theirs, what):
                return (
                    f"result {number} has {what} {getattr(ours, what)}, "
                    f"{getattr(theirs, what)} in PyTorch"
                )
        differ = _differ(ours, theirs, of_graph)
        if bool(differ.any()):
            first = tuple(differ.nonzero()[0].tolist())
            elements = ours[first].item(), theirs[first].item()
            return f"result {number} has {elements[0]} at {first}, {elements[1]} in PyTorch"
    return ""


def _differ(actual: torch.Tensor, expected: torch.Tensor, of_graph: bool) -> torch.Tensor:
    """Which elements of two tensors of one type and shape differ."""
    if expected.is_complex():
        ours, theirs = (torch.view_as_real(x.resolve_conj()) for x in (actual, expected))
        return _differ(ours, theirs, of_graph).any(-1)
    relative = _TOLERANCES.get(expected.dtype)
    if relative is None:
        return actual != expected
    ours, theirs = actual.double(), expected.double()
    magnitudes = theirs[theirs.isfinite()].abs()
    largest = float(magnitudes.max()) if magnitudes.numel() else 0.0
    if of_graph:
        relative *= _GRAPH_FACTOR
    # Differences of large numbers have their errors. Operators are compared near zero as well.
    absolute = relative / 4 * (largest if of_graph else min(largest, 1.0))
    return ~torch.isclose(ours, theirs, rtol=relative, atol=absolute, equal_nan=True)


def differences_of_calls(calls: Sequence[OperatorCall], runtime: Runtime) -> list[str]:
    """How armpy's results of single operators differ from PyTorch's, or that it has none.

    All calls are one network; if that fails, halves of them are tried.
    """
    expected = [tree_leaves(call.result) for call in calls]
    try:
        leaves = iter(_results(calls, runtime))
    except Exception as error:  # noqa: BLE001  # PyTorch's exporters may raise anything
        if len(calls) == 1:
            return [f"{NO_RESULT}: {first_lines(error)}"]
        middle = len(calls) // 2
        return [
            *differences_of_calls(calls[:middle], runtime),
            *differences_of_calls(calls[middle:], runtime),
        ]
    return [difference([next(leaves) for _ in one], one, of_graph=False) for one in expected]


def _results(calls: Sequence[OperatorCall], runtime: Runtime) -> list[object]:
    """What armpy computes for all calls, one by one, in the types of its network."""
    program = Calls(calls)
    exported = torch.export.export(program, tuple(program.tensors), strict=False)
    limit = runtime.options.memory_limit_bytes
    converted = convert(exported, {}, "calls", limit, checks_elements=False)
    arrays = [array_of(program.tensors[number]) for number in converted.inputs]
    model = Model(converted.network, runtime)
    try:
        specs = {spec.name: spec for spec in model.outputs}
        given = dict(zip([spec.name for spec in model.inputs], arrays, strict=True))
        values = model.run(given)
    finally:
        model.close()
    leaves: list[object] = []
    for output in converted.outputs:
        if specs[output.name].data_type is not _TYPES.get(output.dtype):
            raise UnimplementedError(
                "the network's result has another type",
                expected=str(output.dtype),
                actual=specs[output.name].data_type.name,
            )
        leaves.append(tensor_of(values[output.name], output.dtype))
    return leaves


def is_wrong(text: str) -> bool:
    """Return whether a call has a result of armpy's that differs from PyTorch's."""
    return bool(text) and not text.startswith(NO_RESULT)


class Calls(torch.nn.Module):
    """A program of calls that read nothing of each other."""

    def __init__(self, calls: Sequence[OperatorCall]) -> None:
        super().__init__()
        self.calls = calls
        self.tensors: list[torch.Tensor] = []
        self.read: list[list[int]] = []
        for call in calls:
            leaves, _ = tree_flatten((call.args, dict(call.kwargs)))
            tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
            self.read.append([*range(len(self.tensors), len(self.tensors) + len(tensors))])
            self.tensors += tensors

    def forward(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        """The tensors among the results of all calls, one by one."""
        results: list[torch.Tensor] = []
        for call, numbers in zip(self.calls, self.read, strict=True):
            leaves, form = tree_flatten((call.args, dict(call.kwargs)))
            chosen = iter(numbers)
            args, kwargs = tree_unflatten(
                [tensors[next(chosen)] if isinstance(x, torch.Tensor) else x for x in leaves], form
            )
            leaves = tree_leaves(call._replace(args=args, kwargs=kwargs).result)
            results += [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        return results


class _Recorder(torch.fx.Interpreter):
    """Runs a graph in PyTorch, and keeps the calls of operators."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        super().__init__(module)
        self.calls: list[OperatorCall] = []

    def run_node(self, n: torch.fx.Node) -> Any:  # Any: what the operator returns
        result = super().run_node(n)
        is_operator = isinstance(n.target, torch._ops.OpOverload) and not draws_random_numbers(n)
        if is_operator and all(isinstance(x, torch.Tensor) for x in tree_leaves(result)):
            self.calls.append(OperatorCall.of(n, *self.fetch_args_kwargs_from_env(n)))
        return result


def calls_of(program: ExportedProgram, tensors: Sequence[torch.Tensor]) -> list[OperatorCall]:
    """The calls of operators on real numbers, when a program runs in PyTorch for inputs."""
    constants = {**program.state_dict, **program.constants}
    given = iter(tensors)
    arguments = [
        next(given) if spec.kind == InputKind.USER_INPUT else constants[spec.target]
        for spec in program.graph_signature.input_specs
    ]
    recorder = _Recorder(program.graph_module)
    recorder.run(*arguments)
    return recorder.calls


def differing_operators(
    program: ExportedProgram, tensors: Sequence[torch.Tensor], runtime: Runtime
) -> list[str]:
    """Operators of a program that armpy computes otherwise than PyTorch, with how they differ."""
    with torch.random.fork_rng(devices=[]):
        calls = [call for call in calls_of(program, tensors) if not unproved_reason(call.signature)]
        texts = differences_of_calls(calls, runtime)
    wrong = {
        str(call.target): text for call, text in zip(calls, texts, strict=True) if is_wrong(text)
    }
    return [f"{name} ({text})" for name, text in wrong.items()]
