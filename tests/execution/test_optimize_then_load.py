"""Networks are optimised first, then loaded: what was assigned is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

import armpy
from armpy import OptimizedNetwork, OptimizerOptions
from armpy.backend import (
    BackendOption,
    ILayerSupport,
    OptionScope,
    OptionValues,
    PreparationRequest,
)
from armpy.errors import (
    BackendUnavailableError,
    InvalidArgumentError,
    UnimplementedError,
)
from armpy.execution import NetworkProperties, Runtime, RuntimeOptions
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import Activation
from armpy_testing.backends.dynamic_modules import module_source, write_module
from armpy_testing.backends.fake_backends import (
    FakeBackend,
    runtime_of,
)
from armpy_testing.models.networks import (
    ADD,
    chain,
    diamond,
    f32,
    floats,
    i32,
    ints,
    placement_of,
)

BY_NAME = {"top": "Fake", "left": "CpuRef", "right": "CpuRef", "bottom": "CpuRef"}


def places(network: OptimizedNetwork | Model) -> dict[str, str]:
    """Each layer's backend, by name."""
    return {layer.layer: layer.backend for layer in placement_of(network).layers}


def only_relu(backend_id: str = "Fake") -> FakeBackend:
    return FakeBackend(backend_id, {Activation})


class TestOptimizing:
    """`armpy.optimize` and its results."""

    def test_backends_are_given_by_id_as_objects_or_as_a_runtime(self) -> None:
        objects = armpy.optimize(diamond(), [only_relu(), ReferenceBackend()])
        runtime = armpy.optimize(diamond(), runtime_of(only_relu()))
        assert places(objects) == places(runtime) == BY_NAME
        assert set(places(armpy.optimize(diamond(), ["CpuRef"])).values()) == {"CpuRef"}
        assert armpy.optimize(diamond()).placement.layers

    @pytest.mark.parametrize(
        ("backends", "error", "text"),
        [
            (["Npu"], BackendUnavailableError, r"'Npu'.*Runtime.optimize_network\(backends="),
            ("CpuRef", InvalidArgumentError, "a sequence of ids"),
            (["CpuRef", ReferenceBackend()], InvalidArgumentError, "got str, ReferenceBackend"),
            ([5], InvalidArgumentError, "Expected ids, or backends; got int"),
        ],
    )
    def test_what_is_no_backend_is_an_error(
        self, backends: Sequence[str], error: type[Exception], text: str
    ) -> None:
        with pytest.raises(error, match=text):
            armpy.optimize(diamond(), backends)

    def test_a_runtime_takes_ids_of_its_own_backends(self, tmp_path: Path) -> None:
        write_module(tmp_path, "Acme_Npu_backend", module_source("Npu"))
        runtime = Runtime(RuntimeOptions(["CpuRef", "Npu"], dynamic_backends_path=tmp_path))
        optimized = runtime.optimize_network(diamond(), backends=["Npu", "CpuRef"])
        assert set(places(optimized).values()) == {"Npu"}
        assert set(places(Model(optimized, runtime)).values()) == {"Npu"}
        for names, error, text in (
            (["NumbaAcc"], BackendUnavailableError, "no backend 'NumbaAcc'.*of CpuRef, Npu"),
            ("Npu", InvalidArgumentError, "a sequence of ids"),
        ):
            with pytest.raises(error, match=text):
                runtime.optimize_network(diamond(), backends=names)

    def test_a_closed_runtime_optimises_nothing(self) -> None:
        runtime = runtime_of()
        runtime.close()
        with pytest.raises(InvalidArgumentError, match="the runtime is closed"):
            armpy.optimize(diamond(), runtime)


Way = Callable[[OptimizedNetwork, Path], OptimizedNetwork]


class Choosing(FakeBackend):
    """Takes everything or nothing, as a model option says."""

    options = (BackendOption("takes", True, "Whether.", OptionScope.MODEL),)

    def __init__(self, backend_id: str = "Fake") -> None:
        super().__init__(backend_id)
        self.given: list[OptionValues] = []

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        if request.model_options:
            self.given.append(request.model_options)
        operations = None if request.model_options.get("takes", True) else ()
        return FakeBackend(self.get_id(), operations).get_layer_support(request)


def at_once(network: OptimizedNetwork, folder: Path) -> OptimizedNetwork:
    return network


def from_file(network: OptimizedNetwork, folder: Path) -> OptimizedNetwork:
    network.save(folder / "network.armpy")
    return OptimizedNetwork.load(folder / "network.armpy")


@pytest.mark.parametrize("way", [at_once, from_file])
class TestLoading:
    """What is loaded is what was optimised."""

    def test_model_options_are_kept_unless_properties_say_otherwise(
        self, way: Way, tmp_path: Path
    ) -> None:
        options = OptimizerOptions(model_options={"Fake": {"takes": True}})
        network = way(armpy.optimize(chain(), runtime_of(Choosing()), options), tmp_path)
        backend = Choosing()
        runtime = runtime_of(backend, backend_options={"Fake": {"takes": False}})
        assert set(places(Model(network, runtime)).values()) == {"Fake"}
        assert backend.given[-1] == {"takes": True}
        properties = NetworkProperties(model_options={"Fake": {"takes": False}})
        assert set(places(Model(network, runtime, properties=properties)).values()) == {"CpuRef"}

    def test_variables_are_kept_and_shared(self, way: Way, tmp_path: Path) -> None:
        net = Network()
        state = net.variable("state", f32(2), floats(1, 2), key=("counter", 1, None))
        total = net.add(ADD, state, net.input("x", f32(2)))
        net.assign(state, total)
        net.output("total", total)
        graph = net.build()
        runtime = runtime_of()
        network = way(armpy.optimize(graph, runtime), tmp_path)
        model = Model(network, runtime)
        np.testing.assert_array_equal(model(floats(1, 1)), [2, 3])
        other = Model(graph, runtime, shares_state_with=model)
        np.testing.assert_array_equal(other(floats(1, 1)), [3, 4])
        np.testing.assert_array_equal(model(floats(0, 0)), [3, 4])


class TestShapes:
    """An optimised network is for shapes that are known."""

    @pytest.fixture
    def graph(self) -> Graph:
        net = Network()
        net.output("y", net.add(ADD, net.input("a", f32(None, 2)), net.input("b", f32(2))))
        return net.build()

    def test_shapes_that_depend_on_elements_are_an_error(self) -> None:
        net = Network()
        size = net.add(ADD, net.input("shape", i32(2)), net.constant(ints(0, 0)))
        net.output("y", net.add(armpy.ops.Reshape(), net.input("x", f32(4)), size))
        with pytest.raises(UnimplementedError, match="depend on the elements of its inputs"):
            armpy.optimize(net.build(), ["CpuRef"])
