"""Profiles in the JSON format of Arm NN's profiler, for tools that read it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from armpy.profiling.details import LayerDetails, ProfilingDetails, TensorDetails
from armpy.profiling.events import EventKind, ProfilingEvent
from armpy.profiling.nesting import EventNode, nested

if TYPE_CHECKING:
    from armpy.profiling.profiler import Profiler

_Document = dict[str, Any]  # Any: whatever JSON can hold

_OPTIMISE = "optimise"

_PHASES: Mapping[str, str] = MappingProxyType(
    {
        _OPTIMISE: "Optimizer",
        "assign layers": "Optimizer_AssignBackends",
        "bridge memories": "Optimizer_AddCompatibilityLayers",
        "compile": "Optimizer_OptimizeSubgraph",
        "load": "LoadedNetwork",
        "make working memory": "LoadNetwork_AllocateDynamicBuffers",
        "open session": "LoadNetwork_CreateWorkloadFactory",
        "pass": "Optimizer_Pass",
        "plan memory": "Optimizer_PlanMemory",
        "prepare": "LoadNetwork_Prepare",
        "prepare workload": "LoadNetwork_CreateWorkloads",
        "specialise": "Optimizer_InferAndFold",
        "validate": "Optimizer_Validate",
        "substitute": "Optimizer_ApplyBackendOptimizations",
    }
)
"""What Arm NN calls the phases of loading, or would."""

_PREFIXES = MappingProxyType(
    {"CpuRef": "Ref", "CpuAcc": "Neon", "GpuAcc": "Cl", "EthosNAcc": "Ethos"}
)
"""What Arm NN's workloads of some backends begin with; those of others with the backend's id."""

_DATA_TYPES = MappingProxyType(
    {
        "FLOAT16": "Float16",
        "FLOAT32": "Float32",
        "QASYMM_U8": "QAsymmU8",
        "QASYMM_S8": "QAsymmS8",
        "QSYMM_S8": "QSymmS8",
        "QSYMM_S16": "QSymmS16",
        "SIGNED32": "Signed32",
        "SIGNED64": "Signed64",
        "BOOLEAN": "Boolean",
        "BFLOAT16": "BFloat16",
    }
)


def to_armnn_json(profiler: Profiler, details: ProfilingDetails | None = None) -> str:
    """Executions and loads as Arm NN's profiler prints them, for tools that read that.

    Parameters
    ----------
    details : ProfilingDetails, optional
        Whether layers are described, and whether alone; as the network was loaded, if left out.
        They are described only if the network was loaded with details.

    Notes
    -----
    Every execution, every load and every optimisation adds one number to each of its ``raw``
    lists, in microseconds; what lies within has 0.0 where it did not happen. What happens more
    than once in an execution, as within loops, is added up.

    References
    ----------
    Arm NN JsonPrinter, ProfilerImpl::AnalyzeEventsAndWriteResults.
    """
    details = profiler.details if details is None else details
    document: _Document = {}
    if details is not ProfilingDetails.UNDEFINED:
        document["Graph"] = [_graph_entry(n, one) for n, one in enumerate(profiler.layers)]
    if details is not ProfilingDetails.ONLY:
        guids = {(one.operation, one.name): n for n, one in enumerate(profiler.layers)}
        document |= _Printer(guids).measurements(profiler)
    return json.dumps({"ArmNN": document}, indent="\t")


class _Tree:
    """Events that are the same in several executions, with those within them.

    Parameters
    ----------
    events : sequence of (float, float, float)
        Duration, beginning and end in microseconds, one per execution.
    """

    def __init__(self, label: str, event: ProfilingEvent, num_before: int) -> None:
        self.label = label
        self.event = event
        # Zeros for the executions before: the format has a number for each.
        self.times: list[tuple[float, float, float]] = [(0.0, 0.0, 0.0)] * num_before
        self.children: dict[tuple[str, str], _Tree] = {}

    def add(self, index: int, node: EventNode) -> None:
        """Add what has happened in one execution, for the first time in it or once more."""
        self._pad(index)
        start_us, end_us = node.start_ns / 1000, node.end_ns / 1000
        duration_us = node.duration_ns / 1000
        if len(self.times) == index:
            self.times.append((duration_us, start_us, end_us))
        else:
            before_us, start_us, _ = self.times[index]
            self.times[index] = (before_us + duration_us, start_us, end_us)
        for child in node.children:
            if child.event.kind is EventKind.LOAD and child.event.name == _OPTIMISE:
                continue  # which stands by itself
            key = (child.event.name, child.event.backend)
            if key not in self.children:
                self.children[key] = _Tree(_label(child.event), child.event, index)
            self.children[key].add(index, child)

    def _pad(self, count: int) -> None:
        """Say that it did not happen in executions up to one."""
        self.times += [(0.0, 0.0, 0.0)] * (count - len(self.times))

    def finish(self, count: int) -> None:
        """The same for those that are left."""
        self._pad(count)
        for child in self.children.values():
            child.finish(count)


class _Printer:
    """Numbers what it prints.

    Parameters
    ----------
    guids : mapping of (str, str) to int
        By operation and name of layers.
    """

    def __init__(self, guids: Mapping[tuple[str, str], int]) -> None:
        self._guids = guids
        self._last_id = 0

    def measurements(self, profiler: Profiler) -> _Document:
        # Its thread did something else meanwhile, so it is no part of an execution.
        events = [e for e in profiler.events if e.kind is not EventKind.QUEUED]
        roots = nested([*events, *profiler.load_events])
        phases = [n for root in roots for n in root.walk() if n.event.kind is EventKind.LOAD]
        loads = [root for root in roots if root.event.kind is EventKind.LOAD]
        executions = [root for root in roots if root.event.kind is EventKind.EXECUTION]
        document: _Document = {}
        for title, found in (
            ("optimize_measurements", [n for n in phases if n.event.name == _OPTIMISE]),
            ("loaded_network_measurements", [n for n in loads if n.event.name != _OPTIMISE]),
            ("inference_measurements", executions),
        ):
            found.sort(key=lambda node: node.start_ns)
            if found:
                key, printed = self._root(title, found)
                document[key] = printed
        return document

    def _root(self, title: str, nodes: Sequence[EventNode]) -> tuple[str, _Document]:
        """What has happened several times, under Arm NN's name for it."""
        tree = _Tree(title, nodes[0].event, 0)
        for index, node in enumerate(nodes):
            tree.add(index, node)
        tree.finish(len(nodes))
        if title == "inference_measurements":
            _put_into_execute(tree)
        return self._printed(tree)

    def _printed(self, tree: _Tree) -> tuple[str, _Document]:
        """An event with its measurements and all within it."""
        self._last_id += 1
        number = self._last_id
        document: _Document = {"type": "Event"}
        guid = self._guids.get((tree.event.operation, tree.event.layer))
        if guid is not None:
            document["GUID"] = str(guid)
        for column, suffix in enumerate(("", " (Start)", " (Stop)")):
            document[f"Wall clock time{suffix}_#{number}"] = {
                "type": "Measurement",
                "raw": [round(times[column], 6) for times in tree.times],
                "unit": "us",
            }
        for child in tree.children.values():
            key, printed = self._printed(child)
            document[key] = printed
        return f"{tree.label}_#{number}", document


