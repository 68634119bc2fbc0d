"""Executes control flow: layers that run whole networks.

Notes
-----
Layers can lie in each other so that a small file has its innermost graph run any number of times,
with loops and without. Therefore an outermost layer and all that it runs share one budget of
time: loops look at it after a true condition, choices before they run a graph.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np

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
    TimeBudget,
    begin_control_flow,
    current_timeout_s,
    end_control_flow,
    is_for_one_turn,
)
from armpy.compiler import Evaluator, Placement
from armpy.errors import ArmpyError, ExecutionTimeoutError, LayerValidationError, MemoryLimitError
from armpy.execution import steps
from armpy.graph import Graph, Layer, graphs_of
from armpy.ops.backend_internal import UnfitGraph
from armpy.ops.control_flow import If, While
from armpy.ops.operation import Array, located, require
from armpy.tensor import TensorInfo, check_shape_fits
from armpy.types import HOST

if TYPE_CHECKING:
    from armpy.execution.setup.settings import NetworkSettings
    from armpy.execution.steps.appending import AppendedElements

Shapes: TypeAlias = tuple[tuple[int, ...], ...]

Targets: TypeAlias = list[Array] | list[Array | None]
"""Arrays to write results to; an execution replaces None by a new array."""

_NUM_USUAL_TURNS = 2
"""Loops whose shapes settle have done so after the first turn."""


class InnerProgram(Protocol):
    """A prepared network for some input shapes."""

    result_infos: tuple[TensorInfo, ...]

    @property
    def placement(self) -> Placement:
        """Which layer runs where."""

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Everything that runs, as far as it is known."""

    def run(
        self,
        sources: Sequence[Array],
        results: Targets | None = None,
        cancellation: Cancellation | None = None,
    ) -> list[Array]:
        """Execute once; as `CompiledProgram.run`."""


class InnerNetwork(Protocol):
    """Loaded network of a graph that control flow runs."""

    @property
    def latest_program(self) -> InnerProgram | None:
        """The program of the last call; None before the first one."""

    def program_for(self, shapes: Shapes, *, is_passing: bool = False) -> InnerProgram:
        """The program for some input shapes; `is_passing` if they will hardly come again."""

    def forget_programs(self) -> None:
        """Make programs anew when they are needed next."""


class Subnetworks(Protocol):
    """The loaded networks of the graphs that control flow runs."""

    settings: NetworkSettings
    evaluator: Evaluator | None
    may_run_loops: bool  # whether a backend may

    def prepare(self, graph: Graph, shapes: Shapes) -> None:
        """Prepare a graph soon; errors are raised when it has to run."""

    def network_of(self, graph: Graph) -> InnerNetwork:
        """Return the loaded network of a graph."""


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
        self._network: InnerNetwork | None = None
        read = {value for layer in graph.layers for value in layer.inputs} | set(graph.outputs)
        self._unread = tuple(i for i, value in enumerate(graph.inputs) if value not in read)
        self._shapes_of_unread: dict[int, tuple[int, ...]] = {}
        infos = [info for info in inputs if info is not None]
        if all(info.is_fully_shaped for info in infos):
            subnetworks.prepare(graph, tuple(info.known_shape for info in infos))

    def program_for(self, sources: Sequence[Array], *, is_passing: bool = False) -> InnerProgram:
        """The program for the shapes of some arrays; `is_passing` if these will hardly come again.

        A program is the same for all shapes of inputs that no layer reads: the condition of a loop
        whose tensors grow mostly reads a counter.
        """
        network = self._network
        if network is None:
            first = self._graph.layers[0].operation if self._graph.layers else None
            if isinstance(first, UnfitGraph):
                raise LayerValidationError(first.reason, where=first.where)
            network = self._network = self._subnetworks.network_of(self._graph)
        shapes = [array.shape for array in sources]
        for index in self._unread:
            value = self._graph.inputs[index]
            check_shape_fits(value.name, value.info.shape, shapes[index])
            shapes[index] = self._shapes_of_unread.setdefault(index, shapes[index])
        return network.program_for(tuple(shapes), is_passing=is_passing)

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
        opened: list[ITensorHandle] = []
        budget, token = begin_control_flow(self._timeout_s)
        try:
            # Choices that lie in each other run 2^n graphs from a file of n layers.
            if token is None and time.perf_counter() >= budget.end_s:
                raise timed_out(current_timeout_s(self._timeout_s), "more choices to make")
            condition, *arrays = _mapped(inputs, opened, is_read=True)
            self._run(self._then if _is_true(condition) else self._else, arrays, outputs, opened)
        finally:
            end_control_flow(token)
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
            program = graph.program_for(arrays)
            if all(
                info.shape == handle.info.shape and not isinstance(handle, DynamicTensorHandle)
                for info, handle in zip(program.result_infos, outputs, strict=True)
            ):
                program.run(arrays, _mapped(outputs, opened, is_read=False), cancellation)
            else:
                _hand_over(program.run(arrays, None, cancellation), outputs)
        except ArmpyError as error:
            raise graph.named(error) from error.__cause__


