"""Conversion of the tables of a .tflite file to a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from armpy.core.flatbuffers.reader import TableReader, table_errors
from armpy.errors import ParserError
from armpy.frontends.tflite.composed import Expansion, composed
from armpy.frontends.tflite.node import BoundOperator, Converter
from armpy.frontends.tflite.operators import CONVERTERS
from armpy.frontends.tflite.reader import read_model
from armpy.frontends.tflite.resources import HASHTABLE_OPERATORS, Hashtables, Resources, two_inputs
from armpy.frontends.tflite.resources import OPERATORS as RESOURCE_OPERATORS
from armpy.frontends.tflite.signatures import (
    Edge,
    TfliteSignature,
    choose_signature,
    read_signatures,
    signature_edge,
    tensor_edge,
)
from armpy.frontends.tflite.subgraphs import SubgraphOperator, Subgraphs, custom_name
from armpy.frontends.tflite.tensors import Tensor
from armpy.graph import Graph, Value
from armpy.graph.network import Network
from armpy.ops.operation import located
from armpy.plugins.hooks.model_file import ModelFile, ModelSource, open_model_file
from armpy.tensor import Shape, TensorInfo, shapes_agree
from armpy.types import DEFAULT_MEMORY_LIMIT_BYTES

_LEFT_OUT = -1

_TYPED_AS_INPUT = {
    **dict.fromkeys(
        (
            "ADD",
            "ADD_N",
            "BITWISE_XOR",
            "CEIL",
            "DIV",
            "DYNAMIC_UPDATE_SLICE",
            "EXP",
            "EXPAND_DIMS",
            "FAKE_QUANT",
            "FLOOR",
            "FLOOR_DIV",
            "FLOOR_MOD",
            "GATHER",
            "GATHER_ND",
            "LOGICAL_AND",
            "LOGICAL_OR",
            "MATRIX_DIAG",
            "MATRIX_SET_DIAG",
            "MAXIMUM",
            "MINIMUM",
            "NEG",
            "POW",
            "RESIZE_BILINEAR",
            "RESIZE_NEAREST_NEIGHBOR",
            "RIGHT_SHIFT",
            "ROUND",
            "SPLIT_V",
            "SQUARED_DIFFERENCE",
            "SUB",
            "ZEROS_LIKE",
        ),
        0,
    ),
    **dict.fromkeys(("FILL", "SCATTER_ND", "SELECT", "SELECT_V2", "SPLIT"), 1),
}
"""Operators whose kernels give their outputs the type of an input, whatever the file says."""


def parse_tflite(
    # A file is mapped into memory, and the network's constants are views of it; it must not be
    # changed while the network is in use.
    source: ModelSource,
    *,
    # Which of the model's signatures to follow; it also gives the inputs and outputs their names.
    # Left out, the main subgraph is taken with its tensors' names.
    signature: str | None = None,
    # How much a single tensor, and all variables together, may take up.
    memory_limit_bytes: int = DEFAULT_MEMORY_LIMIT_BYTES,
) -> Network:
    """Turn a .tflite file into a network.

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
    return parse_file(open_model_file(source), signature, memory_limit_bytes)


def parse_file(
    file: ModelFile,
    signature: str | None,
    memory_limit_bytes: int,
    stands_in: bool = False,
    plugins_custom: Callable[[], Mapping[str, Expansion]] = dict,
) -> Network:
    """`parse_tflite` of a file that is open, with StandIn layers for unknown operators if asked.

    What plugins make of custom operators, asked for where a file has any, comes before armpy's own.
    """
    try:
        model = read_model(file.data)
        chosen = None if signature is None else choose_signature(model, signature)
        known = _with_own(model, plugins_custom)
        return _ModelParser(model, memory_limit_bytes, stands_in, known).parse(file.stem, chosen)
    except ParserError as error:
        located(lambda: file.label, error)
        raise


def signatures(source: ModelSource) -> dict[str, TfliteSignature]:
    """The signatures of a .tflite file by name; empty if it has none.

    Raises
    ------
    ParserError
        If there is no such file, or it is damaged or not understood.
    InvalidArgumentError
        If `source` is neither a path nor bytes.
    """
    return file_signatures(open_model_file(source))


