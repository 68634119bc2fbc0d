"""Conversion of the graph of an .onnx file to a network."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import onnx

from armpy.errors import InvalidArgumentError, LayerValidationError, ParserError
from armpy.graph import Value
from armpy.graph.network import Network, OperatorBuilder
from armpy.ops.operation import located
from armpy.plugins.hooks.front_end import ParseSettings
from armpy.plugins.hooks.model_file import ModelFile
from armpy.tensor import Shape
from armpy.types import DataType
from armpy_onnx.element_types import DATA_TYPES, data_type_of
from armpy_onnx.external_data import ExternalData
from armpy_onnx.folding import fold_pairs
from armpy_onnx.inputs import Inputs
from armpy_onnx.items import Item
from armpy_onnx.reading import read_model, versions_for
from armpy_onnx.structures.functions import Functions
from armpy_onnx.structures.inner_inputs import separate_inputs
from armpy_onnx.structures.walking import Refusals, Scope, Walker


def parse_file(
    file: ModelFile,
    settings: ParseSettings,
    memory: Mapping[str, memoryview] = MappingProxyType({}),
) -> Network:
    """Turn an .onnx file into a network.

    Parameters
    ----------
    memory : mapping of str to memoryview, optional
        Elements of external tensors by location that lie in memory, as of `ExternalData`. The
        network's constants share it, and it must not be changed while the network is in use.

    Returns
    -------
    Network
        Inputs (those that are not initializers) and outputs are in the file's order. A sequence
        ``x`` has inputs or outputs ``x[0]``, ``x[1]`` ...; as an output, ``x`` is its length.

    Raises
    ------
    ParserError
        If the file is damaged or not understood. No other error comes from a file.
    UnsupportedOperatorError
        If it uses operators that armpy does not have; it lists all of them.
    """
    return parse_model(read_model(file), file.label, file.stem, settings, file, memory)


def parse_model(
    model: onnx.ModelProto,
    label: str,
    name: str,
    settings: ParseSettings,
    file: ModelFile | None = None,
    memory: Mapping[str, memoryview] = MappingProxyType({}),
) -> Network:
    """`parse_file` of a model that has been read and checked."""
    external = ExternalData(file, str(settings.options.get("external_data", "")), memory)
    try:
        return _parsed(model, name, settings, external)
    except ParserError as error:
        located(lambda: label, error)
        raise


def _parsed(
    model: onnx.ModelProto, name: str, settings: ParseSettings, external: ExternalData
) -> Network:
    """The network of a model's graph."""
    separate_inputs(model)
    graph, network, refusals = model.graph, Network(name), Refusals()
    scope = Scope({"": None}, versions_for(model), {}, name=name)
    walker = Walker(OperatorBuilder.of(network), Functions(model, external), refusals)
    walker.initialize(graph, scope)
    inputs = Inputs(network, settings)
    inputs.check_names(graph)
    for graph_input in graph.input:
        if graph_input.name not in scope.values:
            with refusals.collected(scope, graph_input.name):
                scope.values[graph_input.name] = inputs.add(graph_input)
    inputs.tie(graph.input, scope, walker)
    is_folded = settings.options.get("fold_quantization") is not False
    nodes = fold_pairs(graph, scope.versions.get("", 1)) if is_folded else graph.node
    walker.walk(nodes, scope)
    walker.finish({value.name: _output_type(value) for value in graph.output}, scope)
    refusals.check()
    # A tensor may be listed twice; by name, it is one output.
    for output in {value.name: value for value in graph.output}.values():
        if output.name not in scope.values:
            raise ParserError("nothing has written the output", where=f"output '{output.name}'")
        try:
            item, shape = scope.values[output.name], inputs.output_shape(output)
            _add_output(network, walker, output.name, item, shape)
        except InvalidArgumentError as error:
            # An element of a sequence may be called as another output.
            raise ParserError(
                "two outputs have one name", where=f"output '{output.name}'"
            ) from error
    return network


def _output_type(value: onnx.ValueInfoProto) -> DataType | None:
    if value.type.WhichOneof("value") != "tensor_type":
        return None
    kind = value.type.tensor_type.elem_type
    return data_type_of(kind, f"output '{value.name}'") if kind in DATA_TYPES else None


def _add_output(
    network: Network, walker: Walker, name: str, item: Item, declared_shape: Shape | None
) -> None:
    """Hand a tensor, or the tensors of a sequence, to the caller."""
    if item is None:
        raise LayerValidationError("the optional is empty", where=f"output '{name}'")
    if isinstance(item, Value):
        network.output(name, item, declared_shape=declared_shape)
        return
    network.output(name, walker.length(item))
    for number, value in enumerate(item.values):
        network.output(element_name(name, number), value)


def element_name(name: str, number: int) -> str:
    """Return the network's name of an element of a sequence."""
    return f"{name}[{number}]"
