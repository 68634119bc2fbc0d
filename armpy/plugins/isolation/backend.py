"""A backend that lives in a process of its own, as the core sees it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from armpy import plugins  # its install lines: for errors alone
from armpy.backend import (
    BackendOption,
    Capabilities,
    DeviceInfo,
    IBackendContext,
    IBackendInternal,
    ICustomAllocator,
    ILayerSupport,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    OptimizationViews,
    OptionScope,
    OptionValues,
    PreparationRequest,
    ReasonCode,
    Substitution,
    Support,
    WorkloadInfo,
)
from armpy.backend.preparation import are_compilations_postponed
from armpy.core.dataclass import dataclass
from armpy.errors import (
    BackendCapabilityError,
    BackendUnavailableError,
    DeadObjectError,
    InvalidArgumentError,
    PreparationTimeoutError,
)
from armpy.graph import Layer, SubgraphView
from armpy.graph.subgraph_view import view_of_layers
from armpy.ops.backend_internal import PreCompiled
from armpy.ops.operation import OperandInfos, Operation
from armpy.plugins import BackendRegistry, Candidate, CandidateStatus
from armpy.plugins.isolation.limits import Isolation, IsolationLimits, IsolationStatus, is_isolated
from armpy.plugins.isolation.messages import SUPPORT, BackendSource, facts_from, unreadable
from armpy.plugins.isolation.parts import graph_of_layer, graph_of_view, is_sendable, pack
from armpy.plugins.isolation.supervisor import IsolatedPart, Supervisor
from armpy.plugins.isolation.worker_process import WorkerProcess
from armpy.plugins.isolation.workload import IsolatedWorkload
from armpy.plugins.proxy.facts import DEVICE_OPTION, RemoteBackend
from armpy.store.settings import CompilationCaching
from armpy.tensor import TensorInfo
from armpy.types import BackendId

Maker = Callable[[], IBackendInternal]


@dataclass(frozen=True, eq=False, slots=True)
class IsolatedProgram:
    """A part that a worker has prepared; known to the proxy of its backend alone."""

    part: IsolatedPart
    supervisor: Supervisor

    def __str__(self) -> str:
        return f"{self.part}, in a process of its own"


class IsolatedBackend(RemoteBackend):
    """A backend in a process of its own.

    Raises BackendUnavailableError if it cannot be loaded there, or its process ends instead.

    It is asked by messages which layers it takes, is sent each part of a network as a graph, and
    executes parts with tensors in shared memory. Its effects on its process stay there.
    Vendor extensions that it declares are not offered, as their operations' code would be needed
    here; nor does it see the application's memory, allocators and profile.
    """

    def __init__(self, source: BackendSource, limits: IsolationLimits | None = None) -> None:
        self._source = source
        self._limits = limits or IsolationLimits()
        try:
            self._first: WorkerProcess | None = WorkerProcess(source, self._limits)
        except DeadObjectError as error:
            text = f"backend '{source.backend_id}' cannot be used: {error.failed}"
            raise BackendUnavailableError(text) from error
        except OSError as error:
            text = f"no process can be started for backend '{source.backend_id}': {error}"
            raise BackendUnavailableError(text) from error
        self._facts = facts_from(source.backend_id, self._first.description)
        self.code = self._facts.code
        self._supervisor: Supervisor | None = None

    def get_id(self) -> BackendId:
        """As it calls itself."""
        return self._facts.backend_id

    def get_api_version(self) -> str:
        """As it says."""
        return self._facts.api_version

    @property
    def version(self) -> str:
        """As it says."""
        return self._facts.version

    def get_devices(self) -> Sequence[DeviceInfo]:
        """As it declares them."""
        return self._facts.devices

    def get_capabilities(self) -> Capabilities:
        """Return its capabilities, without what concerns the application's memory."""
        return self._facts.capabilities

    @property
    def options(self) -> Sequence[BackendOption]:
        """As it declares them; the core adds the choice of the device by itself."""
        return [option for option in self._facts.options if option.name != DEVICE_OPTION]

    @property
    def supported_extensions(self) -> Sequence[str]:
        """Those whose operations it runs; the backend that declares them has to be there, too."""
        return self._facts.supported_extensions

    def described(self, candidate: Candidate) -> Candidate:
        """Its candidate, which the registry has not loaded."""
        return replace(
            candidate,
            status=CandidateStatus.REGISTERED,
            api_version=self._facts.api_version,
            device_type=self._facts.devices[0].device_type.name,
        )

    @property
    def status(self) -> IsolationStatus:
        """Return how its process is."""
        return self.supervisor.status

    @property
    def supervisor(self) -> Supervisor:
        """The supervisor of its process; that of default options where none were given."""
        if self._supervisor is None:
            defaults = {o.name: o.default for o in self.options if o.scope is OptionScope.RUNTIME}
            self.for_runtime(defaults)
        assert self._supervisor is not None  # just made
        return self._supervisor

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        """Begin with these options."""
        # The process that has described the backend becomes the worker, which saves a start.
        first, self._first = self._first, None
        self._supervisor = Supervisor(self._source, self._limits, options, first)
        return self

    def create_backend_context(self, options: OptionValues) -> IBackendContext | None:
        """Make the context that ends the process with the runtime."""
        return self.supervisor

    def use_custom_memory_allocator(self, allocator: ICustomAllocator) -> bool:
        """It cannot: it allocates in its own process, where the allocator is not."""
        raise BackendCapabilityError(
            "it has a process of its own, which the application's allocator has no memory for",
            where=self.get_id(),
        )

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        """Make the object that asks it about a network."""
        return _Support(self.supervisor, request)

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        """Make the factory of workloads of prepared parts."""
        return _Factory(self.supervisor, network.model_options, relaxed=network.relaxed)

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        """Let it prepare a part.

        Raises ArmpyError (what it could not prepare the part for; a `DeadObjectError` if its
        process ended).
        """
        views = OptimizationViews()
        values = (*view.inputs, *view.outputs)
        # Shared memory is laid out once for a part, so all of its sizes have to be known.
        if not view.outputs or not is_sendable([value.info for value in values]):
            views.fail(view, "sizes depend on elements, which does not go to another process")
            return views
        part = _prepared(self.supervisor, view, request)
        shapes = tuple(value.info.known_shape for value in view.outputs)
        operation = PreCompiled(
            IsolatedProgram(part, self.supervisor), shapes, part.layout.size_bytes
        )
        # All as one layer: each layer of its own would be a message and two copies of its tensors.
        views.substitutions.append(Substitution.by_operation(view, operation))
        return views


