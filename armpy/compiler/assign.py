"""Backend assignment: each layer goes to the first backend that supports it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field, replace
from types import MappingProxyType

from armpy.backend import (
    IBackendInternal,
    ILayerSupport,
    PreparationRequest,
    ReasonCode,
    Support,
)
from armpy.compiler.compile_timeout import next_deadline
from armpy.compiler.host_backend import HostBackend
from armpy.compiler.options import OptimizerOptions
from armpy.compiler.placement import Refusal
from armpy.compiler.required_capabilities import missing_capability
from armpy.core.dataclass import dataclass
from armpy.core.vlog import wants_traceback
from armpy.errors import (
    ArmpyError,
    BackendCapabilityError,
    BackendError,
    CompilationPostponedError,
)
from armpy.graph import Graph, Layer, graphs_of
from armpy.ops.control_flow import ControlFlow
from armpy.plugins.proxy.guard import device_of
from armpy.plugins.proxy.guarded_call import (
    call_backend,
    checked_support,
    failed_support,
)
from armpy.profiling import phase
from armpy.store.settings import CompilationCaching
from armpy.types import REFERENCE_BACKEND_ID, BackendId

_log = logging.getLogger("armpy.compiler")

Exclusions = dict[tuple[int, BackendId], Support]
"""Pairs of layer id and backend that have turned out not to work, with the reason."""


@dataclass
class Assignment:
    """Assignment of each layer to a backend, with refusals."""

    backends: dict[int, IBackendInternal] = field(default_factory=dict)  # by layer id
    refusals: list[Refusal] = field(default_factory=list)

    def backend_id(self, layer: Layer) -> BackendId:
        """Id of the backend that a layer runs on."""
        return self.backends[layer.id].get_id()


def _saved_programs(
    graph: Graph,
    backend: IBackendInternal,
    request: PreparationRequest,
    caching: CompilationCaching | None,
) -> AbstractContextManager[None]:
    """Let a backend know which parts need not be compiled; see `compiled_cache.saved_programs`."""
    from armpy.compiler import compiled_cache  # noqa: PLC0415 - few backends are asked for all layers

    return compiled_cache.saved_programs(graph, backend, request, caching)


class SupportOracle:
    """Asks backends about layers, each question once; the core itself about control flow, last."""

    def __init__(
        self,
        backends: Sequence[IBackendInternal],  # most preferred first
        # Properties of the network that are passed to backends.
        options: OptimizerOptions | None = None,
    ) -> None:
        self.backends = tuple(backends)
        self._options = options or OptimizerOptions()
        self._feature_levels = self._options.feature_levels
        self._supports: dict[BackendId, ILayerSupport | Support] = {}
        # By layer and not by its id: graphs of control flow have ids of their own, which are the
        # same.
        self._answers: dict[tuple[Layer, BackendId, Graph | None], Support] = {}
        self._asked_together: set[tuple[BackendId, Graph]] = set()
        self._host = HostBackend()

    def candidates(self, layer: Layer) -> tuple[IBackendInternal, ...]:
        """Return the backends that are asked about a layer, most preferred first."""
        backends: tuple[IBackendInternal, ...] = self.backends
        assigned = self.assigned_backend(layer)
        if assigned is not None:
            backends = tuple(backend for backend in backends if backend.get_id() == assigned)
        is_control_flow = isinstance(layer.operation, ControlFlow)
        # Last, as the core runs only the control flow that no backend takes.
        return (*backends, self._host) if is_control_flow else backends

    def assigned_backend(self, layer: Layer) -> BackendId | None:
        """Return the only backend that the application lets run a layer; None if any may."""
        return self._options.assigned_backend(layer.name)

    def ask(
        self,
        backend: IBackendInternal,
        layer: Layer,
        # The network that it is a layer of; without it, nothing is said of its neighbours.
        graph: Graph | None = None,
        # Backends that the network's other layers are asked about first: what they take is not
        # asked about together with this layer.
        preferred: Sequence[IBackendInternal] = (),
    ) -> Support:
        """Return whether a backend supports a layer; an error becomes a refusal."""
        backend_id = backend.get_id()
        key = (layer, backend_id, graph)
        if key in self._answers:
            return self._answers[key]
        # Declared levels and capabilities come first: a backend may rely on them when it is asked.
        refusal = self._missing(backend, layer)
        support = self._support_of(backend) if refusal is None else refusal
        if isinstance(support, Support):
            self._answers[key] = support
            return support
        if graph is not None:
            self._ask_together(backend, support, graph, preferred)
        # The layer's own answer is kept apart, as passes ask for it without neighbours.
        alone = (layer, backend_id, None)
        if alone not in self._answers:
            about = layer.operation, layer.input_infos, layer.output_infos
            answer = _answer(backend_id, layer, support, "is_layer_supported", *about)
            self._answers[alone] = answer and self._ask_about_graphs(backend, layer)
        answer = self._answers[alone]
        # Few look at neighbouring layers, and each call costs time.
        if answer and graph is not None and _overrides(support, "is_layer_supported_in"):
            answer = _answer(backend_id, layer, support, "is_layer_supported_in", layer, graph)
        self._answers[key] = answer
        return answer

    def _ask_together(
        self,
        backend: IBackendInternal,
        support: ILayerSupport,
        graph: Graph,
        preferred: Sequence[IBackendInternal],
    ) -> None:
        """Ask about all layers of a graph in one question, once, if the backend answers it."""
        backend_id = backend.get_id()
        if (backend_id, graph) in self._asked_together:
            return
        self._asked_together.add((backend_id, graph))
        if not _overrides(support, "are_layers_supported"):
            return
        layers = [
            layer
            for layer in graph.layers
            if (layer, backend_id, None) not in self._answers
            and backend in self.candidates(layer)
            and not isinstance(layer.operation, ControlFlow)  # whose graphs are asked about, too
            and self._missing(backend, layer) is None
            and not any(
                other in self.candidates(layer) and self.ask(other, layer, graph)
                for other in preferred
            )
        ]

        def are_layers_supported() -> list[Support]:  # as errors name it
            answers = [*map(checked_support, support.are_layers_supported(layers))]
            if len(answers) != len(layers):
                raise BackendError(f"it gives {len(answers)} answers about {len(layers)} layers")
            return answers

        try:
            request = self._options.request_for(backend)
            with _saved_programs(graph, backend, request, self._options.caching):
                answers = call_backend(backend_id, are_layers_supported)
        except CompilationPostponedError:
            raise  # as in `_support_of`: a backend in a process of its own postpones here
        # The layers are asked about one by one then, so that what fails concerns one of them.
        except ArmpyError as error:
            _log.warning("%s", error, exc_info=wants_traceback(_log))
        else:
            self._answers.update(zip(((x, backend_id, None) for x in layers), answers, strict=True))

    def _missing(self, backend: IBackendInternal, layer: Layer) -> Support | None:
        """The refusal of a layer for what a backend declares; None if it has to be asked."""
        if self._feature_levels:
            # By names, which survive every pass; ids of new layers say nothing.
            names = layer.origins or (layer.name,)
            needed = max(self._feature_levels.get(name, 0) for name in names)
            if (level := device_of(backend).feature_level) < needed:
                text = f"it has feature level {level}, the operation is of {needed}"
                return Support.no(ReasonCode.OPERATION, text)
        return missing_capability(backend, layer)

    def _ask_about_graphs(self, backend: IBackendInternal, layer: Layer) -> Support:
        """Return whether a backend that takes a layer also takes the layers of its graphs."""
        # The core runs each graph as a network of its own, whose layers are placed for themselves.
        if backend is self._host:
            return Support.yes()
        for name, graph in graphs_of(layer.operation, layer.where):
            # As it is offered afterwards: specialising it would hide layers from the question.
            for inner in graph.layers:
                answer = self.ask(backend, inner, graph)
                if not answer:
                    text = f"{inner.where} in the {name} graph: {answer.text}"
                    return replace(answer, text=text)
        return Support.yes()

    def _support_of(self, backend: IBackendInternal) -> ILayerSupport | Support:
        """A backend's layer support, or the refusal if it has none; made once."""
        backend_id = backend.get_id()
        if backend_id not in self._supports:
            try:
                request = self._options.request_for(backend, next_deadline())
                self._supports[backend_id] = backend.get_layer_support(request)
            except CompilationPostponedError:
                raise  # the whole network is prepared again, with other backends until then
            except ArmpyError as error:
                _log.warning("%s", error, exc_info=wants_traceback(_log))
                # Kept as well: a backend that fails here is not asked again for every layer.
                self._supports[backend_id] = failed_support(ReasonCode.OTHER, str(error), error)
        return self._supports[backend_id]