def _put_into_execute(tree: _Tree) -> None:
    """Put workloads into an event of their own, as Arm NN does; what is none stays outside."""
    execute = _Tree("Execute", tree.event, 0)
    execute.times = tree.times
    outside: dict[tuple[str, str], _Tree] = {}
    for key, child in tree.children.items():
        is_work = child.event.kind in (EventKind.LAYER, EventKind.COMMAND)
        (execute.children if is_work else outside)[key] = child
    tree.children = {**outside, ("Execute", ""): execute}


def _label(event: ProfilingEvent) -> str:
    """What Arm NN would call an event."""
    if event.kind is EventKind.LOAD:
        return _PHASES.get(event.name, event.name)
    if event.kind is EventKind.WAITING:
        return f"Wait for {event.name}"
    if not event.operation:
        return event.name
    prefix = _PREFIXES.get(event.backend, event.backend)
    return f"{prefix}{event.operation}Workload_Execute"


def _graph_entry(number: int, layer: LayerDetails) -> _Document:
    return {
        "Name": layer.name,
        "GUID": str(number),
        **dict(_tensors(layer.inputs, "Input")),
        **dict(_tensors(layer.outputs, "Output")),
        "Backend": layer.backend,
        "Type": layer.operation,
        **layer.attributes,
    }


def _tensors(tensors: Sequence[TensorDetails], side: str) -> Iterator[tuple[str, _Document]]:
    """Tensors as Arm NN names and describes them."""
    numbers: dict[str, int] = {}
    for tensor in tensors:
        is_special = side == "Input" and tensor.name in ("weights", "bias")
        title = tensor.name.capitalize() if is_special else side
        number = numbers.get(title, 0)
        numbers[title] = number + 1
        yield (
            f"{title} {number}",
            {
                "Shape": "[" + ",".join(map(str, tensor.shape)) + "]",
                "DataType": _DATA_TYPES.get(tensor.data_type, tensor.data_type),
                "Num Dims": str(len(tensor.shape)),
            },
        )
