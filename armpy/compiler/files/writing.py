"""Writes networks as records and constants."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

import armpy.ops
from armpy import __version__
from armpy.compiler.files.layout import (
    CONSTANTS,
    MODEL,
    ArenaRecord,
    ArrayRecord,
    GraphRecord,
    ImportRecord,
    LayerRecord,
    ModelRecord,
    PlanRecord,
    TensorRecord,
    ValueRecord,
    VariableRecord,
)
from armpy.compiler.files.plain import plain
from armpy.core.strings import packed
from armpy.errors import ArmpyError, UnimplementedError
from armpy.graph import Graph, Layer, Value, Variable, nested_graphs
from armpy.ops.backend_internal import PreCompiled
from armpy.ops.composite import Composite
from armpy.ops.operation import Array
from armpy.plugins.proxy.guarded_call import ask_backend, describe
from armpy.store.archive.container import ALIGNMENT_BYTES, write_container, written_document

if TYPE_CHECKING:
    from armpy.backend import OptionValues
    from armpy.compiler.memory.memory_copies import PlannedImport
    from armpy.compiler.memory.plan import MemoryPlan
    from armpy.compiler.placement import Placement
    from armpy.types import BackendId

KIND_NETWORK = "network"
"""What a file says that it is: an optimised network that has to be compiled."""

_GIVE_SIZES = (
    "It becomes layers that can be once its sizes are known: load the model with sizes for open "
    "dimensions (of ONNX files: the front-end option 'dimensions')"
)


class PlannedNetwork(Protocol):
    """All of an `OptimizedNetwork`, which stands above the files, that is written."""

    @property
    def graph(self) -> Graph:
        """The graph as it is executed."""

    @property
    def backend_ids(self) -> Mapping[int, BackendId]:
        """Backend by layer id of `graph`."""

    @property
    def memory(self) -> MemoryPlan:
        """Return where its tensors lie."""

    @property
    def placement(self) -> Placement:
        """The report."""

    @property
    def source(self) -> Graph:
        """The graph that was assigned to backends."""

    @property
    def assignment(self) -> Mapping[int, BackendId]:
        """Backend by layer id of `source`."""

    @property
    def origins(self) -> Mapping[int, tuple[int, ...]]:
        """Map layer ids of `graph` to the layers of `source` that they stand for."""

    @property
    def imports(self) -> Mapping[tuple[Value, BackendId], PlannedImport]:
        """Return the values that layers of a backend read in another one's memory."""

    @property
    def model_options(self) -> Mapping[BackendId, OptionValues]:
        """Options of scope MODEL that backends have gone by."""


def write_network(network: PlannedNetwork, path: str | os.PathLike[str]) -> None:
    """Write an optimised network; errors as for `OptimizedNetwork.save`."""
    arrays = ArrayStore()
    text = NetworkWriter(arrays).write(network.source, network)
    manifest = {"kind": KIND_NETWORK, "armpy": __version__}
    write_container(path, manifest, {MODEL: text, CONSTANTS: arrays.elements()})


class ArrayStore:
    """Elements of constants of all networks in a file, each array once."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}  # by the array's identity
        self._by_contents: dict[tuple[str, bytes], int] = {}
        self._kept: list[Array] = []  # so that no other array gets its identity
        self._arrays: list[Array] = []
        self._views: dict[int, tuple[str, object]] = {}

    @property
    def arrays(self) -> Sequence[Array]:
        """The arrays, by their numbers; packed bytes of strings."""
        return self._arrays

    def number(self, array: Array) -> int:
        """The number of an array; one for all of the same bytes."""
        if id(array) not in self._numbers:
            self._kept.append(array)
            # By contents: graphs of one model have equal constants in different objects.
            is_strings = array.dtype.hasobject
            stored = packed(array) if is_strings else array
            kind, digest = _contents(stored)
            contents = ("strings" if is_strings else kind, digest)
            number = self._by_contents.setdefault(contents, len(self._arrays))
            if number == len(self._arrays):
                self._arrays.append(stored)
            self._numbers[id(array)] = number
        return self._numbers[id(array)]

    def find(self, array: Array) -> int | None:
        """The number of the array of the same type and bytes, if there is one."""
        return self._by_contents.get(_contents(array))

    def is_read_elsewhere(self, number: int) -> bool:
        """Return whether an array is read out of another section."""
        return number in self._views

    def read_from(self, number: int, section: str, view: Mapping[str, object]) -> None:
        """Have an array read out of a section instead of writing its elements."""
        self._views[number] = (section, {**view, "shape": list(self._arrays[number].shape)})

    def records(self) -> tuple[ArrayRecord, ...]:
        """Return the place of each array."""
        records, begin = [], 0
        for number, array in enumerate(self._arrays):
            if number in self._views:
                section, view = self._views[number]
                records.append(ArrayRecord(section, 0, 0, view))
                continue
            records.append(ArrayRecord(CONSTANTS, begin, array.nbytes, None))
            # Aligned, so that constants can be used where a mapped file has them.
            begin += array.nbytes + -array.nbytes % ALIGNMENT_BYTES
        return tuple(records)

    def elements(self) -> Array:
        """The section of constants."""
        pieces = []
        for number, array in enumerate(self._arrays):
            if number not in self._views:
                # Little-endian on every machine, as files travel.
                stored = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
                pieces.append(stored.reshape(-1).view(np.uint8))
                pieces.append(np.zeros(-array.nbytes % ALIGNMENT_BYTES, np.uint8))
        return np.concatenate(pieces) if pieces else np.zeros(0, np.uint8)


def _contents(array: Array) -> tuple[str, bytes]:
    """An array's type and the digest of its bytes."""
    plain_bytes = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return array.dtype.str, hashlib.sha256(plain_bytes.data).digest()


