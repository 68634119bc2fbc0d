"""From the graph of an .onnx file to a network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

import onnx

from armpy.errors import ArmpyError, ParserError, UnsupportedOperatorError
from armpy.frontends.onnx.element_types import data_type_of, read_tensor
from armpy.frontends.onnx.node import NodeData, OnnxNode, convert
from armpy.frontends.onnx.operators import operator_of
from armpy.frontends.onnx.reading import kind_of, read_model, versions_of
from armpy.graph import Value
from armpy.hooks.front_end import ParseSettings
from armpy.hooks.model_file import ModelFile
from armpy.network import Network
from armpy.ops.operation import Array, Operation, located
from armpy.tensor import Quantization, Shape, TensorInfo
from armpy.types import DataType


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
        _refuse_unknown(model.graph.node)
        return _GraphParser(model.graph, versions_of(model), name, settings).parse()
    except ParserError as error:
        located(lambda: label, error)
        raise


def _refuse_unknown(nodes: Iterable[onnx.NodeProto]) -> None:
    """Refuse operators that armpy does not have."""
    unknown = Counter(kind_of(node) for node in nodes if operator_of(kind_of(node)) is None)
    if unknown:
        error = UnsupportedOperatorError(
            "the model uses operators that are not supported: "
            + ", ".join(f"{kind} ({count})" for kind, count in sorted(unknown.items()))
        )
        error.operators = MappingProxyType(dict(unknown))
        raise error


class _GraphParser:
    """Builds the network of a graph.

    Parameters
    ----------
    graph : onnx.GraphProto
    versions : mapping of str to int
        Of operator sets, by domain.
    name : str
        Of the network.
    settings : ParseSettings
    """

    def __init__(
        self,
        graph: onnx.GraphProto,
        versions: Mapping[str, int],
        name: str,
        settings: ParseSettings,
    ) -> None:
        self._graph = graph
        self._versions = versions
        self._settings = settings
        self._network = Network(name)
        self._values: dict[str, Value | None] = {"": None}
        self._refused: list[str] = []

    def parse(self) -> Network:
        """Build the network."""
        for tensor in self._graph.initializer:
            array, data_type = read_tensor(tensor, f"initializer '{tensor.name}'")
            self._values[tensor.name] = self._network.constant(
                array, name=tensor.name, data_type=data_type
            )
        for value in self._graph.input:
            if value.name not in self._values:
                self._values[value.name] = self._network.input(value.name, input_info(value))
        for number, node in enumerate(self._graph.node):
            self._add(number, node)
        if self._refused:
            raise ParserError("the model cannot be converted: " + "; ".join(self._refused))
        for value in self._graph.output:
            made = self._values.get(value.name)
            if made is None:
                raise ParserError("nothing has written the output", where=f"output '{value.name}'")
            self._network.output(value.name, made)
        return self._network

    def _add(self, number: int, node: onnx.NodeProto) -> None:
        """Add one node's layers; what it cannot be made of is kept for the error."""
        if any(name not in self._values for name in node.input):
            if self._refused:  # what it reads comes from a node that was refused
                return
            missing = next(name for name in node.input if name not in self._values)
            raise ParserError(f"the tensor '{missing}' is read before it is written")
        inputs = [self._values[name] for name in node.input]
        names = list(node.output)
        while names and not names[-1]:
            names.pop()
        kind = kind_of(node)
        data = NodeData(
            kind,
            node.name or f"{node.op_type}_{number}",
            self._versions.get("" if node.domain == "ai.onnx" else node.domain, 1),
            {attribute.name: attribute for attribute in node.attribute},
            len(names),
            tuple(bool(name) for name in names),
        )
        operator = operator_of(kind)
        assert operator is not None  # `_refuse_unknown` has been here
        composite = OnnxNode(data, operator)
        try:
            if composite.is_ready(inputs):
                made = convert(_Builder(self._network, data.name), data, operator, inputs)
            else:
                layer = self._network.add_layer(
                    composite,
                    inputs,
                    name=data.name,
                    output_names=[name or f"{data.name}:{i}" for i, name in enumerate(names)],
                )
                made = layer.outputs
        except ArmpyError as error:
            self._refused.append(str(located(lambda: data.label, error)).rstrip("."))
            return
        self._values.update((name, value) for name, value in zip(names, made, strict=True) if name)


class _Builder:
    """Adds the layers of one node to a network."""

    def __init__(self, network: Network, name: str) -> None:
        self._network = network
        self._name = name
        self._names: Counter[str] = Counter()

    def add_layer(
        self,
        operation: Operation,
        inputs: Sequence[Value | None],
        outputs: Sequence[TensorInfo | None] = (),
        name: str = "",
    ) -> tuple[Value, ...]:
        """Add a layer, named after the node."""
        name = name or operation.name
        self._names[name] += 1
        number = f"_{self._names[name]}" if self._names[name] > 1 else ""
        where = f"{self._name}/{name}{number}"
        return self._network.add_layer(operation, inputs, name=where, outputs=outputs).outputs

    def constant(
        self,
        data: Array,
        data_type: DataType | None = None,
        quantization: Quantization | None = None,
    ) -> Value:
        """Add a constant."""
        return self._network.constant(data, data_type=data_type, quantization=quantization)


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
