"""The backend under test, with the runtimes that it and CpuRef are tried with."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property

from armpy import CompilationCaching
from armpy.backend import (
    IBackendInternal,
    ILayerSupport,
    PreparationRequest,
    ReasonCode,
    Support,
)
from armpy.compiler import specialize
from armpy.compiler.assign import SupportOracle
from armpy.errors import ArmpyError, BackendUnavailableError
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph import Graph, Layer, SubgraphView
from armpy.ops.operation import Array
from armpy.plugins import BackendProxy, BackendRegistry
from armpy.types import REFERENCE_BACKEND_ID, BackendId
from armpy_conformance.answers import Answers
from armpy_conformance.case import Case, Neighbour
from armpy_conformance.pattern import Pattern, declared_patterns
from armpy_conformance.processes.own_process import OwnProcess
from armpy_conformance.processes.process_state import OF_IMPORTS, ProcessState

_log = logging.getLogger("armpy.conformance")


class BackendUnderTest:
    """The backend under test.

    Parameters
    ----------
    options : RuntimeOptions, optional
        Say where backends are found, and the backend's own options.
    soak : int
        Executions of each network in the rule about many executions, which 0 leaves out.

    Attributes
    ----------
    notes : dict
        What cases have found out for each other.
    environment : dict of str to str
        Environment variables before the backend was made.
    settings_changed : tuple of str
        Settings of the process that making the backend has changed.
    own_process : OwnProcess or None
        The backend's life in another process, once a rule has looked at one.
    company : tuple of (Neighbour or None)
        In front of a layer and after it, with which a layer that was given back alone ran last.

    Raises
    ------
    BackendUnavailableError
        If there is no such backend, or it cannot be loaded or used on this machine.
    """

    def __init__(
        self, backend_id: BackendId, options: RuntimeOptions | None = None, soak: int = 0
    ) -> None:
        options = options or RuntimeOptions()
        self.backend_id = backend_id
        self.soak = soak
        before = ProcessState.current()
        self.environment = dict(os.environ)
        self.registry = options.registry or BackendRegistry.discover(options.plugin_options())
        self._given = options
        # What an earlier run has kept would answer for a compiler that was changed since.
        nothing_kept = CompilationCaching(enabled=False)
        self.options = replace(
            options, registry=self.registry, backends=[backend_id], caching=nothing_kept
        )
        self.raw_backend = self.registry.get(backend_id)
        self.settings_changed = tuple(before.changes(OF_IMPORTS))
        self.backend = BackendProxy(self.raw_backend)
        self.notes: dict[str, tuple[Case, ...]] = {}
        self.repeats: tuple[tuple[Case, int, int], ...] = ()
        self.own_process: OwnProcess | None = None
        self.company: tuple[Neighbour | None, Neighbour | None] = (None, None)
        self._oracle: SupportOracle | None = None
        self._others: list[BackendRegistry] = []

    def check_availability(self) -> None:
        """Open the backend and close it, as a runtime does.

        Raises
        ------
        BackendUnavailableError
            If its device, driver or package is missing. Other errors are for the cases to find.
        """
        try:
            Runtime(self.options).close()
        except BackendUnavailableError:
            raise
        except ArmpyError as error:
            _log.debug("%s cannot be opened: %s", self.backend_id, error)

    def another_instance(self) -> IBackendInternal | None:
        """A second instance from the same source; None if the caller gave the registry."""
        if self._given.registry is not None:
            return None
        registry = BackendRegistry.discover(self._given.plugin_options())
        self._others.append(registry)  # whose modules go with it
        return registry.get(self.backend_id)

    @property
    def own_options(self) -> RuntimeOptions | None:
        """Options with which another process finds the backend; None if the caller gave objects."""
        if self._given.registry is not None:
            return None
        return replace(self.options, registry=None, backends=None)

    @cached_property
    def runtime(self) -> Runtime:
        """A runtime that uses nothing but the backend."""
        return Runtime(self.options)

    @cached_property
    def patterns(self) -> tuple[Pattern, ...]:
        """Patterns that the backend declares; raises BackendError if they cannot be read."""
        return declared_patterns(self.backend_id, self.raw_backend)

    @cached_property
    def mixed(self) -> Runtime:
        """A runtime that prefers the backend and has CpuRef for what that does not take."""
        ids = list(dict.fromkeys([self.backend_id, REFERENCE_BACKEND_ID]))
        if self.is_isolated:  # its process makes it from the source that a registry has found
            registry = self._registry_with_reference
            return Runtime(replace(self.options, registry=registry, backends=ids))
        registry = BackendRegistry()
        registry.register(self.backend_id, lambda: self.raw_backend)
        if len(ids) > 1:
            reference = self.reference.options.registry
            if reference is not None:
                registry.register(REFERENCE_BACKEND_ID, lambda: reference.get(ids[1]))
        return Runtime(replace(self.options, registry=registry, backends=ids))

    @cached_property
    def reference(self) -> Runtime:
        """A runtime that uses nothing but CpuRef."""
        registry = self._registry_with_reference
        return Runtime(RuntimeOptions(backends=[REFERENCE_BACKEND_ID], registry=registry))

    @cached_property
    def _registry_with_reference(self) -> BackendRegistry:
        """The backend's registry if it has CpuRef, else one of all that is installed."""
        if REFERENCE_BACKEND_ID in self.registry.backend_ids:
            return self.registry
        return BackendRegistry.discover()

    @property
    def is_isolated(self) -> bool:
        """True if the backend runs in a process of its own."""
        isolation = self.options.isolation
        if isinstance(isolation, Mapping):
            isolation = isolation.get(self.backend_id)
        return isolation == "process"

    @cached_property
    def _answers(self) -> Answers:
        """CpuRef's workloads."""
        (reference,) = self.reference.backends
        return Answers(reference)

    def raw_support(self, layer: Layer) -> object:
        """Return the backend's unchecked answer about a layer; raises its errors."""
        support = self.backend.get_layer_support(PreparationRequest())
        return support.is_layer_supported(layer.operation, layer.input_infos, layer.output_infos)

    def plain_refusal(self, case: Case) -> str:
        """Why the backend refuses a case's layer, without a network of it; empty if it may not.

        Notes
        -----
        Making a network takes longer than the answer, and most backends refuse most cases.
        Backends that answer about many layers at once are not asked like this.
        """
        if not self._is_asked_singly:
            return ""
        support = self.backend.get_layer_support(PreparationRequest())
        infos = [
            None if item is None else replace(item.info, is_constant=item.is_constant)
            for item in case.inputs
        ]
        answer = support.is_layer_supported(case.operation, infos, case.outputs)
        return refusal([answer]) if isinstance(answer, Support) else ""

    @cached_property
    def _is_asked_singly(self) -> bool:
        """Whether answers about layers are those about each one of them."""
        try:
            support = self.raw_backend.get_layer_support(PreparationRequest())
        except Exception:  # noqa: BLE001 - rules about answers report it
            return False
        method = getattr(type(support), "are_layers_supported", None)
        return method is ILayerSupport.are_layers_supported

    def supports(self, graph: Graph) -> dict[Layer, Support]:
        """Ask about all layers of a specialised network at once, as a runtime does.

        The core's reading of the answers: capabilities count too, exceptions are a no.
        """
        # One for each network, kept until the next: engines keep with it what they compiled to
        # answer, and the network is prepared with that.
        self._oracle = SupportOracle([self.backend])
        return {layer: self._oracle.ask(self.backend, layer, graph) for layer in graph.layers}

    def takes(self, graph: Graph) -> bool:
        """Return whether the backend supports all layers of a specialised network."""
        return all(self.supports(graph).values())

    def reason_to_give_back(self, graph: Graph) -> str | None:
        """Why the backend gives layers back when it is offered them; None if it does not."""
        whole = specialize(graph)
        try:
            views = self.backend.optimize_subgraph_view(
                SubgraphView.of(whole, whole.layers), PreparationRequest()
            )
        except ArmpyError:
            return None
        reasons = [views.reasons.get(view, "no reason given") for view in views.failed]
        return reasons[0] if reasons else None

    def expected(
        self, graph: Graph, feeds: Mapping[str, Array], specialized: Graph | None = None
    ) -> dict[str, Array]:
        """CpuRef's outputs of one execution; parameters as for `expected_each`."""
        (outputs,) = self.expected_each(graph, [feeds], specialized)
        return outputs

    def expected_each(
        self,
        graph: Graph,
        feeds: Sequence[Mapping[str, Array]],
        specialized: Graph | None = None,
    ) -> list[dict[str, Array]]:
        """CpuRef's outputs of one execution after the other.

        Parameters
        ----------
        specialized : Graph, optional
            What `specialize` makes of the graph, if it is there already.
        """
        answers = self._answers.of(specialized or specialize(graph), feeds)
        if answers is not None:
            return answers
        network_id = self.reference.load_network(graph)
        try:
            return [self.reference.enqueue_workload(network_id, dict(feed)) for feed in feeds]
        finally:
            self.reference.unload_network(network_id)


@cache
def specialized(case: Case) -> Graph:
    """The specialised network of one of the kit's own cases, kept for the process's lifetime.

    Notes
    -----
    Looking for samples, and every rule about answers, asks about thousands of cases of which the
    backend refuses most: their networks need not be built and shaped again each time.
    """
    return specialize(case.graph())


def refusal(supports: Iterable[Support]) -> str:
    """The first reason given for a no, for people; empty if there is none."""
    for support in supports:
        if not support:
            code = support.code.value if isinstance(support.code, ReasonCode) else "no code"
            return f"{support.text or 'no reason given'} ({code})"
    return ""