def _overrides(support: ILayerSupport, name: str) -> bool:
    """Return whether a backend has a method of its own in the place of the contract's."""
    return getattr(type(support), name, None) not in (None, getattr(ILayerSupport, name))


def _answer(
    backend_id: BackendId, layer: Layer, support: ILayerSupport, name: str, *about: object
) -> Support:
    """Return what a backend's method answers about a layer; an error becomes a refusal."""

    def question() -> Support:
        return checked_support(getattr(support, name)(*about))

    question.__name__ = name  # errors name the method
    try:
        return call_backend(backend_id, question)
    except CompilationPostponedError:
        raise
    # A backend that fails at a question is out for this layer; the next one is asked.
    except ArmpyError as error:
        text = "%s: %s The layer goes to the next backend"
        _log.warning(text, layer.where, error, exc_info=wants_traceback(_log))
        return failed_support(ReasonCode.OTHER, str(error), error)


@phase("assign layers")
def assign_backends(
    graph: Graph,
    oracle: SupportOracle,
    # Refusals that are known from earlier attempts.
    excluded: Mapping[tuple[int, BackendId], Support],
    # By layer id, the backend that is asked first.
    wanted: Mapping[int, BackendId] = MappingProxyType({}),
    *,
    # Whether the backends that are preferred to the wanted one are asked for their refusals, too.
    asks_all_before: bool = False,
) -> Assignment:
    """Assign every layer.

    Raises
    ------
    BackendCapabilityError
        If no backend takes a layer; the text gives every backend's reason. Its cause is what the
        first one raised that has failed, if one has.
    """
    result = Assignment()
    for layer in graph.layers:
        preferred = oracle.candidates(layer)
        wanted_id = wanted.get(layer.id)
        # Sorting is stable, so that all others keep the caller's order.
        candidates = sorted(preferred, key=lambda backend: backend.get_id() != wanted_id)
        before: Sequence[IBackendInternal] = ()
        answers: dict[BackendId, Support] = {}
        if wanted_id is not None:
            if wanted_id not in [backend.get_id() for backend in preferred]:
                answers[wanted_id] = Support.no(ReasonCode.DEVICE, "the runtime does not use it")
            elif asks_all_before:
                # Cost has chosen past these backends, and only their refusals distinguish a
                # fallback from a choice.
                before = preferred[: preferred.index(candidates[0])]
        asked = (*before, *candidates)
        for place, backend in enumerate(asked):
            backend_id = backend.get_id()
            known = excluded.get((layer.id, backend_id))
            earlier = asked[len(before) : place]
            answer = oracle.ask(backend, layer, graph, earlier) if known is None else known
            answers[backend_id] = answer
            if answer and place >= len(before):
                result.backends[layer.id] = backend
                break
        refusals = {name: answer for name, answer in answers.items() if not answer}
        if layer.id not in result.backends:
            failure = next((answer.error for answer in refusals.values() if answer.error), None)
            raise _unplaceable(layer, refusals, oracle.assigned_backend(layer)) from failure
        if not isinstance(layer.operation, ControlFlow):  # the core's own layers are not a fallback
            result.refusals += [
                Refusal(layer.id, layer.name, layer.operation.name, backend_id, answer)
                for backend_id, answer in refusals.items()
            ]
    return result


def _unplaceable(
    layer: Layer, refusals: Mapping[BackendId, Support], assigned: BackendId | None
) -> BackendCapabilityError:
    """The error for a layer that no backend takes."""
    has_reference = REFERENCE_BACKEND_ID in refusals
    fix = "" if has_reference else f"Add another backend, such as {REFERENCE_BACKEND_ID}"
    if layer.operation.extension:
        names = " and ".join(layer.operation.required_extensions)
        package = type(layer.operation).__module__.partition(".")[0]
        fix = f"Install or allow a backend that has {names}; the operation is from '{package}'"
    operator = getattr(layer.operation, "operator", None)
    if operator and layer.operation.name == "StandIn":
        fix = f"Install or allow a backend that takes the custom operation '{operator}'"
    if assigned is not None:
        fix = f"The option affinity assigns it to {assigned}: leave it out there"
    return BackendCapabilityError(
        "no allowed backend supports this layer: "
        + "; ".join(f"{backend_id}: {answer.text}" for backend_id, answer in refusals.items()),
        where=layer.where,
        fix=fix,
    )
