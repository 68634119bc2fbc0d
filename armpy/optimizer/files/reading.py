"""Reads an optimised network, whoever wrote the file."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import armpy.ops
from armpy.backend import DefaultAllocator
from armpy.errors import ArmpyError, ParserError
from armpy.graph import Graph, Layer, Value, Variable, nested_graphs, verify_graph
from armpy.ops.attributes import check_attributes, declared_types
from armpy.ops.backend_internal import MemCopy, PreCompiled
from armpy.ops.control_flow import Subgraph
from armpy.ops.operation import Array, Operation
from armpy.optimizer.bridge import PlannedImport
from armpy.optimizer.files.layout import (
    ALIGNMENT_BYTES,
    HEADER,
    MAGIC,
    VERSION,
    GraphRecord,
    LayerRecord,
    NetworkRecord,
    ValueRecord,
    VariableRecord,
    padding,
)
from armpy.optimizer.files.plain import PlainReader, read_key
from armpy.optimizer.memory_plan import ArenaId, MemoryPlan, PlannedTensor
from armpy.optimizer.optimized import OptimizedNetwork
from armpy.tensor import TensorInfo
from armpy.types import DataType

T = TypeVar("T")


def read_network(path: str | os.PathLike[str]) -> OptimizedNetwork:
    """Read an optimised network; errors as for `OptimizedNetwork.load`."""
    name = os.fspath(path)
    try:
        contents = _contents(Path(path))
    except OSError as error:
        raise ParserError(f"the file cannot be read: {error}", where=name) from error
    try:
        text, data = _checked(contents)
        record = PlainReader().read(NetworkRecord, _parsed(text), "network")
        return _Reader(data).network(record)
    except ParserError as error:
        error.where = f"{name} / {error.where}" if error.where else name
        raise
    except (ArmpyError, RecursionError) as error:
        raise ParserError(f"the file is damaged: {error}", where=name) from error


def _contents(path: Path) -> Array:
    """A file's bytes, in memory that is aligned as its constants are."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        memory = DefaultAllocator().allocate(size, ALIGNMENT_BYTES)
        count = file.readinto(memory.data)
    memory.flags.writeable = False
    return memory[:count]


def _checked(contents: Array) -> tuple[bytes, Array]:
    """Text and constants of a file whose header is right."""
    if contents.size < HEADER.size or contents[: len(MAGIC)].tobytes() != MAGIC:
        raise ParserError(
            "the file is no optimised network", expected=f"{MAGIC!r} at its beginning"
        )
    _, version, zero, text_bytes, file_bytes, digest = HEADER.unpack(contents[: HEADER.size].data)
    if version != VERSION:
        raise ParserError(
            "the file is of another version", expected=f"version {VERSION}", actual=str(version)
        )
    end = HEADER.size + text_bytes
    if zero or file_bytes != contents.size or end > contents.size:
        raise ParserError(
            "the file is not complete", expected=f"{file_bytes} bytes", actual=str(contents.size)
        )
    if hashlib.sha256(contents[HEADER.size :].data).digest() != digest:
        raise ParserError("the file is damaged: its check sum is another one")
    return contents[HEADER.size : end].tobytes(), contents[end + padding(end) :]


def _parsed(text: bytes) -> object:
    """The text as JSON."""

    def refuse(name: str) -> object:
        raise ValueError(f"{name} is no number")

    try:
        return json.loads(text.decode(), parse_constant=refuse)
    except ValueError as error:
        raise ParserError(f"the text is no JSON: {error}") from error


class _Reader:
    """Makes graphs of records."""

    def __init__(self, data: Array) -> None:
        self._data = data
        self._graphs: list[Graph] = []
        self._arrays: dict[tuple[object, ...], Array] = {}
        self._plain = PlainReader({Subgraph: self._inner})

    def network(self, record: NetworkRecord) -> OptimizedNetwork:
        """The optimised network."""
        for number, one in enumerate(record.graphs):
            self._graphs.append(self._graph(one, f"graphs[{number}]"))
        if len(self._graphs) < 2:
            raise ParserError("the file is damaged", where="graphs", expected="two or more")
        source, executed = self._graphs[-2:]
        for graph in (source, executed):
            for part in (*nested_graphs(graph), graph):
                verify_graph(part)
        if not source.is_fully_shaped:
            raise ParserError("the network's shapes are not known", where="graphs")
        for graph in self._graphs[:-1]:
            if any(isinstance(layer.operation, PreCompiled | MemCopy) for layer in graph.layers):
                raise ParserError("what was compiled cannot be loaded", where="graphs")
        values = list(executed.values())
        return OptimizedNetwork(
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

    def _inner(self, number: object, where: str) -> Graph:
        """A graph that control flow runs, which has come before."""
        return _at(self._graphs, number, where)

    def _graph(self, record: GraphRecord, where: str) -> Graph:
        """A graph."""
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
        )

    def _value(self, record: ValueRecord, where: str) -> Value:
        """A value, with its elements if it is a constant."""
        data = None if record.data is None else self._elements(record.data, record.info, where)
        return Value(record.id, record.info, record.name, data)

    def _elements(self, place: tuple[int, int], info: TensorInfo, where: str) -> Array:
        """Elements of a constant, in place; one array for all that are the same."""
        key = (place, info.data_type, info.shape)
        if key not in self._arrays:
            self._arrays[key] = self._checked_elements(place, info, where)
        return self._arrays[key]

    def _checked_elements(self, place: tuple[int, int], info: TensorInfo, where: str) -> Array:
        """Elements that lie in the file."""
        begin, size = place
        fits = info.is_fully_shaped and info.size_bytes == size
        if not fits or begin < 0 or begin % ALIGNMENT_BYTES or begin + size > self._data.size:
            raise ParserError(
                "the elements do not lie in the file",
                where=where,
                expected=f"{info} within {self._data.size} bytes",
                actual=f"{size} bytes at {begin}",
            )
        stored = self._data[begin : begin + size]
        if info.data_type is DataType.BOOLEAN and size and stored.max() > 1:
            raise ParserError("a truth value is neither 0 nor 1", where=where)
        dtype = info.data_type.dtype
        elements = stored.view(dtype.newbyteorder("<")).reshape(info.known_shape)
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
        kind = getattr(armpy.ops, name, None) if name in armpy.ops.__all__ else None
        if not isinstance(kind, type) or not issubclass(kind, Operation):
            raise ParserError(f"there is no operation '{name[:80]}'", where=where)
        declared = declared_types(kind)
        if record.attributes.keys() != declared.keys():
            raise ParserError(
                "the operation has other attributes",
                where=where,
                expected=", ".join(declared) or "none",
                actual=", ".join(record.attributes)[:80] or "none",
            )
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


def _at(items: Sequence[T], number: object, where: str) -> T:
    """An item by its number."""
    if type(number) is not int or not 0 <= number < len(items):
        raise ParserError(
            "the file is damaged",
            where=where,
            expected=f"a number below {len(items)}",
            actual=repr(number)[:80],
        )
    return items[number]


def _by_layer(graph: Graph, pairs: Sequence[tuple[int, str]], where: str) -> dict[int, str]:
    """A backend for each layer of a graph."""
    found = dict(pairs)
    if found.keys() != {layer.id for layer in graph.layers}:
        raise ParserError("not every layer has one backend", where=where)
    return found


def _memory(record: NetworkRecord, values: Sequence[Value]) -> MemoryPlan:
    """The memory plan."""
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
