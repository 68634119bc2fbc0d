"""The runtime: keeps backends and loaded networks, and runs them."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import NoneType
from typing import TYPE_CHECKING

from armpy import profiling  # its profiler: few networks are profiled
from armpy.backend import OptionScope, OptionValues, ReasonCode, Support
from armpy.backend.caches import model_name
from armpy.backend.options import check_options
from armpy.compiler import Evaluator, OptimizedNetwork, OptimizerOptions, optimize_graph, specialize
from armpy.compiler.assign import SupportOracle
from armpy.compiler.compiled_parts import current_parts
from armpy.compiler.optimize import simplified
from armpy.compiler.validation import validate
from armpy.core.arguments import check_instance
from armpy.core.dataclass import dataclass
from armpy.core.vlog import is_on, vlog
from armpy.errors import (
    ArmpyError,
    InvalidArgumentError,
    UnimplementedError,
    without_memory,
)
from armpy.execution.arrays.reshaping import input_shapes
from armpy.execution.calls.run import run_by_name
from armpy.execution.loaded_network import LoadedNetwork
from armpy.execution.loaded_networks import LoadedNetworks
from armpy.execution.programs.graph_split import is_shaped
from armpy.execution.programs.placement_policy import decide
from armpy.execution.scheduling.executors import Executors
from armpy.execution.setup.options import RuntimeOptions
from armpy.execution.setup.plugin_defaults import configured_setup
from armpy.execution.setup.properties import NetworkProperties
from armpy.execution.setup.settings import NetworkSettings
from armpy.graph import Graph, nested_graphs
from armpy.graph.network import Network
from armpy.ops.composite import Composite
from armpy.ops.operation import Array
from armpy.plugins import BackendRegistry, Candidate, CandidateStatus
from armpy.plugins.proxy.guard import BackendProxy
from armpy.profiling import phase, profiled_by
from armpy.types import REFERENCE_BACKEND_ID, BackendId

if TYPE_CHECKING:
    from armpy.compiler.devices import DeviceFacts
    from armpy.plugins.isolation.limits import IsolationStatus
    from armpy.plugins.placers import Placers
    from armpy.profiling import Profiler

_log = logging.getLogger("armpy.execution")


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """Devices for networks: backends that can be used, and all candidates.

    Parameters
    ----------
    supported_backends : tuple of str
        Ids of the backends that can be used, most preferred first.
    candidates : tuple of Candidate
        Everything that says it is a backend, with the reason where it cannot be used.

    References
    ----------
    Arm NN IDeviceSpec.
    """

    supported_backends: tuple[BackendId, ...]
    candidates: tuple[Candidate, ...]


class Runtime:
    """Loads networks onto backends and runs them.

    Raises BackendUnavailableError if a backend named in the options cannot be used.

    Parameters
    ----------
    options : RuntimeOptions, optional
    found : BackendRegistry, optional
        The registry discovered with these options before; the runtime closes it as its own.

    Notes
    -----
    All methods may be called from several threads.

    References
    ----------
    Arm NN IRuntime.
    """

    def __init__(
        self, options: RuntimeOptions | None = None, *, found: BackendRegistry | None = None
    ) -> None:
        fix = 'Write RuntimeOptions(backends=["CpuRef"])'
        check_instance(options, "Runtime.options", RuntimeOptions, NoneType, fix=fix)
        check_instance(found, "Runtime.found", BackendRegistry, NoneType)
        options = RuntimeOptions() if options is None else options
        registry = found if options.registry is None else options.registry
        self._registry = registry or BackendRegistry.discover(options.plugin_options())
        self.options, self._setup = configured_setup(options, self._registry)
        self._evaluator = self._make_evaluator()
        self._executors = Executors(self.options.execution_threads)
        self._networks = LoadedNetworks(self._setup.contexts)
        # At exit as well, where those of networks' parts do not run: this one ends all in order.
        self._finalizer = weakref.finalize(self, self._networks.drop)

    def close(self) -> None:
        """Unload every network, close the backends' contexts, then the runtime's own registry.

        Nothing can be loaded or run afterwards. Without it, the same happens when the last
        reference to the runtime and its models goes, or at the interpreter's exit; errors are only
        logged then.

        Raises
        ------
        ArmpyError
            The first error of a backend's context; everything is closed all the same.
        """
        # First, so that nothing begins while networks go.
        self._executors.close()
        errors = self._networks.close()
        # After the networks: if Ctrl-C comes in between, the finaliser does the rest.
        self._finalizer.detach()
        if self.options.registry is None:
            self._registry.close()
        if errors:
            raise errors[0]

    @property
    def registry(self) -> BackendRegistry:
        """Return where its backends come from, with the plugins that were found beside them."""
        return self._registry

    @property
    def backends(self) -> tuple[BackendProxy, ...]:
        """Its backends as the core sees them, most preferred first."""
        return self._setup.backends

    @property
    def isolation(self) -> dict[BackendId, IsolationStatus]:
        """Return the isolation of backends' processes, by backend id; empty if there are none."""
        return {name: backend.status for name, backend in self._setup.isolated.items()}

    @property
    def is_closed(self) -> bool:
        """Return whether `close` has been called."""
        return self._networks.is_closed

    def __enter__(self) -> Runtime:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _make_evaluator(self) -> Evaluator | None:
        """Make the evaluator of constants: the reference backend, regardless of preferences."""
        try:
            return Evaluator(BackendProxy(self._registry.get(REFERENCE_BACKEND_ID)))
        except ArmpyError as error:
            # Only logged: networks run without it as well, with a few layers more.
            _log.debug("constants are not folded: %s", error)
            return None

    def get_device_spec(self) -> DeviceSpec:
        """The backends of this runtime and everything that was found."""
        ids = tuple(backend.get_id() for backend in self._setup.backends)
        candidates = tuple(map(self._as_set_up, self._registry.candidates))
        return DeviceSpec(ids, candidates)

    def _as_set_up(self, candidate: Candidate) -> Candidate:
        """What was found, as it is in this runtime: left out, isolated, or as registered."""
        left_out, isolated = self._setup.left_out, self._setup.isolated
        name = candidate.backend_id
        if candidate.status is CandidateStatus.REGISTERED and name in left_out:
            return replace(candidate, status=CandidateStatus.FAILED, reason=left_out[name])
        if candidate.status is CandidateStatus.FOUND and name in isolated:
            return isolated[name].described(candidate)
        return candidate

    @property
    def devices(self) -> tuple[DeviceFacts, ...]:
        """The devices of its backends, most preferred first, with their properties.

        Raises BackendError if a backend says something of itself that it may not.

        Figures that were measured are read anew each time.
        """
        from armpy.compiler.devices import device_facts  # noqa: PLC0415 - few processes ask

        placers, isolated = self._placers(), self._setup.isolated
        devices = [device_facts(backend, placers) for backend in self._setup.backends]
        return tuple([replace(facts, is_isolated=facts.backend in isolated) for facts in devices])

    def load_network(
        self,
        network: Network | Graph | OptimizedNetwork,
        properties: NetworkProperties | None = None,
        *,
        shares_state_with: int | None = None,
        again: Callable[[], object] | None = None,
        original: int | None = None,
    ) -> int:
        """Prepare a network for execution.

        Parameters
        ----------
        network : Network, Graph or OptimizedNetwork
            The backends of an optimised network's layers are kept, as long as they are there and
            can prepare them; other layers move, which the placement says.
        properties : NetworkProperties, optional
            Options for this network alone.
        shares_state_with : int, optional
            Id of a loaded network whose variables it shares: those of the same keys.
        again : callable, optional
            As of `LoadedNetwork`: parts that are not compiled yet are compiled in the background.
        original : int, optional
            Id of a loaded network that differs in the names of its inputs and outputs alone. Its
            programs are used instead of preparing the network once more.

        Returns
        -------
        int
            Its id for the other methods.

        Raises
        ------
        BackendCapabilityError, BackendUnavailableError
            If no backend takes a layer; if an NPU is preferred, and no backend has one.
        InvalidArgumentError
            If the runtime is closed; if there is no network to share with, or a variable is
            another there; if a backend has no such option as the properties say.
        MemoryLimitError
            If an execution would need more memory than the options allow.
        """
        checked = NetworkProperties.checked(properties)
        wanted = None
        if isinstance(network, OptimizedNetwork):
            graph, wanted = network.source, network.assignment
            settings = self._network_settings(checked, network.model_options)
        else:
            graph, settings = graph_of(network), self._network_settings(checked)
        same = None if original is None else self.get_network(original)
        name = ""
        if isinstance(network, Network):
            name = network.name
        elif same is not None:
            name = same.settings.name
        settings = replace(settings, name=model_name() or name, saved=current_parts())
        backends = self._setup.backends_for(settings.optimizer.preference)
        settings.optimizer.check_affinity(
            (layer.name for part in (graph, *nested_graphs(graph)) for layer in part.layers),
            [backend.get_id() for backend in backends],
        )
        shared = None
        if shares_state_with is not None:
            shared = self.get_network(shares_state_with).shared_state
        with self._networks.loading() as entry:
            if is_on.model:
                # Few programs log.
                from armpy.execution.wrappers.verbose_log import described_graph  # noqa: PLC0415

                vlog("model", "network %d is loaded: %s", entry.id, described_graph(graph))
            with profiled_by(settings.profiler), phase("load"):
                entry.network = LoadedNetwork(
                    graph,
                    backends,
                    self._evaluator,
                    settings.watched_by(self._setup.contexts, entry.id),
                    shared_state=shared,
                    wanted=wanted,
                    again=again,
                    original=same,
                )
        return entry.id

    def optimize_network(
        self,
        network: Network | Graph,
        options: OptimizerOptions | None = None,
        *,
        backends: Sequence[BackendId] | None = None,
        shapes: Mapping[str, tuple[int, ...]] | None = None,
    ) -> OptimizedNetwork:
        """Assign a network to the backends of this runtime; see `armpy.optimize`.

        Parameters
        ----------
        backends : sequence of str, optional
            Ids of this runtime's backends, dynamic ones among them, most preferred first; all of
            them if left out.
        """
        if self.is_closed:
            raise InvalidArgumentError("the runtime is closed", fix="Make another one")
        options = options or self.options.optimizer_options()
        settings = self._network_settings(NetworkProperties(optimizer=options))
        if backends is None:
            chosen = self._setup.backends_for(options.preference)
        else:
            chosen = self._setup.named(backends)
        return optimize_with(chosen, self._evaluator, graph_of(network), settings, shapes)

    def _network_settings(
        self,
        properties: NetworkProperties,
        of_optimized: Mapping[BackendId, OptionValues] | None = None,
    ) -> NetworkSettings:
        """Return the settings of one more network by options and properties."""
        options, setup = self.options, self._setup
        optimizer = properties.optimizer or options.optimizer_options()
        merged = {**optimizer.model_options, **properties.model_options}
        merged = with_defaults(merged, of_optimized or {}, setup.backends)
        model_options = merged_model_options(setup.backends, setup.model_options, merged)
        is_profiled = properties.profiling
        if is_profiled is None:
            is_profiled = options.profiling
        place = None
        if optimizer.is_placed_by_cost:
            placers = self._placers()
            if of_optimized is None:
                placers.check(optimizer.preference)
            place = placers.decide
        quota = properties.memory_limit_bytes
        return NetworkSettings(
            replace(
                optimizer,
                model_options=model_options,
                caching=options.caching if optimizer.caching is None else optimizer.caching,
                memory_strategies={**setup.memory_strategies, **optimizer.memory_strategies},
            ),
            options.program_cache_size,
            options.memory_limit_bytes if quota is None else min(quota, options.memory_limit_bytes),
            options.custom_allocators,
            profiling.Profiler(properties.profiling_details) if is_profiled else None,
            loop_timeout_s=options.loop_timeout_s,
            executors=self._executors,
            properties=properties,
            protected_mode=options.protected_mode,
            place=place,
            spread=options.spread,
        )

    def _placers(self) -> Placers:
        from armpy.plugins.placers import Placers  # noqa: PLC0415 - few networks are placed by cost

        return Placers(self._registry)

    def get_profiler(self, network_id: int) -> Profiler | None:
        """The profiler of a loaded network; None unless it is profiled.

        Raises InvalidArgumentError if no such network is loaded.
        """
        return self.get_network(network_id).profiler

    def get_network(self, network_id: int) -> LoadedNetwork:
        """The loaded network of an id.

        Raises InvalidArgumentError if no such network is loaded.
        """
        return self._networks.get(network_id)

    def enqueue_workload(
        self,
        network_id: int,
        inputs: Mapping[str, object],
        outputs: Mapping[str, object] | None = None,
    ) -> dict[str, Array]:
        """Run a loaded network.

        Raises InvalidArgumentError if inputs or outputs do not fit the network.

        Parameters
        ----------
        network_id : int
        inputs : mapping of str to array_like
            Every input by name.
        outputs : mapping of str to ndarray, optional
            Arrays to write outputs to; the ones missing are made. Other libraries' tensors
            (``__dlpack__``) and buffers are written in place as well.

        Returns
        -------
        dict of str to ndarray
            Every output by name.
        """
        network = self.get_network(network_id)
        try:
            return run_by_name(network, inputs, outputs)
        except MemoryError as error:
            raise without_memory(error)  # noqa: B904 - it has the cause

    def free_working_memory(self) -> None:
        """Give the working memory that no execution is using back, of every network."""
        for network in self._networks.all():
            network.free_working_memory()

    def get_layer_support(self, graph: Graph) -> Support:
        """Return whether the backends of this runtime can run every layer of a graph.

        Raises LayerValidationError if a layer breaks a rule of its operation.

        Returns
        -------
        Support
            No, with the reason, for the first layer that no backend takes, or that too little
            is known of to ask.
        """
        oracle = SupportOracle(
            self._setup.backends, OptimizerOptions(model_options=self._setup.model_options)
        )
        whole = specialize(graph, evaluator=self._evaluator)
        for layer in whole.layers:
            if isinstance(layer.operation, Composite):
                return Support.no(ReasonCode.SHAPE, f"{layer.where}: its shapes are not known")
            answers = [oracle.ask(backend, layer, whole) for backend in oracle.candidates(layer)]
            if not any(answers):
                return replace(answers[0], text=f"{layer.where}: {answers[0].text}")
        return Support.yes()

    def unload_network(self, network_id: int) -> None:
        """Forget a network; executions under way come to their end.

        Raises
        ------
        InvalidArgumentError
            If no such network is loaded, or it is being unloaded already.
        ArmpyError
            If a backend's context raises. The network stays loaded if that is before the
            unload, and is gone if it is after.
        """
        self._networks.unload(network_id)


