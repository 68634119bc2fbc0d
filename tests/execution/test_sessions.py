"""Preparing networks: what backends are asked for, for which targets."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import armpy
from armpy import DataType, TensorInfo, ops
from armpy.backend import (
    IMemoryManager,
    IPrograms,
    IWorkloadFactory,
    NetworkResources,
    OptionValues,
    ProgramCheck,
    ProgramFit,
    SavedProgram,
    TensorHandleFactoryRegistry,
)
from armpy.errors import InvalidArgumentError
from armpy.execution import Runtime, RuntimeOptions
from armpy.graph.network import Network
from armpy.model import Model
from armpy.model.compile_targets import check_targets, known_targets
from armpy.ops import Softmax
from armpy.plugins import BackendProxy
from armpy_testing.backends.fake_backends import FakeBackend, runtime_of
from armpy_testing.models.networks import RELU, chain, f32, floats, placement_of

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


@pytest.mark.parametrize("make", [chain, open_network])
def test_a_backend_that_cannot_make_what_it_needs_loses_its_layers(make: object) -> None:
    class Failing(Making):
        def create_memory_manager(self) -> IMemoryManager | None:
            raise OSError("the device is busy")

    model = Model(make(), runtime_of(Failing()))  # type: ignore[operator]
    expected = X + 3 if make is chain else np.maximum(X, 0)
    np.testing.assert_array_equal(model(X), expected)
    assert set(placement_of(model).layers_by_backend) == {"CpuRef"}
    (reason,) = {refusal.text for refusal in placement_of(model).refusals}
    assert "the device is busy" in reason


# What is prepared for some shapes is neither planned nor compiled by a call of these shapes


@pytest.fixture
def model() -> Model:
    net = Network()
    x = net.input("x", TensorInfo((None, 8, 8, 3), DataType.FLOAT32))
    weights = net.constant(np.full((4, 3, 3, 3), 0.25, np.float32))
    y = net.add(ops.Convolution2d(padding=ops.Padding.SAME), x, weights)
    net.output("y", y)
    return Model(net, Runtime(RuntimeOptions(backends=["NumbaAcc"])), closes_runtime=True)


@pytest.mark.parametrize(
    ("shape", "fault"),
    [
        ((None, 8, 8, 3), "the shape is not a sequence of whole numbers"),
        (("n", 8, 8, 3), "the shape is not a sequence of whole numbers"),
        ((-1, 8, 8, 3), "a size of the shape is negative"),
        (2, "the shape is not a sequence of whole numbers"),
    ],
)
def test_a_shape_that_is_none_is_refused_with_the_inputs_name(
    model: Model, shape: object, fault: str
) -> None:
    shapes: Any = {"x": shape}
    text = f"input 'x': {fault}. Expected a sequence of sizes of 0 or more; got "
    for call in (model.prepare, lambda shapes: armpy.optimize(model.graph, shapes=shapes)):
        with pytest.raises(InvalidArgumentError, match=re.escape(text + repr(shape))):
            call(shapes)


class Programs(IPrograms):
    def save(self, program: object, options: OptionValues) -> SavedProgram | None:
        return None

    def check(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        return ProgramCheck(ProgramFit.FOREIGN)

    def load(self, saved: SavedProgram) -> object:
        return saved


class ForMany(Programs):
    def __init__(self, targets: Any) -> None:  # Any: also what is no target
        self._targets = targets

    @property
    def targets(self) -> Sequence[str]:
        names: Sequence[str] = self._targets
        return names


class Compiling(FakeBackend):
    def __init__(self, backend_id: str, programs: IPrograms | None) -> None:
        super().__init__(backend_id)
        self._programs = programs

    def get_programs(self) -> IPrograms | None:
        return self._programs


def backend(backend_id: str, programs: IPrograms | None) -> BackendProxy:
    return BackendProxy(Compiling(backend_id, programs))


def test_targets_are_those_of_all_backends() -> None:
    backends = [
        backend("None", None),
        backend("Plain", Programs()),
        backend("Acme", ForMany(["acme-2", "host"])),
    ]
    assert known_targets(backends) == {"host": ["Plain", "Acme"], "acme-2": ["Acme"]}
    check_targets(["acme-2", "host"], backends)


def test_an_unknown_target_names_the_nearest() -> None:
    with pytest.raises(InvalidArgumentError, match=r"got 'acme-3'. Did you mean 'acme-2'\?"):
        check_targets(["host", "acme-3"], [backend("Acme", ForMany(["acme-2"]))])
