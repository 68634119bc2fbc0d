"""From the tables of a .tflite file to a network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from armpy.errors import ArmpyError, ParserError, UnsupportedOperatorError
from armpy.frontends.tflite.edges import Edge, signature_edge, tensor_edge
from armpy.frontends.tflite.node import Node
from armpy.frontends.tflite.operators import CONVERTERS
from armpy.frontends.tflite.reader import Table, Tables, enumerators, read_model
from armpy.frontends.tflite.signatures import (
    Signature,
    choose_signature,
    read_signatures,
)
from armpy.frontends.tflite.source import ModelSource, open_source
from armpy.frontends.tflite.tensors import Tensor, Tensors
from armpy.graph import Value
from armpy.network import Network
from armpy.ops.operation import located
from armpy.tensor import TensorInfo

DEFAULT_MEMORY_LIMIT_BYTES = 4 << 30

_LEFT_OUT = -1


def parse_tflite(
    source: ModelSource,
    *,
    signature: str | None = None,
    memory_limit_bytes: int = DEFAULT_MEMORY_LIMIT_BYTES,
) -> Network:
    """Turn a .tflite file into a network.

    Parameters
    ----------
    source : path or bytes-like
        A file is mapped into memory, and the network's constants are views of it; it must
        not be changed while the network is in use.
    signature : str, optional
        Which of the model's signatures to follow; it also gives the inputs and outputs
        their names. Left out, the main subgraph is taken with its tensors' names.
    memory_limit_bytes : int
        How much a single tensor, and all variables together, may take up.

    Returns
    -------
    Network
        Inputs and outputs are in the file's order.

    Raises
    ------
    ParserError
        If there is no such file, or it is damaged or not understood. No other error comes
        from a file, whatever it holds.
    UnsupportedOperatorError
        If the model uses operators that armpy does not have; it lists all of them.
    InvalidArgumentError
        If `source` is neither a path nor bytes.

    References
    ----------
    TFLite schema version 3.
    """
    data, label = open_source(source)
    try:
        model = read_model(data)
        chosen = None if signature is None else choose_signature(model, signature)
        return _SubgraphParser(model, Path(label).stem, chosen, memory_limit_bytes).parse()
    except ParserError as error:
        located(lambda: label, error)
        raise


def signatures(source: ModelSource) -> dict[str, Signature]:
    """The signatures of a .tflite file by name; empty if it has none.

    Parameters
    ----------
    source : path or bytes-like

    Raises
    ------
    ParserError
        If there is no such file, or it is damaged or not understood.
    InvalidArgumentError
        If `source` is neither a path nor bytes.
    """
    data, label = open_source(source)
    try:
        return read_signatures(read_model(data))
    except ParserError as error:
        located(lambda: label, error)
        raise


class _SubgraphParser:
    """Builds the network of one subgraph.

    Parameters
    ----------
    model : Table
    name : str
        Of the network.
    signature : Signature, optional
    memory_limit_bytes : int
    """

    def __init__(
        self, model: Table, name: str, signature: Signature | None, memory_limit_bytes: int
    ) -> None:
        self._model = model
        self._signature = signature
        self._memory_limit_bytes = memory_limit_bytes
        subgraphs = model.tables("Subgraphs", "subgraph")
        self._subgraph = subgraphs[signature.subgraph if signature else 0]
        self._tensors = Tensors(
            self._subgraph.tables("Tensors", "tensor"),
            model.tables("Buffers", "buffer"),
            memory_limit_bytes,
        )
        self._network = Network(name)
        self._values: dict[int, Value] = {}
        self._variables: dict[int, Value] = {}
        self._variable_bytes = 0

    def parse(self) -> Network:
        """Build the network."""
        operators = self._supported_operators()
        for name, index in self._edge("Inputs"):
            self._add_input(name, index)
        for operator_name, table in operators:
            self._add_operator(operator_name, table)
        outputs = self._edge("Outputs")
        if not outputs:
            raise self._subgraph.error("the model has no output")
        for name, index in outputs:
            self._network.output(name, self._value(index))
        return self._network

    def _edge(self, field: str) -> Edge:
        """Names and tensor indexes of the inputs or the outputs."""
        signature = self._signature
        if signature is None:
            return tensor_edge(self._subgraph, field, self._tensors)
        names = signature.inputs if field == "Inputs" else signature.outputs
        return signature_edge(self._subgraph, field, names, f"signature '{signature.name}'")

    def _supported_operators(self) -> list[tuple[str, Table]]:
        """Every operator with its name, in the order in which they run."""
        codes = self._model.tables("OperatorCodes", "operator code")
        known: dict[int, str] = {}
        operators: list[tuple[str, Table]] = []
        for number, table in enumerate(self._subgraph.tables("Operators", "operator")):
            code = table.integer("OpcodeIndex")
            if code not in known:
                known[code] = _operator_name(codes, code)
            table.where = f"operator {number} {known[code]}"
            operators.append((known[code], table))
        _refuse_unsupported(Counter(name for name, _ in operators if name not in CONVERTERS))
        return operators

    def _add_input(self, name: str, index: int) -> None:
        """Make a tensor an input of the network."""
        tensor = self._tensors[index]
        if index in self._values:
            raise tensor.table.error("the tensor is an input twice")
        self._refuse_packed(tensor)
        info = tensor.input_info()
        default_shape = None if info.is_fully_shaped else tensor.shape
        self._values[index] = self._network.input(name, info, default_shape=default_shape)

    def _add_operator(self, operator: str, table: Table) -> None:
        """Add the layers of one operator."""
        inputs: list[int] = table.numbers("Inputs")
        outputs: list[int] = table.numbers("Outputs")
        tensors = [self._tensors[index] for index in outputs]
        name = tensors[0].name if tensors else ""
        if name:
            table.where = f"{table.where} '{name}'"
        for index, tensor in zip(outputs, tensors, strict=True):
            self._check_output(table, index, tensor)
        node = Node(
            self._network,
            operator,
            name or table.where,
            [None if index == _LEFT_OUT else self._value(index) for index in inputs],
            [tensor.inferred_info for tensor in tensors],
            [self._tensors[index].inferred_info for index in table.numbers("Intermediates")],
            [tensor.name or f"tensor_{i}" for i, tensor in zip(outputs, tensors, strict=True)],
            table,
        )
        self._values.update(zip(outputs, self._convert(node, inputs), strict=True))

    def _convert(self, node: Node, inputs: Sequence[int]) -> Sequence[Value]:
        """Add the layers of one operator and return its outputs.

        The operator's inputs are given as tensor indexes, too, for the variables among them.
        """
        try:
            made = CONVERTERS[node.operator](node)
            for position, value in node.updates.items():
                self._update_variable(node, inputs[position], value)
        except ParserError:
            raise
        except ArmpyError as error:
            raise ParserError(
                error.failed,
                where=node.table.where,
                expected=error.expected,
                actual=error.actual,
                fix=error.fix,
            ) from error
        for value in made:
            self._tensors.check_size(node.table, value.info)
        return made

    def _check_output(self, table: Table, index: int, tensor: Tensor) -> None:
        """Check that an operator may write a tensor."""
        if index in self._values:
            raise table.error(f"{tensor.table.where} has been written or read already")
        if tensor.is_variable:
            raise table.error(f"{tensor.table.where} is a variable and cannot be written directly")
        self._refuse_packed(tensor)

    def _refuse_packed(self, tensor: Tensor) -> None:
        """Refuse a tensor of 4-bit elements that is not a constant."""
        if tensor.is_packed:
            raise tensor.table.error("INT4 is supported for constants only")

    def _value(self, index: int) -> Value:
        """The value that a tensor has at this point."""
        value = self._values.get(index)
        if value is None:
            tensor = self._tensors[index]
            value = self._variable(index, tensor) if tensor.is_variable else self._constant(tensor)
            self._values[index] = value
        return value

    def _constant(self, tensor: Tensor) -> Value:
        """Add a constant."""
        data = self._tensors.constant(tensor)
        if data is None:
            raise tensor.table.error(
                "the tensor is read, but nothing has written it",
                expected="an input, a constant, a variable or an earlier operator's output",
            )
        return self._network.constant(
            data, name=tensor.name, data_type=tensor.data_type, quantization=tensor.quantization
        )

    def _variable(self, index: int, tensor: Tensor) -> Value:
        """Add a variable; it begins with zeros, as TFLite's do."""
        self._refuse_packed(tensor)
        self._variable_bytes += tensor.size_bytes
        if self._variable_bytes > self._memory_limit_bytes:
            raise tensor.table.error(
                "the variables are larger than the memory limit",
                expected=f"at most {self._memory_limit_bytes} bytes",
                actual=str(self._variable_bytes),
            )
        info = TensorInfo(tensor.known_shape, tensor.data_type, tensor.quantization)
        variable = self._network.variable(tensor.name or f"variable_{index}", info)
        self._variables[index] = variable
        return variable

    def _update_variable(self, node: Node, index: int, value: Value) -> None:
        """Let a variable hold a value from now on, and when the next execution begins."""
        if index not in self._variables:
            where = self._tensors[index].table.where
            raise node.error(f"{where} holds a state, but it is not a variable")
        self._network.assign(self._variables[index], value)
        self._values[index] = value


def _operator_name(codes: Tables, index: int) -> str:
    """Name of an operator in the schema; a custom operator's with its custom code."""
    code = codes[index]
    # Files older than schema version 3a have only the first field, which ends at 127.
    number = max(code.integer("DeprecatedBuiltinCode"), code.integer("BuiltinCode"))
    name = enumerators("BuiltinOperator").get(number, f"operator code {number}")
    return f"custom '{code.text('CustomCode')}'" if name == "CUSTOM" else name


def _refuse_unsupported(unsupported: Counter[str]) -> None:
    """Raise one error that names every operator that armpy does not have."""
    if not unsupported:
        return
    error = UnsupportedOperatorError(
        "the model uses operators that armpy does not have",
        actual=", ".join(f"{name} x{count}" for name, count in unsupported.items()),
    )
    error.operators = dict(unsupported)
    raise error
