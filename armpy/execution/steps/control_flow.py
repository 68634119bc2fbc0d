"""Executes control flow: layers that run whole networks.

Notes
-----
Layers can lie in each other so that a small file has its innermost graph run any number of times,
with loops and without. Therefore an outermost layer and all that it runs share one budget of
time: loops look at it after a true condition, choices before they run a graph.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from armpy.backend import (
    Cancellation,
    DynamicTensorHandle,
    HostTensorHandle,
    ITensorHandle,
    IWorkload,
    WorkloadInfo,
    current_cancellation,
)
from armpy.backend.control_flow import (
    begin_control_flow,
    current_timeout_s,
    end_control_flow,
    for_one_turn,
)
from armpy.errors import ArmpyError, ExecutionTimeoutError
from armpy.execution.steps.appending import AppendedElements, find_appends
from armpy.graph import Graph, graphs_of
from armpy.ops.control_flow import If, While
from armpy.ops.operation import Array, located, require
from armpy.tensor import TensorInfo, check_shape_fits

if TYPE_CHECKING:
    from armpy.execution.settings import NetworkSettings

Shapes: TypeAlias = tuple[tuple[int, ...], ...]

Targets: TypeAlias = list[Array] | list[Array | None]
"""Arrays to write results to; an execution replaces None by a new array."""

_NUM_USUAL_TURNS = 2
"""Loops whose shapes settle have done so after the first turn."""


class NetworkPlan(Protocol):
    """A prepared network for some input shapes."""

    result_infos: tuple[TensorInfo, ...]

    def run(
        self,
        sources: Sequence[Array],
        results: Targets | None = None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        """Execute once; as `CompiledProgram.run`."""


class Subnetworks(Protocol):
    """The loaded networks of the graphs that control flow runs."""

    settings: NetworkSettings

    def prepare(self, graph: Graph, shapes: Shapes) -> None:
        """Prepare a graph soon; errors are raised when it has to run."""

    def plan_of(self, graph: Graph) -> Callable[[Shapes], NetworkPlan]:
        """Return the plans of a graph."""


class NestedGraph:
    """A graph that a layer runs."""

    def __init__(
        self,
        name: str,  # what the layer calls it, for messages
        graph: Graph,
        subnetworks: Subnetworks,
        # Its first arguments; it is prepared for them if the shapes are known.
        inputs: Sequence[TensorInfo | None],
    ) -> None:
        self.name = name
        self._graph = graph
        self._subnetworks = subnetworks
        self._plan_of: Callable[[Shapes], NetworkPlan] | None = None
        read = {value for layer in graph.layers for value in layer.inputs} | set(graph.outputs)
        self._unread = tuple(i for i, value in enumerate(graph.inputs) if value not in read)
        self._shapes_of_unread: dict[int, tuple[int, ...]] = {}
        infos = [info for info in inputs if info is not None]
        if all(info.is_fully_shaped for info in infos):
            subnetworks.prepare(graph, tuple(info.known_shape for info in infos))

    def plan(self, sources: Sequence[Array]) -> NetworkPlan:
        """The plan for the shapes of some arrays.

        A plan is the same for all shapes of inputs that no layer reads: the condition of a loop
        whose tensors grow mostly reads a counter.
        """
        plan_of = self._plan_of
        if plan_of is None:
            plan_of = self._plan_of = self._subnetworks.plan_of(self._graph)
        shapes = [array.shape for array in sources]
        for index in self._unread:
            value = self._graph.inputs[index]
            check_shape_fits(value.name, value.info.shape, shapes[index])
            shapes[index] = self._shapes_of_unread.setdefault(index, shapes[index])
        return plan_of(tuple(shapes))

    def named(self, error: ArmpyError) -> ArmpyError:
        """An error of this graph with its name."""
        return located(lambda: self.name, error)


class IfWorkload(IWorkload):
    """Runs one of two graphs."""

    def __init__(self, operation: If, info: WorkloadInfo, subnetworks: Subnetworks) -> None:
        self._timeout_s = subnetworks.settings.loop_timeout_s
        self._then, self._else = (
            NestedGraph(name, graph, subnetworks, info.inputs[1:])
            for name, graph in graphs_of(operation)
        )

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        """Run the graph that the condition chooses, into the outputs where that is possible.

        Raises ExecutionTimeoutError if it lies in other control flow whose time is up.
        """
        end_s, token = begin_control_flow(self._timeout_s)
        try:
            # Choices that lie in each other run 2^n graphs from a file of n layers.
            if token is None and time.perf_counter() >= end_s:
                raise timed_out(current_timeout_s(self._timeout_s), "more choices to make")
            self._choose(inputs, outputs)
        finally:
            end_control_flow(token)

    def _choose(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        """Run the graph that the condition chooses."""
        opened: list[ITensorHandle] = []
        try:
            condition, *arrays = _mapped(inputs, opened, is_read=True)
            graph = self._then if _is_true(condition) else self._else
            self._run(graph, arrays, outputs, opened)
        finally:
            _unmap(opened)

    def _run(
        self,
        graph: NestedGraph,
        arrays: list[Array],
        outputs: Sequence[ITensorHandle],
        opened: list[ITensorHandle],
    ) -> None:
        cancellation = current_cancellation()
        try:
            plan = graph.plan(arrays)
            if all(
                info.shape == handle.info.shape and not isinstance(handle, DynamicTensorHandle)
                for info, handle in zip(plan.result_infos, outputs, strict=True)
            ):
                plan.run(arrays, _mapped(outputs, opened, is_read=False), cancellation)
            else:
                _hand_over(plan.run(arrays, None, cancellation), outputs)
        except ArmpyError as error:
            raise graph.named(error) from error.__cause__


class WhileWorkload(IWorkload):
    """Runs a graph as long as another one says so."""

    def __init__(self, operation: While, info: WorkloadInfo, subnetworks: Subnetworks) -> None:
        self._appends = {append.number: append for append in find_appends(operation)}
        inputs = [*info.inputs]
        for number, append in self._appends.items():
            carried = inputs[number]
            if carried is not None and carried.is_fully_shaped:
                inputs[number] = carried.with_shape(append.emptied(carried.known_shape))
        self._condition, self._body = (
            NestedGraph(name, graph, subnetworks, inputs) for name, graph in graphs_of(operation)
        )
        self._timeout_s = subnetworks.settings.loop_timeout_s
        self._limit_bytes = subnetworks.settings.memory_limit_bytes

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        """Run turns until the condition is false, or the time is up.

        Raises ExecutionTimeoutError if the condition is still true then.
        """
        opened: list[ITensorHandle] = []
        end_s, token = begin_control_flow(self._timeout_s)
        try:
            arrays = _mapped(inputs, opened, is_read=True)
            carried = self._last_values(arrays, len(outputs), end_s)
            _hand_over(carried, outputs)
        finally:
            end_control_flow(token)
            _unmap(opened)

    def _last_values(self, values: list[Array], num_carried: int, end_s: float) -> Sequence[Array]:
        """Return the carried values when the condition is false."""
        num_turns = 0
        growing = [
            AppendedElements(append, values, self._limit_bytes) for append in self._appends.values()
        ]
        # In the steady state no shape changes any more. Then the plans stay the same, and
        # arrays of the turn before last are written to again.
        is_steady = is_late = False
        mine: list[Array] | None = None
        spare: list[Array] | None = None
        flags: list[Array] | None = None
        graph = self._condition
        cancellation = current_cancellation()
        try:
            while True:
                graph = self._condition
                if not is_steady:
                    test = _plan(graph, values, num_turns)
                flags = test.run(values, flags, cancellation)
                if not _is_true(flags[0]):
                    break
                if time.perf_counter() >= end_s:
                    is_late = True
                    break
                graph = self._body
                if not is_steady:
                    turn = _plan(graph, values, num_turns)
                    is_steady = self._keeps_shapes(turn, values)
                results = turn.run(values, spare, cancellation)
                values[:num_carried] = results
                for elements in growing:
                    elements.take(results, values)
                spare, mine = (mine, results) if is_steady else (None, results)
                flags = flags if is_steady else None
                num_turns += 1
        except ArmpyError as error:
            raise graph.named(error) from error.__cause__
        if is_late:
            raise timed_out(current_timeout_s(self._timeout_s), f"{num_turns} turns and no end")
        for elements in growing:
            elements.put_into(values)
        return values[:num_carried]

    def _keeps_shapes(self, turn: NetworkPlan, values: Sequence[Array]) -> bool:
        """Return whether a turn's outputs have the shapes of its inputs."""
        return all(
            info.shape == values[number].shape or number in self._appends
            for number, info in enumerate(turn.result_infos)
        )


