"""Memory of each value, and copy layers between backends that cannot share memory."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field, replace
from typing import TypeAlias

from armpy.backend import (
    HostTensorHandleFactory,
    IBackendInternal,
    IMemoryManager,
    ITensorHandleFactory,
    MemorySource,
    NetworkResources,
    ReasonCode,
    Support,
    TensorHandleFactoryRegistry,
)
from armpy.core.dataclass import dataclass
from armpy.graph import Graph, Rewriter, Value
from armpy.ops.backend_internal import MemCopy
from armpy.plugins.proxy.memory import HandleFactoryProxy
from armpy.profiling import phase
from armpy.types import HOST, BackendId

Factories: TypeAlias = Sequence[HandleFactoryProxy]
"""What makes a backend's tensors, the preferred one first."""

ImportRefusals: TypeAlias = dict[tuple[str, BackendId], Support]
"""Why a backend has not imported a value of a name."""

HOST_FACTORIES: Factories = (HandleFactoryProxy(HOST, HostTensorHandleFactory()),)
"""What makes the core's own tensors."""


@dataclass(frozen=True, slots=True)
class PlannedImport:
    """Import of a tensor that lies in another backend's memory."""

    factory_id: str  # the reader's factory, which imports it
    source: MemorySource  # the kind of memory that it is exported as


@dataclass(frozen=True, eq=False, slots=True)
class PlacedGraph:
    """A graph whose every layer can read its inputs where they lie."""

    graph: Graph  # with a MemCopy layer per copy; the one that was given if none is needed
    # By layer id; a copy belongs to the backend that it copies for, `HOST` for the caller.
    backend_ids: dict[int, BackendId]
    factory_ids: dict[Value, str]  # what makes the handle of each value that a layer writes
    # By value and reader's backend; backends without an entry get the writer's handle itself.
    imports: dict[tuple[Value, BackendId], PlannedImport] = field(default_factory=dict)
    # By the id of a copy's layer, why there is no import in its place.
    refusals: dict[int, Support] = field(default_factory=dict)


def handle_factories(
    backend: IBackendInternal, network: NetworkResources | None = None
) -> tuple[Factories, tuple[IMemoryManager, ...]]:
    """Ask a backend which factories make its tensors of a network.

    Returns
    -------
    factories : sequence of HandleFactoryProxy
        The preferred ones that the backend registered, in order; the host's if none.
    managers : tuple of IMemoryManager
        Objects that it registered beside the factories.
    """
    registry = TensorHandleFactoryRegistry()
    backend_id = backend.get_id()
    backend.register_tensor_handle_factories(registry, network or NetworkResources())
    preferences = backend.get_handle_factory_preferences()
    # A factory may be named twice, and one that was never registered is passed over.
    wanted = [registry.get_factory(factory_id) for factory_id in dict.fromkeys(preferences)]
    usable = [factory for factory in wanted if factory is not None]
    # A backend without a factory to prefer works on plain memory of the host.
    chosen: list[ITensorHandleFactory] = usable or [registry.first_of(())]
    # Factories are a backend's code, so each is called through a proxy.
    factories = tuple([HandleFactoryProxy(backend_id, factory) for factory in chosen])
    return factories, registry.memory_managers


@phase("bridge memories")
def bridge(
    graph: Graph,
    backends: Mapping[int, IBackendInternal],  # by layer id
    factories: Mapping[BackendId, Factories],  # By backend id
    # By value's name and backend's id, what could not be imported.
    refused: Mapping[tuple[str, BackendId], Support] | None = None,
) -> PlacedGraph:
    """Copy each value into every memory in which it is read and cannot be shared.

    Each value lies in the memory of that one of its writer's factories whose users need the
    fewest copies to read it, of several in that of the preferred one.

    References
    ----------
    Arm NN SelectTensorHandleStrategy, AddCompatibilityLayers.
    """
    ids = {layer.id: backends[layer.id].get_id() for layer in graph.layers}
    used = {name: HOST_FACTORIES if name == HOST else factories[name] for name in ids.values()}
    exported = {source for use in used.values() for f in use for source in f.export_sources}
    others = {source for source in exported if source is not MemorySource.MALLOC}
    # The usual case, in which a graph would be rebuilt only to come out the same.
    if all(_is_like_host(use[0], others) for use in used.values()):
        factory_ids = {
            value: used[ids[layer.id]][0].factory_id
            for layer in graph.layers
            for value in layer.outputs
        }
        return PlacedGraph(graph, ids, factory_ids)
    return _Bridger(graph, {**used, HOST: HOST_FACTORIES}, ids, refused or {}).run()


