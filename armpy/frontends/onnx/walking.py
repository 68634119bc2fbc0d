"""Walks the nodes of a graph or function, and adds their layers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

import onnx

from armpy.errors import ArmpyError, ParserError, UnsupportedOperatorError
from armpy.frontends.onnx.functions import Attributes, FunctionBody, Functions, bound_attributes
from armpy.frontends.onnx.node import NodeData, OnnxNode, convert
from armpy.frontends.onnx.operators import operator_of
from armpy.frontends.onnx.reading import kind_of
from armpy.graph import Value
from armpy.network import Network
from armpy.ops.composite import LayerBuilder
from armpy.ops.operation import Array, Operation, located
from armpy.records import dataclass
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType

MAX_NESTING = 32
"""How deep functions may call each other; far more than any model has."""

MOST_WRITTEN_OUT = 50_000
"""Nodes that functions may become: a small file must not become a large network."""


@dataclass(eq=False, slots=True)
class Scope:
    """What names stand for in a graph, or in the body of a function.

    Parameters
    ----------
    values : dict of str to (Value or None)
        None for what is left out.
    versions : mapping of str to int
        Of operator sets, by domain.
    attributes : mapping of str to onnx.AttributeProto
        Of the function around it.
    depth : int
        How many functions are around it.
    lost : set of str
        What nodes would have written that were refused.
    """

    values: dict[str, Value | None]
    versions: Mapping[str, int]
    attributes: Attributes
    depth: int
    lost: set[str]

    def version_of(self, node: onnx.NodeProto) -> int:
        """Version of the operator set that a node is of."""
        return self.versions.get("" if node.domain == "ai.onnx" else node.domain, 1)


class Refusals:
    """Nodes that cannot be converted, collected for one error."""

    def __init__(self) -> None:
        self._unknown: Counter[str] = Counter()
        self._reasons: list[str] = []

    def unknown(self, node: onnx.NodeProto) -> None:
        """Note a node of an operator that armpy does not have."""
        self._unknown[kind_of(node)] += 1

    @contextmanager
    def collected(self, scope: Scope, *names: str, label: str = "") -> Iterator[None]:
        """Note what is raised, and that names are lost by it."""
        try:
            yield
        except ArmpyError as error:
            self._reasons.append(str(located(lambda: label, error)).rstrip("."))
            scope.lost.update(names)

    def check(self) -> None:
        """Raise what has been noted.

        Raises
        ------
        UnsupportedOperatorError
            If there are operators that armpy does not have.
        ParserError
            If there are other nodes only.
        """
        reasons = "; ".join(self._reasons)
        if self._unknown:
            error = UnsupportedOperatorError(
                "the model uses operators that are not supported: "
                + ", ".join(f"{kind} ({count})" for kind, count in sorted(self._unknown.items()))
                + (f"; and it cannot be converted otherwise: {reasons}" if reasons else "")
            )
            error.operators = MappingProxyType(dict(self._unknown))
            raise error
        if reasons:
            raise ParserError(f"the model cannot be converted: {reasons}")


class Walker:
    """Adds the layers of nodes.

    Parameters
    ----------
    build : LayerBuilder
    functions : Functions
    refusals : Refusals
    """

    def __init__(self, build: LayerBuilder, functions: Functions, refusals: Refusals) -> None:
        self._build = build
        self._functions = functions
        self._refusals = refusals
        self._written_out = 0

    def walk(self, nodes: Iterable[onnx.NodeProto], scope: Scope, prefix: str = "") -> None:
        """Add every node's layers; what it cannot be made of is kept for the error.

        Parameters
        ----------
        nodes : iterable of onnx.NodeProto
            In an order in which they can run.
        scope : Scope
            Gets what they write.
        prefix : str
            Of the layers' names.
        """
        for number, node in enumerate(nodes):
            label = f"{prefix}{node.name or f'{node.op_type}_{number}'}"
            if not self._is_known(node, scope):
                self._refusals.unknown(node)
                scope.lost.update(node.output)
            elif any(name in scope.lost for name in node.input):
                scope.lost.update(node.output)
            else:
                self._add(node, scope, label)

    def _is_known(self, node: onnx.NodeProto, scope: Scope) -> bool:
        """Whether there is a way to convert a node."""
        if operator_of(kind_of(node)) is not None:
            return True
        return self._functions.has(node, scope.version_of(node))

    def _add(self, node: onnx.NodeProto, scope: Scope, label: str) -> None:
        """Add one node's layers."""
        for name in node.input:
            if name not in scope.values:
                raise ParserError(f"the tensor '{name}' is read before it is written")
        inputs = [scope.values[name] for name in node.input]
        names = list(node.output)
        while names and not names[-1]:
            names.pop()
        data = NodeData(
            kind_of(node),
            label,
            scope.version_of(node),
            bound_attributes(node, scope.attributes),
            len(names),
            tuple(bool(name) for name in names),
        )
        with self._refusals.collected(scope, *names, label=data.label):
            made = self._converted(node, data, inputs, scope)
            if made is None:
                scope.lost.update(names)
                return
            pairs = zip(names, made, strict=True)
            scope.values.update((name, value) for name, value in pairs if name)

    def _converted(
        self,
        node: onnx.NodeProto,
        data: NodeData,
        inputs: Sequence[Value | None],
        scope: Scope,
    ) -> Sequence[Value | None] | None:
        """Outputs of a node; None if a node that it is made of was refused."""
        operator = operator_of(data.kind)
        if operator is None:
            infos = [None if value is None else value.info for value in inputs]
            body = self._functions.body(node, data.version, data.attributes, infos)
            if body is None:
                raise UnsupportedOperatorError("the operator is not supported in this opset")
            return self._called(body, data, inputs, scope)
        composite = OnnxNode(data, operator)
        build = _Named(self._build, data.name)
        if composite.is_ready(inputs):
            return convert(build, data, operator, inputs)
        return build.add_layer(composite, inputs)

    def _called(
        self, body: FunctionBody, data: NodeData, inputs: Sequence[Value | None], scope: Scope
    ) -> Sequence[Value | None] | None:
        """Outputs of a function, whose nodes take the place of the one that calls it."""
        if scope.depth == MAX_NESTING:
            raise ParserError(
                "functions call each other too deeply", expected=f"at most {MAX_NESTING}"
            )
        self._written_out += len(body.nodes)
        if self._written_out > MOST_WRITTEN_OUT:
            raise ParserError(
                "functions are too long", expected=f"at most {MOST_WRITTEN_OUT} nodes"
            )
        if len(inputs) > len(body.inputs) or data.num_outputs > len(body.outputs):
            raise data.error(
                "the function has fewer operands",
                expected=f"at most {len(body.inputs)} inputs and {len(body.outputs)} outputs",
                actual=f"{len(inputs)} and {data.num_outputs}",
            )
        left_out = dict.fromkeys(("", *body.inputs))
        given = dict(zip(body.inputs, inputs, strict=False))
        inner = Scope({**left_out, **given}, body.versions, body.attributes, scope.depth + 1, set())
        self.walk(body.nodes, inner, f"{data.name}/")
        names = body.outputs[: data.num_outputs]
        if any(name in inner.lost for name in names):
            return None
        missing = next((name for name in names if name not in inner.values), None)
        if missing is not None:
            raise data.error(f"the function does not write its output '{missing}'")
        return [inner.values[name] for name in names]


