"""Costs for the partitioner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from armpy.backend import IBackendInternal, MemorySource
from armpy.compiler.memory.memory_copies import handle_factories
from armpy.errors import ArmpyError
from armpy.graph import Graph, Layer, Value, graphs_of
from armpy.ops.control_flow import If
from armpy.types import HOST, BackendId, Preference
from armpy_tools.devices.backend_costs import costs_of, is_power_known, reference_costs
from armpy_tools.devices.costs import BackendCosts, transition_seconds
from armpy_tools.devices.store import FiguresStore


class CostTable(Protocol):
    """Costs of each layer, and of each tensor that changes the backend; all in one unit.

    Notes
    -----
    Costs are at least 0 and finite; the cheapest placement has the smallest sum.
    """

    def layer(self, layer: Layer, backend_id: BackendId) -> float:
        """One execution of a layer by a backend that takes it."""

    def crossing(self, value: Value, source: BackendId, target: BackendId) -> float:
        """Handing a tensor to another backend, which is paid once per tensor and reader.

        Parameters
        ----------
        source, target : str
            The backends whose layers write and read the tensor; `HOST` for the caller.
        """


class DeviceCosts:
    """Costs by backends' devices: rates by kind of layer, parts and copies.

    Parameters
    ----------
    devices : mapping of str to BackendCosts
        By backend id.
    preference : Preference
        LEAST_POWER weighs energy, all others time.

    Notes
    -----
    The unit is the microsecond; for energy, of one busy processor. Copies, and the change to a part
    of another backend, are the host's work, whose power is 1.

    An If weighs half of both branches, a While its condition and its body once, as in NNAPI's
    ``getPerformance``; their layers weigh as much as where they are cheapest if the core runs
    the control flow, which places them anew.
    """

    def __init__(self, devices: Mapping[BackendId, BackendCosts], preference: Preference) -> None:
        self._devices = devices
        self._preference = preference

    def layer(self, layer: Layer, backend_id: BackendId) -> float:
        """Return the cost of a layer; for control flow, with the graphs that it runs."""
        graphs = [graph for _, graph in graphs_of(layer.operation)]
        share = 0.5 if isinstance(layer.operation, If) else 1.0
        inner = share * sum(self._graph(graph, backend_id) for graph in graphs)
        return inner if backend_id == HOST else inner + self._weighed(layer, backend_id)

    def _graph(self, graph: Graph, backend_id: BackendId) -> float:
        """All layers of a graph, once."""
        # The core places inner layers anew; a backend that takes the loop runs all of it.
        ids = list(self._devices) if backend_id == HOST else [backend_id]
        return sum(
            min(self.layer(layer, HOST if graphs_of(layer.operation) else i) for i in ids)
            for layer in graph.layers
        )

    def _weighed(self, layer: Layer, backend_id: BackendId) -> float:
        """Time and energy of one layer as one number."""
        costs = self._devices[backend_id]
        if self._preference is Preference.LEAST_POWER:
            return 1e6 * costs.layer_energy(layer)
        return 1e6 * costs.layer_seconds(layer)

    def crossing(self, value: Value, source: BackendId, target: BackendId) -> float:
        """Copies out of one memory and into the other, and the part that reads what comes."""
        writer, reader = self._devices.get(source), self._devices.get(target)
        part_s = 0.0 if reader is None else reader.part_s
        return 1e6 * (part_s + transition_seconds(writer, reader, value.info.size_bytes))


def device_costs(
    backends: Sequence[IBackendInternal], preference: Preference, store: FiguresStore | None = None
) -> DeviceCosts:
    """Return the known costs of some backends' devices, of whichever source.

    Parameters
    ----------
    backends : sequence of IBackendInternal
        Guarded.
    preference : Preference
    store : FiguresStore, optional
        Where measured figures are; this machine's if left out.

    Notes
    -----
    For LEAST_POWER, a GPU or accelerator that declares no figures counts as CpuRef: a device is not
    preferred for a power that nothing says.
    """
    store = store or FiguresStore()
    known = [
        costs_of(backend, store, shares_host_memory=_is_in_host_memory(backend))
        for backend in backends
    ]
    if preference is Preference.LEAST_POWER:
        rates = reference_costs(store).rates
        known = [
            costs if is_power_known(backend) else replace(costs, rates=rates)
            for backend, costs in zip(backends, known, strict=True)
        ]
    return DeviceCosts({costs.backend: costs for costs in known}, preference)


def _is_in_host_memory(backend: IBackendInternal) -> bool:
    """Return whether a backend's tensors, those that it prefers, lie in the host's memory."""
    try:
        first = handle_factories(backend)[0][0]
    except ArmpyError:  # reported when it makes tensors, which moves its layers away
        return True
    return bool(first.import_sources & first.export_sources & MemorySource.MALLOC)
