"""Walks the nodes of a graph or function, and adds their layers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from types import MappingProxyType

import numpy as np
import onnx
from onnx.helper import make_attribute

from armpy.core.dataclass import dataclass
from armpy.errors import (
    ArmpyError,
    LayerValidationError,
    ParserError,
    UnsupportedOperatorError,
)
from armpy.graph import Value
from armpy.ops.composite import Composite, LayerBuilder
from armpy.ops.operation import Array, Operation, located
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType
from armpy_onnx.building import NamedBuilder
from armpy_onnx.items import (
    Form,
    Item,
    UnknownElements,
    ValueList,
    flat,
    form_of,
    formed,
    tensors,
)
from armpy_onnx.messages.canonical import names_read, node_label
from armpy_onnx.messages.checking import MOST_NESTED, too_deep
from armpy_onnx.messages.sparse_tensors import dense_elements
from armpy_onnx.node import Node, NodeData, OnnxNode, convert
from armpy_onnx.operators import operator_of
from armpy_onnx.reading import kind_of
from armpy_onnx.refused import REFUSED
from armpy_onnx.structures import structure_of
from armpy_onnx.structures.functions import (
    Attributes,
    FunctionBody,
    Functions,
    bound_attributes,
)


@dataclass(eq=False, slots=True)
class WaitingNodes:
    """Nodes that wait until it is known which sequences there are."""

    nodes: list[tuple[onnx.NodeProto, str]] = field(default_factory=list)  # with their labels
    names: dict[str, None] = field(default_factory=dict)  # their outputs
    decisive: dict[Value, None] = field(default_factory=dict)
    """Tensors whose elements they wait for."""

    def add(self, node: onnx.NodeProto, label: str) -> None:
        """Let a node wait."""
        self.nodes.append((node, label))
        self.names.update(dict.fromkeys(node.output))


@dataclass(eq=False, slots=True)
class Scope:
    """Names of a graph, or of the body of a function, and their values."""

    values: dict[str, Item]
    versions: Mapping[str, int]  # of operator sets, by domain
    attributes: Attributes  # of the function around it
    depth: int = 0  # how many functions and graphs are around it
    turns: int = 1  # how often its contents are written out for the loops around it
    phantoms: int = 0  # how many of these are turns that never run
    lost: set[str] = field(default_factory=set)  # what nodes would have written that were refused
    reads: tuple[str, ...] = ()  # what graphs inside read besides what their nodes name
    name: str = "graph"  # of the graph
    postponed: WaitingNodes = field(default_factory=WaitingNodes)  # nodes that wait

    def child(self, values: dict[str, Item], reads: tuple[str, ...] = ()) -> Scope:
        """A scope with names of its own that is as deep as this one."""
        return replace(
            self,
            values={"": None, **values},
            lost=set(),
            reads=reads,
            name="graph",
            postponed=WaitingNodes(),
        )

    def version_of(self, node: onnx.NodeProto) -> int:
        """Version of the operator set that a node is of."""
        return self.versions.get(node.domain, 1)


class RefusedDependency(Exception):  # noqa: N818 - the error is stored already
    """A graph's output depends on a node that was refused."""


