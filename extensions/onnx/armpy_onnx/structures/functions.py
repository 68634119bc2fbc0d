"""Bodies of functions: operators that a file, or ONNX itself, writes out as other operators."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import onnx

from armpy.core.dataclass import dataclass
from armpy.errors import ParserError
from armpy.tensor import TensorInfo
from armpy_onnx.element_types import DATA_TYPES
from armpy_onnx.external_data import ExternalData
from armpy_onnx.items import Form
from armpy_onnx.messages.canonical import FreeNames
from armpy_onnx.messages.checking import MOST_NESTED, too_deep
from armpy_onnx.reading import kind_of, nodes_inside, versions_of

_ELEMENT_TYPES = {data_type: number for number, data_type in reversed([*DATA_TYPES.items()])}

_PLAIN = frozenset(
    onnx.AttributeProto.AttributeType.Value(name)
    for name in ("FLOAT", "FLOATS", "INT", "INTS", "STRING", "STRINGS")
)
"""Types of attributes that hold neither tensors nor graphs."""

Attributes = Mapping[str, onnx.AttributeProto]
"""Attributes of a node by name."""

MOST_WRITTEN_OUT = 8192
"""Nodes that functions and loops may become, however small the file."""

MOST_COPIES = 16
"""Number of times that a large file's nodes may be written out on average."""


@dataclass(frozen=True, eq=False, slots=True)
class FunctionBody:
    """A function as one node calls it."""

    # The body's names of its operands.
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: Sequence[onnx.NodeProto]
    versions: Mapping[str, int]  # of the operator sets that it is written in, by domain
    attributes: Attributes  # what its nodes' references stand for


class Functions:
    """The functions that a model's nodes may call, and the files that its tensors may lie in.

    Attributes
    ----------
    most_written_out : int
        Nodes that functions and loops may become: a small file must not become a large network.
    forms : dict
        Outputs of nodes that run graphs, and objects that must live as long as those are stored.
    free_names : dict
        See `armpy_onnx.messages.canonical.free_names`.

    Raises
    ------
    ParserError
        If the functions that the graph calls lie too deep in each other, or become too many nodes.
    """

    def __init__(self, model: onnx.ModelProto, external: ExternalData | None = None) -> None:
        self.external = external or ExternalData()
        self.forms: dict[Hashable, tuple[tuple[Form, ...], object]] = {}
        self.free_names: FreeNames = {}
        self._local = {
            (function.domain, function.name, function.overload): function
            for function in model.functions
        }
        bodies = (model.graph.node, *(function.node for function in model.functions))
        in_file = sum(1 for body in bodies for _ in nodes_inside(body))
        self.most_written_out = MOST_WRITTEN_OUT + MOST_COPIES * in_file
        self.check_count(self._written_out(model.graph.node, {}, ()))

    def check_count(self, count: int) -> None:
        """Check that no more nodes than allowed are, or will be, written out.

        Raises
        ------
        ParserError
            If there are more.
        """
        if count > self.most_written_out:
            raise ParserError(
                "functions and loops are too long",
                expected=f"at most {self.most_written_out} nodes, written out",
                actual=str(count),
                fix="Merge calls of functions that call others, or loops in loops",
            )

    def _written_out(
        self,
        nodes: Sequence[onnx.NodeProto],
        counts: dict[tuple[str, str, str], int],
        around: tuple[tuple[str, str, str], ...],
    ) -> int:
        """Return the number of nodes after each function is in the place of its calls."""
        total = 0
        for node in nodes_inside(nodes):
            total += 1
            key = _key(node)
            if key not in self._local:
                continue
            if len(around) == MOST_NESTED:
                raise too_deep()
            if key not in counts:
                counts[key] = self._written_out(self._local[key].node, counts, (*around, key))
            total += counts[key]
        return total

    def has(self, node: onnx.NodeProto, version: int) -> bool:
        """Return whether there may be a function for a node, as known without its inputs."""
        return _key(node) in self._local or bool(_schema_versions(node, version))

    def body(
        self,
        node: onnx.NodeProto,
        version: int,
        attributes: Attributes,
        inputs: Sequence[TensorInfo | None],
    ) -> FunctionBody | None:
        """The function that a node calls; None if there is none.

        Parameters
        ----------
        version : int
            Version of the node's operator set.
        attributes : mapping of str to onnx.AttributeProto
            The node's, with what they refer to in their places.
        inputs : sequence of (TensorInfo or None)
            Some of ONNX's functions depend on them.

        Raises
        ------
        ParserError
            If ONNX cannot write the function out.
        """
        function = self._local.get(_key(node))
        if function is None:
            function = _schema_function(node, version, attributes, inputs)
            if function is None:
                return None
            schema = onnx.defs.get_schema(node.op_type, version, node.domain)
            defaults = {
                name: attribute.default_value
                for name, attribute in schema.attributes.items()
                if attribute.default_value.type != onnx.AttributeProto.UNDEFINED
            }
        else:
            defaults = {attribute.name: attribute for attribute in function.attribute_proto}
        return FunctionBody(
            tuple(function.input),
            tuple(function.output),
            function.node,
            versions_of(function),
            {**defaults, **attributes},
        )


