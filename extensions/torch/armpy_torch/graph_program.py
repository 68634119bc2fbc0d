"""A captured graph as a model of armpy's, for some of the sizes that it may be called with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from armpy.core.dataclass import dataclass
from armpy.execution import Runtime
from armpy.model import Model
from armpy.ops.operation import Array
from armpy_torch.capture import Argument, CapturedGraph
from armpy_torch.conversion import ConvertedProgram, ProgramOutput, convert
from armpy_torch.tensors import array_of, tensor_of


@dataclass(frozen=True, slots=True)
class GraphProgram:
    """A model, and the weights that its constants lie in."""

    model: Model
    converted: ConvertedProgram
    # Numbers of the model's inputs among the graph's, and of the tensors that are written to.
    inputs: tuple[int, ...]
    written: tuple[tuple[int, ProgramOutput], ...]
    weights: tuple[tuple[int, torch.Tensor], ...]  # by their number among the graph's inputs
    versions: tuple[int, ...]  # of the weights when the model was made

    @classmethod
    def of(
        cls,
        graph: CapturedGraph,
        arguments: Sequence[Argument],
        runtime: Runtime,
        name: str,
        *,
        opens_axes: bool,
    ) -> GraphProgram:
        """Make the program of a graph for the sizes of arguments.

        Raises
        ------
        ArmpyError
            If a backend or the network refuses it.
        Exception
            Whatever PyTorch's exporters raise at a graph that they do not take.
        """
        tensors = [number for number, item in enumerate(graph.inputs) if item.is_tensor]
        weights = {
            place: arguments[number]
            for place, number in enumerate(tensors)
            if graph.inputs[number].is_weight
        }
        exported = graph.export(arguments, opens_axes=opens_axes)
        limit = runtime.options.memory_limit_bytes
        converted = convert(exported, weights, name, limit)
        open_inputs = set(converted.inputs)
        constants = tuple(
            (tensors[place], tensor)
            for place, tensor in weights.items()
            if place not in open_inputs
        )
        return cls(
            Model(converted.network, runtime),
            converted,
            tuple(tensors[place] for place in converted.inputs),
            tuple((tensors[place], output) for place, output in converted.written),
            constants,
            _versions(constants),
        )

    def has_weights_of(self, arguments: Sequence[Argument]) -> bool:
        """Return whether the weights are the same tensors, and nothing was written to them."""
        for number, weight in self.weights:
            if arguments[number] is not weight:
                return False
        return _versions(self.weights) == self.versions

    def takes(self, arguments: Sequence[Argument]) -> bool:
        """Return whether the model takes the sizes of arguments."""
        for number, spec in zip(self.inputs, self.model.inputs, strict=True):
            actual = arguments[number].shape
            if spec.shape is not None and any(
                size not in (None, given) for size, given in zip(spec.shape, actual, strict=True)
            ):
                return False
        return True

    def run(self, arguments: Sequence[Argument]) -> tuple[object, ...]:
        """Compute the outputs, and write to the inputs that the graph writes to."""
        given = [array_of(arguments[number]) for number in self.inputs]
        model = self.model
        results = model.run(dict(zip([spec.name for spec in model.inputs], given, strict=True)))
        for number, output in self.written:
            with torch.no_grad():
                arguments[number].copy_(tensor_of(results[output.name], output.dtype))
        return tuple([_result(output, results) for output in self.converted.outputs])


def _result(output: ProgramOutput, results: Mapping[str, Array]) -> object:
    """An output as PyTorch's program has it: a tensor, a size or a constant."""
    if not output.name:
        return output.constant
    if output.dtype is None:
        return int(results[output.name])
    return tensor_of(results[output.name], output.dtype)


def _versions(weights: tuple[tuple[int, torch.Tensor], ...]) -> tuple[int, ...]:
    """How often each weight has been written to; PyTorch does not count that of inference's."""
    return tuple([-1 if tensor.is_inference() else tensor._version for _, tensor in weights])
