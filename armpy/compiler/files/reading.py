"""Reads networks from compiled models, which may be untrusted."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Generic, NamedTuple, TypeVar

import armpy.ops
from armpy.compiler.files.layout import (
    MODEL,
    ArrayRecord,
    GraphRecord,
    LayerRecord,
    ModelRecord,
    PlanRecord,
    ValueRecord,
    VariableRecord,
)
from armpy.compiler.files.plain import PlainReader, read_key
from armpy.compiler.memory.memory_copies import PlannedImport
from armpy.compiler.memory.plan import ArenaId, MemoryPlan, PlannedTensor
from armpy.core.field_types import field_types
from armpy.core.strings import unpacked
from armpy.errors import ArmpyError, ParserError
from armpy.graph import Graph, Layer, Value, Variable, verify_graph
from armpy.ops.attributes import check_attributes
from armpy.ops.backend_internal import MemCopy, PreCompiled
from armpy.ops.control_flow import Subgraph
from armpy.ops.operation import Array, Operation
from armpy.store.archive.container import ALIGNMENT_BYTES, Container, open_container
from armpy.store.archive.packed_views import read_view
from armpy.tensor import TensorInfo
from armpy.types import DataType

T = TypeVar("T")
NetworkT = TypeVar("NetworkT")


class NetworkContents(NamedTuple, Generic[NetworkT]):
    """A network from a file."""

    graph: Graph  # for all shapes
    # For the shapes that it was prepared for; of the class that was asked for.
    optimized: NetworkT | None


def read_network(path: str | os.PathLike[str], make: Callable[..., NetworkT]) -> NetworkT:
    """Read an optimised network; errors as for `OptimizedNetwork.load`."""
    container = open_container(path)
    container.check()
    optimized = read_contents(container, make).optimized
    if optimized is None:
        raise ParserError("the file has no optimised network", where=container.where)
    return optimized


def read_contents(
    container: Container,
    # `OptimizedNetwork`, which stands above the files that it is kept in.
    make: Callable[..., NetworkT],
    section: str = MODEL,  # where the network is
) -> NetworkContents[NetworkT]:
    """Read a network from a file whose checksums are right."""
    with _located(container.where):
        document = container.document(section)
        record = PlainReader().read(ModelRecord, document, section)
        return _GraphReader(record.arrays, container.section, make).contents(record)


@contextmanager
def _located(name: str) -> Iterator[None]:
    """Name the file in errors."""
    try:
        yield
    except ParserError as error:
        if not error.where.startswith(name):
            error.where = f"{name} / {error.where}" if error.where else name
        raise
    # Nested types are read by recursion, and a damaged file may nest them without end.
    except (ArmpyError, RecursionError) as error:
        raise ParserError(f"the file is damaged: {error}", where=name) from error


class _GraphReader(Generic[NetworkT]):
    """Makes graphs of records."""

    def __init__(
        self,
        arrays: Sequence[ArrayRecord],
        find_section: Callable[[str], Array],
        make: Callable[..., NetworkT],
    ) -> None:
        self._make = make
        self._records = arrays
        self._find_section = find_section
        self._graphs: list[Graph] = []
        self._arrays: dict[tuple[object, ...], Array] = {}
        self._plain = PlainReader({Subgraph: partial(_at, self._graphs)})

    def contents(self, record: ModelRecord) -> NetworkContents[NetworkT]:
        for number, graph_record in enumerate(record.graphs):
            self._graphs.append(self._graph(graph_record, f"graphs[{number}]"))
        executed = None if record.plan is None else record.plan.executed
        for number, graph in enumerate(self._graphs):
            # Checksums say that a file is as it was written, not by whom.
            verify_graph(graph)
            kinds = PreCompiled | MemCopy
            # The executed graph is only looked at; any other may be run, and these layers cannot.
            is_whole = number == record.loaded or number != executed
            if is_whole and any(isinstance(x.operation, kinds) for x in graph.layers):
                raise ParserError("the compiled parts cannot be loaded", where="graphs")
        loaded = _at(self._graphs, record.loaded, "loaded")
        optimized = None if record.plan is None else self._optimized(record.plan)
        return NetworkContents(loaded, optimized)

    def _optimized(self, record: PlanRecord) -> NetworkT:
        source = _at(self._graphs, record.source, "source")
        executed = _at(self._graphs, record.executed, "executed")
        if not source.is_fully_shaped:
            raise ParserError("the network's shapes are not known", where="graphs")
        values = list(executed.values())
        return self._make(
            executed,
            _by_layer(executed, record.backend_ids, "backend_ids"),
            _memory(record, values),
            record.placement,
            source,
            _by_layer(source, record.assignment, "assignment"),
            dict(record.origins),
            {
                (_at(values, i.value, "imports"), i.backend_id): PlannedImport(
                    i.factory_id, i.source
                )
                for i in record.imports
            },
            record.model_options,
        )

    def _graph(self, record: GraphRecord, where: str) -> Graph:
        values = [
            self._value(value, f"{where}.values[{i}]") for i, value in enumerate(record.values)
        ]
        find = partial(_at, values, where=where)
        return Graph(
            tuple(map(find, record.inputs)),
            tuple(map(find, record.outputs)),
            record.output_names,
            tuple(
                self._layer(layer, values, f"{where}.layers[{i}]")
                for i, layer in enumerate(record.layers)
            ),
            tuple(self._variable(variable, values, where) for variable in record.variables),
            record.default_shapes,
            record.output_shapes,
        )

    def _value(self, record: ValueRecord, where: str) -> Value:
        """A value, with its elements if it is a constant."""
        data = None if record.data is None else self._elements(record.data, record.info, where)
        return Value(record.id, record.info, record.name, data)

    def _elements(self, number: int, info: TensorInfo, where: str) -> Array:
        """Elements of a constant, in place; one array for all that are the same."""
        # With type and shape, as an array of the same bytes can stand for several constants.
        key = (number, info.data_type, info.shape)
        if key not in self._arrays:
            record = _at(self._records, number, where)
            self._arrays[key] = self._checked_elements(record, info, where)
        return self._arrays[key]

    def _checked_elements(self, record: ArrayRecord, info: TensorInfo, where: str) -> Array:
        """Elements that lie in the file."""
        data = self._find_section(record.section)
        if record.view is not None:
            return _viewed(record.view, data, info, where)
        begin, size = record.begin, record.size
        is_strings = info.data_type.is_string
        fits = info.is_fully_shaped and (is_strings or info.size_bytes == size)
        # Python's integers do not wrap around, so no hostile place gets past the sum.
        if not fits or begin < 0 or begin % ALIGNMENT_BYTES or begin + size > data.size:
            raise ParserError(
                "the elements do not lie in the file",
                where=where,
                expected=f"{info} within {data.size} bytes",
                actual=f"{size} bytes at {begin}",
            )
        stored = data[begin : begin + size]
        if is_strings:
            return unpacked(stored, info.num_elements).reshape(info.known_shape)
        # NumPy relies on it that truth values have no other bytes.
        if info.data_type is DataType.BOOLEAN and size and stored.max() > 1:
            raise ParserError("a truth value is neither 0 nor 1", where=where)
        dtype = info.data_type.dtype
        elements = stored.view(dtype.newbyteorder("<")).reshape(info.known_shape)
        # Copied on big-endian machines only; elsewhere constants stay in the file's memory.
        return elements.astype(dtype, copy=False)

    def _layer(self, record: LayerRecord, values: Sequence[Value], where: str) -> Layer:
        """A layer, whose operation agrees with its operands."""
        find = partial(_at, values, where=where)
        layer = Layer(
            record.id,
            record.name,
            self._operation(record, where),
            tuple(None if number is None else find(number) for number in record.inputs),
            tuple(map(find, record.outputs)),
            record.origins,
        )
        try:
            check_attributes(layer.operation)
            # Kernels rely on inferred shapes, so a file's own are held against these.
            inferred = layer.operation.infer(layer.input_infos, layer.output_infos)
        except ArmpyError as error:
            raise ParserError(f"the layer cannot be: {error}", where=where) from error
        if inferred != layer.output_infos:
            raise ParserError(
                "the layer's outputs are not those of its operation",
                where=where,
                expected=", ".join(map(str, inferred)),
                actual=", ".join(map(str, layer.output_infos)),
            )
        return layer

    def _operation(self, record: LayerRecord, where: str) -> Operation:
        """An operation of armpy's own."""
        name = record.operation
        # Public names only: the package holds more than operations.
        kind = getattr(armpy.ops, name, None) if name in armpy.ops.__all__ else None
        if not isinstance(kind, type) or not issubclass(kind, Operation):
            raise ParserError(f"there is no operation '{name[:80]}'", where=where)
        declared = field_types(kind)
        # None may be missing, as defaults can change between versions.
        if record.attributes.keys() != declared.keys():
            raise ParserError(
                "the operation has other attributes",
                where=where,
                expected=", ".join(declared) or "none",
                actual=", ".join(record.attributes)[:80] or "none",
            )
        # Nothing in a file becomes an object that a backend would run.
        if kind is PreCompiled and not isinstance(record.attributes["program"], str):
            raise ParserError("a program is more than its description", where=where)
        attributes = {
            n: self._plain.value(declared[n], value, f"{where}.{n}")
            for n, value in record.attributes.items()
        }
        try:
            return kind(**attributes)
        except (ArmpyError, TypeError) as error:  # the latter if it is abstract
            raise ParserError(f"the operation cannot be: {error}", where=where) from error

    def _variable(self, record: VariableRecord, values: Sequence[Value], where: str) -> Variable:
        """A variable with its initial elements."""
        value = _at(values, record.value, where)
        initial = self._elements(record.initial, value.info, where)
        key = read_key(record.key, where)
        return Variable(value, _at(values, record.next_value, where), initial, key)


