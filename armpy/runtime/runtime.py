"""The runtime: keeps backends and loaded networks, and runs them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np

from armpy.backend import IBackendContext, IBackendInternal
from armpy.errors import BackendError, BackendUnavailableError, InvalidArgumentError
from armpy.graph import Graph
from armpy.network import Network
from armpy.ops.operation import Array
from armpy.optimizer import Evaluator, OptimizerOptions
from armpy.plugins import BackendRegistry, Candidate, CandidateStatus, preferred_backends
from armpy.runtime.boundary import call_backend
from armpy.runtime.loaded_network import (
    DEFAULT_MEMORY_LIMIT_BYTES,
    DEFAULT_PLAN_CACHE_SIZE,
    LoadedNetwork,
)
from armpy.runtime.options import backend_preferences
from armpy.runtime.tensors import as_input, check_output_array
from armpy.types import REFERENCE_BACKEND_ID, BackendId

_log = logging.getLogger("armpy.runtime")


@dataclass(frozen=True, slots=True)
class RuntimeOptions:
    """How a `Runtime` is set up.

    Parameters
    ----------
    backends : sequence of str, optional
        Ids in order of preference; None for every installed backend in armpy's own order
        (accelerators, GPUs, compiled CPU, reference). ``ARMPY_BACKENDS`` (comma separated)
        takes the place of None.
    on_fallback : {"allow", "warn", "error"}
        What to do when a layer does not run on the first preferred backend.
    num_threads : int, optional
        For backends that have threads of their own. CpuRef has none: NumPy's matrix
        products use as many as NumPy's library is set to (``OPENBLAS_NUM_THREADS``).
    plan_cache_size : int
        How many input shapes a loaded network stays prepared for.
    memory_limit_bytes : int
        Most working memory and results that one execution may need.
    backend_options : mapping of str to mapping
        Options by backend id, handed to the backend's context.
    registry : BackendRegistry, optional
        Where backends come from; all installed ones by default.
    """

    backends: Sequence[BackendId] | None = None
    on_fallback: str = "allow"
    num_threads: int | None = None
    plan_cache_size: int = DEFAULT_PLAN_CACHE_SIZE
    memory_limit_bytes: int = DEFAULT_MEMORY_LIMIT_BYTES
    backend_options: Mapping[BackendId, Mapping[str, object]] = field(default_factory=dict)
    registry: BackendRegistry | None = None

    def __post_init__(self) -> None:
        if self.num_threads is not None and self.num_threads < 1:
            raise InvalidArgumentError(
                "the number of threads is too small",
                where="num_threads",
                expected="1 or more, or None",
                actual=str(self.num_threads),
            )
        if isinstance(self.backends, str):
            raise InvalidArgumentError(
                "the option has the wrong type",
                where="backends",
                expected="a sequence of ids",
                actual=repr(self.backends),
                fix=f"Write [{self.backends!r}]",
            )


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """What there is to run networks on.

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

    Parameters
    ----------
    options : RuntimeOptions, optional

    Raises
    ------
    BackendUnavailableError
        If a backend named in the options cannot be used.

    Notes
    -----
    All methods may be called from several threads.

    References
    ----------
    Arm NN IRuntime.
    """

    def __init__(self, options: RuntimeOptions | None = None) -> None:
        self.options = options or RuntimeOptions()
        self._registry = self.options.registry or BackendRegistry.discover()
        self._optimizer_options = OptimizerOptions(self.options.on_fallback)
        self._contexts: dict[BackendId, IBackendContext] = {}
        self._left_out: dict[BackendId, str] = {}
        self._backends = self._usable_backends()
        self._evaluator = self._make_evaluator()
        self._networks: dict[int, LoadedNetwork] = {}
        self._next_id = 0
        self._lock = threading.Lock()

    def _usable_backends(self) -> tuple[IBackendInternal, ...]:
        """The preferred backends whose contexts could be made."""
        named = backend_preferences(self.options.backends)
        usable = []
        for backend in preferred_backends(self._registry, named):
            own = dict(self.options.backend_options.get(backend.backend_id, {}))
            if self.options.num_threads is not None:
                own.setdefault("num_threads", self.options.num_threads)
            try:
                context = self._make_context(backend, own)
            except (BackendUnavailableError, BackendError) as error:
                if named is not None:
                    raise
                _log.warning("backend '%s' is left out: %s", backend.backend_id, error)
                self._left_out[backend.backend_id] = str(error)
                continue
            if context is not None:
                self._contexts[backend.backend_id] = context
            usable.append(backend)
        if not usable:
            raise BackendUnavailableError(
                "no backend can be used", actual="; ".join(self._left_out.values())
            )
        return tuple(usable)

    def _make_context(
        self, backend: IBackendInternal, options: Mapping[str, object]
    ) -> IBackendContext | None:
        """Ask a backend for its context and check the answer."""
        context = call_backend(backend.backend_id, backend.create_backend_context, options)
        if context is not None and not isinstance(context, IBackendContext):
            raise BackendError(
                f"create_backend_context returned {context!r}", where=backend.backend_id
            )
        return context

    def _make_evaluator(self) -> Evaluator | None:
        """What folds constants: the reference backend, whatever the preferences are."""
        try:
            return Evaluator(self._registry.get(REFERENCE_BACKEND_ID))
        except BackendUnavailableError as error:
            _log.debug("constants are not folded: %s", error)
            return None

    def get_device_spec(self) -> DeviceSpec:
        """The backends of this runtime and everything that was found."""
        ids = tuple(backend.backend_id for backend in self._backends)
        candidates = [
            replace(c, status=CandidateStatus.FAILED, reason=self._left_out[c.backend_id])
            if c.status is CandidateStatus.REGISTERED and c.backend_id in self._left_out
            else c
            for c in self._registry.candidates
        ]
        return DeviceSpec(ids, tuple(candidates))

    def load_network(self, network: Network | Graph) -> int:
        """Prepare a network for execution.

        Returns
        -------
        int
            Its id for the other methods.

        Raises
        ------
        BackendCapabilityError
            If no backend takes a layer.
        MemoryLimitError
            If an execution would need more memory than the options allow.
        """
        graph = network.build() if isinstance(network, Network) else network
        if not isinstance(graph, Graph):
            raise InvalidArgumentError(
                "this cannot be loaded",
                expected="a Network or Graph",
                actual=type(graph).__name__,
                fix="Load files with armpy.load",
            )
        with self._lock:
            network_id = self._next_id
            self._next_id += 1
        self._notify("before_load_network", network_id)
        loaded = LoadedNetwork(
            graph,
            self._backends,
            self._evaluator,
            self._optimizer_options,
            self.options.plan_cache_size,
            self.options.memory_limit_bytes,
        )
        self._notify("after_load_network", network_id)
        with self._lock:
            self._networks[network_id] = loaded
        return network_id

    def _notify(self, event: str, network_id: int) -> None:
        """Tell every context that a network comes or goes."""
        for backend_id, context in self._contexts.items():
            call_backend(backend_id, getattr(context, event), network_id)

    def get_network(self, network_id: int) -> LoadedNetwork:
        """The loaded network of an id.

        Raises
        ------
        InvalidArgumentError
            If no such network is loaded.
        """
        network = self._networks.get(network_id)
        if network is None:
            raise InvalidArgumentError(f"no network is loaded under the id {network_id}")
        return network

    def enqueue_workload(
        self,
        network_id: int,
        inputs: Mapping[str, object],
        outputs: Mapping[str, Array] | None = None,
    ) -> dict[str, Array]:
        """Run a loaded network.

        Parameters
        ----------
        network_id : int
        inputs : mapping of str to array_like
            Every input by name.
        outputs : mapping of str to ndarray, optional
            Arrays to write outputs to; the ones missing are made.

        Returns
        -------
        dict of str to ndarray
            Every output by name.

        Raises
        ------
        InvalidArgumentError
            If inputs or outputs do not fit the network.
        """
        return run_by_name(self.get_network(network_id), inputs, {} if outputs is None else outputs)

    def unload_network(self, network_id: int) -> None:
        """Forget a network; executions under way come to their end.

        Raises
        ------
        InvalidArgumentError
            If no such network is loaded.
        """
        with self._lock:
            self.get_network(network_id)
            network = self._networks.pop(network_id)  # of two threads, one gets the error
        self._notify("before_unload_network", network_id)
        del network
        self._notify("after_unload_network", network_id)


def run_by_name(
    network: LoadedNetwork,
    inputs: Mapping[str, object],
    outputs: Mapping[str, Array],
    *,
    quantize_inputs: bool = False,
) -> dict[str, Array]:
    """Check inputs and outputs given by name, execute, and name the results.

    Raises
    ------
    InvalidArgumentError
        If an input is missing, not known, or does not fit; if an output array does not fit.
    """
    for what, named in (("inputs", inputs), ("outputs", outputs)):
        if not isinstance(named, Mapping):
            raise InvalidArgumentError(
                f"the {what} are not given by name",
                expected="a mapping of names to arrays",
                actual=type(named).__name__,
                fix="Call the model itself to give inputs in order",
            )
    graph = network.graph
    wanted = graph.inputs
    if len(inputs) != len(wanted) or any(value.name not in inputs for value in wanted):
        raise _wrong_names(network, inputs)
    arrays = [
        as_input(value.name, value.info, inputs[value.name], quantize=quantize_inputs)
        for value in wanted
    ]
    if not outputs:
        results = network.run(arrays)
    else:
        given = _output_arrays(network, arrays, outputs)
        results = network.run(arrays, given)
    return dict(zip(graph.output_names, results, strict=True))


def _wrong_names(network: LoadedNetwork, inputs: Mapping[str, object]) -> InvalidArgumentError:
    """The error for inputs that are missing or not known."""
    names = [value.name for value in network.graph.inputs]
    missing = [name for name in names if name not in inputs]
    extra = [str(name) for name in inputs if name not in names]
    problems = ["missing " + ", ".join(map(repr, missing))] if missing else []
    problems += ["not known " + ", ".join(map(repr, extra))] if extra else []
    return InvalidArgumentError(
        "the inputs are not the network's",
        expected=network.describe_shapes(),
        actual="; ".join(problems),
    )


def _output_arrays(
    network: LoadedNetwork, inputs: list[Array], outputs: Mapping[str, Array]
) -> list[Array | None]:
    """The caller's output arrays in order, checked; inputs they overlap are copied."""
    graph = network.graph
    unknown = [name for name in outputs if name not in graph.output_names]
    if unknown:
        raise InvalidArgumentError(
            "the network has no such output",
            expected=", ".join(graph.output_names),
            actual=", ".join(map(repr, unknown)),
        )
    infos = network.output_infos([array.shape for array in inputs])
    given: list[Array | None] = []
    for name, info in zip(graph.output_names, infos, strict=True):
        array = outputs.get(name)
        given.append(None if array is None else check_output_array(name, info, array))
    written = [array for array in given if array is not None]
    if any(np.may_share_memory(a, b) for a, b in combinations(written, 2)):
        raise InvalidArgumentError(
            "two of the output arrays overlap", actual=", ".join(map(repr, outputs))
        )
    for index, array in enumerate(inputs):
        if any(np.may_share_memory(array, other) for other in written):
            inputs[index] = array.copy()
    return given
