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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import onnx_ir
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    OutputKind,
    OutputSpec,
    SymIntArgument,
    TensorArgument,
)
from torch.onnx._internal._lazy_import import onnxscript_apis
from torch.onnx._internal.exporter import _core, _fx_passes

from armpy.core.dataclass import dataclass
from armpy.errors import UnimplementedError
from armpy.graph.network import Network
from armpy.ops.operation import Array
from armpy.plugins.hooks.front_end import ParseSettings
from armpy.plugins.hooks.model_file import open_model_file
from armpy_onnx.parser import parse_file
from armpy_torch.capture import is_open
from armpy_torch.operator_calls import ElementCheck, checks_of
from armpy_torch.preparation import OPSET, WRITES, call_of, converters, first_lines, written_by
from armpy_torch.tensors import array_of

_LEAST_SHARED_BYTES = 1 << 10
"""Size from which constants are shared, and not written into the model."""


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
    checks: tuple[OutputCheck, ...]


@dataclass(frozen=True, slots=True)
class OutputCheck:
    """A check of elements that PyTorch does, on an additional output of the network."""

    rule: ElementCheck
    output: ProgramOutput  # what is checked
    size: ProgramOutput | None  # of the dimension that elements are indices of, if it is open

    def passes(self, results: Mapping[str, Array]) -> bool:
        """Return whether PyTorch takes the elements."""
        elements = results[self.output.name]
        if self.rule.refuses_zero:
            return bool(elements.all())
        if self.rule.ignored is not None:
            elements = elements[elements != self.rule.ignored]
        size = self.rule.bound if self.size is None else int(results[self.size.name])
        least = -size if self.rule.counts_from_end else 0
        return not elements.size or bool(elements.min() >= least and elements.max() < size)


def convert(
    program: ExportedProgram,
    tensors: dict[int, torch.Tensor],
    name: str,
    memory_limit_bytes: int,
    *,
    checks_elements: bool = True,
) -> ConvertedProgram:
    """Convert a prepared program to a network.

    Parameters
    ----------
    program : ExportedProgram
        It may write to inputs, but not to buffers of its own.
    tensors : dict of int to torch.Tensor
        Inputs by number that are constants of the network; those that the program writes to stay
        inputs.
    checks_elements : bool
        Whether the network has additional outputs, which say whether PyTorch refuses elements.

    Raises
    ------
    ArmpyError
        If it uses what the exporter has no ONNX operators for, or what a network cannot have.

    Notes
    -----
    The program is changed, and of no use afterwards. Types of outputs are those that it had: the
    exporter computes sums of half precision in float32 and leaves them so.
    """
    targets = _return_writes(program)
    rules = _return_checked(program) if checks_elements else []
    values = {node.name: node.meta["val"] for node in program.graph.nodes if "val" in node.meta}
    positions = {spec.arg.name: number for number, spec in enumerate(_user_inputs(program))}
    for input_name in program.graph_signature.user_inputs:
        if isinstance(values[input_name], torch.Tensor):
            _check_real(values[input_name].dtype, f"input '{input_name}'")
    outputs = [_output(spec.arg, values) for spec in program.graph_signature.output_specs]
    model = _exported(program)
    written = tuple(zip([positions[name] for name in targets], outputs, strict=False))
    count = len(outputs) - sum(1 + (rule.sized is not None) for rule in rules)
    checked = iter(outputs[count:])
    checks = [
        OutputCheck(rule, next(checked), None if rule.sized is None else next(checked))
        for rule in rules
    ]
    constants = {
        number: tensor
        for number, tensor in tensors.items()
        if number not in {target for target, _ in written}
    }
    for value, spec in zip(model.graph.inputs, _user_inputs(program), strict=True):
        _close_axes(value, values[spec.arg.name])
    memory = _Memory()
    inputs = memory.share(model.graph, constants)
    data = onnx_ir.to_proto(model).SerializeToString()
    settings = ParseSettings(None, memory_limit_bytes, {}, dict)
    network = parse_file(open_model_file(data), settings, memory.views)
    network.name = name
    results = tuple(outputs[len(targets) : count])
    return ConvertedProgram(network, inputs, results, written, tuple(checks))


