"""Device memory for tensors of models, however they were loaded."""

from __future__ import annotations

import numpy as np
import pytest

import armpy
from armpy import DataType, ExternalMemory, InvalidArgumentError, MemorySource, Network, TensorInfo
from armpy.backend import DeviceMemoryRequest
from armpy.errors import MemoryImportError, MemoryLimitError
from armpy.execution import Runtime
from armpy.model import Model
from armpy.plugins.proxy.guard import BackendProxy
from tests.support.buffer_device import BufferDevice
from tests.support.fake_backends import runtime_of

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
        with pytest.raises(InvalidArgumentError, match=r"no such input\. Expected x; got 'z'"):
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
