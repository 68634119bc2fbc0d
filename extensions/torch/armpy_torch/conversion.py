"""Exported programs as networks: PyTorch's ONNX exporter, in memory, and armpy-onnx.

Notes
-----
The exporter converts each of PyTorch's operators; docs/decisions says why armpy has no converters
of its own for them. Weights do not pass through it: the ONNX model only names them, and the
network's constants share PyTorch's memory.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import onnx_ir
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, OutputKind, OutputSpec, SymIntArgument
from torch.onnx._internal.exporter import _core, _dispatching, _fx_passes, _registration
from torch.utils._pytree import tree_leaves

from armpy.core.dataclass import dataclass
from armpy.errors import UnimplementedError
from armpy.graph.network import Network
from armpy.plugins.hooks.front_end import ParseSettings
from armpy.plugins.hooks.model_file import open_model_file
from armpy_onnx.parser import parse_file
from armpy_torch.tensors import array_of

_OPSET = 23
"""The operator set: the first with Attention, as PyTorch's function of that purpose."""

_LEAST_SHARED_BYTES = 1 << 10
"""Size from which constants are shared, and not written into the model."""

_WRITTEN = (OutputKind.USER_INPUT_MUTATION, OutputKind.BUFFER_MUTATION)


@dataclass(frozen=True, slots=True)
class ProgramOutput:
    """One output of an exported program."""

    name: str = ""  # of the network's output; empty for a constant
    dtype: torch.dtype | None = None  # of a tensor; None for a size
    constant: object = None


@dataclass(frozen=True, slots=True)
class ConvertedProgram:
    """A network, and how its inputs and outputs belong to those of an exported program."""

    network: Network
    inputs: tuple[int, ...]  # numbers of the program's inputs that the network reads
    outputs: tuple[ProgramOutput, ...]
    written: tuple[tuple[int, ProgramOutput], ...]  # inputs that get an output's elements


def convert(
    program: ExportedProgram,
    tensors: dict[int, torch.Tensor],
    name: str,
    memory_limit_bytes: int,
) -> ConvertedProgram:
    """Convert an exported program to a network.

    Parameters
    ----------
    program : ExportedProgram
        It may write to inputs, but not to buffers of its own.
    tensors : dict of int to torch.Tensor
        Inputs by number that are constants of the network; those that the program writes to stay
        inputs.

    Raises
    ------
    ArmpyError
        If it uses what the exporter has no ONNX operators for, or what a network cannot have.
    """
    program = without_writes(program)
    targets = _return_writes(program)
    exported = _exported(program)
    final = exported.exported_program
    _check_operators(final)
    model, signature = exported.model, final.graph_signature
    positions = {spec.arg.name: number for number, spec in enumerate(_user_inputs(final))}
    dtypes = {node.name: node.meta["val"].dtype for node in final.graph.nodes if _is_tensor(node)}
    for input_name in signature.user_inputs:
        _check_real(dtypes.get(input_name, torch.float32), f"input '{input_name}'")
    outputs = [_output(spec.arg, dtypes) for spec in signature.output_specs]
    written = tuple(zip([positions[name] for name in targets], outputs, strict=False))
    constants = {
        number: tensor
        for number, tensor in tensors.items()
        if number not in {target for target, _ in written}
    }
    memory = _Memory()
    inputs = memory.share(model.graph, constants)
    data = onnx_ir.to_proto(model).SerializeToString()
    settings = ParseSettings(None, memory_limit_bytes, {}, dict)
    network = parse_file(open_model_file(data), settings, memory.views)
    network.name = name
    return ConvertedProgram(network, inputs, tuple(outputs[len(targets) :]), written)


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
    return tuple(spec.target for spec in specs if spec.kind in _WRITTEN)


def _return_writes(program: ExportedProgram) -> tuple[str, ...]:
    """Let a program return what it writes to inputs, before its outputs; the inputs' names.

    Left as they are, PyTorch's exporter removes what computes them.
    """
    targets = written_by(program)
    specs = program.graph_signature.output_specs
    for number, spec in enumerate(specs):
        if spec.kind in _WRITTEN:
            specs[number] = OutputSpec(OutputKind.USER_OUTPUT, spec.arg, None)
    if targets:
        calls = program.module_call_graph[0].signature
        calls.out_spec = torch.utils._pytree.tree_structure([*range(len(specs))])
    return targets


def _exported(program: ExportedProgram) -> torch.onnx.ONNXProgram:
    """The ONNX model of a program; UnimplementedError if there is none."""
    try:
        with _quiet():
            return _core.export(
                program,
                registry=_operators(),
                optimize=False,
                verbose=False,
                opset_version=_OPSET,
            )
    except torch.onnx.OnnxExporterError as error:
        cause = error.__cause__ or error
        raise UnimplementedError(
            "PyTorch's exporter has no ONNX operators for the program",
            actual=first_lines(cause),
            fix="Leave this part to PyTorch",
        ) from error


@cache
def _operators() -> _registration.ONNXRegistry:
    """The exporter's converters of operators.

    ``torch.onnx.export`` makes this table for each graph, which takes longer than most graphs do.
    The modules are not public: .ci/servers tries the version of PyTorch that is named there.
    """
    return _registration.ONNXRegistry.from_torchlib(opset_version=_OPSET)


def first_lines(error: BaseException) -> str:
    """The text of an error of PyTorch's without what follows: traces, hints, whole graphs."""
    return str(error).strip().partition("\n\n")[0] or type(error).__name__


