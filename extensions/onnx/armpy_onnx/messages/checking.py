"""armpy's judgement of a model: what cannot be understood, by node and field.

Notes
-----
`onnx.checker` is not asked: it refuses files that every engine runs. What is harmless is brought
into one form by `armpy_onnx.messages.canonical`. What is checked here would otherwise be answered
wrongly without an error, or be handed to the native code of the `onnx` package, which reads
attributes without looking.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache

import onnx
from onnx import AttributeProto

from armpy.core.dataclass import dataclass
from armpy.errors import ParserError
from armpy_onnx.messages.canonical import graphs_of, initial_names, node_label

_ALWAYS = 1 << 31

WITHOUT_SCHEMA: Mapping[str, int] = {
    "Affine": _ALWAYS,
    "Crop": _ALWAYS,
    "DynamicSlice": _ALWAYS,
    "ImageScaler": _ALWAYS,
    "LayerNormalization": 17,
    "MeanVarianceNormalization": 9,
    "ParametricSoftplus": _ALWAYS,
    "Scale": _ALWAYS,
    "ScaledTanh": _ALWAYS,
    "SimplifiedLayerNormalization": _ALWAYS,
    "ThresholdedRelu": 10,
}
"""Operators of ONNX's own domain that ONNX Runtime takes in operator sets below these, and that
the standard does not have there."""

FunctionKey = tuple[str, str, str]

_VALUES: Mapping[int, str] = {
    AttributeProto.FLOAT: "f",
    AttributeProto.INT: "i",
    AttributeProto.STRING: "s",
    AttributeProto.TENSOR: "t",
    AttributeProto.GRAPH: "g",
    AttributeProto.SPARSE_TENSOR: "sparse_tensor",
    AttributeProto.TYPE_PROTO: "tp",
    AttributeProto.FLOATS: "floats",
    AttributeProto.INTS: "ints",
    AttributeProto.STRINGS: "strings",
    AttributeProto.TENSORS: "tensors",
    AttributeProto.GRAPHS: "graphs",
    AttributeProto.SPARSE_TENSORS: "sparse_tensors",
    AttributeProto.TYPE_PROTOS: "type_protos",
}
"""Field of an attribute's value, by the attribute's type."""

MOST_NESTED = 32
"""Maximum depth of functions and graphs within each other; far more than any model has."""

_INTERNAL = "__"
"""Begin of the names of attributes that engines write for themselves."""

_MOST_FAULTS = 20
"""Maximum number of faults that one error lists."""


@dataclass(frozen=True, slots=True)
class Signature:
    """Inputs, outputs and attributes of an operator, as ONNX defines them for one operator set."""

    attributes: Mapping[str, int]  # their types
    required: tuple[str, ...]  # attributes that have to be there
    num_inputs: tuple[int, int]
    num_outputs: tuple[int, int]
    deprecated_since: int | None


@lru_cache(maxsize=4096)
def signature_of(op_type: str, version: int, domain: str) -> Signature | None:
    """The signature of an operator; None if ONNX has no such operator in an operator set."""
    try:
        schema = onnx.defs.get_schema(op_type, version, domain)
    except onnx.defs.SchemaError:
        return None
    return Signature(
        {name: int(attribute.type.value) for name, attribute in schema.attributes.items()},
        tuple(name for name, attribute in schema.attributes.items() if attribute.required),
        (schema.min_input, schema.max_input),
        (schema.min_output, schema.max_output),
        schema.since_version if schema.deprecated else None,
    )


def too_deep() -> ParserError:
    """The error for functions and graphs that lie in too many others."""
    return ParserError(
        "functions and graphs lie in each other too deeply", expected=f"at most {MOST_NESTED}"
    )


def check_model(model: onnx.ModelProto, versions: Mapping[str, int]) -> None:
    """Check a model in canonical form.

    Parameters
    ----------
    versions : mapping of str to int
        Versions of the operator sets that the model is in, by domain.

    Raises
    ------
    ParserError
        If nodes cannot be understood, or a name is of two tensors; it lists the faults.

    Notes
    -----
    Functions are checked if the graph, or a function that it calls, calls them.
    """
    check = _Check(model)
    check.graph(model.graph, versions, ())
    if check.faults:
        more = len(check.faults) - _MOST_FAULTS
        raise ParserError(
            "the model cannot be understood: "
            + "; ".join(check.faults[:_MOST_FAULTS])
            + (f"; and {more} more" if more > 0 else ""),
            fix="Correct these places where the model is exported",
        )


@dataclass(eq=False, slots=True)
class _Check:
    """A look at a model, and what is wrong with it."""

    model: onnx.ModelProto
    faults: list[str] = field(default_factory=list)
    functions: dict[FunctionKey, onnx.FunctionProto] = field(default_factory=dict)
    entered: set[FunctionKey] = field(default_factory=set)
    around: list[FunctionKey] = field(default_factory=list)
    """Functions that call the one that is looked at."""

    def __post_init__(self) -> None:
        for function in self.model.functions:
            key = (function.domain, function.name, function.overload)
            if key in self.functions:
                self.fault(f"function '{function.name}'", "two functions have this name")
            self.functions[key] = function

    def fault(self, where: str, failed: str, expected: object = "", actual: object = "") -> None:
        """Note a fault."""
        text = str(ParserError(failed, where=where, expected=str(expected), actual=str(actual)))
        self.faults.append(text.rstrip("."))

    def graph(
        self, graph: onnx.GraphProto, versions: Mapping[str, int], around: Sequence[set[str]]
    ) -> None:
        """Check a graph and those inside of it.

        Parameters
        ----------
        around : sequence of set of str
            Names of the tensors of the graphs around it.
        """
        names: set[str] = set()
        for kind, values in (("input", graph.input), ("output", graph.output)):
            for number, value in enumerate(values):
                if not value.name:
                    self.fault(f"{kind} {number} of graph '{graph.name}'", "it has no name")
                elif kind == "input":
                    self._written(value.name, names, (), f"input '{value.name}'")
        names.update(initial_names(graph))
        self.nodes(graph.node, versions, names, around)

    def nodes(
        self,
        nodes: Iterable[onnx.NodeProto],
        versions: Mapping[str, int],
        names: set[str],
        around: Sequence[set[str]],
    ) -> None:
        """Check nodes, and add the names of their outputs to the names of tensors."""
        for number, node in enumerate(nodes):
            version = versions.get(node.domain, 1)
            key = (node.domain, node.op_type, node.overload)
            where = f"{node.op_type} '{node_label(node, number)}'"
            signature = signature_of(node.op_type, version, node.domain)
            if signature is not None:
                self._fits(node, signature, version, where)
            elif key in self.functions:
                self._function(key, versions, where)
            elif not node.op_type:
                self.fault(where, "the node has no operator ('op_type' is empty)")
            elif self._is_newer(node, version):
                self.fault(
                    where, "the operator is not in the operator set", actual=f"opset {version}"
                )
            self._attributes(node, signature, where)
            for attribute in node.attribute:
                for graph in graphs_of(attribute):
                    self.graph(graph, versions, (*around, names))
            for name in filter(None, node.output):
                self._written(name, names, around, where)

    def _function(self, key: FunctionKey, versions: Mapping[str, int], where: str) -> None:
        """Check a function that is called."""
        if key in self.around:
            self.fault(where, "the function calls itself")
        if key in self.entered:
            return
        if len(self.around) == MOST_NESTED:
            raise too_deep()
        self.entered.add(key)
        self.around.append(key)
        function = self.functions[key]
        own = {opset.domain: opset.version for opset in function.opset_import}
        self.nodes(function.node, {**versions, **own}, set(function.input), ())
        self.around.pop()

    def _written(self, name: str, names: set[str], around: Sequence[set[str]], where: str) -> None:
        """Add a name, which has to be new."""
        if name in names or any(name in outer for outer in around):
            self.fault(where, f"the tensor '{name}' is there already", "a name of its own")
        names.add(name)

    @staticmethod
    def _is_newer(node: onnx.NodeProto, version: int) -> bool:
        """Return whether ONNX has an operator, but not in a node's operator set."""
        newest = onnx.defs.onnx_opset_version()
        return (
            not node.domain
            and version >= WITHOUT_SCHEMA.get(node.op_type, 0)
            and signature_of(node.op_type, newest, "") is not None
        )

    def _fits(self, node: onnx.NodeProto, signature: Signature, version: int, where: str) -> None:
        """Check the numbers of inputs and outputs, without those left out at the end."""
        if signature.deprecated_since is not None:
            self.fault(
                where,
                "the operator is deprecated",
                f"an opset below {signature.deprecated_since}",
                f"opset {version}",
            )
        for kind, values, (least, most) in (
            ("inputs", node.input, signature.num_inputs),
            ("outputs", node.output, signature.num_outputs),
        ):
            count = len(values)
            while count > least and not values[count - 1]:
                count -= 1
            if not least <= count <= most:
                numbers = str(least) if least == most else f"{least} to {most}"
                self.fault(where, f"the number of {kind} is wrong", numbers, count)

    def _attributes(self, node: onnx.NodeProto, signature: Signature | None, where: str) -> None:
        """Check the attributes of a node."""
        seen: set[str] = set()
        for number, attribute in enumerate(node.attribute):
            name, place = attribute.name, f"{where}, attribute '{attribute.name}'"
            if not name:
                self.fault(f"{where}, attribute {number}", "it has no name")
            elif name in seen:
                self.fault(place, "the node has it twice")
            seen.add(name)
            for failed, expected, actual in _faults_of(attribute):
                self.fault(place, failed, expected, actual)
            if signature is None or name.startswith(_INTERNAL):
                continue
            kind = signature.attributes.get(name)
            if kind is None:
                known = ", ".join(sorted(signature.attributes)) or "no attributes"
                self.fault(place, "the operator has no such attribute", known, name)
            elif kind != attribute.type:
                self.fault(place, "its type is wrong", _type(kind), _type(attribute.type))
        for name in () if signature is None else signature.required:
            if name not in seen:
                self.fault(where, f"the attribute '{name}' is missing")


def _faults_of(attribute: onnx.AttributeProto) -> Iterator[tuple[str, str, str]]:
    """Faults of an attribute by itself: the failure, the expected and the actual value."""
    expected = _VALUES.get(attribute.type)
    if expected is None:
        yield "it has no type", ", ".join(map(_type, _VALUES)), _type(attribute.type)
        return
    is_reference = bool(attribute.ref_attr_name)
    for descriptor, _ in attribute.ListFields():
        name = descriptor.name
        if name not in _DESCRIPTIONS and (name != expected or is_reference):
            wanted = "a reference and no value" if is_reference else f"its value in '{expected}'"
            yield "it has a value in another field than its type says", wanted, f"'{name}'"


_DESCRIPTIONS = frozenset({"name", "type", "doc_string", "ref_attr_name"})
"""Fields of attributes that are not values."""


def _type(number: int) -> str:
    """Return ONNX's name of an attribute's type."""
    try:
        return str(AttributeProto.AttributeType.Name(number))
    except ValueError:
        return str(number)