def _is_like_host(first: HandleFactoryProxy, others: Collection[MemorySource]) -> bool:
    """Return whether all can use a backend's tensors, and it those of all, as they are."""
    imports = first.imports_memory and any(source in first.import_sources for source in others)
    return _takes_callers_memory(first) and not imports


def _takes_callers_memory(factory: HandleFactoryProxy) -> bool:
    """Return whether its users can use the caller's arrays, and all others its tensors."""
    both = factory.import_sources & factory.export_sources
    return bool(both & MemorySource.MALLOC) and factory.takes_any_memory


def hands_on(
    writer: HandleFactoryProxy,
    reader: HandleFactoryProxy,
    *,
    is_imported: bool = False,  # whether the handles are of memory that the writer has imported
) -> bool:
    """Return whether one factory's handles can be given to another's users as they are.

    So it is for host memory, and for all kinds that both know where the reader has no way of its
    own to import them, if tensors lie there as the reader declares.
    """
    has_room = writer.gives_room_for(reader, is_imported=is_imported)
    return writer == reader or (_knows_memory(writer, reader) and has_room)


def _knows_memory(writer: HandleFactoryProxy, reader: HandleFactoryProxy) -> bool:
    """Return whether a factory's users can read the memory that another's tensors lie in."""
    common = writer.export_sources & reader.import_sources
    is_known = bool(common & MemorySource.MALLOC) or not reader.imports_memory
    return bool(common) and is_known


def imported_source(writer: HandleFactoryProxy, reader: HandleFactoryProxy) -> MemorySource:
    """The kind of memory in which one factory imports another's tensors; UNDEFINED for none."""
    common = writer.export_sources & reader.import_sources & ~MemorySource.MALLOC
    if not common or not reader.imports_memory:
        return MemorySource.UNDEFINED
    return next(iter(common))


@dataclass(frozen=True, eq=False, slots=True)
class _Home:
    """Memory in which a value, or a copy of it, lies."""

    place: str
    factory: HandleFactoryProxy
    value: Value