def _prepared(
    supervisor: Supervisor, view: SubgraphView, request: PreparationRequest
) -> IsolatedPart:
    """A part that a worker has prepared."""
    part = IsolatedPart(graph_of_view(view), request.model_options, relaxed=request.relaxed)
    supervisor.add(part)
    # Once more, as another execution may have killed the worker.
    for is_last in (False, True):
        worker = supervisor.worker()
        timeout_s = None
        if request.deadline_s is not None:
            # Looked at after a start, which is not to be for nothing: late answers end workers.
            timeout_s = request.deadline_s - time.perf_counter()
            if timeout_s <= 0:
                raise PreparationTimeoutError(
                    "the deadline has passed before the backend's process was ready",
                    where=supervisor.backend_id,
                )
        try:
            supervisor.prepare(part, worker, timeout_s)
            break
        except DeadObjectError:
            if is_last or worker.culprit is part:  # else an execution may have ended it
                raise
    return part


class _Support(ILayerSupport):
    """Asks a backend in its process about layers."""

    def __init__(self, supervisor: Supervisor, request: PreparationRequest) -> None:
        self._supervisor = supervisor
        self._settings = dict(request.model_options), request.relaxed
        self._has_deadline = request.deadline_s is not None
        self._left_s = supervisor.limits.questions_timeout_s

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        return self._ask((operation, tuple(inputs), tuple(outputs)), 1)[0]

    def are_layers_supported(self, layers: Sequence[Layer]) -> Sequence[Support]:
        """Ask by one message, so that an engine compiles connected layers at once, as later."""
        # The deadline limits compiling, not support queries: with one, these compile no parts.
        if self._has_deadline or not layers:
            return super().are_layers_supported(layers)
        packed = pack(graph_of_view(view_of_layers(layers)), {})
        places = packed.pickle_bytes, packed.buffers
        try:
            return self._ask(places, len(layers), [packed.descriptor])
        finally:
            os.close(packed.descriptor)

    def _ask(
        self, about: tuple[object, ...], count: int, files: Sequence[int] = ()
    ) -> list[Support]:
        """Ask about a layer, or about those of a network whose places in a block are given."""
        supervisor, limits = self._supervisor, self._supervisor.limits
        if self._left_s <= 0:
            text = f"its process did not answer for {limits.questions_timeout_s:g} s"
            return [Support.no(ReasonCode.OTHER, text)] * count
        alone_s = limits.start_timeout_s
        # If there is no answer about a network, its layers are asked about alone.
        kept_s = min(alone_s, self._left_s / 2) if files else 0.0
        limit_s = min(count * alone_s, self._left_s - kept_s)
        request = (SUPPORT, about, *self._settings, are_compilations_postponed())

        def ask(worker: WorkerProcess) -> Mapping[str, object]:
            with worker.preparing:
                return worker.request(request, files, timeout_s=limit_s)

        began_s = time.perf_counter()
        try:
            answers = supervisor.with_worker(ask).get("answers")
        except DeadObjectError:
            self._left_s -= time.perf_counter() - began_s
            raise
        if not isinstance(answers, list) or len(answers) != count:
            raise unreadable(supervisor.backend_id, "is_layer_supported", answers)
        return [_support_from(supervisor.backend_id, answer) for answer in answers]


