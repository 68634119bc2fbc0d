"""Backend assignment: each layer goes to the first backend that supports it."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import field
from types import MappingProxyType

from armpy.backend import (
    BACKEND_API_VERSION,
    Capabilities,
    Capability,
    IBackendInternal,
    ILayerSupport,
    IWorkloadFactory,
    NetworkResources,
    PreparationRequest,
    ReasonCode,
    Support,
    has_matching_capability,
)
from armpy.compiler.compile_timeout import next_deadline
from armpy.compiler.options import OptimizerOptions
from armpy.compiler.placement import Refusal
from armpy.compiler.specialization import specialize
from armpy.core.dataclass import dataclass
from armpy.core.vlog import wants_traceback
from armpy.errors import (
    ArmpyError,
    BackendCapabilityError,
    BackendError,
    CompilationPostponedError,
    UnimplementedError,
)
from armpy.graph import Graph, Layer, graphs_of
from armpy.ops.control_flow import ControlFlow
from armpy.ops.convolution import Convolution2d, DepthwiseConvolution2d
from armpy.ops.dense import FullyConnected
from armpy.ops.operation import OperandInfos, Operation
from armpy.ops.transpose_convolution import TransposeConvolution2d
from armpy.plugins.proxy.guard import device_of
from armpy.plugins.proxy.guarded_call import (
    ask_backend,
    ask_method,
    checked_support,
    describe,
    failed_support,
)
from armpy.profiling import phase
from armpy.store.settings import CompilationCaching
from armpy.tensor import TensorInfo
from armpy.types import HOST, REFERENCE_BACKEND_ID, BackendId

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
        self._resolved: dict[Graph, Graph] = {}

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
        key = (layer, backend.get_id(), graph)
        answer = self._answers.get(key)
        if answer is None:
            is_alone = graph is None
            if graph is not None and (backend.get_id(), graph) not in self._asked_together:
                self._ask_together(backend, graph, preferred)
            # The layer's own answer is kept apart, as passes ask for it without neighbours.
            answer = self._ask(backend, layer) if is_alone else self.ask(backend, layer)
            if answer and graph is not None:
                answer = self._ask_beside(backend, layer, graph)
            self._answers[key] = answer
        return answer

    def _ask_beside(self, backend: IBackendInternal, layer: Layer, graph: Graph) -> Support:
        """Return whether a backend that takes a layer takes it beside its neighbours."""
        support = self._support_of(backend)
        method = type(support).is_layer_supported_in if isinstance(support, ILayerSupport) else None
        # Only backends that override it are asked: few look at neighbouring layers, and each
        # call costs time.
        if method is None or method is ILayerSupport.is_layer_supported_in:
            return Support.yes()
        return self._answered(backend, layer, support, "is_layer_supported_in", layer, graph)

    def _ask_together(
        self, backend: IBackendInternal, graph: Graph, preferred: Sequence[IBackendInternal]
    ) -> None:
        """Ask a backend about all layers of a graph, if it answers many questions at once."""
        backend_id, support = backend.get_id(), self._support_of(backend)
        self._asked_together.add((backend_id, graph))
        ask_all = getattr(type(support), "are_layers_supported", None)
        if ask_all in (None, ILayerSupport.are_layers_supported):
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

        def are_layers_supported() -> tuple[object, ...]:  # as errors name it
            return tuple(map(checked_support, ask_all(support, layers)))

        try:
            request = self._options.request_for(backend)
            with _saved_programs(graph, backend, request, self._options.caching):
                answers = ask_backend(backend_id, tuple, are_layers_supported)
            if [type(answer) for answer in answers] != [Support] * len(layers):
                text = f"the answers about {len(layers)} layers are {describe(answers)}"
                raise BackendError(text, where=backend_id)
        except CompilationPostponedError:
            raise  # as in `_support_of`: a backend in a process of its own postpones here
        # The layers are asked about one by one then, so that what fails concerns one of them.
        except ArmpyError as error:
            _log.warning("%s", error, exc_info=wants_traceback(_log))
        else:
            self._answers.update(zip(((x, backend_id, None) for x in layers), answers, strict=True))

    def _ask(self, backend: IBackendInternal, layer: Layer) -> Support:
        """Put the question to the backend."""
        # Declared levels and capabilities come first: a backend may rely on them when it is asked.
        missing = self._missing(backend, layer)
        if missing is not None:
            return missing
        support = self._support_of(backend)
        if isinstance(support, Support):
            return support
        operands = layer.operation, layer.input_infos, layer.output_infos
        answer = self._answered(backend, layer, support, "is_layer_supported", *operands)
        return self._ask_about_graphs(backend, layer) if answer else answer

    def _answered(
        self, backend: IBackendInternal, layer: Layer, support: object, name: str, *operands: object
    ) -> Support:
        """A backend's answer about a layer; an error becomes a refusal."""

        def question() -> object:
            return checked_support(getattr(support, name)(*operands))

        question.__name__ = name  # errors name the method
        try:
            return ask_backend(backend.get_id(), Support, question)
        except CompilationPostponedError:
            raise
        # A backend that fails at a question is out for this layer; the next one is asked.
        except ArmpyError as error:
            text = "%s: %s The layer goes to the next backend"
            _log.warning(text, layer.where, error, exc_info=wants_traceback(_log))
            return failed_support(ReasonCode.OTHER, str(error), error)

    def _missing(self, backend: IBackendInternal, layer: Layer) -> Support | None:
        """The refusal of a layer for what a backend declares; None if it has to be asked."""
        if self._feature_levels:
            # By names, which survive every pass; ids of new layers say nothing.
            names = layer.origins or (layer.name,)
            needed = max(self._feature_levels.get(name, 0) for name in names)
            if (level := device_of(backend).feature_level) < needed:
                text = f"it has feature level {level}, the operation is of {needed}"
                return Support.no(ReasonCode.OPERATION, text)
        return _missing_capability(backend, layer)

    def _ask_about_graphs(self, backend: IBackendInternal, layer: Layer) -> Support:
        """Return whether a backend that takes a layer also takes the layers of its graphs."""
        # The core runs each graph as a network of its own, whose layers are placed for themselves.
        if backend is self._host:
            return Support.yes()
        for name, graph in graphs_of(layer.operation, layer.where):
            if graph not in self._resolved:
                # No backend sees a composite, so graphs are expanded before their layers are asked
                # about.
                self._resolved[graph] = specialize(graph)
            for inner in self._resolved[graph].layers:
                answer = self.ask(backend, inner, self._resolved[graph])
                if not answer:
                    text = f"{inner.where} in the {name} graph: {answer.text}"
                    return Support.no(answer.code or ReasonCode.OTHER, text)
        return Support.yes()

    def _support_of(self, backend: IBackendInternal) -> ILayerSupport | Support:
        """A backend's layer support, or the refusal if it has none; made once."""
        backend_id = backend.get_id()
        if backend_id not in self._supports:
            ask = backend_id, ILayerSupport, backend, "get_layer_support"
            try:
                request = self._options.request_for(backend, next_deadline())
                self._supports[backend_id] = ask_method(*ask, request)
            except CompilationPostponedError:
                raise  # the whole network is prepared again, with other backends until then
            except ArmpyError as error:
                _log.warning("%s", error, exc_info=wants_traceback(_log))
                # Kept as well: a backend that fails here is not asked again for every layer.
                self._supports[backend_id] = failed_support(ReasonCode.OTHER, str(error), error)
        return self._supports[backend_id]