class WhileWorkload(IWorkload):
    """Runs a graph as long as another one says so."""

    def __init__(self, operation: While, info: WorkloadInfo, subnetworks: Subnetworks) -> None:
        self._subnetworks = subnetworks
        self._appends = {append.number: append for append in steps.find_appends(operation)}
        inputs = [value for value in info.inputs if value is not None]
        for number, append in self._appends.items():
            inputs[number] = inputs[number].with_shape(append.emptied(inputs[number].known_shape))
        self._condition, self._body = (
            NestedGraph(name, graph, subnetworks, inputs) for name, graph in graphs_of(operation)
        )
        # Runs several turns, if backends alone do.
        self._several: Graph | None = None
        if self._appends and subnetworks.may_run_loops and not is_for_one_turn():
            self._several = steps.with_lists(
                operation, inputs, self._appends.values(), subnetworks.evaluator, info.name
            )
        if self._several is not None:
            subnetworks.prepare(self._several, _shapes_of(self._several))
        self._timeout_s = subnetworks.settings.loop_timeout_s
        self._limit_bytes = subnetworks.settings.memory_limit_bytes

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        """Run turns until the condition is false, or the time is up.

        Raises ExecutionTimeoutError if the condition is still true then.
        """
        opened: list[ITensorHandle] = []
        budget, token = begin_control_flow(self._timeout_s)
        try:
            arrays = _mapped(inputs, opened, is_read=True)
            carried = self._last_values(arrays, len(outputs), budget)
            _hand_over(carried, outputs)
        finally:
            end_control_flow(token)
            _unmap(opened)

    def _last_values(
        self, values: list[Array], num_carried: int, budget: TimeBudget
    ) -> Sequence[Array]:
        """Return the carried values when the condition is false."""
        num_turns = 0
        growing = {
            number: steps.AppendedElements(append, values[number], self._limit_bytes)
            for number, append in self._appends.items()
        }
        values[:] = [growing[i].empty if i in growing else v for i, v in enumerate(values)]
        # In the steady state no shape changes any more, and the programs stay the same.
        is_steady = is_late = False
        # Results of the turn before last are written to again, or memory for larger ones.
        nothing: list[Array | None] = [None] * num_carried
        spare: Targets = nothing
        mine: Targets = nothing
        buffers: tuple[dict[int, Array], dict[int, Array]] = ({}, {})
        flags: list[Array] | None = None
        graph = self._condition
        cancellation = current_cancellation()
        try:
            several = self._program_of_several(values) if growing else None
            if several is not None:
                graph = self._body
                num_turns, is_late = self._run_several(several, values, growing, budget)
            while several is None:
                graph = self._condition
                if not is_steady:
                    test = graph.program_for(values, is_passing=num_turns >= _NUM_USUAL_TURNS)
                flags = test.run(values, flags, cancellation)
                if not _is_true(flags[0]):
                    break
                if time.perf_counter() >= budget.end_s:
                    is_late = True
                    break
                graph = self._body
                if not is_steady:
                    turn = graph.program_for(values, is_passing=num_turns >= _NUM_USUAL_TURNS)
                    is_steady = all(
                        info.shape == values[number].shape or number in growing
                        for number, info in enumerate(turn.result_infos)
                    )
                    spare = _resized(spare, turn.result_infos, buffers[num_turns % 2])
                results = turn.run(values, spare, cancellation)
                values[:num_carried] = results
                for number, elements in growing.items():
                    elements.take(values[number])
                    values[number], results[number] = elements.empty, None  # type: ignore[call-overload]  # written anew
                spare, mine = mine, results
                flags = flags if is_steady else None
                num_turns += 1
        except ArmpyError as error:
            raise graph.named(error) from error.__cause__
        if is_late:
            raise timed_out(current_timeout_s(self._timeout_s), f"{num_turns} turns and no end")
        for number, elements in growing.items():
            values[number] = elements.whole()
        return values[:num_carried]

    def _program_of_several(self, values: Sequence[Array]) -> InnerProgram | None:
        """The program of several turns, if backends alone run it, for the shapes of some values."""
        graph = self._several
        if graph is None or any(
            number not in self._appends and array.shape != info.shape
            for number, (array, info) in enumerate(zip(values, graph.input_infos[1:], strict=True))
        ):
            return None
        try:
            program = self._subnetworks.network_of(graph).program_for(_shapes_of(graph))
        except MemoryLimitError:  # with the lists; a turn alone takes less
            self._several = None
            return None
        if any(layer.backend == HOST for layer in program.placement.layers):
            self._several = None
        return None if self._several is None else program

    def _run_several(
        self,
        program: InnerProgram,  # of several turns
        values: list[Array],
        growing: Mapping[int, AppendedElements],
        budget: TimeBudget,
    ) -> tuple[int, bool]:
        """Run all turns; return how many there were, and whether the time is up."""
        arrays: list[Array] = [np.zeros((), np.int64), *values]
        for number in growing:
            info = program.result_infos[1 + number]
            arrays[1 + number] = np.empty(info.known_shape, info.data_type.dtype)
            most = info.known_shape[0]
        num_turns, count, cancellation = 0, most, current_cancellation()
        while count == most:
            try:
                results = program.run(arrays, None, cancellation)
            except ExecutionTimeoutError:
                if time.perf_counter() < budget.end_s:  # the execution's own, not that of loops
                    raise
                return num_turns, True
            arrays[1 : len(results)] = results[1:]
            count = int(results[0])
            num_turns += count
            for number, elements in growing.items():
                elements.take_list(results[1 + number][:count])
        values[:] = arrays[1:]
        return num_turns, False


def _shapes_of(graph: Graph) -> Shapes:
    """The shapes of a graph's inputs, which are known."""
    return tuple([info.known_shape for info in graph.input_infos])


def _resized(spare: Targets, infos: Sequence[TensorInfo], buffers: dict[int, Array]) -> Targets:
    """Arrays for a turn's results: spare ones, or in memory that doubles when it is too small."""
    targets: list[Array | None] = [*spare]
    for number, array in enumerate(spare):
        info = infos[number]
        if array is None or array.shape == info.shape:
            continue
        if not info.is_fully_shaped or info.data_type.is_string:
            targets[:] = [None] * len(spare)
            break
        size_bytes = info.size_bytes
        if number not in buffers or buffers[number].nbytes < size_bytes:
            buffers[number] = np.empty(2 * size_bytes, np.uint8)
        targets[number] = np.ndarray(info.known_shape, info.data_type.dtype, buffers[number])
    return targets


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
