"""Loops whose layers are all NumbaAcc's run inside its program."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from armpy_numba_acc.lowering import nested_graphs
from armpy_numba_acc.lowering.loops import check
from armpy_numba_acc.lowering.nested_graphs import refusal_of_region
from armpy_numba_acc.runtime import instance

from armpy import Model, Network, Runtime, RuntimeOptions
from armpy.backend import Cancellation, cancellable
from armpy.compiler import specialize
from armpy.errors import ExecutionCancelledError, ExecutionTimeoutError, InvalidArgumentError
from armpy.graph import Graph, SubgraphView, Value
from armpy.ops import (
    Activation,
    ActivationFunction,
    BinaryOperation,
    Comparison,
    ComparisonOperation,
    Convolution2d,
    ElementwiseBinary,
    FullyConnected,
    Gather,
    Select,
    While,
)
from armpy.ops.operation import Array
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType

ADD = ElementwiseBinary(BinaryOperation.ADD)
SUB = ElementwiseBinary(BinaryOperation.SUB)
LESS = Comparison(ComparisonOperation.LESS)
NUMBER = TensorInfo((), DataType.SIGNED32)
VECTOR = TensorInfo((1, 5), DataType.FLOAT32)
BYTES = TensorInfo((1, 5), DataType.QASYMM_S8, Quantization.per_tensor(0.1, 3))
HALVES = TensorInfo((1, 5), DataType.FLOAT16)
Build = Callable[..., tuple[Value, ...]]


def number(net: Network, value: int) -> Value:
    return net.constant(np.array(value, np.int32))


def graph_of(infos: list[TensorInfo], build: Build) -> Graph:
    net = Network()
    inputs = [net.input(f"in{index}", info) for index, info in enumerate(infos)]
    for index, value in enumerate(build(net, *inputs)):
        net.output(f"out{index}", value)
    return net.build()


def loop_of(infos: list[TensorInfo], body: Build, limit: int | None = None) -> While:
    """``while in0 < limit``, or ``while in0 < in1`` if there is no limit; counts in ``in0``."""

    def below(net: Network, i: Value, *others: Value) -> tuple[Value, ...]:
        return (net.add(LESS, i, others[0] if limit is None else number(net, limit)),)

    def counted(net: Network, i: Value, *others: Value) -> tuple[Value, ...]:
        return (net.add(ADD, i, number(net, 1)), *body(net, i, *others))

    everything = [NUMBER, *([NUMBER] if limit is None else []), *infos]
    return While(graph_of(everything, below), graph_of(everything, counted))


def network_of(loop: While, infos: list[TensorInfo], start: int | None = None) -> Graph:
    """The loop alone; its counter begins with a constant, or is the first input."""
    first = [NUMBER] if start is None else []

    def build(net: Network, *inputs: Value) -> tuple[Value, ...]:
        begin = [] if start is None else [number(net, start)]
        return net.add_layer(loop, (*begin, *inputs), name="loop").outputs

    return graph_of([*first, *infos], build)


def on(backend: str, graph: Graph, **options: object) -> Model:
    backends = ["NumbaAcc"] if backend == "NumbaAcc" else [backend]
    return Model(graph, Runtime(RuntimeOptions(backends=backends, **options)))  # type: ignore[arg-type]


def check_both(graph: Graph, *inputs: Array) -> list[Array]:
    """What NumbaAcc gives, alone, which is what CpuRef gives."""
    ours, reference = (on(backend, graph) for backend in ("NumbaAcc", "CpuRef"))
    results: list[list[Array]] = []
    for model in (ours, reference):
        result = model(*inputs)
        results.append(list(result) if isinstance(result, tuple) else [result])
    assert ours.placement is not None
    assert set(ours.placement.layers_by_backend) == {"NumbaAcc"}
    for found, wanted in zip(*results, strict=True):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
        if found.dtype.kind == "i":
            np.testing.assert_array_equal(found, wanted)
    return results[0]


X = np.array([[1, -2, 3, 0.5, 0]], np.float32)
Y = np.array([[7, 5, -1, 2, 9]], np.float32)


def doubled(net: Network, _: Value, x: Value) -> tuple[Value, ...]:
    return (net.add(ADD, x, x),)


@pytest.mark.parametrize("start", [0, 3, 4, 9])
def test_turns_are_counted(start: int) -> None:
    graph = network_of(loop_of([VECTOR], doubled, 4), [VECTOR], start)
    i, x = check_both(graph, X)
    turns = max(4 - start, 0)
    np.testing.assert_array_equal(x, X * 2**turns)
    assert i == start + turns


@pytest.mark.parametrize("start", [-2, 3, 4])
def test_conditions_are_computed(start: int) -> None:
    graph = network_of(
        loop_of([VECTOR], lambda net, i, limit, x: (limit, *doubled(net, i, x))), [NUMBER, VECTOR]
    )
    i, _, x = check_both(graph, np.array(start, np.int32), np.array(4, np.int32), X)
    assert i == max(start, 4)
    assert x[0, 0] == 2.0 ** max(4 - start, 0)


@pytest.mark.sampled(11)
@pytest.mark.parametrize("info", [VECTOR, BYTES, HALVES], ids=["float32", "int8", "float16"])
@pytest.mark.parametrize("turns", [0, 1, 2, 5])
def test_values_change_places(info: TensorInfo, turns: int) -> None:
    """All that a turn gives is there before any of it is what the next one takes."""
    graph = network_of(
        loop_of([info] * 3, lambda net, i, x, y, z: (y, x, net.add(ADD, x, z)), turns),
        [info] * 3,
        0,
    )
    x, y = (a.astype(info.data_type.dtype) for a in (X, Y))
    _, first, second, total = check_both(graph, x, y, x)
    if info.data_type is not DataType.QASYMM_S8:
        expected = (x, y, x)
        for _ in range(turns):
            expected = (expected[1], expected[0], expected[0] + expected[2])
        for found, wanted in zip((first, second, total), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)


def test_what_no_turn_changes_and_constants_can_be_carried() -> None:
    def body(net: Network, i: Value, x: Value, y: Value, z: Value) -> tuple[Value, ...]:
        return x, net.add(ADD, x, y), net.constant(Y)

    graph = network_of(loop_of([VECTOR] * 3, body, 3), [VECTOR] * 3, 0)
    _, x, y, z = check_both(graph, X, Y, X)
    for found, wanted in ((x, X), (y, Y + 3 * X), (z, Y)):
        np.testing.assert_array_equal(found, wanted)


def test_one_value_can_be_two_outputs_and_inputs() -> None:
    def build(net: Network, x: Value) -> tuple[Value, ...]:
        made = net.add(ADD, x, x)
        loop = loop_of(
            [VECTOR] * 3,
            lambda net, i, a, b, c: (total := net.add(ADD, a, c), total, c),
            3,
        )
        _, *values = net.add_layer(loop, (number(net, 0), made, made, made)).outputs
        return (*values, net.add(SUB, values[0], made))

    a, b, c, d = check_both(graph_of([VECTOR], build), X)
    np.testing.assert_array_equal([a, b, c, d], [8 * X, 8 * X, 2 * X, 6 * X])


def nested(num_levels: int, turns: int = 2) -> While:
    """Loops in each other, each of which runs the next one as often; the innermost adds."""
    loop = loop_of([VECTOR], lambda net, i, x: (net.add(ADD, x, net.constant(Y)),), turns)
    for _ in range(num_levels - 1):

        def body(net: Network, i: Value, x: Value, inner: While = loop) -> tuple[Value, ...]:
            return (net.add_layer(inner, (number(net, 0), x)).outputs[1],)

        loop = loop_of([VECTOR], body, turns)
    return loop


def test_loops_lie_in_each_other() -> None:
    _, x = check_both(network_of(nested(4), [VECTOR], 0), X)
    np.testing.assert_array_equal(x, X + 16 * Y)


def test_loops_that_would_be_too_many_layers_are_refused() -> None:
    """Each level has two loops that run the next one: 2^20 copies of the innermost."""
    loop = nested(1)
    for _ in range(20):

        def body(net: Network, i: Value, x: Value, inner: While = loop) -> tuple[Value, ...]:
            for _ in range(2):
                x = net.add_layer(inner, (number(net, 0), x)).outputs[1]
            return (x,)

        loop = loop_of([VECTOR], body, 2)
    layer = specialize(network_of(loop, [VECTOR], 0)).layers[0]
    reason = check(layer.operation, layer.input_infos, layer.output_infos)
    # 3 layers of the innermost; each other level has 4, and twice those of the next one.
    assert reason == f"written out, it has {7 * 2**20 - 4} layers of {3 + 20 * 4}"


def test_a_region_of_too_many_loops_goes_to_the_next_backend(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each has three layers at each of three levels."""

    def build(net: Network, x: Value) -> tuple[Value, ...]:
        for _ in range(3):
            x = net.add_layer(nested(3), (number(net, 0), x)).outputs[1]
        return (x,)

    graph = specialize(graph_of([VECTOR], build))
    view = SubgraphView.of(graph, graph.layers)
    assert refusal_of_region(view) == ""
    monkeypatch.setattr(nested_graphs, "MOST_LAYERS_OF_REGION", 25)
    assert refusal_of_region(view) == "written out, its loops have 27 layers"
    model = Model(graph, Runtime(RuntimeOptions(backends=["NumbaAcc", "CpuRef"])))
    np.testing.assert_array_equal(model(X), X + 24 * Y)
    report = model.placement
    assert report is not None
    assert {layer.backend for layer in report.layers if not layer.inside} == {"host"}


