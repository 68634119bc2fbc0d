"""Buffers, constants and protected memory of devices."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import armpy
from armpy import MemorySource, NetworkProperties
from armpy.backend import (
    DeviceMemoryRequest,
    ExternalMemory,
    ITensorHandle,
    ITensorHandleFactory,
    NetworkResources,
)
from armpy.errors import (
    ArmpyError,
    BackendCapabilityError,
    InvalidArgumentError,
    MemoryExportError,
    MemoryImportError,
    MemoryLimitError,
)
from armpy.execution import Runtime
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.model import Model
from armpy.ops import Activation, ElementwiseBinary, Reshape
from armpy.ops.operation import Array
from armpy.plugins import BackendProxy
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_testing.backends.device_memory import (
    BufferDevice,
    DeviceBackend,
    DeviceFactory,
    DeviceHandle,
    Memory,
)
from armpy_testing.backends.fake_backends import runtime_of
from armpy_testing.models.networks import (
    ADD,
    MUL,
    RELU,
    chain,
    diamond,
    f32,
    floats,
    i32,
    placement_of,
)
from armpy_testing.systems import NEEDS_SHARED_MEMORY
from tests.support.protected_device import PROTECTED, ProtectedDevice, SecretMemory

X = np.array([1, 2, 3], np.float32)


def doubling(runtime: Runtime, size: int = 3) -> Model:
    """``y = x + x``."""
    net = Network()
    x = net.input("x", TensorInfo((size,), DataType.FLOAT32))
    net.output("y", net.add(armpy.ops.ElementwiseBinary(), x, x))
    return Model(net.build(), runtime)


def test_a_tensor_stays_on_the_device_between_models() -> None:
    npu = BufferDevice()
    with runtime_of(npu) as runtime:
        first, second = doubling(runtime), doubling(runtime)
        memory = armpy.allocate_memory([(second, "x")], [(first, "y")])
        assert memory.source is MemorySource.DEVICE
        written, read = first.import_outputs({"y": memory}), second.import_inputs({"x": memory})
        first.run({"x": X}, dict(written))
        assert second.run(dict(read))["y"].tolist() == [4, 8, 12]
        assert npu.transfers == (1, 1)  # x and y of the caller


@NEEDS_SHARED_MEMORY
def test_others_have_shared_memory() -> None:
    with runtime_of() as runtime:
        first, second = doubling(runtime), doubling(runtime)
        memory = armpy.allocate_memory([(second, "x")], [(first, "y")])
        assert memory.source is MemorySource.SHARED_MEMORY
        first.run({"x": X}, dict(first.import_outputs({"y": memory})))
        assert second.run(dict(second.import_inputs({"x": memory})))["y"].tolist() == [4, 8, 12]


def test_memory_is_for_tensors_that_are_the_same() -> None:
    with runtime_of() as runtime:
        first, second = doubling(runtime), doubling(runtime, 4)
        with pytest.raises(InvalidArgumentError, match=r"output 'y'.*Expected .*4.*; got .*3"):
            armpy.allocate_memory([(second, "x")], [(first, "y")])
        with pytest.raises(InvalidArgumentError, match=r"no such input\. Expected 'x'; got 'z'"):
            armpy.allocate_memory([(second, "z")])
        with pytest.raises(InvalidArgumentError, match="the memory is for nothing"):
            armpy.allocate_memory()


def test_a_devices_memory_is_not_mapped_and_no_other_backend_imports_it() -> None:
    npu = BufferDevice()
    buffer = npu.allocate_device_memory(DeviceMemoryRequest(TensorInfo((3,), DataType.FLOAT32)))
    assert buffer is not None
    memory = ExternalMemory.of_device(buffer, 12)
    with pytest.raises(MemoryImportError, match="a backend's own buffer is copied"):
        memory.map()
    with runtime_of() as runtime, pytest.raises(MemoryImportError, match="no memory of this kind"):
        doubling(runtime).import_inputs({"x": memory})
    other = pytest.raises(MemoryImportError, match="the buffer is another device's")
    with runtime_of(BufferDevice()) as runtime, other:
        doubling(runtime).import_inputs({"x": memory})


@pytest.mark.parametrize("member", ["copy_in_from", "copy_out_to"])
def test_what_a_buffer_raises_names_the_backend(
    member: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    npu = BufferDevice()
    request = DeviceMemoryRequest(TensorInfo((3,), DataType.FLOAT32))
    guarded = BackendProxy(npu).allocate_device_memory(request)
    assert guarded is not None
    guarded.copy_in_from(X)

    def fail(array: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(npu.buffers[0], member, fail)
    with pytest.raises(armpy.BackendError, match=f"Npu / {member}: the backend raised ZeroDivis"):
        getattr(guarded, member)(np.zeros(3, np.float32))


@pytest.mark.parametrize("answer", [7, "junk", ZeroDivisionError(), SystemExit(), object()])
def test_what_a_backend_answers_for_a_buffer_is_contained(answer: object) -> None:
    npu = BufferDevice()
    npu.gives = answer
    request = DeviceMemoryRequest(TensorInfo((3,), DataType.FLOAT32))
    with pytest.raises(armpy.BackendError, match="Npu / allocate_device_memory"):
        BackendProxy(npu).allocate_device_memory(request)
    npu.gives = MemoryLimitError("full")
    with pytest.raises(MemoryLimitError, match="Npu / allocate_device_memory: full"):
        BackendProxy(npu).allocate_device_memory(request)


# Constants are handed to a backend as it wants them, once per network


VALUES = floats(-1, 0, 2, 5)


class Copying(DeviceFactory):
    """Copies constants to the device."""

    def create_constant_handle(self, info: TensorInfo, elements: Array) -> ITensorHandle:
        self.memory.constants.append(info)
        handle = DeviceHandle(self.memory, info, self.memory.take(info.size_bytes))
        handle.elements[...] = elements
        return handle


class OwnConstants(DeviceBackend):
    """Has constants in its own memory as well."""

    def handle_factory(self, network: NetworkResources) -> ITensorHandleFactory:
        return Copying(self.memory, self.kind)


def scaled(shape: int | None = 4) -> Graph:
    """``y = 3 x + 1 + 1``: two constants, one of which two layers read."""
    net = Network()
    unit = net.constant(np.float32(1), name="one")
    x = net.input("x", TensorInfo((shape,), DataType.FLOAT32))
    value = net.add(MUL, x, net.constant(np.float32(3), name="three"))
    value = net.add(ADD, net.add(ADD, value, unit), unit)
    net.output("y", value)
    return net.build()


def test_a_constant_for_which_the_device_has_no_room_costs_it_its_layers() -> None:
    backend = OwnConstants(memory=Memory(7))  # two of 4 bytes each
    model = Model(scaled(), runtime_of(backend))
    assert placement_of(model).layers_by_backend == {"CpuRef": 3}
    assert all(
        "Npu / create_constant_handle: the device is full" in refusal.text
        for refusal in placement_of(model).refusals
    )
    np.testing.assert_array_equal(model(VALUES), 3 * VALUES + 2)
    with pytest.raises(MemoryLimitError, match=r"^Npu / .*create_constant_handle: the device is"):
        Model(scaled(), runtime_of(backend, backends=["Npu"]))


# In protected mode nothing of a network's tensors is mapped, copied or shown by the core


SECRET = floats(-1, 0, 2, 5)


def protected_runtime(*devices: ProtectedDevice, **options: object) -> Runtime:
    allocators = {device.get_id(): device.secrets for device in devices}
    ids = [device.get_id() for device in devices]
    return runtime_of(
        *devices, backends=ids, protected_mode=True, custom_allocators=allocators, **options
    )


def test_a_network_runs_on_protected_tensors_and_none_is_mapped() -> None:
    device = ProtectedDevice()
    secrets = device.secrets
    with Model(diamond(), protected_runtime(device, profiling=True)) as model:
        source, target = secrets.holding(SECRET), secrets.new(16)
        x = model.import_inputs({"x": source})["x"]
        y = model.import_outputs({"y": target})["y"]
        for factor in (1, 2):
            secrets.contents[source.file_descriptor][:] = (SECRET * factor).view(np.uint8)
            assert model.run({"x": x}, {"y": y}) == {"y": y}
            relu = np.maximum(SECRET * factor, 0)
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


def test_sources_of_protected_memory_are_imported_in_every_call() -> None:
    device = ProtectedDevice()
    secrets = device.secrets
    properties = NetworkProperties(input_source=PROTECTED, output_source=PROTECTED)
    with Model(chain(3), protected_runtime(device), properties=properties) as model:
        source, target = secrets.holding(SECRET), secrets.new(16)
        model.run({"x": source}, {"y": target})
        assert secrets.shown(target) == (SECRET + 3).tolist()
    assert device.num_maps == 0


def test_arrays_and_outputs_that_the_core_would_make_are_refused() -> None:
    device = ProtectedDevice()
    with Model(chain(3), protected_runtime(device)) as model:
        x = model.import_inputs({"x": device.secrets.holding(SECRET)})["x"]
        y = model.import_outputs({"y": device.secrets.new(16)})["y"]
        text = r"^{} 0: in protected mode.*Expected an imported tensor in protected memory; got {}"
        for inputs, outputs, words in (
            ({"x": SECRET}, {"y": y}, ("input", "ndarray")),
            ({"x": x}, {"y": np.zeros(4, np.float32)}, ("output", "ndarray")),
            ({"x": x}, {}, ("output", "NoneType")),
            ({"x": x}, None, ("output", "NoneType")),
        ):
            with pytest.raises(InvalidArgumentError, match=text.format(*words)):
                model.run(inputs, outputs)
        with pytest.raises(InvalidArgumentError, match=text.format("output", "NoneType")):
            model(x)
        with pytest.raises(InvalidArgumentError, match=text.format("input", "ndarray")):
            model.bind({"x": SECRET}, {"y": y})
        model.run({"x": x}, {"y": y})
    assert device.num_maps == 0


def test_no_values_are_passed() -> None:
    device = ProtectedDevice()
    with Model(chain(3), protected_runtime(device)) as model:
        x = model.import_inputs({"x": device.secrets.holding(SECRET)})["x"]
        y = model.import_outputs({"y": device.secrets.new(16)})["y"]
        for inputs, outputs in (({"x": x}, {"y": y}), ({"x": SECRET}, None)):
            with pytest.raises(InvalidArgumentError):
                model.run(inputs, outputs, debug=print)
    assert device.num_maps == 0


def test_a_protected_tensor_is_no_array() -> None:
    device = ProtectedDevice()
    with Model(chain(3), protected_runtime(device)) as model:
        x = model.import_inputs({"x": device.secrets.holding(SECRET)})["x"]
        with pytest.raises(ArmpyError, match="protected memory is never mapped by the host"):
            np.asarray(x)


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
        x_in = model.import_inputs({"x": device.secrets.holding(SECRET)})["x"]
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
