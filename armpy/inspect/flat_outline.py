"""An outline's graphs as one list of operators and one of tensors."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from armpy.graph import Graph, Value
from armpy.graph.nesting import graphs_of
from armpy.inspect.name_resolution import Linker
from armpy.plugins.hooks.outline import LEFT_OUT, FileGraph, FileOperator, FileOutline, FileTensor
from armpy.tensor import TensorInfo


@dataclass(frozen=True, slots=True)
class FlatOperator:
    """One operator, with where it is.

    Parameters
    ----------
    operator : FileOperator
        As the outline has it.
    inputs, outputs : tuple of int
        Places in `Flat.tensors`.
    inside : str
        What runs its graph, and which graph: ``loop/body``; empty for the main one.
    parent : int or None
        The operator that runs its graph.
    role : str
        What that calls the graph.
    """

    operator: FileOperator
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    inside: str
    parent: int | None
    role: str


@dataclass(frozen=True, eq=False, slots=True)
class Flat:
    """All operators and tensors of an outline.

    Parameters
    ----------
    operators : tuple of FlatOperator
        Those of the main graph first.
    tensors : tuple of (FileTensor, str)
        With where they are.
    inputs, outputs : tuple of int
        Places of the main graph's.
    results : frozenset of int
        Tensors that graphs hand to whoever runs them.
    producers : dict of int to int
        By tensor, the operator that writes it.
    consumers : dict of int to tuple of int
        By tensor, the operators that read it.
    linker : Linker
    """

    operators: tuple[FlatOperator, ...]
    tensors: tuple[tuple[FileTensor, str], ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    results: frozenset[int]
    producers: dict[int, int]
    consumers: dict[int, tuple[int, ...]]
    linker: Linker


def flatten(outline: FileOutline) -> Flat:
    """Put an outline's graphs one behind the other; a graph that several operators run, once."""
    operators: list[FlatOperator] = []
    tensors: list[tuple[FileTensor, str]] = []
    results: set[int] = set()
    edges: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    seen = {0}
    waiting: list[tuple[int, str, int | None, str]] = [(0, "", None, "")]
    while waiting:
        place, inside, parent, role = waiting.pop(0)
        graph, first = outline.graphs[place], len(tensors)
        tensors += [(tensor, inside) for tensor in graph.tensors]
        edges.append((_moved(graph.inputs, first), _moved(graph.outputs, first)))
        results.update(edges[-1][1])
        for operator in graph.operators:
            for name, inner in operator.graphs:
                if inner not in seen:
                    seen.add(inner)
                    where = "/".join(filter(None, (inside, operator.name, name)))
                    waiting.append((inner, where, len(operators), name))
            inputs, outputs = _moved(operator.inputs, first), _moved(operator.outputs, first)
            operators.append(FlatOperator(operator, inputs, outputs, inside, parent, role))
    producers = {t: i for i, one in enumerate(operators) for t in one.outputs if t != LEFT_OUT}
    readers: dict[int, list[int]] = defaultdict(list)
    for index, one in enumerate(operators):
        for tensor in dict.fromkeys(one.inputs):
            readers[tensor].append(index)
    return Flat(
        tuple(operators),
        tuple(tensors),
        *edges[0],
        frozenset(results),
        producers,
        {tensor: tuple(found) for tensor, found in readers.items()},
        Linker([(o.inside, o.operator.name, o.operator.layer_names) for o in operators]),
    )


def _moved(places: tuple[int, ...], by: int) -> tuple[int, ...]:
    """Places in a list that is put behind another one."""
    return tuple(place if place == LEFT_OUT else place + by for place in places)


def outline_of_graph(graph: Graph) -> FileOutline:
    """The outline of armpy's own network, for formats and models that have no other."""
    graphs: list[FileGraph | None] = []
    places: dict[Graph, int] = {}

    def add(one: Graph) -> int:
        place = places[one] = len(graphs)
        graphs.append(None)
        values = list(one.values())
        numbers = {value: number for number, value in enumerate(values)}
        operators = []
        for layer in one.layers:
            runs = tuple(
                (name, places[inner] if inner in places else add(inner))
                for name, inner in graphs_of(layer.operation)
            )
            inputs = tuple(LEFT_OUT if v is None else numbers[v] for v in layer.inputs)
            outputs = tuple(numbers[v] for v in layer.outputs)
            kind = layer.operation.name
            operators.append(FileOperator(kind, layer.name, inputs, outputs, (), runs))
        graphs[place] = FileGraph(
            "",
            tuple(_tensor(value) for value in values),
            tuple(operators),
            tuple(numbers[value] for value in one.inputs),
            tuple(numbers[value] for value in one.outputs),
        )
        return place

    add(graph)
    return FileOutline(tuple(made for made in graphs if made is not None))


def _tensor(value: Value) -> FileTensor:
    """A value of a graph as a tensor of a file."""
    info, data = value.info, value.data
    quantization = info.quantization
    is_learnt = info.data_type.is_float or quantization is not None
    return FileTensor(
        value.name,
        info.shape,
        info.data_type.name,
        data is not None,
        data is not None and is_learnt,
        _size(info) if data is None else data.nbytes,
        () if quantization is None else quantization.scales,
        () if quantization is None else quantization.zero_points,
        None if quantization is None else quantization.axis,
    )


def _size(info: TensorInfo) -> int | None:
    """Bytes of a tensor; None where dimensions are open."""
    return info.size_bytes if info.is_fully_shaped else None
