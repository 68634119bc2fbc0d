"""Plans for new input shapes that are made from those of others."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import armpy
from armpy.backend import Capabilities, Capability
from armpy.core.symbolic import SymbolicTrace
from armpy.errors import MemoryLimitError
from armpy.execution import LoadedNetwork, Runtime, RuntimeOptions
from armpy.execution.memory.idle_release import watchdog
from armpy.execution.programs.compiled_program import SizedNetwork
from armpy.execution.programs.traced.template import ResizedNetwork, TracedProgram
from armpy.execution.programs.traced.trace import MOST_TRACED, Traces
from armpy.execution.setup.settings import DEFAULT_PROGRAM_CACHE_SIZE
from armpy.graph import Value
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import (
    BatchMatMul,
    BinaryOperation,
    Concat,
    ElementwiseBinary,
    ExpandDims,
    FullyConnected,
    Gather,
    LayerNormalization,
    NonZero,
    Reduce,
    ReduceOperation,
    Reshape,
    Shape,
    Slice,
    Softmax,
    Stack,
    StridedSlice,
    Transpose,
)
from armpy.ops.operation import Array
from armpy.types import BackendId
from armpy_testing.backends.fake_backends import CompilingBackend, runtime_of
from armpy_testing.effort import IS_CAMPAIGN
from armpy_testing.models.control_flow import growing
from armpy_testing.models.networks import ADD, RELU, chain, f32, floats, ints
from armpy_testing.preparations import ORDINARY_PROGRAMS

WIDTH, HEADS = 32, 2
BACKENDS = ["NumbaAcc", "CpuRef"]


def weights(seed: int, *shape: int) -> Array:
    numbers: Array = np.random.default_rng(seed).normal(0, 0.3, shape).astype(np.float32)
    return numbers


def encoder() -> Network:
    """One layer of an encoder of (1, length, 32), attention written out."""
    net = Network()
    x = net.input("x", f32(1, None, WIDTH))

    def linear(value: Value, seed: int, size: int = WIDTH) -> Value:
        """A product, of rows one after the other."""
        flat = net.add(Reshape(target_shape=(-1, WIDTH)), value)
        product = net.add(FullyConnected(), flat, net.constant(weights(seed, size, WIDTH)))
        return net.add(Reshape(target_shape=(1, -1, size)), product)

    def heads(seed: int, *perm: int) -> Value:
        """One head after the other."""
        shape = (1, -1, HEADS, WIDTH // HEADS)
        return net.add(Transpose(perm=perm), net.add(Reshape(shape), linear(x, seed)))

    scores = net.add(BatchMatMul(), heads(1, 0, 2, 1, 3), heads(2, 0, 2, 3, 1))
    mixed = net.add(BatchMatMul(), net.add(Softmax(axis=-1), scores), heads(3, 0, 2, 1, 3))
    joined = net.add(Transpose(perm=(0, 2, 1, 3)), mixed)
    y = net.add(ADD, x, linear(net.add(Reshape((1, -1, WIDTH)), joined), 4))
    net.output("y", net.add(RELU, linear(net.add(LayerNormalization(axes=(-1,)), y), 5, 48)))
    return net


def perceptron() -> Network:
    net = Network()
    x = net.input("x", f32(None, 16))
    y = net.add(FullyConnected(), x, net.constant(weights(1, 24, 16)))
    y = net.add(RELU, y)
    net.output("y", net.add(FullyConnected(), y, net.constant(weights(2, 8, 24))))
    return net


def exported() -> Network:
    """Rows with a table of positions, in shapes computed from the input's as PyTorch writes it."""
    net = Network()
    x = net.input("x", f32(None, 4, WIDTH))

    def number(*numbers: int) -> Value:
        return net.constant(np.array(numbers, np.int32))

    shape = net.add(Shape(), x)
    count, length = [net.add(Gather(), shape, number(axis)) for axis in range(2)]
    table = net.constant(weights(3, 64, WIDTH))
    numbers = net.add(Slice((0,)), number(*range(64)), None, count)
    places = net.add(ExpandDims(1), net.add(Gather(), table, numbers))
    rows = net.add(ElementwiseBinary(BinaryOperation.MUL), count, length)
    flat = net.add(Reshape(), net.add(ADD, x, places), net.add(Concat(0), rows, number(WIDTH)))
    y = net.add(FullyConnected(), flat, net.constant(weights(1, 8, WIDTH)))
    whole = net.add(Concat(0), count, length, number(8))
    net.output("y", net.add(RELU, net.add(Reshape(), y, whole)))
    return net