class NetworkWriter:
    """Numbers the graphs of a network."""

    def __init__(
        self,
        # Takes the constants. It is whole when all networks have been recorded.
        arrays: ArrayStore,
    ) -> None:
        self._arrays = arrays
        self._graphs: dict[Graph, int] = {}
        self._records: list[GraphRecord] = []

    def write(self, loaded: Graph, network: PlannedNetwork | None) -> bytes:
        """The section with a network; parameters as of `record`."""
        return self.text(self.record(loaded, network))

    @staticmethod
    def text(record: ModelRecord) -> bytes:
        """A record as compressed JSON."""
        return written_document(plain(record))

    def record(
        self,
        loaded: Graph,  # for all shapes
        network: PlannedNetwork | None,  # for some shapes
    ) -> ModelRecord:
        """The record of a network."""
        number = self._number(loaded)
        plan = None if network is None else self._plan(network)
        return ModelRecord(self._arrays.records(), tuple(self._records), number, plan)

    def _number(self, graph: Graph) -> int:
        """Return the number of a graph, which is recorded after the graphs that it runs."""
        # Inner graphs first, so that a reader has made each before a layer needs it.
        for part in (*nested_graphs(graph), graph):
            if part not in self._graphs:
                self._records.append(self._graph(part))
                self._graphs[part] = len(self._records) - 1
        return self._graphs[graph]

    def _plan(self, network: PlannedNetwork) -> PlanRecord:
        """Return how a network is executed."""
        source, executed = self._number(network.source), self._number(network.graph)
        numbers = {value: number for number, value in enumerate(network.graph.values())}
        arenas = {arena: number for number, arena in enumerate(network.memory.arenas)}
        return PlanRecord(
            source,
            executed,
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

    def _graph(self, graph: Graph) -> GraphRecord:
        """A graph whose inner ones are numbered."""
        numbers = {value: number for number, value in enumerate(graph.values())}
        return GraphRecord(
            tuple(
                ValueRecord(
                    v.id, v.name, v.info, None if v.data is None else self._arrays.number(v.data)
                )
                for v in numbers
            ),
            tuple(self._layer(layer, numbers) for layer in graph.layers),
            tuple(numbers[value] for value in graph.inputs),
            tuple(numbers[value] for value in graph.outputs),
            graph.output_names,
            tuple(self._variable(variable, numbers) for variable in graph.variables),
            graph.default_shapes,
            graph.output_shapes,
        )

    def _layer(self, layer: Layer, numbers: dict[Value, int]) -> LayerRecord:
        """A layer with its operation's attributes."""
        operation = layer.operation
        # By class, as a vendor's operation may have a name of armpy's and would be read as that.
        if getattr(armpy.ops, operation.name, None) is not type(operation):
            raise UnimplementedError(
                "only armpy's own operations can be saved",
                where=layer.where,
                actual=f"{type(operation).__module__}.{type(operation).__name__}",
                fix=_GIVE_SIZES if isinstance(operation, Composite) else "",
            )
        attributes = operation.attributes()
        # A program is its backend's to write; here it is named for people.
        if isinstance(operation, PreCompiled):
            attributes = attributes | {"program": _described(layer.where, operation.program)}
        attribute_values = {
            name: self._graphs[value] if isinstance(value, Graph) else plain(value)
            for name, value in attributes.items()
        }
        return LayerRecord(
            layer.id,
            layer.name,
            operation.name,
            attribute_values,
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
        return VariableRecord(value, following, self._arrays.number(variable.initial), variable.key)


def _described(where: str, program: object) -> str:
    """Return a backend's description of its program."""
    # It is for people alone: a program without a description can still be saved.
    try:
        return ask_backend(where, str, str, program)
    except ArmpyError:
        return describe(program)


def _is_plain_key(key: Hashable) -> bool:
    """Return whether a variable's key is equal to itself once it has been read again."""
    if isinstance(key, tuple):
        return all(map(_is_plain_key, key))
    # Of exactly these types: True is an int here and none in the file.
    return key is None or type(key) in (str, int)