class Refusals:
    """Nodes that cannot be converted, collected for one error."""

    def __init__(self) -> None:
        self._unknown: Counter[str] = Counter()
        self._reasons: list[str] = []

    def __bool__(self) -> bool:
        return bool(self._unknown or self._reasons)

    def take(self, other: Refusals) -> None:
        """Add those of a graph inside."""
        self._unknown.update(other._unknown)
        self._reasons += other._reasons

    def unknown(self, node: onnx.NodeProto) -> None:
        """Note a node of an operator that armpy does not have."""
        self._unknown[kind_of(node)] += 1

    @contextmanager
    def collected(self, scope: Scope, *names: str, label: str = "") -> Iterator[None]:
        """Store a raised error, and the names that are lost by it."""
        try:
            yield
        except RefusedDependency:
            scope.lost.update(names)
        except ArmpyError as error:
            self._reasons.append(str(located(lambda: label, error)).rstrip("."))
            scope.lost.update(names)

    def check(self) -> None:
        """Raise the stored errors.

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
                + ", ".join(
                    f"{kind} ({count})" + (f": {REFUSED[kind]}" if kind in REFUSED else "")
                    for kind, count in sorted(self._unknown.items())
                )
                + (f"; and it cannot be converted otherwise: {reasons}" if reasons else ""),
                expected="operators that docs/reference/onnx.md lists",
                fix="Export the model with other operators",
            )
            error.operators = MappingProxyType(dict(self._unknown))
            raise error
        if reasons:
            fix = "Correct these nodes where the model is exported"
            raise ParserError(f"nodes cannot be converted: {reasons}", fix=fix)


@dataclass(eq=False, slots=True)
class Budget:
    """Count of nodes that have been written out."""

    nodes: int = 0


class Walker:
    """Adds the layers of nodes.

    Parameters
    ----------
    folds : bool
        Whether `build` folds constants, so that shapes are known wherever they can be.
    """

    def __init__(
        self,
        build: LayerBuilder,
        functions: Functions,
        refusals: Refusals,
        *,
        folds: bool = False,
        budget: Budget | None = None,
    ) -> None:
        self._build = build
        self.functions = functions
        self.refusals = refusals
        self.folds = folds
        self._budget = budget or Budget()

    def within(self, build: LayerBuilder) -> Walker:
        """A walker for a graph inside."""
        return Walker(build, self.functions, self.refusals, budget=self._budget)

    def walk(self, nodes: Iterable[onnx.NodeProto], scope: Scope, prefix: str = "") -> None:
        """Add every node's layers; collect the nodes that cannot be converted for the error.

        Parameters
        ----------
        nodes : iterable of onnx.NodeProto
            Nodes in an order in which they can run.
        scope : Scope
            Receives their outputs.
        prefix : str
            First part of the layers' names.
        """
        for number, node in enumerate(nodes):
            label = prefix + node_label(node, number)
            if not self._is_known(node, scope):
                self.refusals.unknown(node)
                scope.lost.update(node.output)
            else:
                self.add(node, scope, label)

    def inlined(
        self, graph: onnx.GraphProto, given: Sequence[Item], scope: Scope, prefix: str
    ) -> list[Item]:
        """Outputs of a graph inside a node, whose nodes are added here.

        Parameters
        ----------
        given : sequence of Item
            Inputs of the graph.
        scope : Scope
            The tensors that it reads from outside.
        prefix : str
            First part of the layers' names.

        Raises
        ------
        RefusedDependency
            If an output depends on a node that was refused.
        """
        self._enter(scope.depth, len(graph.node))
        if len(given) != len(graph.input):
            raise LayerValidationError(
                "the graph takes another number of inputs",
                expected=str(len(graph.input)),
                actual=str(len(given)),
            )
        names = (value.name for value in graph.input)
        inner = scope.child({**scope.values, **dict(zip(names, given, strict=True))}, scope.reads)
        inner.depth += 1
        inner.lost.update(scope.lost)
        self.initialize(graph, inner)
        self.walk(graph.node, inner, prefix)
        return self._results([value.name for value in graph.output], inner)

    def initialize(self, graph: onnx.GraphProto, scope: Scope) -> None:
        """Add a graph's constants."""
        for tensor in graph.initializer:
            with self.refusals.collected(scope, tensor.name):
                where = f"initializer '{tensor.name}'"
                array, data_type = self.functions.external.read(tensor, where)
                scope.values[tensor.name] = self._build.constant(array, data_type)
        for sparse in graph.sparse_initializer:
            name = sparse.values.name
            with self.refusals.collected(scope, name):
                where = f"sparse initializer '{name}'"
                array, data_type = dense_elements(sparse, self.functions.external.read, where)
                scope.values[name] = self._build.constant(array, data_type)

    def length(self, item: ValueList) -> Value:
        """The length of a sequence."""
        return self.constant(np.int64(len(item.values)))

    def _results(self, names: Sequence[str], scope: Scope) -> list[Item]:
        """Return the values of names at the end."""
        if any(name in scope.lost for name in names):
            raise RefusedDependency
        for name in names:
            if name not in scope.values:
                raise ParserError(f"nothing has written the output '{name}'")
        return [scope.values[name] for name in names]

    def _enter(self, depth: int, num_nodes: int) -> None:
        """Check that a function or graph may be added."""
        if depth >= MOST_NESTED:
            raise too_deep()
        self._budget.nodes += num_nodes
        self.functions.check_count(self._budget.nodes)

    def _is_known(self, node: onnx.NodeProto, scope: Scope) -> bool:
        """Return whether there is a way to convert a node."""
        kind = kind_of(node)
        if operator_of(kind) is not None or structure_of(kind) is not None:
            return True
        return self.functions.has(node, scope.version_of(node))

    def add(self, node: onnx.NodeProto, scope: Scope, label: str) -> None:
        """Add one node's layers, if all that it reads is there."""
        reads = list(names_read(node, self.functions.free_names))
        if any(name in scope.lost for name in reads):
            scope.lost.update(node.output)
        elif any(name in scope.postponed.names for name in reads):
            scope.postponed.add(node, label)
        else:
            self._add(node, scope, label)

    def _add(self, node: onnx.NodeProto, scope: Scope, label: str) -> None:
        """Add one node's layers."""
        for name in node.input:
            if name not in scope.values:
                raise ParserError(
                    f"the tensor '{name}' is read and not written before",
                    where=f"{kind_of(node)} '{label}'",
                    expected="an input, an initializer, or the output of a node before it",
                )
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
        with self.refusals.collected(scope, *names, label=data.label):
            external = self.functions.external
            data = replace(data, attributes=external.with_elements(data.attributes, data.label))
            try:
                results = self._converted(node, data, inputs, scope)
            except UnknownElements as waiting:
                self._postpone(waiting, data, scope)
                scope.postponed.add(node, label)
                return
            if len(results) != len(names):
                raise data.error("the number of outputs is wrong", actual=len(names))
            pairs = zip(names, results, strict=True)
            scope.values.update((name, value) for name, value in pairs if name)

    def _postpone(self, waiting: UnknownElements, data: NodeData, scope: Scope) -> None:
        """Let a node of the outermost graph wait for elements; one inside lets that around it."""
        if scope.depth:
            raise waiting
        known = set(flat(list(scope.values.values())))
        decisive = [value for value in waiting.decisive if value in known]
        if self.folds and not decisive:
            raise data.error(f"elements inside of it decide {waiting.what}") from waiting
        scope.postponed.decisive.update(dict.fromkeys(decisive))

    def finish(self, outputs: Mapping[str, DataType | None], scope: Scope) -> None:
        """Add a layer for the nodes that wait, if outputs depend on them.

        Parameters
        ----------
        outputs : mapping of str to (DataType or None)
            The graph's outputs; None for one that is not a tensor.
        scope : Scope
            Receives the layer's outputs.
        """
        postponed = scope.postponed
        types = {name: kind for name, kind in outputs.items() if name in postponed.names}
        if not types:
            return
        for name in [name for name, kind in types.items() if kind is None]:
            with self.refusals.collected(scope, name, label=f"output '{name}'"):
                raise LayerValidationError("the tensors of the sequence are known at run time only")
        tensors_of = {name: kind for name, kind in types.items() if kind is not None}
        read = dict.fromkeys(
            name
            for node, _ in postponed.nodes
            for name in names_read(node, self.functions.free_names)
        )
        items = {name: scope.values[name] for name in read if name in scope.values}
        values = flat(list(items.values()))
        composite = PostponedNodes(
            tuple(postponed.nodes),
            {name: form_of(item) for name, item in items.items()},
            scope.child({}),
            self.functions,
            tensors_of,
            frozenset(i for i, value in enumerate(values) if value in postponed.decisive),
        )
        if tensors_of:
            results = self.layers(postponed.nodes[0][1], composite, values)
            scope.values.update(zip(tensors_of, results, strict=True))

    def _converted(
        self, node: onnx.NodeProto, data: NodeData, inputs: Sequence[Item], scope: Scope
    ) -> Sequence[Item]:
        structure = structure_of(data.kind)
        if structure is not None:
            results: Sequence[Item] | None = structure(self, data, inputs, scope)
            if results is not None:
                return results
        operator = operator_of(data.kind)
        if operator is None:
            infos = [item.info if isinstance(item, Value) else None for item in inputs]
            body = self.functions.body(node, data.version, data.attributes, infos)
            if body is None:
                raise UnsupportedOperatorError("the operator is not supported in this opset")
            return self._called(body, data, inputs, scope)
        return self._plain(OnnxNode(data, operator), inputs)

    def _plain(self, composite: OnnxNode, inputs: Sequence[Item]) -> Sequence[Value]:
        """Outputs of a node of an operator that computes tensors of tensors."""
        if any(isinstance(item, ValueList) for item in inputs):
            raise LayerValidationError("an input is a sequence", expected="tensors")
        values: list[Value | None] = list(inputs)  # type: ignore[arg-type]  # none is a sequence
        data = composite.data
        build = NamedBuilder(self._build, data.name)
        if composite.is_ready(values):
            return convert(build, data, composite.operator, values)
        return build.add_layer(composite, values)

    def _called(
        self, body: FunctionBody, data: NodeData, inputs: Sequence[Item], scope: Scope
    ) -> Sequence[Item]:
        """Outputs of a function, whose nodes take the place of the one that calls it."""
        self._enter(scope.depth, len(body.nodes))
        if len(inputs) > len(body.inputs) or data.num_outputs > len(body.outputs):
            raise data.error(
                "the function has fewer operands",
                expected=f"at most {len(body.inputs)} inputs and {len(body.outputs)} outputs",
                actual=f"{len(inputs)} and {data.num_outputs}",
            )
        left_out: dict[str, Item] = dict.fromkeys(("", *body.inputs))
        arguments = dict(zip(body.inputs, inputs, strict=False))
        versions = {**scope.versions, **body.versions}
        inner = Scope({**left_out, **arguments}, versions, body.attributes, scope.depth + 1)
        inner.turns, inner.phantoms = scope.turns, scope.phantoms
        self.walk(body.nodes, inner, f"{data.name}/")
        return self._results(body.outputs[: data.num_outputs], inner)

    # For structures, or handles sequences

    def layers(self, name: str, operation: Operation, inputs: Sequence[Value]) -> tuple[Value, ...]:
        """Add a layer."""
        return NamedBuilder(self._build, name).add_layer(operation, inputs)

    def layer(self, name: str, operation: Operation, *inputs: Value) -> Value:
        """Add a layer with one output, computed in a wider type where that is needed."""
        build = NamedBuilder(self._build, name)
        data = NodeData(operation.name, name, _OWN_VERSION, {}, 1, (True,))
        return Node(build, data, inputs).layer(operation, *inputs)

    def constant(self, array: Array | np.generic, data_type: DataType | None = None) -> Value:
        """Add a constant."""
        value: Value = self._build.constant(np.asarray(array), data_type)
        return value

    def zeros(self, shape: tuple[int, ...], data_type: DataType) -> Value:
        """Add a constant of zeros."""
        info = TensorInfo(shape, data_type)
        if not info.is_addressable or info.size_bytes > LARGEST_ZEROS_BYTES:
            raise LayerValidationError(
                "what a loop collects is too large",
                expected=f"at most {LARGEST_ZEROS_BYTES} bytes",
                actual=str(shape),
            )
        return self.constant(data_type.zeros(shape), data_type)

    def call(
        self,
        kind: str,
        *inputs: Value | Sequence[int],
        label: str,
        **attributes: object,
    ) -> Value:
        """Output of an operator of ONNX; integers are constants."""
        operator = operator_of(kind)
        if operator is None:
            raise UnsupportedOperatorError(f"{kind} is not supported")
        protos = {name: make_attribute(name, value) for name, value in attributes.items()}
        data = NodeData(kind, f"{label}/{kind}", _OWN_VERSION, protos, 1, (True,))
        values = [
            item if isinstance(item, Value) else self.constant(np.array(item, np.int64))
            for item in inputs
        ]
        return self._plain(OnnxNode(data, operator), values)[0]


