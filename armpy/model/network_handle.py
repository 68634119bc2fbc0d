"""Network handle: a model's network on its runtime, from when it is loaded until it is closed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from armpy.core.arguments import check_seconds
from armpy.errors import InvalidArgumentError
from armpy.model.light_network import ArchivedNetwork

if TYPE_CHECKING:
    from armpy.compiler import OptimizedNetwork
    from armpy.execution.loaded_network import LoadedNetwork
    from armpy.execution.runtime import Runtime
    from armpy.execution.setup.properties import NetworkProperties
    from armpy.graph import Graph
    from armpy.graph.network import Network


class NetworkHandle:
    """The network of a model: loaded, completed when a call needs that, closed."""

    def __init__(
        self,
        current: LoadedNetwork | ArchivedNetwork | None,
        # The one that it is loaded on; none yet for an archived one.
        runtime: Runtime | None = None,
        network_id: int | None = None,  # its id there
        properties: NetworkProperties | None = None,
        *,
        closes_runtime: bool = True,
        read_source: Callable[[], Graph] | None = None,
        load_whole: Callable[[], NetworkHandle] | None = None,
        in_background: bool = False,
    ) -> None:
        # Whether calls are answered before all is compiled, also those of models made of this one.
        self.in_background = in_background
        # Every call reads it, and none takes the lock for that: it is replaced at once, and a call
        # that has read the former one ends on it.
        self.current = current  # what runs; None once the model is closed
        self._runtime, self._network_id = runtime, network_id
        self._properties = properties  # how it is loaded
        self._closes_runtime = closes_runtime  # whether the runtime is closed with it
        self._read_source = read_source  # returns the graph as the model's file has it
        self._load_whole = load_whole  # loads the network that takes the place of an archived one
        # Two threads that need the whole network load it once; closing waits for that.
        self._lock = threading.Lock()

    @classmethod
    def load(
        cls,
        network: Network | Graph | OptimizedNetwork,
        runtime: Runtime | None = None,
        properties: NetworkProperties | None = None,
        *,
        closes_runtime: bool = False,
        shares_state_with: NetworkHandle | None = None,
        read_source: Callable[[], Graph] | None = None,
        again: Callable[[], object] | None = None,
        original: NetworkHandle | None = None,
    ) -> NetworkHandle:
        """Load a network; parameters as of `armpy.Model`, of the class, and of `LoadedNetwork`.

        Raises InvalidArgumentError if the network whose variables it shares is on another runtime;
        ArmpyError as from `Runtime.load_network`.
        """
        from armpy.core.arguments import check_instance  # noqa: PLC0415
        from armpy.execution.runtime import Runtime  # noqa: PLC0415

        closes_runtime = closes_runtime or runtime is None
        if runtime is None:
            runtime = Runtime()
        check_instance(runtime, "Model.runtime", Runtime, fix="Write Runtime(options)")
        if read_source is None:
            from armpy.execution.arrays.reshaping import graph_of  # noqa: PLC0415

            read_source = partial(graph_of, network)
        try:
            other = None if shares_state_with is None else shares_state_with.id_on(runtime)
            same = None if original is None else original.id_on(runtime)
            number = runtime.load_network(
                network, properties, shares_state_with=other, again=again, original=same
            )
        except BaseException:  # an interrupt as well: only this function can close the runtime
            if closes_runtime:
                runtime.close()
            raise
        return cls(
            runtime.get_network(number),
            runtime,
            number,
            properties,
            closes_runtime=closes_runtime,
            read_source=read_source,
            in_background=again is not None,
        )

    @property
    def can_be_renamed(self) -> bool:
        """True if its programs can be shared with networks whose tensors have other names."""
        # The program's profile is its first network's, and one compiled in the background replaces
        # a program in one network alone.
        return not self.in_background and self.loaded.profiler is None

    @classmethod
    def start(
        cls, network: ArchivedNetwork, load_whole: Callable[[], NetworkHandle]
    ) -> NetworkHandle:
        """Start a network of a compiled model, before anything else is loaded."""
        handle = cls(network, load_whole=load_whole)
        network.load_whole = handle._become_whole
        return handle

    @property
    def loaded(self) -> LoadedNetwork:
        """The whole network; an error once the model is closed."""
        network = self.current
        if isinstance(network, ArchivedNetwork):
            whole, latest = self._become_whole(), network.latest
            # What needs no shapes, such as saving, goes by those of the last call. A call that
            # takes the whole network brings its own.
            if latest is not None and whole.latest is None:
                whole.prepare(latest.shapes)
            return whole
        self.check_open()
        assert network is not None
        return network

    def check_open(self) -> None:
        """Check that the model has not been closed."""
        if self.current is None:
            raise InvalidArgumentError(
                "the model is closed",
                where="model",
                expected="an open model",
                fix="Load it again, or close it after its last use",
            )

    def _become_whole(self) -> LoadedNetwork:
        """Load the whole network, which takes the place of the archived one."""
        with self._lock:
            if isinstance(self.current, ArchivedNetwork):  # no other thread was faster
                assert self._load_whole is not None
                whole = self._load_whole()
                self._runtime, self._network_id = whole._runtime, whole._network_id
                self._properties, self._closes_runtime = whole._properties, whole._closes_runtime
                self._read_source = whole._read_source
                self.current = whole.current  # last: a thread that sees it may use the others
            self.check_open()
            return self.current  # type: ignore[return-value]  # a whole one by now

    @property
    def running(self) -> LoadedNetwork | ArchivedNetwork:
        """The network that calls run, whole or archived; an error once the model is closed."""
        return self.current or self.loaded

    @property
    def light(self) -> ArchivedNetwork | None:
        """The runner of a compiled model; None once anything else has been loaded."""
        network = self.current
        return network if isinstance(network, ArchivedNetwork) else None

    @property
    def is_compiling(self) -> bool:
        """Return whether something else runs until all is compiled."""
        tiers = None if self.light or self.current is None else self.loaded.tiers
        return tiers is not None and tiers.is_pending

    @property
    def runtime(self) -> Runtime:
        """The runtime that it is loaded on; made when it is asked for, where that is its own."""
        if self._runtime is None:
            self._become_whole()
        assert self._runtime is not None
        return self._runtime

    @property
    def network_id(self) -> int:
        """The network's id on the runtime."""
        if self._network_id is None:
            self._become_whole()
        assert self._network_id is not None
        return self._network_id

    @property
    def properties(self) -> NetworkProperties:
        """Return how the network is loaded."""
        if self._properties is None:
            from armpy.execution.setup.properties import NetworkProperties  # noqa: PLC0415

            self._properties = NetworkProperties()
        return self._properties

    @property
    def source(self) -> Graph:
        """The network as its file has it, shapes not yet bound."""
        network = self.loaded  # an error once the model is closed
        return network.graph if self._read_source is None else self._read_source()

    def prepare(self, shapes: Mapping[str, tuple[int, ...]] | None) -> None:
        """Prepare for some shapes, by the inputs' names; see `armpy.Model.prepare`."""
        from armpy.execution.arrays.reshaping import input_shapes  # noqa: PLC0415

        light = self.light
        if light is None or light.choose(shapes or {}) is None:
            network = self.loaded
            network.prepare(input_shapes(network.graph, shapes))

    def warm_up(
        self,
        several: Sequence[Mapping[str, tuple[int, ...]] | None],
        timeout_s: float | None = None,  # how long to wait for background compilations
    ) -> None:
        """Prepare for each of some shapes, and run once for each; see `armpy.Model.warm_up`.

        Raises InvalidArgumentError if there are more than programs are kept, one does not fit
        what the network leaves open, or the limit is not a time; ArmpyError as from `Tiers.wait`.
        """
        from armpy.execution.arrays.reshaping import input_shapes  # noqa: PLC0415

        check_seconds(timeout_s, "timeout_s", failed="the time-out of warm_up cannot be used")
        light = self.light
        if light is not None and light.warm_up(several):
            return
        network = self.loaded
        most = network.settings.program_cache_size
        if len(several) > most:
            raise InvalidArgumentError(
                "the model does not stay prepared for so many shapes",
                where="warm_up",
                expected=f"at most {most} (RuntimeOptions.program_cache_size)",
                actual=str(len(several)),
            )
        every = [input_shapes(network.graph, shapes) for shapes in several]
        for chosen in every:
            network.prepare(chosen)
        if network.tiers is not None:
            network.tiers.wait(timeout_s)
        for chosen in every:
            if network.graph.variables:  # a run would change them
                network.program_for(chosen).make_ready()
                continue
            pairs = zip(network.graph.inputs, chosen, strict=True)
            network.run([value.info.data_type.zeros(shape) for value, shape in pairs])

    def id_on(self, runtime: Runtime) -> int:
        """The network's id, on a runtime that has to be its own."""
        if self.runtime is not runtime:
            raise InvalidArgumentError(
                "models on two runtimes cannot share variables", fix="Give both one runtime"
            )
        return self.network_id

    def close(self) -> None:
        """Unload the network and its memory; the runtime is closed as well where that is its own.

        The network stays open if a backend's context refused to unload it.
        """
        with self._lock:  # another thread may be loading the whole network
            if self._runtime is None:
                self.current = None
                return
        if self._closes_runtime:
            self.current = None  # no call begins on a runtime that is being closed
            self.runtime.close()
        elif not self.runtime.is_closed:
            self.runtime.unload_network(self.network_id)
        self.current = None
