"""Factories of tensor handles: what they share, and which of them a tensor is made by."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pytest

from armpy.backend import (
    HOST_FACTORY_ID,
    HostTensorHandleFactory,
    IMemoryManager,
    ITensorHandle,
    ITensorHandleFactory,
    MemorySource,
    NetworkResources,
    TensorHandleFactoryRegistry,
)
from armpy.compiler.memory.memory_copies import handle_factories, hands_on
from armpy.errors import BackendError, InvalidArgumentError
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import Activation, ElementwiseBinary, ElementwiseUnary, UnaryOperation
from armpy.ops.operation import Array
from armpy.plugins.proxy.memory import HandleFactoryProxy
from armpy.tensor import TensorInfo
from armpy_testing.backends.device_memory import DeviceFactory, DeviceHandle, Memory
from armpy_testing.backends.fake_backends import FakeBackend, runtime_of
from armpy_testing.models.networks import ADD, MUL, RELU, copies, diamond, f32, floats, placement_of

X = floats(-1, 0, 2, 5)
MALLOC, DMA_BUF = MemorySource.MALLOC, MemorySource.DMA_BUF
NONE = MemorySource.UNDEFINED


class Factory(HostTensorHandleFactory):
    """Says what its memory can be shared with; it is the host's in truth."""

    def __init__(
        self, imports: MemorySource, exports: MemorySource, factory_id: str = "test/memory"
    ) -> None:
        self._imports = imports
        self._exports = exports
        self._factory_id = factory_id
        self.made = 0

    @property
    def factory_id(self) -> str:
        return self._factory_id

    @property
    def import_sources(self) -> MemorySource:
        return self._imports

    @property
    def export_sources(self) -> MemorySource:
        return self._exports

    def create_tensor_handle(self, info: TensorInfo, memory: Array) -> ITensorHandle:
        self.made += 1
        return super().create_tensor_handle(info, memory)


def guarded(imports: MemorySource, exports: MemorySource) -> HandleFactoryProxy:
    """A factory as the core sees it."""
    return HandleFactoryProxy("Any", Factory(imports, exports))


class Sharing(FakeBackend):
    """Makes its tensors by a given factory."""

    def __init__(
        self,
        backend_id: str,
        factory: ITensorHandleFactory,
        operations: set[type] | None = None,
        manager: IMemoryManager | None = None,
        preferences: Sequence[str] | None = None,
    ) -> None:
        super().__init__(backend_id, operations)
        self.factory = factory
        self.manager = manager
        self.preferences = preferences

    def register_tensor_handle_factories(
        self, registry: TensorHandleFactoryRegistry, network: NetworkResources
    ) -> None:
        registry.register_factory(self.factory)
        if self.manager is not None:
            registry.register_memory_manager(self.manager)
            registry.register_memory_manager(self.manager)

    def get_handle_factory_preferences(self) -> Sequence[str]:
        return ["test/memory"] if self.preferences is None else self.preferences


def run(first: FakeBackend, second: FakeBackend) -> list[str]:
    """Run ``top`` on one backend and the rest of the diamond on another; the copies made."""
    model = Model(diamond(), runtime_of(first, second))
    np.testing.assert_array_equal(model(X), [1, 1, 9, 21])
    assert placement_of(model).layers_by_backend == {first.get_id(): 1, second.get_id(): 3}
    return copies(model)


@pytest.mark.parametrize(
    ("writer", "reader", "expected"),
    [
        ((NONE, DMA_BUF), (DMA_BUF, NONE), True),
        ((NONE, DMA_BUF | MALLOC), (MALLOC, NONE), True),
        ((DMA_BUF, NONE), (DMA_BUF, NONE), False),
        ((NONE, DMA_BUF), (MALLOC, DMA_BUF), False),
        ((NONE, NONE), (NONE, NONE), False),
    ],
)
def test_memory_is_shared_if_what_one_exports_the_other_imports(
    writer: tuple[MemorySource, MemorySource],
    reader: tuple[MemorySource, MemorySource],
    expected: bool,
) -> None:
    assert hands_on(guarded(*writer), guarded(*reader)) is expected


def test_two_backends_without_one_copy_through_host_memory() -> None:
    npu = Sharing("Npu", Factory(NONE, NONE), {Activation})
    dsp = Sharing("Dsp", Factory(NONE, NONE))
    assert run(npu, dsp) == [
        "[ x host -> Npu ]",
        "[ top Npu -> Dsp ]",
        "[ bottom Dsp -> host ]",
    ]