def loaded(model: Model) -> LoadedNetwork:
    return model.runtime.get_network(model.network_id)


def load(net: Network) -> Model:
    return Model(net, Runtime(RuntimeOptions(backends=BACKENDS, num_threads=1)))


def is_resized(model: Model) -> bool:
    latest = loaded(model).latest
    assert latest is not None
    return isinstance(latest.program.network, ResizedNetwork)


def values(size: int, net: Network) -> Array:
    (value,) = net.build().inputs
    return weights(size, *(size if dim is None else dim for dim in value.info.shape or ()))


def warmed(net: Network, *sizes: int) -> Model:
    """A model that has met as many shapes as are needed before sizes are traced."""
    model = load(net)
    assert len(sizes) == ORDINARY_PROGRAMS
    for size in sizes:
        model(values(size, net))
        assert not is_resized(model)
    return model


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("make", "sizes"),
    [(perceptron, (13, 14, 1)), (encoder, (13, 14, 28)), (exported, (13, 14, 28))],
    ids=["perceptron", "encoder", "exported"],
)
def test_results_for_new_shapes_are_those_of_a_fresh_load(
    make: Callable[[], Network], sizes: Sequence[int]
) -> None:
    net = make()
    model = warmed(net, 6, 7)
    for size in range(1, 64) if IS_CAMPAIGN else sizes:
        rows = values(size, net)
        output = np.asarray(model(rows))
        assert is_resized(model) or size in (1, 6, 7)
        np.testing.assert_array_equal(output, np.asarray(load(net)(rows)))


def random_network(rng: random.Random) -> Network:
    """Attention, sums, parts and moves of two tensors, with one to three open dimensions."""
    net = Network()
    batch, length, other = rng.choice([(None, 5, 3), (2, None, 3), (None, None, 3), (None,) * 3])
    x, y = net.input("x", f32(batch, length, 8)), net.input("y", f32(batch, other, 8))
    x = net.add(Concat(1), x, y)
    for _ in range(rng.randint(2, 6)):
        kind = rng.randrange(7)
        if kind == 0:
            columns = net.add(Transpose(perm=(0, 2, 1)), x)
            scores = net.add(Softmax(axis=-1), net.add(BatchMatMul(), x, columns))
            x = net.add(BatchMatMul(), scores, x)
        elif kind == 1:
            x = net.add(LayerNormalization(axes=(-1,)), x)
        elif kind == 2:
            turned = net.add(RELU, net.add(Transpose(perm=(1, 0, 2)), x))
            x = net.add(ADD, x, net.add(Transpose(perm=(1, 0, 2)), turned))
        elif kind == 3:
            x = net.add(Concat(rng.randrange(2)), x, net.add(RELU, x))
        elif kind == 4:  # the first and the last image, which may be one
            gather = Gather(axis=0, wraps_negative=True)
            ends = [net.add(gather, x, net.constant(np.array(end))) for end in (0, -1)]
            x = net.add(Stack(0), *ends) if rng.randrange(2) else net.add(ADD, x, ends[1])
        elif kind == 5:  # the last image or row in front of the others
            axis = rng.randrange(2)
            front, ones = (0,) * axis, (1,) * (axis + 1)
            last = StridedSlice((*front, -1), (*front, 0), ones, end_mask=2 * axis + 1)
            others = StridedSlice((*front, 0), (*front, -1), ones, end_mask=axis)
            x = net.add(Concat(axis), *[net.add(part, x) for part in (last, others)])
        else:
            x = net.add(ADD, x, net.constant(weights(rng.randrange(9), 1, 1, 8)))
    net.output("z", x)
    return net


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_random_networks_compute_random_shapes_as_a_fresh_load_does(seed: int) -> None:
    rng = random.Random(seed)
    net = random_network(rng)
    model, are_resized = load(net), []
    known: list[tuple[list[Array], Array]] = []
    for _ in range(30 if IS_CAMPAIGN else 6):
        sizes = [rng.randint(2, 40) for _ in range(3)]
        shapes = [
            [
                size if dim is None else dim
                for size, dim in zip(each, value.info.shape or (), strict=True)
            ]
            for each, value in zip(
                (sizes, (sizes[0], sizes[2], 8)), net.build().inputs, strict=True
            )
        ]
        inputs = [weights(number, *shape) for number, shape in enumerate(shapes)]
        known.append((inputs, np.asarray(load(net)(*inputs))))
        # One from before in between: the same program runs sizes in turn.
        for arrays, expected in (known[-1], rng.choice(known), known[-1]):
            np.testing.assert_array_equal(np.asarray(model(*arrays)), expected)
        are_resized.append(is_resized(model))
    assert sum(are_resized) >= len(are_resized) // 2