def _viewed(view: object, data: Array, info: TensorInfo, where: str) -> Array:
    """Elements that are read out of packed ones."""
    elements: Array = read_view(view, data)  # type: ignore[arg-type]  # it looks for itself
    fits = info.is_fully_shaped and info.size_bytes == elements.nbytes
    if not fits or elements.dtype != info.data_type.dtype:
        raise ParserError(
            "a view gives other elements",
            where=where,
            expected=str(info),
            actual=f"{elements.dtype} {elements.shape}",
        )
    return elements.reshape(info.known_shape)


def _at(items: Sequence[T], number: object, where: str) -> T:
    # True is an int as well, and numbers below 0 would count from the end.
    if type(number) is not int or not 0 <= number < len(items):
        raise ParserError(
            "the file is damaged",
            where=where,
            expected=f"a number below {len(items)}",
            actual=repr(number)[:80],
        )
    return items[number]


def _by_layer(graph: Graph, pairs: Sequence[tuple[int, str]], where: str) -> dict[int, str]:
    names = dict(pairs)
    if names.keys() != {layer.id for layer in graph.layers}:
        raise ParserError("not every layer has one backend", where=where)
    return names


def _memory(record: PlanRecord, values: Sequence[Value]) -> MemoryPlan:
    arenas = [ArenaId(arena.backend_id, arena.factory_id) for arena in record.arenas]
    return MemoryPlan(
        {
            _at(values, t.value, "tensors"): PlannedTensor(
                _at(arenas, t.arena, "tensors"), t.offset_bytes, t.lifetime
            )
            for t in record.tensors
        },
        {arena: of.size_bytes for arena, of in zip(arenas, record.arenas, strict=True)},
    )