def bound_attributes(node: onnx.NodeProto, attributes: Attributes) -> Attributes:
    """A node's attributes with those of the function around it that they refer to.

    Plain ones are copies: a part of a message keeps all of it alive, with the weights, and nodes
    that wait for shapes keep their attributes.
    """
    bound_by_name = {}
    for attribute in node.attribute:
        bound: onnx.AttributeProto | None = attribute
        if attribute.ref_attr_name:
            bound = attributes.get(attribute.ref_attr_name)
        if bound is not None:
            bound_by_name[attribute.name] = _detached(bound)
    return bound_by_name


def _detached(attribute: onnx.AttributeProto) -> onnx.AttributeProto:
    """A copy of an attribute that holds neither tensors nor graphs."""
    if attribute.type not in _PLAIN:
        return attribute
    return onnx.AttributeProto.FromString(attribute.SerializeToString())


def _key(node: onnx.NodeProto) -> tuple[str, str, str]:
    """Return the key of a file's function."""
    return (node.domain, node.op_type, node.overload)


def _schema_versions(node: onnx.NodeProto, version: int) -> list[int]:
    """Operator sets in which ONNX writes a node out as a function, the newest last."""
    try:
        schema = onnx.defs.get_schema(node.op_type, version, node.domain)
    except onnx.defs.SchemaError:
        return []
    return sorted(opset for opset in schema.all_function_opset_versions if opset <= version)


def _schema_function(
    node: onnx.NodeProto,
    version: int,
    attributes: Attributes,
    inputs: Sequence[TensorInfo | None],
) -> onnx.FunctionProto | None:
    """The function by which ONNX itself defines an operator."""
    versions = _schema_versions(node, version)
    if not versions:
        return None
    schema = onnx.defs.get_schema(node.op_type, version, node.domain)
    newest = versions[-1]
    if newest in schema.function_opset_versions:
        written = schema.get_function_with_opset_version(newest)
    else:
        call = onnx.NodeProto()
        call.CopyFrom(node)
        del call.attribute[:]
        for name, attribute in attributes.items():
            call.attribute.add().CopyFrom(attribute)
            call.attribute[-1].name = name
        types = [_type_proto(info).SerializeToString() for info in inputs]
        _check_operands(schema, inputs)
        _check_attributes(schema, attributes)
        try:
            written = schema.get_context_dependent_function_with_opset_version(
                newest, call.SerializeToString(), types
            )
        except Exception as error:  # whatever the library raises, the file is the cause
            raise ParserError(
                f"ONNX cannot write the operator out as a function: {error}", where=kind_of(node)
            ) from error
    function = onnx.FunctionProto()
    function.ParseFromString(written)
    return function if function.node else None


def _check_operands(schema: onnx.defs.OpSchema, inputs: Sequence[TensorInfo | None]) -> None:
    """Check that nothing is missing that ONNX's code would read without looking."""
    required = onnx.defs.OpSchema.FormalParameterOption.Single
    count = sum(operand.option == required for operand in schema.inputs)
    operands = [*inputs, *(None,) * count][: max(count, len(inputs))]
    missing = [number for number, info in enumerate(operands[:count]) if info is None]
    if missing or len(inputs) > schema.max_input:
        raise ParserError(
            "the number of operands is wrong",
            where=schema.name,
            expected=f"{count} to {schema.max_input} tensors",
            actual=f"{len(inputs)}, without {missing}" if missing else str(len(inputs)),
        )


def _check_attributes(schema: onnx.defs.OpSchema, attributes: Attributes) -> None:
    """Check attributes that ONNX's code would read without looking.

    Those of nodes have been checked; those of functions, which they refer to, may be of any type.
    """
    for name, declared in schema.attributes.items():
        attribute = attributes.get(name)
        kind = int(declared.type.value)
        if (attribute is None and declared.required) or (attribute and attribute.type != kind):
            raise ParserError(
                "the attribute is missing"
                if attribute is None
                else "the attribute has the wrong type",
                where=f"{schema.name}, attribute '{name}'",
                expected=onnx.AttributeProto.AttributeType.Name(kind),
                actual="none" if attribute is None else str(attribute.type),
            )


def _type_proto(info: TensorInfo | None) -> onnx.TypeProto:
    """ONNX's type of a tensor; an empty one for an omitted tensor."""
    if info is None or info.data_type not in _ELEMENT_TYPES:
        return onnx.TypeProto()
    shape: list[int | str] | None = None
    if info.shape is not None:
        shape = ["" if dim is None else dim for dim in info.shape]
    return onnx.helper.make_tensor_type_proto(_ELEMENT_TYPES[info.data_type], shape)