class SizedCompiler(CompilingBackend):
    """Accepts traced sizes, though its programs are for one size each."""

    def get_capabilities(self) -> Capabilities:
        return {Capability.TRACED_SIZES: True}


def test_a_program_for_one_size_runs_no_other() -> None:
    with Model(chain(2, (None,)), runtime_of(SizedCompiler())) as model:
        for size in range(2, 7):
            rows = np.arange(size, dtype=np.float32)
            np.testing.assert_array_equal(np.asarray(model(rows)), rows + 2)
            assert not is_resized(model)
        assert loaded(model).program_cache.traces.has_failed


def test_freed_memory_is_used_for_no_size_again() -> None:
    net = perceptron()
    model = warmed(net, 2, 3)
    known = [(rows, np.asarray(load(net)(rows))) for rows in (values(size, net) for size in (4, 5))]
    for _ in range(2):
        for rows, expected in known:
            np.testing.assert_array_equal(np.asarray(model(rows)), expected)
        watchdog.reclaim(BackendId("NumbaAcc"))
        output = np.full((5, 8), np.nan, np.float32)
        model.run({"x": known[-1][0]}, {"y": output})
        np.testing.assert_array_equal(output, known[-1][1])
        loaded(model).free_working_memory()


def test_a_model_is_saved_for_sizes_that_were_traced(tmp_path: Path) -> None:
    net = exported()  # of which fewer layers are left where sizes are numbers
    model, rows = warmed(net, 6, 7), values(30, net)
    expected = np.asarray(model(rows))
    assert is_resized(model)
    model.save(tmp_path / "model.armpy")
    saved = armpy.load(tmp_path / "model.armpy", backends=BACKENDS)
    assert saved.is_light
    np.testing.assert_array_equal(np.asarray(saved(rows)), expected)


def test_a_model_is_saved_that_has_met_sizes_that_follow_from_values(tmp_path: Path) -> None:
    net = Network()
    places = net.add(NonZero(), net.input("x", f32(8)))
    net.output("y", net.add(Transpose((1, 0)), places))
    model = Model(net, Runtime(RuntimeOptions(backends=BACKENDS)))
    path = tmp_path / "model.armpy"
    for size in range(1, ORDINARY_PROGRAMS + 3):
        flags = (np.arange(8) < size).astype(np.float32)
        expected = np.asarray(model(flags))
        model.save(path)
        np.testing.assert_array_equal(armpy.load(path, backends=BACKENDS)(flags), expected)


def test_shapes_are_prepared_together_without_becoming_the_latest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = load(perceptron())
    model(values(5, perceptron()))
    assert loaded(model).prepare_together([[(size, 16)] for size in (9, 8)]) == 2
    latest = loaded(model).latest
    assert latest is not None
    assert latest.shapes == ((5, 16),)
    # Where sizes cannot be traced, each would have weights of its own.
    monkeypatch.setattr(Traces, "_trace", lambda *_: None)
    assert loaded(load(perceptron())).prepare_together([[(size, 16)] for size in (9, 8)]) == 1