def _support_from(backend_id: BackendId, answer: object) -> Support:
    """Parse a worker's answer about a layer."""
    if isinstance(answer, Mapping):
        is_supported, code, text = map(answer.get, ("is_supported", "code", "text"))
        if is_supported is True:
            return Support.yes()
        try:
            if is_supported is False and isinstance(text, str):
                return Support.no(ReasonCode(code), text)
        except ValueError:  # there is no such code
            pass
    raise unreadable(backend_id, "is_layer_supported", answer)


class _Factory(IWorkloadFactory):
    """Makes workloads of prepared parts, and of layers that were left alone."""

    def __init__(
        self, supervisor: Supervisor, model_options: OptionValues, *, relaxed: bool
    ) -> None:
        self._supervisor = supervisor
        self._options = model_options
        self._relaxed = relaxed

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        if isinstance(operation, PreCompiled) and isinstance(operation.program, IsolatedProgram):
            return IsolatedWorkload(operation.program.part, self._supervisor)
        graph, indices = graph_of_layer(operation, info)
        part = IsolatedPart(graph, self._options, relaxed=self._relaxed)
        self._supervisor.add(part)
        self._supervisor.prepare(part, self._supervisor.worker())
        return IsolatedWorkload(part, self._supervisor, indices)


def choose(
    registry: BackendRegistry,
    named: Sequence[BackendId] | None,  # ids in order; None for all there are, in any order
    isolation: Isolation,
    limits: IsolationLimits,
    caching: CompilationCaching,
) -> list[tuple[BackendId, Maker]]:
    """Return the makers of a runtime's backends, by their ids.

    Raises BackendUnavailableError if a named backend without a process of its own cannot be used;
    InvalidArgumentError if the list of names is empty.

    None of the code of isolated backends is run here. Modules in directories, whose
    ids are known once they are loaded, are loaded in processes of their own unless named.
    """
    if caching.token is not None:  # which names one model, and not the parts that go there
        caching = CompilationCaching()

    def isolated(name: BackendId) -> Maker:
        return lambda: IsolatedBackend(BackendSource.of(registry, name, caching), limits)

    def same(backend: IBackendInternal) -> Maker:
        return lambda: backend

    if named is None:
        registry.identify()
        ids = [name for name in registry.backend_ids if is_isolated(isolation, name)]
        shared = registry.available(without=ids)
        makers = [(backend.get_id(), same(backend)) for backend in shared]
        return makers + [(name, isolated(name)) for name in ids]
    if not named:
        raise InvalidArgumentError("the list of backends is empty")
    return [
        (name, isolated(name) if is_isolated(isolation, name) else same(registry.get(name)))
        # Each once: a name given twice would start two processes.
        for name in dict.fromkeys(named)
    ]


def check_isolated(registry: BackendRegistry, names: Iterable[BackendId]) -> None:
    """Check that backends which are to have processes of their own exist; none is loaded for it.

    Raises InvalidArgumentError if one does not: another spelling would run in the application's
    process without a word.
    """
    # Not `is_registered`, which imports modules of directories here.
    unknown = [name for name in names if name not in registry.backend_ids]
    if not unknown:
        return
    registry.identify()  # ids of modules in directories are not known yet
    for name in unknown:
        if name not in registry.backend_ids:
            raise InvalidArgumentError(
                f"there is no backend '{name}'",
                where="isolation",
                expected=", ".join(registry.backend_ids),
                fix=plugins.suggest_backend(name, registry.backend_ids),
            )
