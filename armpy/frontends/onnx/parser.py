"""From the graph of an .onnx file to a network."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from armpy.errors import ParserError
from armpy.frontends.onnx.element_types import data_type_of, read_tensor
from armpy.frontends.onnx.functions import Functions
from armpy.frontends.onnx.reading import read_model, versions_of
from armpy.frontends.onnx.walking import NetworkBuilder, Refusals, Scope, Walker
from armpy.hooks.front_end import ParseSettings
from armpy.hooks.model_file import ModelFile
from armpy.network import Network
from armpy.ops.operation import located
from armpy.tensor import Shape, TensorInfo


def parse_file(file: ModelFile, settings: ParseSettings) -> Network:
    """Turn an .onnx file into a network.

    Parameters
    ----------
    file : ModelFile
    settings : ParseSettings

    Returns
    -------
    Network
        Inputs (those that are no initializers) and outputs are in the file's order.

    Raises
    ------
    ParserError
        If the file is damaged or not understood. No other error comes from a file.
    UnsupportedOperatorError
        If it uses operators that armpy does not have; it lists all of them.
    """
    return parse_model(read_model(file), file.label, file.stem, settings)


def parse_model(model: onnx.ModelProto, label: str, name: str, settings: ParseSettings) -> Network:
    """`parse_file` of a model that has been read and checked."""
    try:
        return _parsed(model, name, settings)
    except ParserError as error:
        located(lambda: label, error)
        raise


def _parsed(model: onnx.ModelProto, name: str, settings: ParseSettings) -> Network:
    """The network of a model's graph."""
    graph, network, refusals = model.graph, Network(name), Refusals()
    scope = Scope({"": None}, versions_of(model), {}, 0, set())
    values = scope.values
    for tensor in graph.initializer:
        with refusals.collected(scope, tensor.name):
            array, data_type = read_tensor(tensor, f"initializer '{tensor.name}'")
            values[tensor.name] = network.constant(array, name=tensor.name, data_type=data_type)
    for given in graph.input:
        if given.name not in values:
            with refusals.collected(scope, given.name):
                values[given.name] = network.input(given.name, input_info(given))
    Walker(NetworkBuilder(network), Functions(model), refusals).walk(graph.node, scope)
    refusals.check()
    for output in graph.output:
        made = values.get(output.name)
        if made is None:
            raise ParserError("nothing has written the output", where=f"output '{output.name}'")
        network.output(output.name, made)
    return network


def input_info(value: onnx.ValueInfoProto) -> TensorInfo:
    """Type and shape of an input; dimensions without a number are open.

    Raises
    ------
    ParserError
        If it is no tensor, or of a type that is not supported.
    """
    where = f"input '{value.name}'"
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        raise ParserError("only tensors can be inputs", where=where, actual=str(kind))
    tensor = value.type.tensor_type
    data_type = data_type_of(tensor.elem_type, where)
    return TensorInfo(_shape(tensor) if tensor.HasField("shape") else None, data_type)


def _shape(tensor: onnx.TypeProto.Tensor) -> Shape:
    """A shape; None for dimensions that a name or nothing stands for."""
    return tuple(_dimensions(tensor))


def _dimensions(tensor: onnx.TypeProto.Tensor) -> Iterator[int | None]:
    """The dimensions."""
    for dimension in tensor.shape.dim:
        yield dimension.dim_value if dimension.HasField("dim_value") else None
