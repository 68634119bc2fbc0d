from __future__ import annotations

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy.compiler import OptimizedNetwork, optimize_graph
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import Activation, ElementwiseBinary, Reshape
from tests.support.fake_backends import OwnMemoryBackend, runtime_of
from tests.support.networks import ADD, RELU, chain, diamond, f32, floats, i32, ints

CPU = ReferenceBackend()


def steps(network: OptimizedNetwork) -> list[str]:
    """Backend and name of each layer; copies by where they go."""
    return [f"{layer.backend}: {layer.layer}" for layer in network.placement.layers]


def test_nothing_is_copied_between_backends_that_share_host_memory() -> None:
    graph = chain()
    network = optimize_graph(graph, [CPU])
    assert network.graph is graph
    assert network.placement.num_copies == 0


def test_values_are_copied_into_a_backends_own_memory_and_back() -> None:
    network = optimize_graph(chain(2), [OwnMemoryBackend("Npu")])
    assert steps(network) == [
        "Npu: [ x host -> Npu ]",
        "Npu: add_0",
        "Npu: add_1",
        "host: [ add_1 Npu -> host ]",
    ]
    assert network.placement.num_copies == 2


def test_a_value_is_copied_once_however_many_read_it() -> None:
    npu = OwnMemoryBackend("Npu", {ElementwiseBinary})
    network = optimize_graph(diamond(), [npu, CPU])
    assert network.placement.num_copies == 2
    assert [layer.partition for layer in network.placement.layers] == [0, -1, 1, 1, 1, -1]


def test_values_move_between_two_memories_directly() -> None:
    npu = OwnMemoryBackend("Npu", {ElementwiseBinary})
    dsp = OwnMemoryBackend("Dsp")
    network = optimize_graph(diamond(), [npu, dsp])
    assert "Npu: [ top Dsp -> Npu ]" in steps(network)
    x = floats(-1, 0, 2, 5)
    model = Model(diamond(), runtime_of(npu, dsp))
    np.testing.assert_array_equal(model(x), [1, 1, 9, 21])


@pytest.mark.parametrize("operations", [None, {ElementwiseBinary}, {Activation}])
def test_a_network_across_memories_gives_the_same_results(
    operations: set[type] | None,
) -> None:
    model = Model(diamond(), runtime_of(OwnMemoryBackend("Npu", operations)))
    for x in (floats(-1, 0, 2, 5), floats(1, 2, 3, 4)):
        np.testing.assert_array_equal(model(x), Model(diamond(), runtime_of())(x))


def test_state_outputs_and_constants_cross_memories() -> None:
    net = Network()
    x = net.input("x", f32(2))
    state = net.variable("v", f32(2))
    total = net.add(ADD, x, state)
    net.assign(state, total)
    net.output("total", total)
    net.output("again", total)
    net.output("half", net.add(RELU, total))
    net.output("x", x)
    net.output("one", net.constant(floats(1)))
    model = Model(net, runtime_of(OwnMemoryBackend("Npu", {ElementwiseBinary})))
    for factor in (1, 2, 3):
        total_now, again, half, same, one = model(floats(1, 2))
        for array in (total_now, again, half):
            np.testing.assert_array_equal(array, [factor, 2 * factor])
        np.testing.assert_array_equal(same, [1, 2])
        np.testing.assert_array_equal(one, [1])


def test_operands_that_are_left_out_stay_out() -> None:
    from armpy.ops import Convolution2d

    net = Network()
    x = net.input("x", f32(1, 2, 2, 1))
    w = net.constant(np.full((1, 1, 1, 1), 2, np.float32))
    net.output("y", net.add(Convolution2d(), x, w, None))
    model = Model(net, runtime_of(OwnMemoryBackend("Npu")))
    image = np.arange(4, dtype=np.float32).reshape(1, 2, 2, 1)
    np.testing.assert_array_equal(model(image), image * 2)


def test_values_that_decide_on_shapes_cross_memories() -> None:
    net = Network()
    x = net.input("x", f32(2, 3))
    shape = net.add(ADD, net.input("shape", i32(2)), net.constant(ints(1, 1)))
    net.output("y", net.add(RELU, net.add(Reshape(), x, shape)))
    model = Model(net, runtime_of(OwnMemoryBackend("Npu")))
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(model(data, ints(2, 1)), data.reshape(3, 2))
    np.testing.assert_array_equal(model(data, ints(0, 5)), data.reshape(1, 6))