class _Bridger:
    """Rebuilds a graph with copies; knows each value at each place it has reached."""

    def __init__(
        self,
        graph: Graph,
        factories: Mapping[str, Factories],
        ids: dict[int, BackendId],
        refused: Mapping[tuple[str, BackendId], Support],
    ) -> None:
        self._graph = graph
        self._factories = factories
        self._refused = refused
        self._rewriter = Rewriter(graph)
        # State lies with the host, as the next execution may run on other backends.
        host = HOST_FACTORIES[0]
        self._homes = {value: [_Home(HOST, host, value)] for value in graph.sources}
        # Dictionaries in the place of sets: the order of copies must not differ from run to run.
        self._readers: dict[Value, dict[str, None]] = {v: {HOST: None} for v in graph.results}
        for layer in graph.layers:
            for value in layer.inputs:
                if value is not None:
                    self._readers.setdefault(value, {})[ids[layer.id]] = None
        self._results = set(graph.results)
        self._made = PlacedGraph(graph, ids, {})

    def run(self) -> PlacedGraph:
        """Walk the layers and add copies before the readers that need them."""
        graph, placed = self._graph, self._made
        for layer in graph.layers:
            place = placed.backend_ids[layer.id]
            inputs = [None if value is None else self._at(value, place) for value in layer.inputs]
            for value in self._rewriter.keep(layer, inputs).outputs:
                self._put(value, place)
        results = [self._at(value, HOST) for value in graph.results]
        num_outputs = len(graph.outputs)
        built = self._rewriter.finish(
            outputs=results[:num_outputs], next_values=results[num_outputs:], drop_dead=False
        )
        return replace(placed, graph=built)

    def _put(self, value: Value, place: str) -> None:
        """Choose where a layer writes a value: where fewest of its readers need a copy."""
        readers = self._readers.get(value, {})
        best, fewest = self._factories[place][0], len(readers) + 1
        for factory in self._factories[place]:
            lies_in = self._written_in(value, factory)
            copies = sum(self._reading(value, lies_in, reader) is None for reader in readers)
            # Fewer, not as few: between equals the backend's own order decides.
            if copies < fewest:
                best, fewest = factory, copies
        self._made.factory_ids[value] = best.factory_id
        self._homes[value] = [_Home(place, self._written_in(value, best), value)]

    def _written_in(self, value: Value, factory: HandleFactoryProxy) -> HandleFactoryProxy:
        """Factory of the memory that a layer writes; results go to the caller's where possible."""
        in_place = value in self._results and _takes_callers_memory(factory)
        return HOST_FACTORIES[0] if in_place else factory

    def _reading(
        self, value: Value, writer: HandleFactoryProxy, place: str
    ) -> PlannedImport | bool | None:
        """Access of a place to a factory's value: an import, directly (True) or none (None)."""
        if place == HOST and value in self._results and not _takes_callers_memory(writer):
            return None  # the caller's memory is not written by it
        if writer in self._factories[place]:
            return True
        for reader in self._factories[place]:
            source = imported_source(writer, reader)
            # By name, as the plan after a refusal is made of other values.
            if source and (value.name, place) not in self._refused:
                return PlannedImport(reader.factory_id, source)
            if hands_on(writer, reader):
                return True
        return None

    def _at(self, value: Value, place: str) -> Value:
        """The value as a place can read it, copied if need be."""
        if value.data is not None:
            return value  # every backend is handed constants in its own way
        # Copies made for others count: the place may be able to read one of these.
        for home in self._homes[value]:
            way = self._reading(value, home.factory, place)
            if isinstance(way, PlannedImport):
                self._made.imports[home.value, place] = way
            if way is not None:
                return home.value
        return self._copy(value, place)

    def _copy(self, value: Value, place: str) -> Value:
        """Copy a value to a place, for all backends that can read it there."""
        # From where it was written: a copy of a copy would wait for the first one.
        source = self._homes[value][0]
        name = f"[ {value.name} {source.place} -> {place} ]"
        layer = self._rewriter.insert(MemCopy(), [source.value], name, [value.info])
        self._made.backend_ids[layer.id] = place
        refusal = self._refused.get((value.name, place))
        if refusal is None:  # a refusal itself counts as no
            refusal = self._misplaced(source, place)
        if refusal is not None:
            self._made.refusals[layer.id] = refusal
        homes = self._homes[value]
        waiting = [
            reader
            for reader in self._readers[value]
            if all(self._reading(value, home.factory, reader) is None for home in homes)
        ]

        def copies_left(factory: HandleFactoryProxy) -> int:
            return sum(self._reading(value, factory, reader) is None for reader in waiting)

        factory = min(self._factories[place], key=copies_left)  # the first of several
        (copy,) = layer.outputs
        self._made.factory_ids[copy] = factory.factory_id
        homes.append(_Home(place, factory, copy))
        return copy

    def _misplaced(self, source: _Home, place: str) -> Support | None:
        """Why a place that knows the memory of a tensor cannot use it there; None if it doesn't."""
        pairs = [(source.factory, reader) for reader in self._factories[place]]
        if place == HOST:  # where the writer would have to use the caller's arrays
            pairs = [(HOST_FACTORIES[0], source.factory)]
        for writer, reader in pairs:
            if _knows_memory(writer, reader) and not hands_on(writer, reader):
                return Support.no(
                    ReasonCode.OTHER,
                    f"'{reader.factory_id}' needs tensors at multiples of {reader.alignment_bytes} "
                    f"bytes, rounded up to multiples of {reader.padding_bytes}",
                )
        return None
