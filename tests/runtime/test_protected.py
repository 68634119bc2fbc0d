"""In protected mode nothing of a network's tensors is mapped, copied or shown by the core."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from armpy import NetworkProperties
from armpy.backend import ExternalMemory
from armpy.errors import (
    ArmpyError,
    BackendCapabilityError,
    InvalidArgumentError,
    MemoryExportError,
)
from armpy.execution import Runtime
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import Activation, ElementwiseBinary, Reshape
from tests.support.fake_backends import runtime_of
from tests.support.importing_device import shared
from tests.support.networks import ADD, RELU, chain, diamond, f32, floats, i32
from tests.support.protected_device import PROTECTED, ProtectedDevice, SecretMemory

X = floats(-1, 0, 2, 5)


def protected_runtime(*devices: ProtectedDevice, **options: object) -> Runtime:
    allocators = {device.get_id(): device.secrets for device in devices}
    ids = [device.get_id() for device in devices]
    return runtime_of(
        *devices, backends=ids, protected_mode=True, custom_allocators=allocators, **options
    )


def test_a_network_runs_on_protected_tensors_and_nobody_maps_one() -> None:
    device = ProtectedDevice()
    secrets = device.secrets
    with Model(diamond(), protected_runtime(device, profiling=True)) as model:
        source, target = secrets.holding(X), secrets.new(16)
        x = model.import_inputs({"x": source})["x"]
        y = model.import_outputs({"y": target})["y"]
        for factor in (1, 2):
            secrets.contents[source.file_descriptor][:] = (X * factor).view(np.uint8)
            assert model.run({"x": x}, {"y": y}) == {"y": y}
            relu = np.maximum(X * factor, 0)
            assert secrets.shown(target) == (relu + 1 + relu * 3).tolist()
        execution = model.bind({"x": x}, {"y": y})
        secrets.contents[source.file_descriptor][:] = 0
        execution()
        assert secrets.shown(target) == [1] * 4
        assert secrets.given > 0
    del execution, model
    gc.collect()
    assert device.num_maps == 0
    assert secrets.given == 0
    assert len(secrets.contents) == 2  # the application's own


def test_what_finds_maps_out_finds_them() -> None:
    device = ProtectedDevice()
    with Model(chain(3), runtime_of(device, custom_allocators={"Npu": device.secrets})) as model:
        with pytest.raises(ArmpyError, match="a protected tensor was mapped"):
            model(X)
        assert device.num_maps == 1


def test_sources_of_protected_memory_are_imported_in_every_call() -> None:
    device = ProtectedDevice()
    secrets = device.secrets
    properties = NetworkProperties(input_source=PROTECTED, output_source=PROTECTED)
    with Model(chain(3), protected_runtime(device), properties=properties) as model:
        source, target = secrets.holding(X), secrets.new(16)
        model.run({"x": source}, {"y": target})
        assert secrets.shown(target) == (X + 3).tolist()
    assert device.num_maps == 0


def test_arrays_and_outputs_that_the_core_would_make_are_refused() -> None:
    device = ProtectedDevice()
    with Model(chain(3), protected_runtime(device)) as model:
        x = model.import_inputs({"x": device.secrets.holding(X)})["x"]
        y = model.import_outputs({"y": device.secrets.new(16)})["y"]
        text = r"^{} 0: in protected mode.*Expected an imported tensor in protected memory; got {}"
        for inputs, outputs, told in (
            ({"x": X}, {"y": y}, ("input", "ndarray")),
            ({"x": x}, {"y": np.zeros(4, np.float32)}, ("output", "ndarray")),
            ({"x": x}, {}, ("output", "NoneType")),
            ({"x": x}, None, ("output", "NoneType")),
        ):
            with pytest.raises(InvalidArgumentError, match=text.format(*told)):
                model.run(inputs, outputs)
        with pytest.raises(InvalidArgumentError, match=text.format("output", "NoneType")):
            model(x)
        with pytest.raises(InvalidArgumentError, match=text.format("input", "ndarray")):
            model.bind({"x": X}, {"y": y})
        model.run({"x": x}, {"y": y})
    assert device.num_maps == 0


def test_no_values_are_told_of() -> None:
    device = ProtectedDevice()
    with Model(chain(3), protected_runtime(device)) as model:
        x = model.import_inputs({"x": device.secrets.holding(X)})["x"]
        y = model.import_outputs({"y": device.secrets.new(16)})["y"]
        for inputs, outputs in (({"x": x}, {"y": y}), ({"x": X}, None)):
            with pytest.raises(InvalidArgumentError):
                model.run(inputs, outputs, debug=print)
    assert device.num_maps == 0


def test_a_protected_tensor_is_no_array() -> None:
    device = ProtectedDevice()
    with Model(chain(3), protected_runtime(device)) as model:
        x = model.import_inputs({"x": device.secrets.holding(X)})["x"]
        with pytest.raises(ArmpyError, match="protected memory is never mapped by the host"):
            np.asarray(x)


def test_memory_that_is_not_protected_is_not_imported() -> None:
    device = ProtectedDevice()
    with Model(chain(3), protected_runtime(device)) as model:
        for memory in (shared(X), ExternalMemory.of_array(X.copy())):
            with pytest.raises(ArmpyError, match=r"^input 'x' / Npu: .*no memory of this kind"):
                model.import_inputs({"x": memory})


def test_two_devices_with_one_protected_memory_hand_tensors_on() -> None:
    """Both see the same memory, and say so by one factory."""
    secrets = SecretMemory()
    first = ProtectedDevice("Npu", {Activation}, secrets)
    second = ProtectedDevice("Dsp", {ElementwiseBinary}, secrets)
    with pytest.raises(BackendCapabilityError, match="a tensor is copied by the host"):
        Model(diamond(), protected_runtime(first, second))
    assert first.num_maps == second.num_maps == 0


def stateful() -> Graph:
    net = Network()
    total = net.variable("total", f32(4))
    following = net.add(ADD, total, net.input("x", f32(4)))
    net.assign(total, following)
    net.output("y", following)
    return net.build()


def dynamic() -> Graph:
    net = Network()
    x, shape = net.input("x", f32(4)), net.input("shape", i32(2))
    net.output("y", net.add(Reshape(), net.add(RELU, x), shape))
    return net.build()


@pytest.mark.parametrize(
    ("make", "text"),
    [(stateful, r"it has variables \('total'\)"), (dynamic, "its shapes depend on values")],
)
def test_networks_whose_tensors_the_core_handles_are_refused_when_loaded(
    make: object, text: str
) -> None:
    assert callable(make)
    with pytest.raises(BackendCapabilityError, match=f"cannot run in protected mode: {text}"):
        Model(make(), protected_runtime(ProtectedDevice()))


def test_an_input_that_is_an_output_cannot_be_had() -> None:
    net = Network()
    x = net.input("x", f32(4))
    net.output("same", x)
    net.output("y", net.add(RELU, x))
    device = ProtectedDevice()
    with Model(net.build(), protected_runtime(device)) as model:
        x_in = model.import_inputs({"x": device.secrets.holding(X)})["x"]
        y_out = model.import_outputs({"y": device.secrets.new(16)})["y"]
        with pytest.raises(MemoryExportError, match=r"^output 'same' / host: "):
            model.import_outputs({"same": device.secrets.new(16)})
        with pytest.raises(InvalidArgumentError, match=r"^output 0: in protected mode"):
            model.run({"x": x_in}, {"y": y_out})
    assert device.num_maps == 0


def test_a_factory_without_arenas_gets_no_memory_of_the_cores() -> None:
    device = ProtectedDevice()
    device.makes_arenas = False
    model = Model(chain(3), protected_runtime(device))
    with pytest.raises(ArmpyError, match="no tensor lies in memory that the core has"):
        model.create_working_memory()
