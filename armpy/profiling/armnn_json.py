"""Profiles in the JSON format of Arm NN's profiler, for tools that read it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from armpy.profiling.details import LayerDetails, ProfilingDetails, TensorDetails
from armpy.profiling.events import EventKind, ProfilingEvent
from armpy.profiling.nesting import EventNode, nested

if TYPE_CHECKING:
    from armpy.profiling.profiler import Profiler

_Document = dict[str, Any]  # Any: whatever JSON can hold

_OPTIMISE = "optimise"
_NEVER = (0.0, 0.0, 0.0)

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
"""Arm NN's names of the phases of loading, or names that it would have."""

_PREFIXES = MappingProxyType(
    {"CpuRef": "Ref", "CpuAcc": "Neon", "GpuAcc": "Cl", "EthosNAcc": "Ethos"}
)
"""First part of Arm NN's workload names, by backend; those of other backends begin with its id."""

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
        document["Graph"] = [_graph_entry(n, layer) for n, layer in enumerate(profiler.layers)]
    if details is not ProfilingDetails.ONLY:
        guids = {(layer.operation, layer.name): n for n, layer in enumerate(profiler.layers)}
        document |= _measurements(profiler, guids)
    return json.dumps({"ArmNN": document}, indent="\t")


class _Tree:
    """Events that are the same in several executions, with those within them."""

    def __init__(self, label: str, event: ProfilingEvent) -> None:
        self.label = label
        self.event = event
        self.times: dict[int, tuple[float, float, float]] = {}  # by the number of the execution
        self.children: dict[tuple[str, str], _Tree] = {}

    def add(self, number: int, node: EventNode) -> None:
        """Add an event of one execution, for the first time in it or once more."""
        start_us, end_us = node.start_ns / 1000, node.end_ns / 1000
        before_us, start_us, _ = self.times.get(number, (0.0, start_us, 0.0))
        self.times[number] = before_us + node.duration_ns / 1000, start_us, end_us
        for child in node.children:
            if child.event.kind is EventKind.LOAD and child.event.name == _OPTIMISE:
                continue  # which stands by itself
            key = (child.event.name, child.event.backend)
            if key not in self.children:
                self.children[key] = _Tree(_label(child.event), child.event)
            self.children[key].add(number, child)

    def put_into_execute(self) -> None:
        """Put workloads into an event of their own, as Arm NN does; the rest stays outside."""
        execute = _Tree("Execute", self.event)
        execute.times = self.times
        outside: dict[tuple[str, str], _Tree] = {}
        for key, child in self.children.items():
            is_work = child.event.kind in (EventKind.LAYER, EventKind.COMMAND)
            (execute.children if is_work else outside)[key] = child
        self.children = {**outside, ("Execute", ""): execute}


def _measurements(profiler: Profiler, guids: Mapping[tuple[str, str], int]) -> _Document:
    """Repeated events under Arm NN's names; guids by operation and layer."""
    # Its thread did something else meanwhile, so it is not part of an execution.
    events = [e for e in profiler.events if e.kind is not EventKind.QUEUED]
    roots = nested([*events, *profiler.load_events])
    phases = [n for root in roots for n in root.walk() if n.event.kind is EventKind.LOAD]
    loads = [root for root in roots if root.event.kind is EventKind.LOAD]
    executions = [root for root in roots if root.event.kind is EventKind.EXECUTION]
    numbers = count(1)  # of all that is printed

    def printed(tree: _Tree, num_runs: int) -> tuple[str, _Document]:
        number = next(numbers)
        document: _Document = {"type": "Event"}
        guid = guids.get((tree.event.operation, tree.event.layer))
        if guid is not None:
            document["GUID"] = str(guid)
        for column, suffix in enumerate(("", " (Start)", " (Stop)")):
            document[f"Wall clock time{suffix}_#{number}"] = {
                "type": "Measurement",
                # The format has a number for each execution, also if it did not happen in one.
                "raw": [round(tree.times.get(n, _NEVER)[column], 6) for n in range(num_runs)],
                "unit": "us",
            }
        document.update(printed(child, num_runs) for child in tree.children.values())
        return f"{tree.label}_#{number}", document

    measurements: _Document = {}
    for title, nodes in (
        ("optimize_measurements", [n for n in phases if n.event.name == _OPTIMISE]),
        ("loaded_network_measurements", [n for n in loads if n.event.name != _OPTIMISE]),
        ("inference_measurements", executions),
    ):
        if not nodes:
            continue
        nodes.sort(key=lambda node: node.start_ns)
        tree = _Tree(title, nodes[0].event)
        for number, node in enumerate(nodes):
            tree.add(number, node)
        if nodes is executions:
            tree.put_into_execute()
        measurements.update([printed(tree, len(nodes))])
    return measurements


def _label(event: ProfilingEvent) -> str:
    """Return Arm NN's name of an event."""
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
