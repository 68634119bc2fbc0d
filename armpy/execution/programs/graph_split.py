"""Cuts of a graph where shapes stop being known before it runs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from armpy.compiler.required_capabilities import is_dynamic
from armpy.core.dataclass import dataclass
from armpy.errors import UnimplementedError
from armpy.graph import SIZE_TYPES, Graph, Layer, Value, graphs_of
from armpy.ops.composite import Composite
from armpy.tensor import TensorInfo

_MOST_NUMBERS = 16
"""Of a constant that may be a shape, or a part of one."""


@dataclass(frozen=True, eq=False)
class GraphPart:
    """A part of a graph as a graph of its own."""

    graph: Graph
    # What each source and each output of it is in the whole graph.
    sources: tuple[Value, ...]
    results: tuple[Value, ...]


@dataclass(frozen=True, eq=False)
class Split:
    """A graph cut where shapes stop being known."""

    sources: tuple[Value, ...]  # of the whole graph; the parts read them where they are
    # The layers whose inputs and outputs are fully shaped. Its results are those of the whole graph
    # that it makes, and the values that the other parts read.
    head: GraphPart
    # Layers that read the head's outputs, whose own shapes only their workloads can compute.
    dynamic: GraphPart | None
    rest: GraphPart | None  # the other layers, which read what head and dynamic layers give
    decisive: tuple[bool, ...]  # per source of `rest`, whether its elements decide on shapes
    results: tuple[Value, ...]  # of the whole graph


def is_shaped(graph: Graph) -> bool:
    """Return whether all shapes and attributes in a graph are known."""
    return graph.is_fully_shaped and all(map(_is_shaped, graph.layers))


def split_at_unknown(graph: Graph) -> Split:
    """Cut a graph after the layers that are fully shaped.

    Raises UnimplementedError if nothing can be learnt by running the first part.
    """
    known, head = set(graph.sources), []
    for layer in graph.layers:
        # A shaped layer after an unshaped one has to wait for it.
        if _is_shaped(layer) and _reads_only(layer, known):
            head.append(layer)
            known.update(layer.outputs)
    first = set(head)
    later = [layer for layer in graph.layers if layer not in first]
    dynamic = [layer for layer in later if is_dynamic(layer) and _reads_only(layer, known)]
    second = set(dynamic)
    rest = [layer for layer in later if layer not in second]
    split = _split(graph, head, dynamic, rest)
    if not dynamic and not any(split.decisive):
        raise UnimplementedError(
            "the shapes of these outputs do not follow from the inputs",
            where=rest[0].where,
            fix="Give the inputs concrete shapes or a constant operand",
        )
    return split


def split_before_unknown(
    graph: Graph,
    decisive: Sequence[bool],  # per input, whether its elements are known in time
    shaped: Sequence[Value],  # all layers' outputs in order, for some shapes
) -> Split | None:
    """Cut a graph of open shapes where they are not known, or after that; None if nothing follows.

    Numbers that follow from shapes are computed in both parts, so that others follow in both.
    """
    values = [value for layer in graph.layers for value in layer.outputs]
    known = dict(zip(values, shaped, strict=True))
    later: set[Value | None] = set()
    for layer in graph.layers:
        is_shaped = all(known[value].info.is_fully_shaped for value in layer.outputs)
        if not is_shaped or not later.isdisjoint(layer.inputs):
            later.update(layer.outputs)
    constants = [value for value in values if known[value].is_constant]
    numbers = {value for value in constants if _is_short(known[value].info)}
    rest: list[Layer] = []
    read: set[Value | None] = set()
    for layer in reversed(graph.layers):
        is_repeated = numbers.issuperset(layer.outputs) and not read.isdisjoint(layer.outputs)
        if is_repeated or not later.isdisjoint(layer.outputs):
            rest.insert(0, layer)
            read.update(layer.inputs)
    head = [layer for layer in graph.layers if later.isdisjoint(layer.outputs)]
    if set(rest).issuperset(head):  # layers that give such shapes stand in front
        first = [layer for layer in graph.layers if later.isdisjoint(layer.inputs)]
        head, rest = first, [layer for layer in rest if layer in head or layer not in first]
    deciding = [value for value, decides in zip(graph.inputs, decisive, strict=False) if decides]
    short = [value for value in values if _is_short(known[value].info)]
    return _split(graph, head, (), rest, deciding, short) if set(rest).difference(head) else None


def _split(
    graph: Graph,
    head: Sequence[Layer],
    dynamic: Sequence[Layer],
    rest: Sequence[Layer],
    deciding: Collection[Value] = (),  # besides those that become attributes
    short: Collection[Value] = (),  # which may be sizes, besides those whose shapes are known
) -> Split:
    """Connect the parts of a graph; layers of the rest may be repeated from the head."""
    known = {*graph.sources, *(value for layer in head for value in layer.outputs)}
    unknown = {value for layer in dynamic for value in layer.outputs}
    own, ready = {value for layer in rest for value in layer.outputs}, known | unknown
    crossing = _read(rest, ready - own)
    # Values that become attributes of layers.
    awaited = {
        v for layer in rest for i, v in enumerate(layer.inputs) if layer.operation.decides(i)
    }
    # With the small integers that those follow from, more shapes are known at once.
    small = own.union(short, (value for value in ready if _is_short(value.info)))
    for layer in reversed(rest):
        reads_shapes = layer.operation.name in ("Rank", "Shape", "Size")
        if not (reads_shapes or graphs_of(layer.operation) or awaited.isdisjoint(layer.outputs)):
            integers = [v for v in layer.inputs if v and v.info.data_type in SIZE_TYPES]
            awaited.update(small.intersection(integers))
    computed = known.difference(graph.sources)
    read = (*graph.results, *_read(dynamic, known), *crossing)
    passed = dict.fromkeys(v for v in read if v in computed)
    shown = dict.fromkeys(v for v in (*graph.results, *crossing) if v in unknown)
    left = [v for v in dict.fromkeys(graph.results) if v not in ready and v.data is None]
    return Split(
        graph.sources,
        _part(graph.sources, head, list(passed)),
        _part(_read(dynamic, known), dynamic, list(shown)) if dynamic else None,
        _part(crossing, rest, left) if rest else None,
        tuple([value in awaited or value in deciding for value in crossing]),
        graph.results,
    )


def _is_short(info: TensorInfo) -> bool:
    """Return whether a tensor is known to have few elements."""
    return info.is_fully_shaped and info.num_elements <= _MOST_NUMBERS


def deciding_inputs(graph: Graph) -> tuple[bool, ...]:
    """Per input of a graph for known shapes of inputs, whether other shapes follow from it."""
    awaited: set[Value | None] = set()
    for layer in reversed(graph.layers):
        is_read = not awaited.isdisjoint(layer.outputs)
        decides = layer.operation.decides
        awaited.update(v for i, v in enumerate(layer.inputs) if is_read or decides(i))
    return tuple(value in awaited for value in graph.inputs)


def split_before_all(graph: Graph, decisive: tuple[bool, ...]) -> Split:
    """A graph that waits for elements of its inputs as a whole, with an empty head."""
    rest = GraphPart(graph, graph.sources, graph.results)
    return Split(graph.sources, _part((), (), ()), None, rest, decisive, graph.results)


def _reads_only(layer: Layer, known: set[Value]) -> bool:
    """Return whether a layer's inputs are all known or constant."""
    return all(v is None or v.data is not None or v in known for v in layer.inputs)


