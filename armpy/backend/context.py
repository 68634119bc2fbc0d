"""Objects that a backend keeps for a runtime, a network or a profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


class IBackendContext:
    """Observer of loads and unloads of networks, kept by the Runtime for its lifetime.

    Every context is notified of every network, also if another one raises. Each
    `before_load_network` is followed by `after_unload_network`, each `after_load_network` by
    `before_unload_network`, unless it raised. So a failed load is ended for every notified context;
    its id is never used again. If `before_unload_network` raises, the network stays loaded, unless
    the runtime is closed, and the contexts that agreed get `after_load_network` again.
    """

    def before_load_network(self, network_id: int) -> None:
        """A network is about to be loaded."""

    def after_load_network(self, network_id: int) -> None:
        """A network was loaded, or stays so as another context refused its unload."""

    def before_unload_network(self, network_id: int) -> None:
        """A network is about to be unloaded."""

    def after_unload_network(self, network_id: int) -> None:
        """A network was unloaded, or could not be loaded."""

    def after_enqueue_workload(self, network_id: int) -> None:
        """An execution of a network has ended; errors are only logged."""

    def close(self) -> None:
        """The runtime was closed, or its last reference has gone; called once.

        Notes
        -----
        Every network has been unloaded before; what this raises is only logged. Where
        the application has not closed its runtime, unloads and this come in whatever thread drops
        it, in the midst of the backend's own code if the garbage collector does: a lock that they
        take has to be reentrant.
        """


class IBackendModelContext:
    """Per-network state of a backend; only the backend looks inside."""

    def close(self) -> None:
        """The network has gone, with all executions; called once.

        Notes
        -----
        What this raises is only logged. It comes before
        `IBackendContext.after_unload_network`, unless an execution is still under way then.
        """


@dataclass(frozen=True, slots=True)
class Measurement:
    """One thing that took time in a backend.

    Notes
    -----
    It belongs to the layer that is executed meanwhile in the same thread, unless it is a
    `LayerMeasurement`.
    """

    name: str  # the same for the same thing in every execution
    # Microseconds; the start by the clock of `time.perf_counter`.
    start_us: float
    duration_us: float
    thread: int = 0  # number of the thread, as of `threading.get_ident`
    details: Mapping[str, float] = field(default_factory=dict, hash=False)
    """Other figures. armpy shows ``operations``, ``bytes`` read and written, ``roofline_us``, the
    device's least time for both, and ``compute_us`` and ``memory_us``, that for each.
    """


@dataclass(frozen=True, slots=True)
class LayerMeasurement(Measurement):
    """Measurement of one layer of the model, of several that a backend runs as one."""

    # Operation and name of the model's layer, such as ``Convolution2d`` and ``conv_3``.
    operation: str = ""
    layer: str = ""
    kernel: str = ""  # the code that computed it


class IBackendProfilingContext:
    """Adds a backend's own measurements to a profile."""

    def enable_profiling(self, enabled: bool) -> None:
        """Begin or end measuring.

        Notes
        -----
        The core begins once, before it asks for the workload factory of a network that is
        profiled and in the same thread, and drops the context with the network's profile.
        """

    def take_measurements(self) -> Mapping[str, float]:
        """Return durations in microseconds by name since the last call, and forget them."""
        return {}

    def take_events(self) -> Sequence[Measurement]:
        """Return the measurements since the last call, and forget them."""
        return ()