def merged_model_options(
    backends: Iterable[BackendProxy],  # the runtime's
    of_runtime: Mapping[BackendId, OptionValues],  # checked, of the backends that were given any
    # The application's options for this network alone.
    of_network: Mapping[BackendId, Mapping[str, object]],
) -> dict[BackendId, OptionValues]:
    """Model options of one network.

    Raises InvalidArgumentError if the runtime does not use a backend, or this has no such option,
    or not of this scope.

    Returns every option of scope MODEL, of the backends that were given any by either.
    """
    by_id = {backend.get_id(): backend for backend in backends}
    merged = dict(of_runtime)
    for backend_id, values in of_network.items():
        if backend_id not in by_id:
            raise InvalidArgumentError(
                f"the runtime does not use a backend '{backend_id}'",
                where="model_options",
                expected=", ".join(by_id),
            )
        backend = by_id[backend_id]
        _check_scopes(backend, values)
        if values:
            both = {**merged.get(backend_id, {}), **values}
            scopes = check_options(backend.options, both, backend_id)
            merged[backend_id] = scopes[OptionScope.MODEL]
    return merged


def with_defaults(
    given: Mapping[BackendId, Mapping[str, object]],
    defaults: Mapping[BackendId, OptionValues],
    backends: Iterable[BackendProxy],
) -> dict[BackendId, Mapping[str, object]]:
    """Model options over those of an optimised network, of backends that are there."""
    there = {backend.get_id() for backend in backends}
    merged: dict[BackendId, Mapping[str, object]] = dict(given)
    for backend_id, values in defaults.items():
        if backend_id in there:
            merged[backend_id] = {**values, **given.get(backend_id, {})}
    return merged