LARGEST_ZEROS_BYTES = 1 << 28
"""Maximum size of what a loop collects at once: more is collected row by row."""

_OWN_VERSION = 18
"""Version of the operators for `Walker.call`."""


@dataclass(frozen=True, eq=False, slots=True)
class PostponedNodes(Composite):
    """Nodes at the end of a graph that wait until it is known which sequences there are."""

    nodes: tuple[tuple[onnx.NodeProto, str], ...]  # with their labels
    forms: Mapping[str, Form]  # their inputs
    scope: Scope  # where they are read; without values
    functions: Functions
    types: Mapping[str, DataType]  # their outputs
    decisive: frozenset[int]  # operands whose elements must be known

    @property
    def name(self) -> str:
        """Name of the first node."""
        return str(self.nodes[0][0].op_type)

    @property
    def num_outputs(self) -> int:
        """Number of outputs that are needed."""
        return len(self.types)

    def decides(self, index: int) -> bool:
        """Return whether a place or size in a sequence is an operand."""
        return index in self.decisive

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        """Nothing is known yet."""
        return (None,) * len(self.types)

    def infer_types(self, inputs: Sequence[TensorInfo]) -> tuple[DataType, ...]:
        """Types that the file declares."""
        return tuple(self.types.values())

    def expand(self, build: LayerBuilder, inputs: Sequence[Value | None]) -> Sequence[Value]:
        """Convert the nodes with the values known now."""
        refusals = Refusals()
        walker = Walker(build, self.functions, refusals, folds=True)
        items = formed([value for value in inputs if value is not None], list(self.forms.values()))
        scope = self.scope.child(dict(zip(self.forms, items, strict=True)))
        scope.depth = 0
        for node, label in self.nodes:
            walker.add(node, scope, label)
        walker.finish(self.types, scope)
        refusals.check()
        results = tensors([scope.values[name] for name in self.types])
        for (name, kind), value in zip(self.types.items(), results, strict=True):
            if value.info.data_type is not kind:
                raise LayerValidationError(
                    "the file declares another type",
                    where=f"output '{name}'",
                    expected=str(kind),
                    actual=str(value.info.data_type),
                )
        return results