_WEIGHTED = (Convolution2d, DepthwiseConvolution2d, TransposeConvolution2d, FullyConnected)


def _missing_capability(backend: IBackendInternal, layer: Layer) -> Support | None:
    """The refusal of what a backend has to have an extension or a capability for."""
    supported = backend.supported_extensions if layer.operation.required_extensions else ()
    missing = [name for name in layer.operation.required_extensions if name not in supported]
    if missing:
        text = f"it does not have the vendor extension {' and '.join(missing)}"
        return Support.no(ReasonCode.EXTENSION, text)
    if has_strings(layer):
        capability = Capability.STRINGS
        if not has_matching_capability(capability, True, backend.get_capabilities()):
            text = f"it reads or writes tensors of strings; the backend lacks {capability}"
            return Support.no(ReasonCode.DATA_TYPE, text)
    if is_dynamic(layer):
        capability = Capability.DYNAMIC_OUTPUT_SHAPES
        if not has_matching_capability(capability, True, backend.get_capabilities()):
            text = f"the outputs' shapes depend on values; it lacks {capability}"
            return Support.no(ReasonCode.SHAPE, text)
    return _missing_weights_capability(backend, layer)


def has_strings(layer: Layer) -> bool:
    """Return whether a layer reads or writes tensors of strings."""
    infos = (*layer.input_infos, *layer.output_infos)
    return any(info is not None and info.data_type.is_string for info in infos)


def is_dynamic(layer: Layer) -> bool:
    """Return whether a layer's workload determines the shapes of its outputs."""
    inputs = [info for info in layer.input_infos if info is not None]
    return (
        layer.operation.has_data_dependent_outputs
        and all(info.is_fully_shaped for info in inputs)
        and not all(info.is_fully_shaped for info in layer.output_infos)
        # An operand that decides becomes an attribute later, and then the shapes are known.
        and not any(
            value is not None and layer.operation.decides(index)
            for index, value in enumerate(layer.inputs)
        )
    )