def _read(layers: Sequence[Layer], known: set[Value]) -> list[Value]:
    """The values of `known` that any of the layers reads, without duplicates."""
    read = (value for layer in layers for value in layer.inputs if value is not None)
    return [value for value in dict.fromkeys(read) if value in known]


def _part(sources: Sequence[Value], layers: Sequence[Layer], results: Sequence[Value]) -> GraphPart:
    """Some layers of a graph, with inputs named apart by their ids."""
    fresh = {value: replace(value, name=f"{value.name}#{value.id}") for value in sources}
    graph = Graph(
        tuple(fresh.values()),
        tuple(fresh.get(value, value) for value in results),
        tuple(str(value.id) for value in results),
        tuple(
            replace(layer, inputs=tuple(v and fresh.get(v, v) for v in layer.inputs))
            for layer in layers
        ),
    )
    return GraphPart(graph, tuple(sources), tuple(results))


def _is_shaped(layer: Layer) -> bool:
    """Return whether all of a layer's tensors are fully shaped and all its attributes known."""
    infos = [info for info in (*layer.input_infos, *layer.output_infos) if info is not None]
    waits = isinstance(layer.operation, Composite) or any(
        value is not None and layer.operation.decides(index)
        for index, value in enumerate(layer.inputs)
    )
    return not waits and all(info.is_fully_shaped for info in infos)


def with_every_value(graph: Graph) -> Graph:
    """A graph whose outputs are followed by those of all its layers, in order."""
    used, names = set(graph.output_names), []
    for layer in graph.layers:
        for index in range(len(layer.outputs)):
            name = f"{layer.name}:{index}#{layer.id}"
            # A model's outputs may have any names, this one as well.
            while name in used:
                name += "'"
            used.add(name)
            names.append(name)
    values = [value for layer in graph.layers for value in layer.outputs]
    return replace(
        graph,
        outputs=(*graph.outputs, *values),
        output_names=(*graph.output_names, *names),
        output_shapes=(*graph.output_shapes, *(None for _ in values)),
    )