def test_programs_and_templates_are_bounded() -> None:
    net = perceptron()
    model = warmed(net, 2, 3)
    for size in range(4, 40):
        model(values(size, net))
    network = loaded(model)
    assert (
        len(network.program_cache.programs)
        == len(network.program_cache.ready)
        == DEFAULT_PROGRAM_CACHE_SIZE
    )
    assert 0 < len(network.program_cache.traces._traced) <= MOST_TRACED


def test_sizes_are_not_traced_for_ever_where_templates_hold_for_single_shapes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("armpy.execution.programs.traced.trace.ENOUGH_TRACES", 2)
    net = perceptron()
    model = warmed(net, 2, 3)
    monkeypatch.setattr(SymbolicTrace, "__init__", _fixing(SymbolicTrace.__init__))
    are_resized = []
    for size in (30, 31, 32, 33):
        model(values(size, net))
        are_resized.append(is_resized(model))
    assert are_resized == [True, True, False, False]
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == ["the network is prepared anew for each size of axis 0 of input 'x'"]


def test_a_layer_that_takes_a_size_for_a_number_is_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("armpy.execution.programs.traced.trace.ENOUGH_TRACES", 2)
    net = Network()
    x = net.input("x", f32(None, 3, 4, 4))
    # One matrix for three of the others.
    mean = net.add(Reduce(ReduceOperation.MEAN, (1,), keep_dims=True), x)
    net.output("y", net.add(BatchMatMul(), x, mean))
    model = warmed(net, 2, 3)
    for size in (4, 5, 6, 7):
        model(values(size, net))
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    (warning,) = warnings
    assert warning.startswith("the network is prepared anew for each size of axis 0 of input 'x'")
    assert "by BatchMatMul 'BatchMatMul_1'" in warning


def _fixing(begin: Callable[..., None]) -> Callable[..., None]:
    """Traces whose first sizes have to stay what they are."""

    def begin_and_fix(trace: SymbolicTrace, sizes: Sequence[int]) -> None:
        begin(trace, sizes)
        for size in trace.given:
            trace.fix(size)

    return begin_and_fix


def test_turns_of_sizes_that_come_again_are_not_resized_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As many as need memory for so many numbers."""
    num_resized = 0

    def resized(*arguments: Any) -> SizedNetwork | None:  # Any: they are passed on
        nonlocal num_resized
        num_resized += 1
        return resize(*arguments)

    resize = TracedProgram.resized
    monkeypatch.setattr(TracedProgram, "resized", resized)
    runtime = Runtime(RuntimeOptions(BACKENDS, loop_timeout_s=None))
    model = Model(growing(40, is_read=True), runtime)
    expected = [9, 8, *[1] * 40]
    np.testing.assert_array_equal(model(ints(0), floats(9, 8))[1], expected)
    assert num_resized
    num_resized = 0
    np.testing.assert_array_equal(model(ints(0), floats(9, 8))[1], expected)
    assert num_resized == 0
    monkeypatch.setattr("armpy.execution.programs.cache._MOST_NUMBERS", 500)
    for limit in (45, 30):
        _, grown = model(ints(0), floats(*range(limit)))
        np.testing.assert_array_equal(grown, [*range(limit), *[1] * 40])
    counts = [len(inner.program_cache._inner) for inner in loaded(model).subgraphs.networks]
    assert 1 <= max(counts) < 40
    model.free_working_memory()
    np.testing.assert_array_equal(model(ints(0), floats(9, 8))[1], expected)


def test_more_memory_than_is_allowed_is_an_error_as_ever() -> None:
    net = perceptron()
    options = RuntimeOptions(backends=BACKENDS, num_threads=1, memory_limit_bytes=100_000)
    model = Model(net, Runtime(options))
    for size in (2, 3, 30, 31):
        model(values(size, net))
    assert is_resized(model)
    with pytest.raises(MemoryLimitError, match="needs too much memory"):
        model(values(5000, net))
