"""Writes networks as .armnn files."""

from __future__ import annotations

from collections.abc import Mapping

from armpy import Network
from armpy.compiler import default_shapes, specialize
from armpy.errors import UnimplementedError
from armpy.graph import Graph
from armpy_compat.armnn_format.writing import elementwise, movement, normalization, weighted
from armpy_compat.armnn_format.writing.elementwise import Emit
from armpy_compat.armnn_format.writing.file_writer import SAVE_INSTEAD, ArmnnWriter, layer_error

EMITTERS: Mapping[str, Emit] = {
    operation: emit
    for module in (elementwise, movement, normalization, weighted)
    for operation, emit in module.EMITTERS.items()
}
"""Functions that write a layer, by name of the operation."""


def write(network: Network | Graph) -> bytes:
    """Write a network as the contents of an .armnn file.

    Parameters
    ----------
    network : Network or Graph
        Open sizes of its inputs are those that it is prepared for by default, otherwise 1.

    Returns
    -------
    bytes
        File in the form of Arm NN 24.02: binding ids, which are the numbers of inputs and outputs,
        the newer layout of weights, and constants as layers.

    Raises
    ------
    UnimplementedError
        If the format has no layer for an operation, or no type for a tensor; the text names it.
        Nothing is written that computes something else.

    Notes
    -----
    Activation functions of layers become layers of their own. Scales are rounded to float32, in
    which the format stores them; those that are float32 already are kept exactly.
    """
    graph = network.build() if isinstance(network, Network) else network
    if graph.variables:
        raise UnimplementedError(
            "a network that keeps state cannot be written as .armnn",
            where=f"variable '{graph.variables[0].value.name}'",
            fix=SAVE_INSTEAD,
        )
    if not graph.is_fully_shaped:
        open_sizes = [
            tuple(1 if dim is None else dim for dim in value.info.shape or ())
            for value in graph.inputs
        ]
        graph = specialize(graph, default_shapes(graph) or open_sizes)
    writer = ArmnnWriter()
    for value in graph.inputs:
        writer.add_input(value, value.name)
    for layer in graph.layers:
        operation = layer.operation
        emit = None if operation.extension else EMITTERS.get(operation.name)
        if emit is None:
            raise layer_error(layer, "the .armnn format has no layer for it")
        writer.set_slots(layer.outputs, emit(writer, layer))
    for name, value in zip(graph.output_names, graph.outputs, strict=True):
        writer.add_output(value, name)
    return writer.file()
