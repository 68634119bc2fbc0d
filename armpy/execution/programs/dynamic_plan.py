"""Dynamic plan: layers run one by one, as only their workloads can tell output shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial

from armpy.backend import Cancellation, DynamicTensorHandle, HostTensorHandle, ITensorHandle
from armpy.compiler import OptimizedNetwork, Placement
from armpy.errors import BackendError
from armpy.execution.programs.loop_limits import limited_layers, limited_steps, run_apart
from armpy.execution.scheduling.executors import Executors
from armpy.execution.steps.profiled import Measure
from armpy.execution.steps.session import BackendSession
from armpy.execution.steps.step import memory_of, prepare_steps, raise_for_step, waiting
from armpy.graph import Layer, Value
from armpy.ops.operation import Array
from armpy.plugins.proxy.memory import HandleFactoryProxy
from armpy.types import BackendId


class DynamicPlan:
    """Prepared layers, none of which reads what another one writes.

    Parameters
    ----------
    network : OptimizedNetwork
        As `place_layers` makes it; every input is fully shaped.
    sessions : mapping of str to BackendSession
        By backend id.
    limit_bytes : int
        Most that an output may take up.
    executors : Executors
        Run what has loops that the core has to stop.
    measure : callable, optional
        Gives each step with its time taken.

    Raises
    ------
    PreparationError
        If backends fail to make workloads.
    """

    def __init__(
        self,
        network: OptimizedNetwork,
        sessions: Mapping[BackendId, BackendSession],
        limit_bytes: int,
        executors: Executors,
        measure: Measure | None = None,
    ) -> None:
        self.network = network
        self._limit_bytes = limit_bytes
        self._limited = limited_layers(network, sessions)
        self._executors = executors
        prepared = limited_steps(network, prepare_steps(network, sessions, measure), self._limited)
        # The core reads what a layer has written, as it has the shapes, before the next begins.
        self._steps = [
            waiting(network.backend_ids[layer.id], step)
            for layer, step in zip(network.graph.layers, prepared, strict=True)
        ]
        self._held = memory_of(network, sessions)
        self._factories = {
            layer.id: sessions[network.backend_ids[layer.id]].factories[0]
            for layer in network.graph.layers
        }

    @property
    def placement(self) -> Placement:
        """Which layer runs where and why."""
        return self.network.placement

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Everything that runs."""
        return self.network.graph.layers

    def free_idle(self) -> None:
        """Give idle memory of workloads back; there is no other."""
        for step in self._steps:
            step.free_idle()

    def run(
        self, sources: Sequence[Array], cancellation: Cancellation | None = None
    ) -> list[Array]:
        """Execute every layer once; parameters and result as for `StaticPlan.run`."""
        if self._limited:
            return run_apart(self._executors, partial(self._run, sources), cancellation)
        return self._run(sources, cancellation)

    def _run(self, sources: Sequence[Array], cancellation: Cancellation | None) -> list[Array]:
        """Execute every layer once, on this thread."""
        graph = self.network.graph
        arrays: dict[Value, Array] = dict(zip(graph.inputs, sources, strict=True))
        with ExitStack() as stack:
            for shared in self._held:
                stack.enter_context(shared)
            for step, layer in enumerate(graph.layers):
                try:
                    if cancellation is not None:
                        cancellation.check()
                    made = self._execute(step, layer, arrays)
                except BaseException as error:  # noqa: BLE001 - plugin boundary: named and raised
                    raise_for_step(self.network, step, error)
                arrays.update(zip(layer.outputs, made, strict=True))
        return [arrays[value] for value in graph.outputs]

    def _execute(self, step: int, layer: Layer, arrays: Mapping[Value, Array]) -> list[Array]:
        """Run one layer; what it writes."""
        # Host memory, whatever the backend's own is: to plan or copy would need the missing shapes.
        factory = self._factories[layer.id]
        inputs = [
            None if value is None else self._input(value, arrays, factory) for value in layer.inputs
        ]
        outputs = [self._output(value, factory) for value in layer.outputs]
        self._steps[step].execute(inputs, outputs)
        for handle in outputs:
            if isinstance(handle, DynamicTensorHandle) and not handle.is_resized:
                raise BackendError(
                    "the workload has left an output without a shape", actual=str(handle.info)
                )
        return [handle.map(write=False) for handle in outputs]

    def _input(
        self, value: Value, arrays: Mapping[Value, Array], factory: HandleFactoryProxy
    ) -> ITensorHandle:
        """Where a layer reads an input."""
        elements = arrays[value] if value.data is None else value.data
        return HostTensorHandle(value.info, factory.fitting(value.info, elements))

    def _output(self, value: Value, factory: HandleFactoryProxy) -> ITensorHandle:
        """Where a layer writes an output."""
        info = value.info
        if not info.is_fully_shaped:
            lies = factory.alignment_bytes, factory.padding_bytes
            return DynamicTensorHandle(info, self._limit_bytes, *lies)
        return HostTensorHandle(info, factory.empty_tensor(info))
