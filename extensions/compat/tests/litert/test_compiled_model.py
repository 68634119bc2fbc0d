"""`CompiledModel` runs on buffers, as LiteRT 2's does."""

from __future__ import annotations

import numpy as np
import pytest

from armpy_compat.litert.compiled_model import (
    CompiledModel,
    CpuKernelMode,
    CpuOptions,
    HardwareAccelerator,
    Options,
    TensorBuffer,
)

from . import models

A, B = np.array([1.0, 2.0], np.float32), np.array([10.0, 20.0], np.float32)


@pytest.fixture
def two() -> CompiledModel:
    return CompiledModel.from_buffer(models.two_signatures())


def run(model: CompiledModel) -> list[float]:
    """The result of the first signature's run with `A`."""
    inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
    inputs[0].write(A)
    model.run_by_index(0, inputs, outputs)
    values: list[float] = outputs[0].read(2, np.float32).tolist()
    return values


def test_signatures_are_in_the_files_order(two: CompiledModel) -> None:
    assert two.get_num_signatures() == 2
    assert [two.get_signature_index(name) for name in ("negate", "add", "sub")] == [0, 1, -1]
    assert two.get_signature_by_index(1) == {
        "key": "add",
        "inputs": ["b", "a"],
        "outputs": ["total"],
    }
    assert [*two.get_signature_list()] == ["negate", "add"]
    assert two.get_input_tensor_details("add")["a"] == {
        "name": "add_a",
        "index": 1,
        "dtype": "float32",
        "shape": [2],
    }
    assert two.get_output_tensor_details("add")["total"]["shape"] == [2]


def test_a_signature_runs_by_index_and_by_name(two: CompiledModel) -> None:
    assert run(two) == [-1.0, -2.0]
    inputs = {name: two.create_input_buffer_by_name("add", name) for name in ("a", "b")}
    total = two.create_output_buffer_by_name("add", "total")
    inputs["a"].write(A)
    inputs["b"].write(B)
    two.run_by_name("add", inputs, {"total": total})
    assert total.read(2, np.float32).tolist() == [11.0, 22.0]


def test_an_input_is_resized() -> None:
    model = CompiledModel.from_buffer(models.doubling(is_open=True))
    with pytest.raises(RuntimeError, match="code=1, message=Attempting to resize dimension 1"):
        model.resize_input_tensor(0, [3, 4])
    model.resize_input_tensor_by_name("<placeholder signature>", "x", [3, 2])
    (x,), (y,) = model.create_input_buffers(0), model.create_output_buffers(0)
    assert (x.get_tensor_details()["shape"], y.get_tensor_details()["shape"]) == ([3, 2], [3, 2])
    x.write(np.ones((3, 2), np.float32))
    model.run_by_index(0, [x], [y])
    assert y.read(6, np.float32).tolist() == [3.0] * 6
    with pytest.raises(ValueError, match="Unknown input 'z' for signature"):
        model.resize_input_tensor_by_name("<placeholder signature>", "z", [1])


@pytest.mark.parametrize(
    "options",
    [
        Options(cpu_options=CpuOptions(num_threads=1)),
        Options(cpu_options=CpuOptions(kernel_mode=CpuKernelMode.REFERENCE)),
        Options(HardwareAccelerator.CPU | HardwareAccelerator.GPU),
    ],
)
def test_options_choose_backends(options: Options) -> None:
    assert run(CompiledModel.from_buffer(models.two_signatures(), options=options)) == [-1.0, -2.0]


def test_wrong_names_indexes_and_buffers_are_refused(two: CompiledModel) -> None:
    (x,), (y,) = two.create_input_buffers(0), two.create_output_buffers(0)
    with pytest.raises(RuntimeError, match="code=6, message=Signature not found: sub"):
        two.get_input_tensor_details("sub")
    with pytest.raises(RuntimeError, match="Input tensor not found: z"):
        two.create_input_buffer_by_name("add", "z")
    with pytest.raises(RuntimeError, match="Output tensor not found: z"):
        two.create_output_buffer_by_name("add", "z")
    with pytest.raises(RuntimeError, match="Signature index is out of range"):
        two.create_input_buffers(2)
    with pytest.raises(RuntimeError, match="number of inputs:1 vs buffers:2"):
        two.run_by_index(0, [x, x], [y])
    with pytest.raises(RuntimeError, match="Output buffer size mismatch"):
        two.run_by_index(0, [x], [])
    with pytest.raises(RuntimeError, match="missing some output TensorBuffers"):
        two.run_by_name("negate", {"x": x}, {})
    with pytest.raises(RuntimeError, match="a buffer of 8 bytes was expected; got 4"):
        two.run_by_index(0, [TensorBuffer.create_from_host_memory(A[:1])], [y])
    with two, pytest.raises(RuntimeError, match="Input index out of range"):
        two.get_input_buffer_requirements(5)
    with pytest.raises(RuntimeError, match="the compiled model is closed"):
        two.create_input_buffers(0)


def test_a_buffer_of_an_array_is_its_memory() -> None:
    array = np.arange(4, dtype=np.int8).reshape(2, 2)
    buffer = TensorBuffer.create_from_host_memory(array)
    assert buffer.get_tensor_details() == {"dtype": "int8", "shape": [4]}
    buffer.write(np.array([7, 8], np.int8))
    assert array.tolist() == [[7, 8], [2, 3]]
    assert buffer.read(3, np.uint8).tolist() == [7, 8, 2]
    with pytest.raises(ValueError, match="must be C-contiguous"):
        TensorBuffer.create_from_host_memory(array[:, ::2])