def file_signatures(file: ModelFile) -> dict[str, TfliteSignature]:
    """`signatures` of a file that is open."""
    try:
        return read_signatures(read_model(file.data))
    except ParserError as error:
        located(lambda: file.label, error)
        raise


def _with_own(
    model: TableReader, plugins_custom: Callable[[], Mapping[str, Expansion]]
) -> dict[str, Expansion]:
    """Converters of custom operators by their names; empty for files without such operators."""
    if not any(code.text("CustomCode") for code in model.tables("OperatorCodes", "operator code")):
        return {}
    from armpy.frontends.tflite.custom import CUSTOM  # noqa: PLC0415 - few models have any

    custom = {**CUSTOM, **plugins_custom()}
    return {custom_name(name): convert for name, convert in custom.items()}


class _ModelParser:
    """Builds the main subgraph, and those that control flow runs."""

    def __init__(
        self,
        model: TableReader,
        memory_limit_bytes: int,
        stands_in: bool,  # whether operators that armpy does not have become StandIn layers
        # Converters of custom operators, by what `SubgraphOperator` calls these.
        custom: Mapping[str, Expansion],
    ) -> None:
        self.custom = custom
        self.memory_limit_bytes = memory_limit_bytes
        self.stands_in = stands_in
        self.subgraphs = Subgraphs(model, memory_limit_bytes)
        self._graphs: dict[tuple[int, tuple[Shape | None, ...]], Graph] = {}

    def parse(self, name: str, signature: TfliteSignature | None) -> Network:
        """Build the network."""
        index = signature.subgraph if signature else 0
        outside = (*RESOURCE_OPERATORS, *HASHTABLE_OPERATORS)
        self.subgraphs.check(index, CONVERTERS, self.custom, outside, self.stands_in)
        return _SubgraphParser(self, index, name, signature=signature).parse()

    def graph(self, index: int, shapes: Sequence[Shape | None]) -> Graph:
        """A subgraph for the shapes of its inputs, built once for equal ones."""
        key = (index, tuple(shapes))
        if key not in self._graphs:
            name = self.subgraphs[index].text("Name") or f"subgraph_{index}"
            parser = _SubgraphParser(self, index, name, shapes=shapes)
            self._graphs[key] = parser.parse().build()
        return self._graphs[key]

    def operator_names(self, index: int) -> Sequence[str]:
        """Names of a subgraph's operators."""
        return [operator.name for operator in self.subgraphs.operators(index)]