class _Memory:
    """Memory of tensors that constants of a network lie in."""

    def __init__(self) -> None:
        self.views: dict[str, memoryview] = {}

    def share(self, graph: Any, constants: dict[int, torch.Tensor]) -> tuple[int, ...]:
        """Move inputs to the constants; the numbers of those that stay.

        Any: of `onnx_ir`, as PyTorch's exporter makes it.
        """
        for value in graph.initializers.values():
            tensor = getattr(value.const_value, "raw", None)
            if isinstance(tensor, torch.Tensor):
                value.const_value = self._named(value, tensor, value.const_value.dtype)
        values = list(graph.inputs)
        for number, tensor in constants.items():
            value = values[number]
            graph.inputs.remove(value)
            value.const_value = self._named(value, tensor, value.dtype)
            graph.initializers[value.name] = value
        return tuple(number for number in range(len(values)) if number not in constants)

    def _named(self, value: Any, tensor: torch.Tensor, kind: Any) -> Any:  # Any: as above
        """A constant that lies in a tensor's memory, or has its elements if they are few."""
        array = array_of(tensor.detach().contiguous())
        if array.nbytes < _LEAST_SHARED_BYTES:
            return onnx_ir.Tensor(array, dtype=kind, name=value.name)
        location = str(len(self.views))
        self.views[location] = array.reshape(-1).view("u1").data
        shape = onnx_ir.Shape(array.shape)
        return onnx_ir.ExternalTensor(
            location, 0, array.nbytes, kind, shape=shape, name=value.name, base_dir=""
        )


def _user_inputs(program: ExportedProgram) -> list[Any]:  # Any: PyTorch's InputSpec
    names = set(program.graph_signature.user_inputs)
    return [spec for spec in program.graph_signature.input_specs if spec.arg.name in names]


def _is_tensor(node: torch.fx.Node) -> bool:
    return isinstance(node.meta.get("val"), torch.Tensor)


def _output(argument: Any, dtypes: dict[str, torch.dtype]) -> ProgramOutput:
    """An output as its exported program describes it; Any: one of PyTorch's kinds of arguments."""
    if isinstance(argument, ConstantArgument):
        return ProgramOutput(constant=argument.value)
    if isinstance(argument, SymIntArgument):
        return ProgramOutput(argument.name)
    dtype = dtypes[argument.name]
    _check_real(dtype, f"output '{argument.name}'")
    return ProgramOutput(argument.name, dtype)


def _check_real(dtype: torch.dtype, where: str) -> None:
    """Check that a tensor that crosses between PyTorch and armpy is not of complex numbers."""
    if dtype.is_complex:
        raise UnimplementedError(
            "the tensor has complex numbers",
            where=where,
            expected="a tensor of real numbers",
            actual=str(dtype),
            fix="Pass and return torch.view_as_real(tensor), or leave this part to PyTorch",
        )


def decomposed(program: ExportedProgram) -> ExportedProgram:
    """The same program, without writes, of operators that the exporter has ONNX operators for.

    What it can neither convert nor decompose is left in it.
    """
    return _fx_passes.decompose_with_registry(without_writes(program), _operators())


def _check_operators(program: ExportedProgram) -> None:
    """Check that results follow from inputs, and that none depends on a training mode."""
    for node in program.graph.nodes:
        if reason := _training_reason(node):
            raise UnimplementedError(
                f"the operator {reason}",
                where=str(node.target),
                expected="a model in evaluation mode",
                fix="Call model.eval(), or leave this part to PyTorch",
            )


def refusal_of(node: torch.fx.Node) -> str:
    """Why an operator of a decomposed program does not run on armpy by itself, if so.

    Complex numbers and control flow are left out here, though the exporter takes some graphs with
    them as a whole.
    """
    if isinstance(node.target, torch._ops.HigherOrderOperator):
        return "is control flow, which is not divided"
    nodes = [node, *node.all_input_nodes]
    values = [value for n in nodes for value in tree_leaves(n.meta.get("val"))]
    if any(isinstance(value, torch.Tensor) and value.is_complex() for value in values):
        return "computes with complex numbers (torch.view_as_real makes real ones of them)"
    if _dispatching.dispatch(node, _operators())[0] is None:
        return "has no ONNX operators in PyTorch's exporter"
    return _training_reason(node)


def _training_reason(node: torch.fx.Node) -> str:
    """Why an operator's results do not follow from its inputs alone, if so."""
    if draws_random_numbers(node):
        return "draws random numbers from PyTorch's generator"
    if "batch_norm" in str(node.target) and _argument(node, "training") is True:
        return "normalises by statistics of the batch"
    return ""


def draws_random_numbers(node: torch.fx.Node) -> bool:
    """Return whether an operator draws random numbers."""
    tags: Collection[object] = getattr(node.target, "tags", ())
    is_random = torch.Tag.nondeterministic_seeded in tags
    return is_random and _argument(node, "dropout_p") != 0.0


def _argument(node: torch.fx.Node, name: str) -> object:
    """The value of an operator's argument, perhaps its default; None if it has no such one."""
    parameters = node.target._schema.arguments
    for position, parameter in enumerate(parameters):
        if parameter.name == name:
            given = node.args[position] if position < len(node.args) else parameter.default_value
            return node.kwargs.get(name, given)
    return None


@contextmanager
def _quiet() -> Iterator[None]:
    """Leave out what PyTorch's exporter says about itself: packages that the program lacks."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)