def _check_scopes(backend: BackendProxy, values: Mapping[str, object]) -> None:
    """Check that nothing is said for one network that holds for the whole runtime."""
    for option in backend.options:
        if option.name in values and option.scope is not OptionScope.MODEL:
            raise InvalidArgumentError(
                f"the option '{option.name}' is the runtime's, not one network's",
                where=backend.get_id(),
                fix="Give it in RuntimeOptions.backend_options",
            )


def graph_of(network: object) -> Graph:
    """The graph of what a caller gave.

    Raises InvalidArgumentError if it is neither a network nor a graph.
    """
    graph = network.build() if isinstance(network, Network) else network
    if not isinstance(graph, Graph):
        raise InvalidArgumentError(
            "this cannot be loaded",
            expected="a Network or Graph",
            actual=type(graph).__name__,
            fix="Load files with armpy.load",
        )
    return graph


def optimize_with(
    backends: Sequence[BackendProxy],
    evaluator: Evaluator | None,
    graph: Graph,
    settings: NetworkSettings,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> OptimizedNetwork:
    """Optimise a graph for these backends; shapes and errors as for `armpy.optimize`."""
    validate(graph, settings.optimizer)
    chosen = input_shapes(graph, shapes)
    known = specialize(specialize(graph, evaluator=evaluator), chosen, (), evaluator)
    if not is_shaped(known):
        raise UnimplementedError(
            "shapes of the network depend on the elements of its inputs",
            where="optimize",
            fix="Load the network itself, which is optimised when it runs",
        )
    options = settings.optimizer
    simple = simplified(known, backends, options)
    decision = decide(simple, backends, settings)
    return optimize_graph(simple, backends, options, decision=decision)
