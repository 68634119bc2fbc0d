"""Writes an optimised network."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import armpy.ops
from armpy.errors import ArmpyError, InvalidArgumentError, UnimplementedError
from armpy.graph import Graph, Layer, Value, Variable, nested_graphs
from armpy.ops.backend_internal import PreCompiled
from armpy.ops.operation import Array
from armpy.optimizer.files.layout import (
    HEADER,
    MAGIC,
    VERSION,
    ArenaRecord,
    GraphRecord,
    ImportRecord,
    LayerRecord,
    NetworkRecord,
    TensorRecord,
    ValueRecord,
    VariableRecord,
    padding,
)
from armpy.optimizer.files.plain import plain
from armpy.plugins.boundary import ask_backend, describe

if TYPE_CHECKING:
    from armpy.optimizer.optimized import OptimizedNetwork


def write_network(network: OptimizedNetwork, path: str | os.PathLike[str]) -> None:
    """Write an optimised network; errors as for `OptimizedNetwork.save`."""
    record, arrays = _Writer().write(network)
    text = json.dumps(plain(record), allow_nan=False, separators=(",", ":")).encode()
    pieces: list[bytes | memoryview] = [text, bytes(padding(HEADER.size + len(text)))]
    for array in arrays:
        elements = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
        pieces += [elements.reshape(-1).view(np.uint8).data, bytes(padding(array.nbytes))]
    digest = hashlib.sha256()
    size = HEADER.size
    for piece in pieces:
        digest.update(piece)
        size += len(piece)
    header = HEADER.pack(MAGIC, VERSION, 0, len(text), size, digest.digest())
    try:
        with Path(path).open("wb") as file:
            file.writelines([header, *pieces])
    except OSError as error:
        raise InvalidArgumentError(
            f"the network cannot be written: {error}", where=os.fspath(path)
        ) from error


class _Writer:
    """Numbers graphs, values and constants."""

    def __init__(self) -> None:
        self._arrays: list[Array] = []
        self._position = 0  # behind the text
        self._places: dict[int, tuple[int, int]] = {}  # by the array's identity
        self._graphs: dict[Graph, int] = {}

    def write(self, network: OptimizedNetwork) -> tuple[NetworkRecord, list[Array]]:
        """Records, and the elements that go behind their text."""
        inner = (*nested_graphs(network.source), *nested_graphs(network.graph))
        records = []
        for graph in (*dict.fromkeys(inner), network.source, network.graph):
            records.append(self._graph(graph))
            self._graphs[graph] = len(records) - 1
        numbers = {value: number for number, value in enumerate(network.graph.values())}
        arenas = {arena: number for number, arena in enumerate(network.memory.arenas)}
        record = NetworkRecord(
            tuple(records),
            tuple(network.assignment.items()),
            tuple(network.backend_ids.items()),
            tuple(network.origins.items()),
            tuple(
                ArenaRecord(arena.backend_id, arena.factory_id, size)
                for arena, size in network.memory.arenas.items()
            ),
            tuple(
                TensorRecord(numbers[value], arenas[t.arena], t.offset_bytes, t.lifetime)
                for value, t in network.memory.tensors.items()
            ),
            tuple(
                ImportRecord(numbers[value], backend_id, planned.factory_id, planned.source)
                for (value, backend_id), planned in network.imports.items()
            ),
            network.placement,
            {name: dict(options) for name, options in network.model_options.items()},
        )
        return record, self._arrays

    def _place(self, array: Array) -> tuple[int, int]:
        """Position and size of elements, each array written once."""
        if id(array) not in self._places:
            self._arrays.append(array)  # which keeps it, and with it its identity
            self._places[id(array)] = (self._position, array.nbytes)
            self._position += array.nbytes + padding(array.nbytes)
        return self._places[id(array)]

    def _graph(self, graph: Graph) -> GraphRecord:
        """A graph whose inner ones are numbered."""
        numbers = {value: number for number, value in enumerate(graph.values())}
        return GraphRecord(
            tuple(map(self._value, numbers)),
            tuple(self._layer(layer, numbers) for layer in graph.layers),
            tuple(numbers[value] for value in graph.inputs),
            tuple(numbers[value] for value in graph.outputs),
            graph.output_names,
            tuple(self._variable(variable, numbers) for variable in graph.variables),
            graph.default_shapes,
        )

    def _value(self, value: Value) -> ValueRecord:
        """A value with its elements, if it is constant."""
        place = None if value.data is None else self._place(value.data)
        return ValueRecord(value.id, value.name, value.info, place)

    def _layer(self, layer: Layer, numbers: dict[Value, int]) -> LayerRecord:
        """A layer with its operation's attributes."""
        operation = layer.operation
        if getattr(armpy.ops, operation.name, None) is not type(operation):
            raise UnimplementedError(
                "only armpy's own operations can be saved",
                where=layer.where,
                actual=f"{type(operation).__module__}.{type(operation).__name__}",
            )
        attributes = operation.attributes()
        if isinstance(operation, PreCompiled):
            attributes = attributes | {"program": _described(layer.where, operation.program)}
        found = {
            name: self._graphs[value] if isinstance(value, Graph) else plain(value)
            for name, value in attributes.items()
        }
        return LayerRecord(
            layer.id,
            layer.name,
            operation.name,
            found,
            tuple(None if value is None else numbers[value] for value in layer.inputs),
            tuple(numbers[value] for value in layer.outputs),
            layer.origins,
        )

    def _variable(self, variable: Variable, numbers: dict[Value, int]) -> VariableRecord:
        """A variable with its initial elements."""
        if not _is_plain_key(variable.key):
            raise UnimplementedError(
                "the key of a variable cannot be saved",
                where=f"variable '{variable.value.name}'",
                expected="text, integers, None, or tuples of them",
                actual=repr(variable.key),
            )
        value, following = numbers[variable.value], numbers[variable.next_value]
        return VariableRecord(value, following, self._place(variable.initial), variable.key)


def _described(where: str, program: object) -> str:
    """What a backend's program says of itself."""
    try:
        return ask_backend(where, str, str, program)
    except ArmpyError:
        return describe(program)


def _is_plain_key(key: Hashable) -> bool:
    """Whether a variable's key is equal to itself once it has been read again."""
    if isinstance(key, tuple):
        return all(map(_is_plain_key, key))
    return key is None or type(key) in (str, int)