class NetworkBuilder:
    """Adds layers to a network, each under a name of its own.

    Parameters
    ----------
    network : Network
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._names: Counter[str] = Counter()

    def add_layer(
        self,
        operation: Operation,
        inputs: Sequence[Value | None],
        outputs: Sequence[TensorInfo | None] = (),
        name: str = "",
    ) -> tuple[Value, ...]:
        """Add a layer."""
        self._names[name] += 1
        number = f"_{self._names[name]}" if self._names[name] > 1 else ""
        layer = self._network.add_layer(operation, inputs, name=f"{name}{number}", outputs=outputs)
        return layer.outputs

    def constant(
        self,
        data: Array,
        data_type: DataType | None = None,
        quantization: Quantization | None = None,
    ) -> Value:
        """Add a constant."""
        return self._network.constant(data, data_type=data_type, quantization=quantization)


class _Named:
    """Adds the layers of one node, named after it."""

    def __init__(self, build: LayerBuilder, name: str) -> None:
        self._build = build
        self._name = name

    def add_layer(
        self,
        operation: Operation,
        inputs: Sequence[Value | None],
        outputs: Sequence[TensorInfo | None] = (),
        name: str = "",
    ) -> tuple[Value, ...]:
        """Add a layer."""
        if isinstance(operation, OnnxNode):
            name = self._name
        else:
            name = f"{self._name}/{name or operation.name}"
        return self._build.add_layer(operation, inputs, outputs, name)

    def constant(
        self,
        data: Array,
        data_type: DataType | None = None,
        quantization: Quantization | None = None,
    ) -> Value:
        """Add a constant."""
        value: Value = self._build.constant(data, data_type, quantization)
        return value
