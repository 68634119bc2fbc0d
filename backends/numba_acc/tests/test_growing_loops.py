"""Loops that append: NumbaAcc runs several turns at a time, with lists for what they add."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from armpy import Model, Network, Runtime, RuntimeOptions
from armpy.backend import Cancellation, cancellable
from armpy.backend.control_flow import for_one_turn
from armpy.errors import (
    ExecutionCancelledError,
    ExecutionTimeoutError,
    InvalidArgumentError,
    MemoryLimitError,
)
from armpy.execution.steps.control_flow import WhileWorkload
from armpy.graph import Graph, Value
from armpy.ops import (
    BinaryOperation,
    Comparison,
    ComparisonOperation,
    Concat,
    ElementwiseBinary,
    FullyConnected,
    Gather,
    Reshape,
    Transpose,
    While,
)
from armpy.ops.operation import Array
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_testing.models.control_flow import graph_of

ADD = ElementwiseBinary(BinaryOperation.ADD)
LESS = Comparison(ComparisonOperation.LESS)
NUMBER = TensorInfo((), DataType.SIGNED64)
STATE = TensorInfo((2, 3), DataType.FLOAT32)
FIRST = np.arange(6, dtype=np.float32).reshape(2, 3)
ONE = np.array(1, np.int64)

Append = Callable[[Network, Value, Value, Sequence[Value]], Sequence[Value]]
"""Makes the next of the values that grow, of the turn's number, a state, and those."""


def growing(append: Append, infos: Sequence[TensorInfo]) -> Graph:
    """``while in0 < in1`` around a body that counts in ``in0`` and adds 1 to ``in2``."""

    def turn(net: Network, i: Value, n: Value, state: Value, *grown: Value) -> tuple[Value, ...]:
        following = net.add(ADD, i, net.constant(ONE))
        return (
            following,
            n,
            net.add(ADD, state, net.constant(np.ones_like(FIRST))),
            *append(net, i, state, grown),
        )

    every = [NUMBER, NUMBER, STATE, *infos]
    loop = While(graph_of(every, lambda net, i, n, *_: net.add(LESS, i, n)), graph_of(every, turn))
    return graph_of(every, lambda net, *inputs: net.add_layer(loop, inputs, name="grow").outputs)