class _SubgraphParser:
    """Builds the network of one subgraph."""

    def __init__(
        self,
        model: _ModelParser,
        index: int,  # of the subgraph
        name: str,  # of the network
        *,
        signature: TfliteSignature | None = None,
        # Of the inputs, for a subgraph that control flow runs; the file says them otherwise.
        shapes: Sequence[Shape | None] | None = None,
        network: Network | None = None,  # one that has layers already
    ) -> None:
        self._model = model
        self._signature = signature
        self._shapes = shapes
        self._memory_limit_bytes = model.memory_limit_bytes
        self._index = index
        self._subgraph = model.subgraphs[index]
        self._operators = model.subgraphs.operators(index)
        self._tensors = model.subgraphs.tensors(index)
        self._network = Network(name) if network is None else network
        self._values: dict[int, Value] = {}
        self._variables: dict[int, Value] = {}
        self._variable_bytes = 0
        limit_bytes = model.memory_limit_bytes
        self._resources = Resources(self._network, model.subgraphs, limit_bytes)
        self._hashtables = Hashtables(self._network, model.subgraphs, limit_bytes)
        model.subgraphs.charge(index)

    def parse(self) -> Network:
        """Build the network."""
        inputs = self._edge("Inputs")
        shapes = self._shapes
        if shapes is not None and len(shapes) != len(inputs):
            raise self._subgraph.error(
                "the subgraph is handed a wrong number of inputs",
                expected=str(len(inputs)),
                actual=str(len(shapes)),
            )
        for position, (name, index) in enumerate(inputs):
            # LiteRT has one tensor for an input that is listed twice.
            if shapes is not None or index not in self._values:
                self._add_input(name, index, position)
        for operator in self._operators:
            self._add_operator(operator)
        outputs = self._edge("Outputs")
        if not outputs and shapes is None:
            outputs = self._unread_results()
        if not outputs:
            raise self._subgraph.error("the model has no output")
        for name, index in outputs:
            value = self._value(index)
            if self._tensors[index].is_complex and shapes is None:
                from armpy.frontends.tflite.complex_numbers import pairs_of  # noqa: PLC0415

                value = pairs_of(self._network, value, f"{name}:pairs")
            self._network.output(name, value, declared_shape=self._declared_shape(index))
        return self._network

    def _unread_results(self) -> Edge:
        """Results that no operator reads, which are the outputs of a file that lists none."""
        tables = [operator.table for operator in self._operators]
        read = {index for table in tables for index in table.numbers("Inputs")}
        indexes = [i for table in tables for i in table.numbers("Outputs") if i not in read]
        return [(f"output_{position}", index) for position, index in enumerate(indexes)]

    def _inline(self, index: int, values: Sequence[Value | None]) -> Sequence[Value]:
        """Add the layers of a subgraph to this one's network and return its outputs."""
        tensors = [value for value in values if value is not None]
        shapes = [value.info.shape for value in tensors]
        inner = _SubgraphParser(self._model, index, "", shapes=shapes, network=self._network)
        edge = inner._edge("Inputs")
        if len(edge) != len(tensors) or len(tensors) < len(values):
            raise inner._subgraph.error(
                "the subgraph is handed a wrong number of inputs",
                expected=str(len(edge)),
                actual=str(len(tensors)),
            )
        inner._values.update(zip((tensor for _, tensor in edge), tensors, strict=True))
        for operator in inner._operators:
            inner._add_operator(operator)
        return [inner._value(tensor) for _, tensor in inner._edge("Outputs")]

    def _edge(self, field: str) -> Edge:
        """Names and tensor indexes of the inputs or the outputs."""
        signature = self._signature
        if signature is None:
            return tensor_edge(self._subgraph, field, self._tensors)
        names = signature.inputs if field == "Inputs" else signature.outputs
        return signature_edge(self._subgraph, field, names, f"signature '{signature.name}'")

    def _add_input(self, name: str, index: int, position: int) -> None:
        """Make a tensor an input of the network."""
        tensor = self._tensors[index]
        if index in self._values:
            raise tensor.table.error("the tensor is an input twice")
        self._refuse_packed(tensor)
        if self._shapes is None:
            info = tensor.input_info()
            default_shape = None if info.is_fully_shaped else tensor.shape
        else:
            info = tensor.inferred_info.with_shape(self._shapes[position])
            default_shape = None
        if tensor.is_complex and self._shapes is None:
            self._values[index] = self._complex_input(name, info.shape, default_shape)
        else:
            self._values[index] = self._network.input(name, info, default_shape=default_shape)

    def _declared_shape(self, index: int) -> Shape | None:
        """Shape that the file declares for an output; None if it may be for default inputs only."""
        tensor = self._tensors[index]
        if self._shapes is not None or tensor.is_complex:
            return None
        signature = tensor.shape_signature()
        if signature is not None and shapes_agree(signature, tensor.shape):
            return signature
        sources = [self._values[source] for _, source in self._edge("Inputs")]
        return tensor.shape if all(source.info.is_fully_shaped for source in sources) else None

    def _complex_input(
        self, name: str, shape: Shape | None, default_shape: tuple[int, ...] | None
    ) -> Value:
        """Make pairs of floats an input of the network that stands for a complex tensor."""
        from armpy.frontends.tflite.complex_numbers import bits_of, pair_info  # noqa: PLC0415

        default = None if default_shape is None else (*default_shape, 2)
        value = self._network.input(name, pair_info(shape), default_shape=default)
        return bits_of(self._network, value, f"{name}:bits")

    def _add_operator(self, operator: SubgraphOperator) -> None:
        table = operator.table
        table.where = f"operator {operator.number} {operator.name}"
        inputs: list[int] = table.numbers("Inputs")
        outputs: list[int] = table.numbers("Outputs")
        if operator.name in RESOURCE_OPERATORS:
            self._use_resource(operator, inputs, outputs)
            return
        if operator.name in HASHTABLE_OPERATORS:
            self._use_hashtable(operator, inputs, outputs)
            return
        converter = self._converter(operator, inputs, outputs)
        place = _TYPED_AS_INPUT.get(operator.name)
        if place is not None and place < len(inputs) and inputs[place] != _LEFT_OUT:
            self._follow_type(inputs[place], outputs)
        tensors = [self._tensors[index] for index in outputs]
        name = tensors[0].name if tensors else ""
        if name:
            table.where = f"{table.where} '{name}'"
        for tensor in tensors:
            self._refuse_packed(tensor)
        node = BoundOperator(
            self._network,
            operator.name,
            name or table.where,
            [None if index == _LEFT_OUT else self._value(index) for index in inputs],
            [self._block_scales(operator, index) for index in inputs],
            [self._output_info(operator, tensor) for tensor in tensors],
            [self._tensors[index].inferred_info for index in table.numbers("Intermediates")],
            [tensor.name or f"tensor_{i}" for i, tensor in zip(outputs, tensors, strict=True)],
            table,
            self._model.graph,
            self._inline,
            self._model.operator_names,
            [tensor.shape for tensor in tensors],
        )
        # A tensor that is written again has the new elements from here on, as in LiteRT's memory.
        for index, value in zip(outputs, self._convert(node, inputs, converter), strict=True):
            if self._tensors[index].is_variable:
                with table_errors(table):
                    self._write_variable(index, value)
            self._values[index] = value

    def _converter(
        self, operator: SubgraphOperator, inputs: Sequence[int], outputs: Sequence[int]
    ) -> Converter | None:
        """Return the converter of an operator of the schema; None if armpy does not have it."""
        complex_inputs = [i != _LEFT_OUT and self._tensors[i].is_complex for i in inputs]
        complex_outputs = [self._tensors[i].is_complex for i in outputs]
        if any(complex_inputs) or any(complex_outputs):
            from armpy.frontends.tflite.complex_numbers import converter_for  # noqa: PLC0415

            converter = converter_for(operator.name, complex_inputs, complex_outputs, CONVERTERS)
            if converter is None:
                raise operator.table.error("the operator does not take complex numbers there")
            return converter
        return CONVERTERS.get(operator.name)

    def _follow_type(self, source: int, outputs: Sequence[int]) -> None:
        """Give outputs the type of an input."""
        type_name = self._tensors[source].type_name
        if self._tensors[source].packed_bits:
            return
        for index in outputs:
            if self._tensors[index].type_name != type_name:
                self._tensors.set_type(index, type_name)

    def _output_info(self, operator: SubgraphOperator, tensor: Tensor) -> TensorInfo:
        """Return an output's declared info; its shape is inferred if armpy knows the operator."""
        is_known = (
            operator.name in self._model.custom
            or operator.name in CONVERTERS
            or not self._model.stands_in
        )
        return tensor.inferred_info if is_known else tensor.input_info()

    def _use_resource(
        self, operator: SubgraphOperator, inputs: Sequence[int], outputs: Sequence[int]
    ) -> None:
        """Do what an operator says of variables that have handles; it is not a layer."""
        table, resources = operator.table, self._resources
        if operator.name == "CALL_ONCE":
            for index in operator.subgraphs:
                resources.initialize(index)
                self._hashtables.initialize(index)
        elif operator.name == "VAR_HANDLE":
            resources.make_handle(table)
        elif operator.name == "ASSIGN_VARIABLE":
            handle, source = two_inputs(table)
            _refuse_complex_state(self._tensors[source])
            with table_errors(table):
                resources.assign(table, handle, self._value(source))
        else:
            if len(inputs) != 1 or len(outputs) != 1:
                raise table.error("the number of inputs or outputs is wrong", expected="1 and 1")
            self._refuse_packed(self._tensors[outputs[0]])
            _refuse_complex_state(self._tensors[outputs[0]])
            self._values[outputs[0]] = resources.read(table, inputs[0])

    def _use_hashtable(
        self, operator: SubgraphOperator, inputs: Sequence[int], outputs: Sequence[int]
    ) -> None:
        """Make, fill or use a table that has a handle."""
        table, hashtables = operator.table, self._hashtables
        if operator.name == "HASHTABLE":
            hashtables.make_handle(table, hashtables.handles)
        elif operator.name == "HASHTABLE_IMPORT":
            hashtables.fill(table, self._tensors, hashtables.handles)
        else:
            is_find = operator.name == "HASHTABLE_FIND"
            expected = 3 if is_find else 1
            if len(inputs) != expected or len(outputs) != 1:
                raise table.error(
                    "the number of inputs or outputs is wrong", expected=f"{expected} and 1"
                )
            self._refuse_packed(self._tensors[outputs[0]])
            with table_errors(table):
                if is_find:
                    keys, default = map(self._value, inputs[1:])
                    name = self._tensors[outputs[0]].name
                    value = hashtables.find(table, inputs[0], keys, default, name)
                else:
                    value = hashtables.size(table, inputs[0])
            self._values[outputs[0]] = value

    def _convert(
        self, node: BoundOperator, inputs: Sequence[int], converter: Converter | None
    ) -> Sequence[Value]:
        """Add the layers of one operator and return its outputs.

        The operator's inputs are given as tensor indexes, too, for the variables among them.
        """
        with table_errors(node.table):
            if (expansion := self._model.custom.get(node.operator)) is not None:
                options = node.table.vector("CustomOptions").tobytes()
                outputs = composed(node, expansion, options=options)
            else:
                outputs = _stand_in(node) if converter is None else converter(node)
            for position, value in node.updates.items():
                self._update_variable(node, inputs[position], value)
        for value in outputs:
            self._tensors.check_size(node.table, value.info)
        return outputs

    def _refuse_packed(self, tensor: Tensor) -> None:
        """Refuse a tensor of elements that share bytes or scales and is not a constant."""
        if tensor.packed_bits:
            name = f"INT{tensor.packed_bits}"
            raise tensor.table.error(f"{name} is supported for constants only")
        if tensor.block_scales is not None:
            raise tensor.table.error("scales of blocks are supported for constants only")

    def _block_scales(self, operator: SubgraphOperator, index: int) -> Value | None:
        """Scales of an operand's blocks, which only FULLY_CONNECTED takes."""
        scales = None if index == _LEFT_OUT else self._tensors[index].block_scales
        if scales is None:
            return None
        if operator.name != "FULLY_CONNECTED":
            raise operator.table.error("only FULLY_CONNECTED takes scales of blocks")
        return self._value(scales)

    def _value(self, index: int) -> Value:
        """The value that a tensor has at this point."""
        value = self._values.get(index)
        if value is None:
            tensor = self._tensors[index]
            value = self._variable(index, tensor) if tensor.is_variable else self._constant(tensor)
            self._values[index] = value
        return value

    def _constant(self, tensor: Tensor) -> Value:
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
        if self._shapes is not None:
            raise tensor.table.error("variables in subgraphs of control flow are not supported")
        self._refuse_packed(tensor)
        _refuse_complex_state(tensor)
        self._variable_bytes += tensor.size_bytes
        if self._variable_bytes > self._memory_limit_bytes:
            raise tensor.table.error(
                "the variables are larger than the memory limit",
                expected=f"at most {self._memory_limit_bytes} bytes",
                actual=str(self._variable_bytes),
            )
        info = TensorInfo(tensor.known_shape, tensor.data_type, tensor.quantization)
        name, key = tensor.name or f"variable_{index}", ("tensor", self._index, index)
        variable = self._network.variable(name, info, key=key)
        self._variables[index] = variable
        return variable

    def _update_variable(self, node: BoundOperator, index: int, value: Value) -> None:
        """Let a variable hold a value from now on, and when the next execution begins."""
        if index not in self._variables:
            where = self._tensors[index].table.where
            raise node.error(f"{where} holds a state, but it is not a variable")
        self._network.assign(self._variables[index], value)
        self._values[index] = value

    def _write_variable(self, index: int, value: Value) -> None:
        """Let a variable hold what an operator has written to it."""
        if index not in self._variables:
            self._variable(index, self._tensors[index])
        self._network.assign(self._variables[index], value)


def _refuse_complex_state(tensor: Tensor) -> None:
    """Refuse a variable of complex numbers, whose elements callers could not recognise."""
    if tensor.is_complex:
        raise tensor.table.error("variables of complex numbers are not supported")


def _stand_in(node: BoundOperator) -> Sequence[Value]:
    """Add the layer that stands for an operator that armpy does not have."""
    from armpy.ops.stand_in import StandIn  # noqa: PLC0415 - few models have one

    name = node.operator.removeprefix("custom '").removesuffix("'")
    options = node.table.vector("CustomOptions").tobytes()
    return node.layer(StandIn(name, options, len(node.outputs)), *node.inputs)