def _missing_weights_capability(backend: IBackendInternal, layer: Layer) -> Support | None:
    """The refusal of weights that are computed, by a backend that takes constants only."""
    if not isinstance(layer.operation, _WEIGHTED):
        return None
    names = [
        layer.operation.input_name(index)
        for index, value in enumerate(layer.inputs[1:3], start=1)
        if value is not None and value.data is None
    ]
    capabilities = backend.get_capabilities()
    if not names or has_matching_capability(Capability.NON_CONST_WEIGHTS, True, capabilities):
        return None
    text = f"{' and '.join(names)} are not constant; it lacks {Capability.NON_CONST_WEIGHTS}"
    return Support.no(ReasonCode.CONSTANT, text)


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

    def answer_of(
        layer: Layer, backend: IBackendInternal, preferred: Sequence[IBackendInternal] = ()
    ) -> Support:
        """Return the observed answer for a layer and a backend, else the backend's own."""
        known = excluded.get((layer.id, backend.get_id()))
        return oracle.ask(backend, layer, graph, preferred) if known is None else known

    for layer in graph.layers:
        candidates = preferred = oracle.candidates(layer)
        refusals = []
        failure: ArmpyError | None = None
        if (wanted_id := wanted.get(layer.id)) is not None:
            # Sorting is stable, so that all others keep the caller's order.
            candidates = tuple(sorted(preferred, key=lambda backend: backend.get_id() != wanted_id))
            if candidates[0].get_id() != wanted_id:
                absent = Support.no(ReasonCode.DEVICE, "the runtime does not use it")
                refusals.append(refusal_of(layer, wanted_id, absent))
            elif asks_all_before:
                # Cost has chosen past these backends, and only their refusals distinguish a
                # fallback from a choice.
                refusals += [
                    refusal_of(layer, backend.get_id(), answer)
                    for backend in preferred[: preferred.index(candidates[0])]
                    if not (answer := answer_of(layer, backend))
                ]
        for position, backend in enumerate(candidates):
            answer = answer_of(layer, backend, candidates[:position])
            if answer:
                result.backends[layer.id] = backend
                break
            refusals.append(refusal_of(layer, backend.get_id(), answer))
            failure = failure or answer.error
        else:
            raise _unplaceable(layer, refusals, oracle.assigned_backend(layer)) from failure
        if not isinstance(layer.operation, ControlFlow):  # the core's own layers are not a fallback
            result.refusals += refusals
    return result


def refusal_of(
    layer: Layer, backend_id: BackendId, answer: Support, operation: str = ""
) -> Refusal:
    """The line of the placement report for an answer about a layer, or an operation on it."""
    code = answer.code or ReasonCode.OTHER
    name = operation or layer.operation.name
    return Refusal(layer.id, layer.name, name, backend_id, code.value, answer.text)


def _unplaceable(
    layer: Layer, refusals: Sequence[Refusal], assigned: BackendId | None
) -> BackendCapabilityError:
    """The error for a layer that no backend takes."""
    asked = [refusal.backend for refusal in refusals]
    fix = "" if REFERENCE_BACKEND_ID in asked else "Allow another backend, CpuRef for example"
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
        + "; ".join(f"{refusal.backend}: {refusal.text}" for refusal in refusals),
        where=layer.where,
        fix=fix,
    )


class _HostSupport(ILayerSupport):
    """Control flow and nothing else."""

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        """Return whether the core runs an operation itself."""
        if isinstance(operation, ControlFlow):
            return Support.yes()
        return Support.no(ReasonCode.OPERATION, "the core itself runs control flow only")


class HostBackend(IBackendInternal):
    """Takes control flow that no backend takes; the layers in its graphs are placed anew.

    It is not a plugin and never listed. The runtime makes its workloads, which run networks.
    """

    def get_id(self) -> BackendId:
        """`HOST`."""
        return HOST

    def get_api_version(self) -> str:
        """The version of the contract that it is written for."""
        return BACKEND_API_VERSION

    def get_capabilities(self) -> Capabilities:
        """Output shapes known at run time only, and strings."""
        return {Capability.DYNAMIC_OUTPUT_SHAPES: True, Capability.STRINGS: True}

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        """Support for control flow."""
        return _HostSupport()

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        """None: only the runtime can run graphs; raises UnimplementedError."""
        raise UnimplementedError("only the runtime makes workloads of control flow", where=HOST)
