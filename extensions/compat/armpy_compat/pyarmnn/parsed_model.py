"""A model file that a parser has read, with the ids of its inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import armpy
from armpy.compiler import default_shapes
from armpy.core.dataclass import dataclass
from armpy.graph import Graph
from armpy.model import ModelOrigin
from armpy.plugins.hooks import FileOutline, open_model_file
from armpy_compat.pyarmnn.conversion import from_armpy, runtime_errors
from armpy_compat.pyarmnn.tensors.tensor_info import TensorInfo

BindingIds = Callable[[FileOutline | None, Graph], tuple[Sequence[int], Sequence[int]]]
"""Makes the ids of inputs and of outputs, in their order."""


@dataclass(frozen=True, eq=False, slots=True)
class ParsedModel:
    """A model file that a parser has read."""

    graph: Graph
    input_ids: Mapping[str, int]
    output_ids: Mapping[str, int]
    """`input_ids` and `output_ids`: By name, in the file's order."""

    @classmethod
    def read(
        cls,
        path: str,
        front_end: str,
        binding_ids: BindingIds,
        options: Mapping[str, object] | None = None,
    ) -> ParsedModel:
        """Parse a file; RuntimeError if it cannot be read or has what armpy does not.

        Parameters
        ----------
        front_end : str
            Name of armpy's front-end: each of Arm NN's parsers reads files of one kind.
        options : mapping of str to object, optional
            The front-end's.
        """
        with runtime_errors():
            registry = armpy.BackendRegistry.discover()
            file = open_model_file(path)
            origin = ModelOrigin.find(file, path, registry, front_end, options=options)
            network = origin.parse(file, None)
            graph = network.build() if isinstance(network, armpy.Network) else network
            inputs, outputs = binding_ids(origin.outline(), graph)
        names = [value.name for value in graph.inputs]
        return cls(
            graph,
            dict(zip(names, inputs, strict=True)),
            dict(zip(graph.output_names, outputs, strict=True)),
        )

    def input_info(self, name: str) -> TensorInfo:
        """The description of an input."""
        (place,) = (i for i, value in enumerate(self.graph.inputs) if value.name == name)
        info = self.graph.inputs[place].info
        shapes = default_shapes(self.graph)
        shape = (info.shape or ()) if shapes is None else shapes[place]
        return from_armpy(info, shape, where=name)

    def output_info(self, name: str) -> TensorInfo:
        """The description of an output."""
        info = self.graph.described_outputs[self.graph.output_names.index(name)]
        return from_armpy(info, info.shape or (), where=name)


def positions(_: FileOutline | None, graph: Graph) -> tuple[Sequence[int], Sequence[int]]:
    """The places of inputs and outputs in the file as their ids."""
    return range(len(graph.inputs)), range(len(graph.outputs))


def existing_file(path: object, method: str) -> str:
    """A path that is text; TypeError for others."""
    if not isinstance(path, str):
        raise TypeError(f"in method '{method}', argument 2 of type 'char const *'")
    return path
