"""A captured graph as a model of armpy's, for some of the sizes that it may be called with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import torch

from armpy.core.dataclass import dataclass
from armpy.errors import BackendError, InvalidArgumentError
from armpy.execution import Runtime
from armpy.model import Model
from armpy.ops.operation import Array
from armpy_torch.capture import Argument, CapturedGraph
from armpy_torch.conversion import ConvertedProgram, ProgramOutput, convert
from armpy_torch.preparation import PreparedProgram
from armpy_torch.tensors import array_of, tensor_of

Stamp: TypeAlias = "int | torch.Tensor"
"""What says whether a weight has changed: a count of writes, or a copy of the bytes."""


class RefusedElementsError(Exception):
    """An element of a tensor is one that PyTorch refuses: an index, or a divisor of zero."""


@dataclass(frozen=True, slots=True)
class GraphProgram:
    """A model, and the weights that its constants lie in."""

    model: Model
    converted: ConvertedProgram
    # Numbers of the model's inputs among the graph's, and of the tensors that are written to.
    inputs: tuple[int, ...]
    written: tuple[int, ...]
    # By their number among the graph's inputs, with stamps of the time when the model was made.
    weights: tuple[tuple[int, torch.Tensor, Stamp], ...]
    prepared: PreparedProgram

    @classmethod
    def of(
        cls,
        graph: CapturedGraph,
        arguments: Sequence[Argument],
        prepared: PreparedProgram,
        runtime: Runtime,
        name: str,
    ) -> GraphProgram:
        """Make a model of a graph that was exported for arguments.

        Raises
        ------
        ArmpyError
            If a backend or the network refuses it.
        Exception
            Whatever PyTorch's exporter raises at a program that it does not take.
        """
        tensors = [number for number, item in enumerate(graph.inputs) if item.is_tensor]
        weights = {
            place: arguments[number]
            for place, number in enumerate(tensors)
            if graph.inputs[number].is_weight
        }
        limit = runtime.options.memory_limit_bytes
        converted = convert(prepared.program, weights, name, limit)
        constants = tuple(
            (tensors[place], tensor, _stamp(tensor))
            for place, tensor in weights.items()
            if place not in converted.inputs
        )
        return cls(
            Model(converted.network, runtime),
            converted,
            tuple(tensors[place] for place in converted.inputs),
            tuple(tensors[place] for place, _ in converted.written),
            constants,
            prepared,
        )

    def has_weights_of(self, arguments: Sequence[Argument]) -> bool:
        """Return whether the weights are the same tensors, and nothing was written to them."""
        for number, weight, stamp in self.weights:
            if arguments[number] is not weight or not _is_unchanged(weight, stamp):
                return False
        return True

    def run(self, arguments: Sequence[Argument]) -> tuple[object, ...]:
        """Compute the outputs, and write to the inputs that the graph writes to.

        Raises
        ------
        RefusedElementsError
            If PyTorch is to raise an error; nothing is written then.
        """
        given = [array_of(arguments[number]) for number in self.inputs]
        model = self.model
        names = [spec.name for spec in model.inputs]
        try:
            results = model.run(dict(zip(names, given, strict=True)))
        except (InvalidArgumentError, BackendError) as error:  # backends refuse indices with these
            if self.converted.checks:
                raise RefusedElementsError(str(error)) from error
            raise
        for check in self.converted.checks:
            if not check.passes(results):
                raise RefusedElementsError(f"PyTorch refuses an element of '{check.output.name}'")
        for number, (_, output) in zip(self.written, self.converted.written, strict=True):
            with torch.no_grad():
                arguments[number].copy_(tensor_of(results[output.name], output.dtype))
        return tuple([result_of(output, results) for output in self.converted.outputs])


def result_of(output: ProgramOutput, results: Mapping[str, Array]) -> object:
    """An output as PyTorch's program has it: a tensor, a size or a constant."""
    if not output.name:
        return output.constant
    if output.dtype is None:
        return int(results[output.name])
    return tensor_of(results[output.name], output.dtype)


def _stamp(weight: torch.Tensor) -> Stamp:
    """The count of writes to a weight, or its bytes where PyTorch counts none."""
    return _bytes(weight).clone() if weight.is_inference() else weight._version


def _is_unchanged(weight: torch.Tensor, stamp: Stamp) -> bool:
    """Return whether a weight is as it was."""
    if weight.is_inference():
        return torch.equal(_bytes(weight), stamp)
    return weight._version == stamp


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of the elements, as NaN do not equal each other."""
    return tensor.reshape(-1).view(torch.uint8)
