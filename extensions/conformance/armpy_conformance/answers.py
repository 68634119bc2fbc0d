"""CpuRef's answers without a runtime: its workloads, called one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from armpy.backend import HostTensorHandle, ITensorHandle, IWorkload, NetworkResources, WorkloadInfo
from armpy.compiler.assign import SupportOracle
from armpy.graph import Graph, Layer, Value
from armpy.ops.operation import Array
from armpy.plugins import BackendProxy


class Answers:
    """Computes what networks of known shapes give, layer by layer.

    Parameters
    ----------
    backend : BackendProxy
        CpuRef.

    Notes
    -----
    Loading a network takes longer than most of the kit's cases do, and what a runtime makes of the
    network on the way is not part of the expected answer.
    """

    def __init__(self, backend: BackendProxy) -> None:
        self._oracle = SupportOracle([backend])
        self._backend = backend
        self._factory = backend.create_workload_factory(NetworkResources())

    def of(
        self, graph: Graph, feeds: Sequence[Mapping[str, Array]]
    ) -> list[dict[str, Array]] | None:
        """Outputs of each execution of a specialised graph; None if it takes a runtime."""
        if graph.variables or not all(_fits(graph, feed) for feed in feeds):
            return None
        if not all(self._is_plain(layer) for layer in graph.layers):
            return None
        steps = [(layer, self._workload(layer)) for layer in graph.layers]
        return [_outputs(graph, steps, feed) for feed in feeds]

    def _is_plain(self, layer: Layer) -> bool:
        """Return whether CpuRef takes a layer, and its outputs' shapes are known."""
        is_known = all(info.is_fully_shaped for info in layer.output_infos)
        return is_known and bool(self._oracle.ask(self._backend, layer))

    def _workload(self, layer: Layer) -> IWorkload:
        constants = tuple(None if value is None else value.data for value in layer.inputs)
        info = WorkloadInfo(layer.name, layer.input_infos, layer.output_infos, constants)
        return self._factory.create_workload(layer.operation, info)


def _fits(graph: Graph, feed: Mapping[str, Array]) -> bool:
    """Return whether arrays are what a network's inputs are, without being converted."""
    return {value.name for value in graph.inputs} == set(feed) and all(
        value.info.is_fully_shaped
        and (feed[value.name].shape, feed[value.name].dtype)
        == (value.info.known_shape, value.info.data_type.dtype)
        for value in graph.inputs
    )


def _outputs(
    graph: Graph, steps: Sequence[tuple[Layer, IWorkload]], feed: Mapping[str, Array]
) -> dict[str, Array]:
    handles: dict[Value, ITensorHandle] = {}

    def handle(value: Value) -> ITensorHandle:
        if value not in handles:
            array = feed.get(value.name) if value in graph.inputs else value.data
            if array is None:
                array = np.empty(value.info.known_shape, value.info.data_type.dtype)
            handles[value] = HostTensorHandle(value.info, np.asarray(array, order="C"))
        return handles[value]

    for layer, workload in steps:
        inputs = [None if value is None else handle(value) for value in layer.inputs]
        workload.execute(inputs, [handle(value) for value in layer.outputs])
    pairs = zip(graph.output_names, graph.outputs, strict=True)
    return {name: handle(value).map(write=False).copy() for name, value in pairs}
