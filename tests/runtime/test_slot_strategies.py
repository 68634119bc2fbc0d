"""Each value lies in the memory whose readers need the fewest copies."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pytest

from armpy.backend import MemorySource, NetworkResources, TensorHandleFactoryRegistry
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import Activation, ElementwiseBinary, ElementwiseUnary, Softmax, UnaryOperation
from tests.support.device_memory import DeviceFactory, DeviceHandle, Memory
from tests.support.fake_backends import FakeBackend, runtime_of
from tests.support.networks import ADD, MUL, RELU, f32, floats

X = floats(-1, 0, 2, 5)
MALLOC, DMA_BUF = MemorySource.MALLOC, MemorySource.DMA_BUF
NONE = MemorySource.UNDEFINED
NEGATE = ElementwiseUnary(UnaryOperation.NEG)


class Factory(DeviceFactory):
    """Memory of a name that can be shared in some ways."""

    def __init__(self, name: str, imports: MemorySource, exports: MemorySource) -> None:
        super().__init__(Memory(), DeviceHandle)
        self.factory_id = f"test/{name}"
        self._imports = imports
        self._exports = exports

    @property
    def import_sources(self) -> MemorySource:
        return self._imports

    @property
    def export_sources(self) -> MemorySource:
        return self._exports

    @property
    def num_tensors(self) -> list[int]:
        """How many tensors each of its arenas has."""
        return [len(arena.tensors) for arena in self.memory.arenas]


class Choosing(FakeBackend):
    """Has several kinds of memory, which its workloads map."""

    def __init__(
        self, backend_id: str, operations: Collection[type] | None, *factories: Factory
    ) -> None:
        super().__init__(backend_id, operations)
        self.factories = factories

    def register_tensor_handle_factories(
        self, registry: TensorHandleFactoryRegistry, network: NetworkResources
    ) -> None:
        for factory in reversed(self.factories):  # in another order than they are preferred
            registry.register_factory(factory)

    def get_handle_factory_preferences(self) -> Sequence[str]:
        return [factory.factory_id for factory in self.factories]


def network() -> Graph:
    """``a`` and ``b`` by one backend; ``c = -a`` and ``d = relu(b)`` by two others."""
    net = Network()
    x = net.input("x", f32(4))
    a = net.add(ADD, x, x, name="a")
    b = net.add(MUL, a, x, name="b")
    net.output("c", net.add(NEGATE, a, name="c"))
    net.output("d", net.add(RELU, b, name="d"))
    return net.build()


def copies(model: Model) -> list[str]:
    assert model.placement is not None
    found = [layer.layer for layer in model.placement.layers if layer.operation == "MemCopy"]
    assert model.placement.num_copies == len(found)
    return found


def check(model: Model) -> None:
    for x in (X, X - 2):
        c, d = model(x)
        np.testing.assert_array_equal(c, -2 * x)
        np.testing.assert_array_equal(d, np.maximum(2 * x * x, 0))


def test_values_of_one_backend_lie_where_their_readers_can_use_them() -> None:
    own, buffers, host = (
        Factory("own", NONE, NONE),
        Factory("buffers", NONE, DMA_BUF),
        Factory("host", MALLOC, MALLOC),
    )
    npu = Choosing("Npu", {ElementwiseBinary}, own, buffers, host)
    dsp_memory = Factory("dsp", DMA_BUF, MALLOC)
    dsp = Choosing("Dsp", {ElementwiseUnary}, dsp_memory)
    model = Model(network(), runtime_of(npu, dsp))  # d is CpuRef's, which is in host memory
    model.warm_up()
    # x is read where the caller has it, by the factory for host memory, and a by Npu itself;
    # c goes to the caller's memory, which Dsp cannot write.
    assert copies(model) == ["[ c Dsp -> host ]"]
    assert (own.num_tensors, buffers.num_tensors, host.num_tensors, dsp_memory.num_tensors) == (
        [],
        [1],
        [1],
        [1],
    )
    assert model.placement is not None
    assert model.placement.arena_bytes == {"Npu": 128, "Dsp": 64}
    check(model)


def test_the_preferred_memory_is_taken_where_several_need_as_few_copies() -> None:
    first, second = Factory("first", MALLOC, MALLOC), Factory("second", MALLOC, MALLOC)
    model = Model(network(), runtime_of(Choosing("Npu", {ElementwiseBinary}, first, second)))
    model.warm_up()
    assert copies(model) == []
    assert (first.num_tensors, second.num_tensors) == ([2], [])
    check(model)


def test_memory_that_suits_most_readers_is_taken_if_none_suits_all() -> None:
    """``a`` is read by two backends that know buffers and one that knows the host's memory."""
    net = Network()
    x = net.input("x", f32(4))
    a = net.add(ADD, x, x, name="a")
    net.output("b", net.add(NEGATE, a, name="b"))
    net.output("c", net.add(RELU, a, name="c"))
    net.output("d", net.add(Softmax(), a, name="d"))
    host, buffers = Factory("host", MALLOC, MALLOC), Factory("buffers", DMA_BUF, DMA_BUF)

    npu = Choosing("Npu", {ElementwiseBinary}, host, buffers)
    dsp = Choosing("Dsp", {ElementwiseUnary}, Factory("dsp", DMA_BUF, MALLOC))
    gpu = Choosing("Gpu", {Activation}, Factory("gpu", DMA_BUF, MALLOC))
    model = Model(net, runtime_of(npu, dsp, gpu))
    model.warm_up()
    made = copies(model)
    assert (host.num_tensors, buffers.num_tensors) == ([], [1])
    assert made == ["[ a Npu -> CpuRef ]", "[ b Dsp -> host ]", "[ c Gpu -> host ]"]
    b, c, d = model(X)
    np.testing.assert_array_equal(b, -2 * X)
    np.testing.assert_array_equal(c, np.maximum(2 * X, 0))
    np.testing.assert_allclose(d, np.exp(2 * X) / np.exp(2 * X).sum(), rtol=1e-6)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_result_is_written_in_place_by_whoever_can_use_the_hosts_memory(is_first: bool) -> None:
    net = Network()
    net.output("y", net.add(RELU, net.input("x", f32(4))))
    own, host = Factory("own", NONE, NONE), Factory("host", MALLOC, MALLOC)
    order = (host, own) if is_first else (own, host)
    model = Model(net, runtime_of(Choosing("Npu", None, *order)))
    assert copies(model) == []
    assert own.num_tensors == host.num_tensors == []
    np.testing.assert_array_equal(model(X), np.maximum(X, 0))


def test_memory_that_only_exports_to_the_host_is_not_the_callers() -> None:
    """Its handles can be mapped by all, but its workloads cannot write anybody's arrays."""
    net = Network()
    net.output("y", net.add(RELU, net.input("x", f32(4)), name="y"))
    memory = Factory("own", NONE, MALLOC)
    model = Model(net, runtime_of(Choosing("Npu", None, memory)))
    assert copies(model) == ["[ x host -> Npu ]", "[ y Npu -> host ]"]
    np.testing.assert_array_equal(model(X), np.maximum(X, 0))
    assert memory.num_tensors == [2]