def _plan(graph: NestedGraph, values: Sequence[Array], num_turns: int) -> NetworkPlan:
    """The plan for a turn; shapes after those of the first turns will hardly come again."""
    if num_turns < _NUM_USUAL_TURNS:
        return graph.plan(values)
    # Backends' stores would fill up with what never comes again.
    with for_one_turn():
        return graph.plan(values)


def _is_true(condition: Array) -> bool:
    require(
        condition.size == 1,
        "the condition is not one truth value",
        expected="one element",
        actual=condition.shape,
    )
    return bool(condition.item())


def _mapped(
    handles: Sequence[ITensorHandle | None], opened: list[ITensorHandle], *, is_read: bool
) -> list[Array]:
    """The elements to read or write of the present handles; adds the handles to unmap."""
    arrays: list[Array] = []
    for handle in handles:
        if type(handle) is HostTensorHandle:  # whose access has no end, and nearly all are
            arrays.append(handle.array)
        elif handle is not None:
            arrays.append(handle.map(read=is_read, write=not is_read))
            opened.append(handle)
    return arrays


def _unmap(opened: Sequence[ITensorHandle]) -> None:
    """End the access to handles."""
    for handle in opened:
        handle.unmap()


def _hand_over(arrays: Sequence[Array], outputs: Sequence[ITensorHandle]) -> None:
    """Copy results into a layer's outputs."""
    for array, handle in zip(arrays, outputs, strict=True):
        handle.copy_in_from(array)


def timed_out(limit_s: float | None, actual: str) -> ExecutionTimeoutError:
    """The error for control flow that takes too long."""
    return ExecutionTimeoutError(
        "control flow takes too long",
        expected=f"its end within {limit_s or 0:g} s (loop_timeout_s)",
        actual=actual,
        fix="Raise loop_timeout_s, or set it to None for no limit, if it ends at all",
    )