def _close_axes(value: Any, stand_in: Any) -> None:  # Any: of `onnx_ir`, and a torch.Tensor
    """Give an input the sizes that the program was found to hold for only."""
    if isinstance(stand_in, torch.Tensor):
        sizes = zip(value.shape, stand_in.shape, strict=True)
        value.shape = onnx_ir.Shape([old if is_open(size) else int(size) for old, size in sizes])


def _return_writes(program: ExportedProgram) -> tuple[str, ...]:
    """Let a program return what it writes to inputs, before its outputs; the inputs' names.

    Left as they are, PyTorch's exporter removes what computes them.
    """
    targets = written_by(program)
    specs = program.graph_signature.output_specs
    for number, spec in enumerate(specs):
        if spec.kind in WRITES:
            specs[number] = OutputSpec(OutputKind.USER_OUTPUT, spec.arg, None)
    return targets


def _return_checked(program: ExportedProgram) -> list[ElementCheck]:
    """Let a program return, after its outputs, the elements that PyTorch checks, and open sizes."""
    graph = program.graph_module.graph
    (end,) = graph.find_nodes(op="output")
    rules, arguments, additions = [], [], []
    for node in [*graph.nodes]:
        if not isinstance(node.target, torch._ops.OpOverload):
            continue
        nodes = {id(item.meta.get("val")): item for item in node.all_input_nodes}
        for rule in checks_of(call_of(node)):
            with graph.inserting_before(end):
                clone = graph.call_function(torch.ops.aten.clone.default, (nodes[id(rule.tensor)],))
            clone.meta["val"] = rule.tensor
            additions.append(clone)
            arguments.append(TensorArgument(clone.name))
            size = rule.sized.shape[rule.dim] if rule.has_size else rule.bound
            rules.append(rule._replace(sized=None, bound=size))
            if is_open(size):
                rules[-1] = rule
                with graph.inserting_before(end):
                    sized = (nodes[id(rule.sized)], rule.dim)
                    number = graph.call_function(torch.ops.aten.sym_size.int, sized)
                number.meta["val"] = size
                additions.append(number)
                arguments.append(SymIntArgument(number.name))
    if rules:
        end.args = ((*end.args[0], *additions),)
        specs = [OutputSpec(OutputKind.USER_OUTPUT, argument, None) for argument in arguments]
        program.graph_signature.output_specs.extend(specs)
        program.graph_module.recompile()
    return rules


def _exported(program: ExportedProgram) -> Any:
    """The ONNX model of a program; UnimplementedError if there is none.

    Any: of `onnx_ir`. ``torch.onnx.export`` would decompose the program once more, which takes
    longer than all the rest.
    """
    try:
        with _quiet():
            _fx_passes.insert_type_promotion_nodes(program.graph_module)
            exported = _core._exported_program_to_onnx_program(program, registry=converters())
            return onnxscript_apis.convert_version(exported.model, OPSET)
    except Exception as error:  # whatever its functions for single operators raise
        raise UnimplementedError(
            "PyTorch's exporter has no ONNX operators for the program",
            actual=first_lines(error.__cause__ or error),
            fix="Leave this part to PyTorch",
        ) from error


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


def _output(argument: Any, values: Mapping[str, Any]) -> ProgramOutput:
    """An output as the program describes it; Any: PyTorch's kinds of arguments and stand-ins."""
    if isinstance(argument, ConstantArgument):
        return ProgramOutput(constant=argument.value)
    if isinstance(argument, SymIntArgument):
        return ProgramOutput(argument.name)
    dtype = values[argument.name].dtype
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
