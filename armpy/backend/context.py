"""Objects that a backend keeps for a runtime, a network or a profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from armpy.core.dataclass import dataclass


class IBackendContext:
    """Observer of loads and unloads of networks, kept by the Runtime for its lifetime.

    Every context is notified of every network, even if another context raises.

    - `before_load_network` returned: `after_unload_network` follows, also when the load fails; the
      id of a failed load is never used again.
    - `after_load_network` returned: `before_unload_network` follows.
    - `before_unload_network` raised: the network stays loaded, and contexts whose
      `before_unload_network` returned get `after_load_network` again. A runtime that is being
      closed unloads the network nevertheless.
    """

    def before_load_network(self, network_id: int) -> None:
        """A network is about to be loaded."""

    def after_load_network(self, network_id: int) -> None:
        """A network was loaded, or stays loaded because another context refused its unload."""

    def before_unload_network(self, network_id: int) -> None:
        """A network is about to be unloaded."""

    def after_unload_network(self, network_id: int) -> None:
        """A network was unloaded, or could not be loaded."""

    def after_enqueue_workload(self, network_id: int) -> None:
        """An execution of a network has ended, well or not; errors are only logged."""

    def close(self) -> None:
        """The runtime was closed or garbage-collected; called once.

        Every network has been unloaded before. Exceptions are only logged. If the application
        does not close its runtime, the garbage collector can call this and the unload methods in
        any thread, even inside the backend's own code: use reentrant locks (`threading.RLock`).
        """


class IBackendModelContext:
    """State of a backend for one network; the core only keeps and closes it."""

    def close(self) -> None:
        """The network was unloaded and no execution runs; called once.

        Exceptions are only logged. It comes before `IBackendContext.after_unload_network`, unless
        an execution is still running then.
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
    """Other quantities. armpy shows ``operations`` (number), ``bytes`` (read and written), and
    minimum times of the device in microseconds: ``compute_us`` for the operations, ``memory_us``
    for the bytes, and ``roofline_us`` for both.
    """


@dataclass(frozen=True, slots=True)
class LayerMeasurement(Measurement):
    """Measurement of one of several model layers that a backend runs as one layer."""

    # Operation and name of the model's layer, such as ``Convolution2d`` and ``conv_3``.
    operation: str = ""
    layer: str = ""
    kernel: str = ""  # the code that computed it


class IBackendProfilingContext:
    """Adds a backend's own measurements to a profile."""

    def enable_profiling(self, enabled: bool) -> None:
        """Begin or end measuring.

        The core begins once, before it asks for the workload factory of a network that is
        profiled and in the same thread, and drops the context with the network's profile.
        """

    def take_measurements(self) -> Mapping[str, float]:
        """Return durations in microseconds by name since the last call, and forget them."""
        return {}

    def take_events(self) -> Sequence[Measurement]:
        """Return the measurements since the last call, and forget them."""
        return ()