def test_shapes_that_change_are_refused() -> None:
    infos = [NUMBER, TensorInfo((None,), DataType.FLOAT32)]
    loop = loop_of(infos[1:], doubled, 3)
    assert "shapes" in check(loop, infos, infos)


def test_layers_before_and_after_share_the_program() -> None:
    def build(net: Network, x: Value) -> tuple[Value, ...]:
        weights = np.eye(5, dtype=np.float32)[::-1].copy()
        x = net.add(FullyConnected(), x, net.constant(weights))

        def body(net: Network, i: Value, x: Value) -> tuple[Value, ...]:
            tanh = Activation(ActivationFunction.TANH, 1.0, 1.0)
            return (net.add(tanh, net.add(FullyConnected(), x, net.constant(weights))),)

        x = net.add_layer(loop_of([VECTOR], body, 3), (number(net, 0), x)).outputs[1]
        return (net.add(SUB, x, net.constant(Y)),)

    (found,) = check_both(graph_of([VECTOR], build), X)
    np.testing.assert_allclose(found, np.tanh(np.tanh(np.tanh(X))) - Y, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("num_threads", [1, 3])
def test_several_threads_run_long_commands_again_and_again(num_threads: int) -> None:
    """The only command that they share comes round with the same number each time."""
    info = TensorInfo((1, 24, 24, 32), DataType.FLOAT32)
    rng = np.random.default_rng(0)
    weights = (rng.standard_normal((32, 3, 3, 32)) / 20).astype(np.float32)

    def body(net: Network, i: Value, x: Value) -> tuple[Value, ...]:
        same = Convolution2d(padding=((1, 1), (1, 1)))
        return (net.add(same, x, net.constant(weights)),)

    graph = network_of(loop_of([info], body, 20), [info], 0)
    model = on("NumbaAcc", graph, num_threads=num_threads)
    x = rng.standard_normal(info.known_shape).astype(np.float32)
    wanted = on("CpuRef", graph)(x)[1]
    scale = np.abs(wanted).max()
    for _ in range(10):
        np.testing.assert_allclose(model(x)[1] / scale, wanted / scale, atol=1e-5)


LISTS = [
    TensorInfo((4, 1, 5), DataType.FLOAT32),
    TensorInfo((4, 1, 5), DataType.QASYMM_S8, Quantization.per_tensor(0.1, 3)),
    TensorInfo((4, 5), DataType.FLOAT16),
    TensorInfo((4,), DataType.SIGNED32),
]
USES: dict[str, Build] = {
    "alone": lambda net, whole, made: (made,),
    "read as it was": lambda net, whole, made: (made, net.add(ADD, whole, whole)),
    "read as it is": lambda net, whole, made: (made, net.add(ADD, made, made)),
    "given out twice": lambda net, whole, made: (made, made),
    "given out in turn": lambda net, whole, made: (made, whole),
}


@pytest.mark.sampled(17)
@pytest.mark.parametrize("info", LISTS, ids=lambda info: info.data_type.name)
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("start", [0, -2, 2])
def test_lists_are_written_element_by_element(info: TensorInfo, use: str, start: int) -> None:
    """In five turns, some of which are in front of the list or after it and write nothing."""
    shape = info.known_shape
    element = TensorInfo((1, *shape[1:]), info.data_type, info.quantization)
    positions = np.arange(shape[0], dtype=np.int32).reshape(-1, *[1] * (len(shape) - 1))

    def body(net: Network, i: Value, value: Value, whole: Value, *_: Value) -> tuple[Value, ...]:
        here = net.add(Comparison(ComparisonOperation.EQUAL), net.constant(positions), i)
        value = net.add(ADD, value, value)
        selected = net.add_layer(Select(), (here, value, whole), outputs=[info])
        return value, *USES[use](net, whole, selected.outputs[0])

    infos = [element, *[info] * (1 if use == "alone" else 2)]
    loop = loop_of(infos, body, start + 5)
    rng = np.random.default_rng(0)
    arrays = [
        rng.integers(-9, 9, value.known_shape).astype(value.data_type.dtype) for value in infos
    ]
    found = check_both(network_of(loop, infos, start), *arrays)
    if use == "alone" and info.data_type is not DataType.QASYMM_S8:
        expected = arrays[1].copy()
        for turn in range(5):
            if 0 <= start + turn < 4:
                expected[start + turn] = (arrays[0] * 2 ** (turn + 1))[0]
        np.testing.assert_array_equal(found[2], expected)


def endless(**options: object) -> Model:
    """``while in0 < in1: in0 = in0``."""
    infos = [NUMBER, NUMBER]
    condition = graph_of(infos, lambda net, i, limit: (net.add(LESS, i, limit),))
    body = graph_of(infos, lambda net, i, limit: (net.add(ADD, i, number(net, 0)), limit))
    return on("NumbaAcc", network_of(While(condition, body), [NUMBER]), **options)


ZERO, ONE = np.array(0, np.int32), np.array(1, np.int32)


class TestTimeouts:
    def test_a_loop_ends_in_time(self) -> None:
        model = endless(loop_timeout_s=0.1)
        started = time.monotonic()
        with pytest.raises(
            ExecutionTimeoutError,
            match=r"NumbaAcc / .*loop: test.*within 0.1 s .*; got \d+ turns and no end",
        ):
            model(ZERO, ONE)
        assert 0.1 <= time.monotonic() - started < 5
        assert model(ONE, ONE)[0] == 1

    def test_zero_allows_no_turn(self) -> None:
        model = endless(loop_timeout_s=0)
        assert model(ONE, ONE)[0] == 1
        with pytest.raises(ExecutionTimeoutError, match="got 0 turns"):
            model(ZERO, ONE)

    def test_an_execution_may_say_another_time(self) -> None:
        model = endless(loop_timeout_s=None)
        network = model.runtime.get_network(model.network_id)
        with pytest.raises(ExecutionTimeoutError, match=r"within 0\.05 s"):
            network.run([ZERO, ONE], loop_timeout_s=0.05)

    def test_what_takes_long_is_interrupted(self) -> None:
        model = endless(loop_timeout_s=None)
        timer = threading.Timer(0.2, signal.raise_signal, [signal.SIGINT])
        timer.start()
        started = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            model(ZERO, ONE)
        assert time.monotonic() - started < 5
        timer.join()
        assert model(ONE, ONE)[0] == 1

    def test_what_takes_long_is_cancelled(self) -> None:
        model = endless(loop_timeout_s=None)
        model(ONE, ONE)
        deadline = Cancellation()
        timer = threading.Timer(0.1, deadline.cancel)
        timer.start()
        with cancellable(deadline), pytest.raises(ExecutionCancelledError, match="was cancelled"):
            model(ZERO, ONE)
        timer.join()

    def test_pauses_change_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Python looks for interrupts between turns, which go on where they were."""
        monkeypatch.setattr(instance, "_PAUSE_NS", 300_000)
        clock, asked = time.perf_counter_ns, []

        def counted() -> int:
            asked.append(0)
            return clock()

        model = on("NumbaAcc", network_of(nested(2, 300), [VECTOR], 0))
        monkeypatch.setattr(time, "perf_counter_ns", counted)
        _, x = model(X)
        np.testing.assert_allclose(x, X + 90_000 * Y, rtol=1e-4)
        assert len(asked) > 3


def test_an_index_out_of_range_in_a_loop_is_an_error() -> None:
    table = TensorInfo((3,), DataType.FLOAT32)
    scalar = TensorInfo((), DataType.FLOAT32)

    def body(net: Network, i: Value, x: Value, values: Value) -> tuple[Value, ...]:
        return net.add(ADD, x, net.add(Gather(), values, i)), values

    graph = network_of(loop_of([scalar, table], body, 4), [scalar, table])
    model = on("NumbaAcc", graph)
    values = np.array([1, 2, 4], np.float32)
    with pytest.raises(InvalidArgumentError, match=r"loop/body/.*expected 0 to 2; got 3|got 3"):
        model(ZERO, np.float32(0), values)
    with pytest.raises(InvalidArgumentError, match="got -1"):
        model(np.array(-1, np.int32), np.float32(0), values)


def test_the_time_of_all_turns_is_measured() -> None:
    graph = network_of(nested(1, 500), [VECTOR], 0)
    model = on("NumbaAcc", graph, profiling=True)
    started = time.perf_counter()
    model(X)
    taken_us = 1e6 * (time.perf_counter() - started)
    profiler = model.runtime.get_profiler(model.network_id)
    assert profiler is not None
    events = [event for event in profiler.events if "loop/body" in event.name]
    assert len(events) == 2
    assert all(event.duration_us >= 0 for event in events)
    assert sum(event.duration_us for event in events) < taken_us


def test_programs_with_loops_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("ARMPY_NUMBA_CACHE", raising=False)
    monkeypatch.setattr("armpy_numba_acc.store.keys._IMPORTED_NS", 1 << 63)
    graphs = [network_of(nested(2, turns), [VECTOR], 0) for turns in (2, 3, 2)]
    for graph, turns in zip(graphs, (2, 3, 2), strict=True):
        np.testing.assert_array_equal(on("NumbaAcc", graph)(X)[1], X + turns**2 * Y)
    assert len(list((tmp_path / "numba_acc").glob("program-*"))) == 2
