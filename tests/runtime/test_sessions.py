"""A backend makes what a network needs when it gets a layer of it, and only then."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from armpy.backend import (
    IMemoryManager,
    IWorkloadFactory,
    NetworkResources,
    TensorHandleFactoryRegistry,
)
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import ElementwiseBinary, Softmax
from tests.support.control_flow import loop
from tests.support.fake_backends import FakeBackend, runtime_of
from tests.support.networks import RELU, chain, f32, floats, ints

X = floats(-1, 2, 3, 4)
ALL = {"manager": 1, "factory": 1, "handles": 1}


class Making(FakeBackend):
    """Counts what it makes for networks."""

    def __init__(self, operations: set[type] | None = None) -> None:
        super().__init__("Making", operations)
        self.made: Counter[str] = Counter()

    def create_memory_manager(self) -> IMemoryManager | None:
        self.made["manager"] += 1
        return None

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        self.made["factory"] += 1
        return super().create_workload_factory(network)

    def register_tensor_handle_factories(
        self, registry: TensorHandleFactoryRegistry, network: NetworkResources
    ) -> None:
        self.made["handles"] += 1


def test_a_backend_that_refuses_everything_makes_nothing() -> None:
    backend = Making({Softmax})
    runtime = runtime_of(backend)
    for _ in range(10):
        Model(chain(), runtime)(X)
    assert not backend.made


def test_a_backend_that_takes_layers_makes_everything_once_per_network() -> None:
    backend = Making()
    runtime = runtime_of(backend)
    models = [Model(chain(), runtime) for _ in range(3)]
    assert backend.made == {name: 3 for name in ALL}
    for model in models:
        np.testing.assert_array_equal(model(X), X + 3)
    assert backend.made == {name: 3 for name in ALL}


def open_network() -> Network:
    """A RELU of any number of elements."""
    net = Network()
    net.output("y", net.add(RELU, net.input("x", f32(None))))
    return net


def test_a_network_of_open_shapes_has_nothing_made_until_a_backend_gets_a_layer() -> None:
    """Which backends get layers is known only when it runs, maybe in another thread."""
    refusing, taking = Making({Softmax}), Making()
    for backend, expected in ((refusing, {}), (taking, ALL)):
        model = Model(open_network(), runtime_of(backend))
        assert not backend.made
        for _ in range(2):
            np.testing.assert_array_equal(model(X), [0, 2, 3, 4])
            assert backend.made == expected


def test_a_backend_that_gets_layers_in_control_flow_alone_makes_everything_once() -> None:
    backend = Making({ElementwiseBinary})
    model = Model(loop(10), runtime_of(backend))
    for _ in range(2):
        np.testing.assert_array_equal(model(ints(0)), [10])
    assert backend.made == ALL


def test_a_backend_without_layers_makes_nothing_for_a_profile_either() -> None:
    backend = Making({Softmax})
    Model(chain(), runtime_of(backend, profiling=True))
    assert not backend.made


@pytest.mark.parametrize("make", [chain, open_network])
def test_a_backend_that_cannot_make_what_it_needs_loses_its_layers(make: object) -> None:
    class Failing(Making):
        def create_memory_manager(self) -> IMemoryManager | None:
            raise OSError("the device is busy")

    model = Model(make(), runtime_of(Failing()))  # type: ignore[operator]
    expected = X + 3 if make is chain else np.maximum(X, 0)
    np.testing.assert_array_equal(model(X), expected)
    assert model.placement is not None
    assert set(model.placement.layers_by_backend) == {"CpuRef"}
    (reason,) = {refusal.text for refusal in model.placement.refusals}
    assert "the device is busy" in reason