def test_the_first_preferred_factory_that_is_registered_is_used_and_else_the_hosts() -> None:
    factory = Factory(NONE, NONE)
    for preferences, expected in (
        (["other/x", "test/memory", HOST_FACTORY_ID], "test/memory"),
        ([HOST_FACTORY_ID, "test/memory"], HOST_FACTORY_ID),
        (["other/x"], HOST_FACTORY_ID),
        ([], HOST_FACTORY_ID),
    ):
        backend = Sharing("Npu", factory, preferences=preferences)
        assert handle_factories(backend)[0][0].factory_id == expected


def test_a_second_factory_of_one_id_is_left_out() -> None:
    registry = TensorHandleFactoryRegistry()
    first, second = Factory(MALLOC, NONE), Factory(NONE, MALLOC)
    registry.register_factory(first)
    registry.register_factory(second)
    assert registry.get_factory("test/memory") is first
    assert registry.get_factory("test/other") is None
    assert isinstance(registry.get_factory(HOST_FACTORY_ID), HostTensorHandleFactory)


@pytest.mark.parametrize("what", ["factory", "manager"])
def test_something_else_cannot_be_registered(what: str) -> None:
    registry = TensorHandleFactoryRegistry()
    expected = "ITensorHandleFactory" if what == "factory" else "IMemoryManager"
    register = registry.register_factory if what == "factory" else registry.register_memory_manager
    with pytest.raises(InvalidArgumentError, match=f"Expected {expected}; got str"):
        register("x")  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize("preferences", ["test/memory", [5], None])
def test_wrong_preferences_cost_the_backend_its_layers(preferences: object) -> None:
    class Wrong(Sharing):
        def get_handle_factory_preferences(self) -> Sequence[str]:
            return preferences  # type: ignore[return-value]  # wrong on purpose

    model = Model(diamond(), runtime_of(Wrong("Npu", Factory(MALLOC, MALLOC))))
    assert placement_of(model).layers_by_backend == {"CpuRef": 4}
    assert all("Npu / get_handle_factory_pref" in r.text for r in placement_of(model).refusals)


def relu() -> Graph:
    """One layer."""
    net = Network()
    net.output("y", net.add(RELU, net.input("x", f32(4)), name="y"))
    return net.build()


class Odd(ITensorHandle):
    """A tensor whose elements come out in an odd way."""

    def __init__(self, info: TensorInfo, mapped: object) -> None:
        self._info = info
        self._mapped = mapped
        self._array = np.zeros(info.known_shape, np.float32)
        self.num_maps = self.num_unmaps = 0

    @property
    def info(self) -> TensorInfo:
        return self._info

    def map(self, *, read: bool = True, write: bool = True) -> Array:
        self.num_maps += 1
        # The workload writes through the first mapping; the copy to the host is the second.
        return self._array if self.num_maps == 1 else self._mapped  # type: ignore[return-value]

    def unmap(self) -> None:
        self.num_unmaps += 1


@pytest.mark.parametrize(
    ("mapped", "text"),
    [
        (None, "Expected ndarray; got None"),
        (floats(1, 2, 3), r"not of the tensor's form.*Expected .*got float32 \(3,\)"),
        (np.zeros(4, np.float64), r"not of the tensor's form.*got float64 \(4,\)"),
    ],
)
def test_elements_that_are_mapped_wrongly_are_not_copied(mapped: object, text: str) -> None:
    handles = []

    class Oddly(Factory):
        def create_tensor_handle(self, info: TensorInfo, memory: Array) -> ITensorHandle:
            handles.append(Odd(info, mapped))
            return handles[-1]

    model = Model(relu(), runtime_of(Sharing("Npu", Oddly(MALLOC, NONE))))
    where = r"host / MemCopy '\[ y Npu -> host \]' / Npu / map"
    with pytest.raises(BackendError, match=f"^{where}: .*{text}"):
        model(X)
    assert handles[0].num_maps == 2
    assert handles[0].num_unmaps == (1 if mapped is None else 2)  # where it began


# Each value lies in the memory whose readers need the fewest copies


NEGATE = ElementwiseUnary(UnaryOperation.NEG)


class NamedFactory(DeviceFactory):
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
        self, backend_id: str, operations: Collection[type] | None, *factories: NamedFactory
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


def check(model: Model) -> None:
    for x in (X, X - 2):
        c, d = model(x)
        np.testing.assert_array_equal(c, -2 * x)
        np.testing.assert_array_equal(d, np.maximum(2 * x * x, 0))


def test_values_of_one_backend_lie_where_their_readers_can_use_them() -> None:
    own, buffers, host = (
        NamedFactory("own", NONE, NONE),
        NamedFactory("buffers", NONE, DMA_BUF),
        NamedFactory("host", MALLOC, MALLOC),
    )
    npu = Choosing("Npu", {ElementwiseBinary}, own, buffers, host)
    dsp_memory = NamedFactory("dsp", DMA_BUF, MALLOC)
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
    assert placement_of(model).arena_bytes == {"Npu": 128, "Dsp": 64}
    check(model)