def model_of(graph: Graph, backends: Sequence[str], **options: object) -> Model:
    return Model(graph, Runtime(RuntimeOptions(backends=backends, **options)))  # type: ignore[arg-type]


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many turns were run at a time."""
    numbers: list[int] = []
    run = WhileWorkload._run_several

    def counted(*arguments: object) -> tuple[int, bool]:
        result = run(*arguments)  # type: ignore[arg-type]
        numbers.append(result[0])
        return result

    monkeypatch.setattr(WhileWorkload, "_run_several", counted)
    return numbers


def rows(axis: int, *, is_in_front: bool = False) -> Append:
    """A function that appends the state along an axis."""

    def append(net: Network, _: Value, state: Value, grown: Sequence[Value]) -> Sequence[Value]:
        parts = (state, *grown) if is_in_front else (*grown, state)
        return (net.add(Concat(axis), *parts),)

    return append


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("is_in_front", [False, True])
def test_turns_are_run_together(axis: int, is_in_front: bool, counts: list[int]) -> None:
    shape = (None, 3) if axis == 0 else (2, None)
    info = TensorInfo(shape, DataType.FLOAT32)
    model = model_of(growing(rows(axis, is_in_front=is_in_front), [info]), ["NumbaAcc"])
    for turns in (0, 3, 4, 5, 100, 4 + 256, 4 + 512 + 7, 5):
        n = np.array(turns, np.int64)
        results = model(0 * n, n, FIRST, FIRST)
        states = [FIRST + np.float32(turn) for turn in range(turns)]
        parts = [*states[::-1], FIRST] if is_in_front else [FIRST, *states]
        assert results[0] == turns
        np.testing.assert_array_equal(results[3], np.concatenate(parts, axis))
    assert counts == [0, 3, 4, 5, 100, 260, 523, 5]


def test_what_is_appended_may_be_requantised_or_of_several_parts(counts: list[int]) -> None:
    kinds = [
        TensorInfo((None, 3), DataType.QASYMM_S8, Quantization.per_tensor(0.5, 3)),
        TensorInfo((2, None), DataType.FLOAT32),
        TensorInfo((None, 2, 3), DataType.SIGNED64),
    ]
    element = TensorInfo((1, 3), DataType.QASYMM_S8, Quantization.per_tensor(0.25, -1))
    numbers = np.arange(12).reshape(2, 2, 3)

    def append(net: Network, _: Value, state: Value, grown: Sequence[Value]) -> Sequence[Value]:
        added = np.array([[-90, 5, 80]], np.int8)
        about = {"data_type": element.data_type, "quantization": element.quantization}
        row = net.constant(added, **about)  # type: ignore[arg-type]
        return (
            net.add_layer(Concat(0), (grown[0], row), outputs=[kinds[0]]).output,
            net.add(Concat(1), state, state, grown[1]),
            net.add(Concat(0), grown[2], net.constant(numbers)),
        )

    graph = growing(append, kinds)
    firsts = [np.ones((1, 3), np.int8), FIRST, np.zeros((0, 2, 3), np.int64)]
    inputs = [0 * ONE, 40 * ONE, FIRST, *firsts]
    results, wanted = (model_of(graph, [name])(*inputs) for name in ("NumbaAcc", "CpuRef"))
    for result, expected in zip(results, wanted, strict=True):
        assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(result, expected)
    assert counts == [40]


def test_weights_of_a_turn_are_packed_once(counts: list[int]) -> None:
    """A layer that follows from constants is folded before the loop runs."""
    weights = np.arange(9, dtype=np.float32).reshape(3, 3) / 9

    def append(net: Network, _: Value, state: Value, grown: Sequence[Value]) -> Sequence[Value]:
        turned = net.add(Transpose((1, 0)), net.constant(weights))
        return (net.add(Concat(0), *grown, net.add(FullyConnected(), state, turned)),)

    model = model_of(growing(append, [TensorInfo((None, 3), DataType.FLOAT32)]), ["NumbaAcc"])
    *_, grown = model(0 * ONE, 20 * ONE, FIRST, FIRST)
    expected = [(FIRST + np.float32(turn)) @ weights for turn in range(20)]
    np.testing.assert_allclose(grown, np.concatenate([FIRST, *expected]), rtol=1e-5)
    assert counts == [20]
    network = model.runtime.get_network(model.network_id)
    bound = [inner.latest.program for inner in network.subgraphs.networks if inner.latest]
    programs = [
        layer.operation.program for program in bound for layer in program.network.graph.layers
    ]
    kernels = [info.kernel for program in programs for info in program.infos]
    assert any("put_run" in kernel for kernel in kernels)
    assert not any("move" in kernel for kernel in kernels)


LONG = np.ones((1, 64, 128), np.float32)  # would be copied twice
TEXT = np.array(["text"], object)  # is not NumbaAcc's


@pytest.mark.parametrize("backends", [["CpuRef"], ["NumbaAcc", "CpuRef"]])
@pytest.mark.parametrize("part", [FIRST, LONG, TEXT, FIRST[:0]], ids=["", "long", "text", "empty"])
def test_turns_that_no_backend_runs_together_are_run_one_by_one(
    backends: list[str], part: Array, counts: list[int]
) -> None:
    def append(net: Network, _: Value, state: Value, grown: Sequence[Value]) -> Sequence[Value]:
        return (net.add(Concat(0), *grown, net.constant(part)),)

    kind = DataType.STRING if part is TEXT else DataType.FLOAT32
    model = model_of(growing(append, [TensorInfo((None, *part.shape[1:]), kind)]), backends)
    *_, grown = model(0 * ONE, 9 * ONE, FIRST, part[:0])
    np.testing.assert_array_equal(grown, np.concatenate([part] * 9))
    assert bool(counts) == (part is FIRST and len(backends) > 1)


def test_loops_that_are_prepared_for_one_turn_of_another_run_turn_by_turn(
    counts: list[int],
) -> None:
    with for_one_turn():  # making a second program took longer than the turns
        model = model_of(growing(rows(0), [TensorInfo((None, 3), DataType.FLOAT32)]), ["NumbaAcc"])
        *_, grown = model(0 * ONE, 9 * ONE, FIRST, FIRST[:0])
    assert len(grown) == 18
    assert not counts


class TestLimits:
    """A loop that is stopped leaves the model as it was."""

    def check_after(self, model: Model) -> None:
        for turns in (9, 300):
            *_, grown = model(0 * ONE, turns * ONE, FIRST, FIRST)
            assert grown.shape == (2 * turns + 2, 3)

    def model(self, **options: object) -> Model:
        infos = [TensorInfo((None, 3), DataType.FLOAT32)]
        return model_of(growing(rows(0), infos), ["NumbaAcc"], **options)

    @pytest.mark.parametrize("turns", [2**31, 2**62])
    def test_what_is_appended_is_limited(self, turns: int) -> None:
        model = self.model(loop_timeout_s=None, memory_limit_bytes=4 << 20)
        with pytest.raises(MemoryLimitError, match=r"at most 4194304 bytes .*after 17\d{4} turns"):
            model(0 * ONE, turns * ONE, FIRST, FIRST)
        self.check_after(model)

    def test_lists_that_take_too_much_memory_are_done_without(self, counts: list[int]) -> None:
        model = self.model(memory_limit_bytes=8 << 10)
        self.check_after(model)
        assert not counts

    def test_time_is_limited(self) -> None:
        model = self.model(loop_timeout_s=0.1)
        with pytest.raises(ExecutionTimeoutError, match=r"'grow': .*within 0.1 s .*\d{4,} turns"):
            model(0 * ONE, 2**62 * ONE, FIRST, FIRST)
        self.check_after(model)

    def test_no_time_allows_no_turn(self) -> None:
        model = self.model(loop_timeout_s=0)
        *_, grown = model(0 * ONE, 0 * ONE, FIRST, FIRST)
        np.testing.assert_array_equal(grown, FIRST)
        with pytest.raises(ExecutionTimeoutError, match="got 0 turns"):
            model(0 * ONE, ONE, FIRST, FIRST)

    def test_executions_are_cancelled(self) -> None:
        model = self.model(loop_timeout_s=None)
        self.check_after(model)
        cancellation = Cancellation()
        timer = threading.Timer(0.1, cancellation.cancel)
        timer.start()
        with cancellable(cancellation), pytest.raises(ExecutionCancelledError):
            model(0 * ONE, 2**62 * ONE, FIRST, FIRST)
        timer.join()
        self.check_after(model)

    def test_errors_of_a_turn_name_its_layer(self) -> None:
        table = np.arange(30, dtype=np.float32).reshape(10, 3)

        def append(net: Network, i: Value, state: Value, grown: Sequence[Value]) -> Sequence[Value]:
            row = net.add(Gather(), net.constant(table), i, name="row")
            return (net.add(Concat(0), *grown, net.add(Reshape((1, 3)), row)),)

        model = model_of(growing(append, [TensorInfo((None, 3), DataType.FLOAT32)]), ["NumbaAcc"])
        first = table[:0]
        for _ in range(2):
            with pytest.raises(InvalidArgumentError, match=r"'grow' / body.*row.*0 to 9; got 10"):
                model(0 * ONE, 11 * ONE, FIRST, first)
            *_, grown = model(0 * ONE, 10 * ONE, FIRST, first)
            np.testing.assert_array_equal(grown, table)
