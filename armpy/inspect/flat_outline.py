"""An outline's graphs as one list of operators and one of tensors, with their states."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import field, replace

from armpy.backend import Support
from armpy.compiler import Refusal
from armpy.core.dataclass import dataclass
from armpy.graph import Graph, Layer, Value
from armpy.graph.nesting import graphs_of
from armpy.inspect.facts import LayerStatus, ProgramFacts
from armpy.inspect.name_resolution import Linker
from armpy.plugins.hooks.outline import LEFT_OUT, FileGraph, FileOperator, FileOutline, FileTensor
from armpy.tensor import TensorInfo
from armpy.types import BackendId


@dataclass(eq=False, slots=True)
class FlatOperator:
    """One operator, its place and its state."""

    operator: FileOperator
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    """`inputs` and `outputs`: places in `Flat.tensors`."""
    inside: str
    """Control flow layer and its graph: ``loop/body``; empty in the main graph."""
    parent: int | None
    """The operator that runs its graph."""
    layers: list[Layer] = field(default_factory=list)
    """The layers that it became in armpy's network, in order."""
    status: LayerStatus = LayerStatus.UNPLACED
    into: int | None = None
    """The operator that it is a part of."""
    # Sets that keep an order.
    backends: dict[str, None] = field(default_factory=dict)
    programs: dict[int, None] = field(default_factory=dict)
    names: dict[str, None] = field(default_factory=dict)
    """Names of armpy's layers that the operator became."""
    refusals: dict[tuple[BackendId, Support], Refusal] = field(default_factory=dict)
    """Refusals by backend and answer, the first of equal ones."""


@dataclass(eq=False, slots=True)
class Flat:
    """All operators and tensors of an outline, with what armpy's network says of them."""

    operators: tuple[FlatOperator, ...]
    """Operators, those of the main graph first."""
    tensors: tuple[tuple[FileTensor, str], ...]
    """Tensors with the graph that each is in."""
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    """`inputs` and `outputs`: places of the main graph's."""
    producers: dict[int, int]
    """Index of the operator that writes each tensor."""
    consumers: dict[int, tuple[int, ...]]
    """Indexes of the operators that read each tensor."""
    linker: Linker
    infos: dict[int, TensorInfo] = field(default_factory=dict)
    """Type and actual shape of each tensor."""
    insides: dict[str, str] = field(default_factory=lambda: {"": ""})
    """Graph in the file, by the graph that a placement report names."""
    programs: list[ProgramFacts] = field(default_factory=list)


def flatten(outline: FileOutline) -> Flat:
    """Concatenate an outline's graphs; a graph that several operators run appears once."""
    operators: list[FlatOperator] = []
    tensors: list[tuple[FileTensor, str]] = []
    seen = {0}
    waiting: list[tuple[int, str, int | None]] = [(0, "", None)]
    while waiting:
        place, inside, parent = waiting.pop(0)
        graph, first = outline.graphs[place], len(tensors)
        tensors += [(tensor, inside) for tensor in graph.tensors]
        for operator in graph.operators:
            for name, inner in operator.graphs:
                if inner not in seen:
                    seen.add(inner)
                    where = "/".join(filter(None, (inside, operator.name, name)))
                    waiting.append((inner, where, len(operators)))
            inputs, outputs = _moved(operator.inputs, first), _moved(operator.outputs, first)
            operators.append(FlatOperator(operator, inputs, outputs, inside, parent))
    readers: dict[int, list[int]] = defaultdict(list)
    for index, entry in enumerate(operators):
        for tensor in dict.fromkeys(entry.inputs):
            readers[tensor].append(index)
    return Flat(
        tuple(operators),
        tuple(tensors),
        outline.graphs[0].inputs,
        outline.graphs[0].outputs,
        {t: i for i, entry in enumerate(operators) for t in entry.outputs if t != LEFT_OUT},
        {tensor: tuple(places) for tensor, places in readers.items()},
        Linker([(o.inside, o.operator.name, o.operator.layer_names) for o in operators]),
    )


def _moved(places: tuple[int, ...], by: int) -> tuple[int, ...]:
    """Shift places in a list that is appended to another one."""
    return tuple(place if place == LEFT_OUT else place + by for place in places)


def outline_of_graph(graph: Graph) -> FileOutline:
    """The outline of armpy's own network, for formats and models that have no other."""
    graphs: list[FileGraph | None] = []
    places: dict[Graph, int] = {}

    def add(part: Graph) -> int:
        place = places[part] = len(graphs)
        graphs.append(None)
        values = list(part.values())
        numbers = {value: number for number, value in enumerate(values)}
        operators = []
        for layer in part.layers:
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
            tuple(numbers[value] for value in part.inputs),
            tuple(numbers[value] for value in part.outputs),
        )
        return place

    add(graph)
    return FileOutline(tuple(outline for outline in graphs if outline is not None))


def _tensor(value: Value) -> FileTensor:
    """A value of a graph as a tensor of a file."""
    info, data, quantization = value.info, value.data, value.info.quantization
    size_bytes = info.size_bytes if info.is_fully_shaped else None
    is_constant = data is not None
    tensor = FileTensor(
        value.name,
        info.shape,
        info.data_type.name,
        is_constant,
        is_constant and (info.data_type.is_float or quantization is not None),
        size_bytes if data is None else data.nbytes,
    )
    if quantization is None:
        return tensor
    return replace(
        tensor,
        scales=quantization.scales,
        zero_points=quantization.zero_points,
        axis=quantization.axis,
    )
