"""The backend under test, with the runtimes that it and CpuRef are tried with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property

from armpy.backend import IBackendInternal, ReasonCode, Support
from armpy.errors import ArmpyError
from armpy.graph import Graph, Layer, SubgraphView
from armpy.ops.operation import Array
from armpy.optimizer import specialize
from armpy.optimizer.assign import SupportOracle
from armpy.plugins import BackendRegistry
from armpy.plugins.guard import GuardedBackend
from armpy.runtime import Runtime, RuntimeOptions
from armpy.testing.case import Case
from armpy.types import REFERENCE_BACKEND_ID, BackendId


class Subject:
    """The backend under test.

    Parameters
    ----------
    backend_id : str
    options : RuntimeOptions, optional
        Say where backends are found, and the backend's own options.

    Attributes
    ----------
    notes : dict
        What cases have found out for each other.

    Raises
    ------
    BackendUnavailableError
        If there is no such backend, or it cannot be loaded or used on this machine.
    """

    def __init__(self, backend_id: BackendId, options: RuntimeOptions | None = None) -> None:
        options = options or RuntimeOptions()
        self.backend_id = backend_id
        self.registry = options.registry or BackendRegistry.discover(options.plugin_options())
        self._given = options
        self.options = replace(options, registry=self.registry, backends=[backend_id])
        self.raw_backend = self.registry.get(backend_id)
        self.backend = GuardedBackend(self.raw_backend)
        self.notes: dict[str, tuple[Case, ...]] = {}
        self._oracle = SupportOracle([self.backend])

    def another_instance(self) -> IBackendInternal | None:
        """A second instance from the same source; None if the caller gave the registry."""
        if self._given.registry is not None:
            return None
        return BackendRegistry.discover(self._given.plugin_options()).get(self.backend_id)

    @cached_property
    def runtime(self) -> Runtime:
        """A runtime that uses nothing but the backend."""
        return Runtime(self.options)

    @cached_property
    def reference(self) -> Runtime:
        """A runtime that uses nothing but CpuRef."""
        registry = self.registry
        if REFERENCE_BACKEND_ID not in registry.backend_ids:
            registry = BackendRegistry.discover()
        return Runtime(RuntimeOptions(backends=[REFERENCE_BACKEND_ID], registry=registry))

    def layers(self, graph: Graph) -> tuple[Layer, ...]:
        """The layers that the backend is asked about: what the core cannot answer itself."""
        return specialize(graph).layers

    def raw_support(self, layer: Layer) -> object:
        """What the backend answers about a layer, unchecked; raises what it raises."""
        support = self.backend.get_layer_support()
        return support.is_layer_supported(layer.operation, layer.input_infos, layer.output_infos)

    def support(self, layer: Layer) -> Support:
        """What the core makes of the answer: capabilities count too, exceptions are a no."""
        return self._oracle.ask(self.backend, layer)

    def refuses_to_compile(self, graph: Graph) -> bool:
        """Whether the backend gives the layers back, or a part of them, when offered them."""
        whole = specialize(graph)
        view = SubgraphView.of(whole, whole.layers)
        try:
            return bool(self.backend.optimize_subgraph(view).failed)
        except ArmpyError:
            return False

    def expected(self, graph: Graph, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """CpuRef's outputs."""
        return run_once(self.reference, graph, feeds)


def run_once(runtime: Runtime, graph: Graph, feeds: Mapping[str, Array]) -> dict[str, Array]:
    """Load a network, execute it once, unload it."""
    network_id = runtime.load_network(graph)
    try:
        return runtime.enqueue_workload(network_id, dict(feeds))
    finally:
        runtime.unload_network(network_id)


def refusal(supports: Iterable[Support]) -> str:
    """The first reason given for a no, for people; empty if there is none."""
    for support in supports:
        if not support:
            code = support.code.value if isinstance(support.code, ReasonCode) else "no code"
            return f"{support.text or 'no reason given'} ({code})"
    return ""
