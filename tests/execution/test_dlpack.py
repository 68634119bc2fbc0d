"""Other libraries' tensors and buffers are read and written where they are."""

from __future__ import annotations

import array
import ctypes
import mmap
from typing import Any

import numpy as np
import pytest

from armpy.errors import InvalidArgumentError
from armpy.execution import as_input
from armpy.execution.arrays.conversion import check_output_array
from armpy.execution.arrays.dlpack import as_view
from armpy.model import Model
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_testing.backends.fake_backends import runtime_of
from armpy_testing.models.networks import chain, f32, floats


class Foreign:
    """Another library's tensor, which offers DLPack alone."""

    def __init__(self, elements: Array, device: tuple[int, int] = (1, 0)) -> None:
        self.elements = elements
        self.device = device

    def __dlpack__(self, **asked: Any) -> object:
        asked.pop("dl_device", None)
        return self.elements.__dlpack__(**asked)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


class DLTensor(ctypes.Structure):
    """As in ``dlpack.h``, with what manages it."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    ]


class BFloat16:
    """A vector of bfloat16, which is type code 4 of DLPack."""

    def __init__(self, bits: Array) -> None:
        shape = (ctypes.c_int64 * 1)(bits.size)
        self.held = bits, shape
        self.tensor = DLTensor(bits.ctypes.data, 1, 0, 1, 4, 16, 1, shape)

    def __dlpack__(self, **asked: Any) -> object:
        new = ctypes.pythonapi.PyCapsule_New
        new.restype = ctypes.py_object
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor", None)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def address(elements: Array) -> int:
    return int(elements.ctypes.data)


def vector(data_type: DataType) -> TensorInfo:
    return TensorInfo((2,), data_type)


def test_what_cannot_be_written_is_read_and_refused_as_an_output() -> None:
    elements = floats(1, 2)
    elements.setflags(write=False)
    assert not as_input("x", f32(2), Foreign(elements)).flags.writeable
    with pytest.raises(InvalidArgumentError, match=r"^output 'y': .*got a read-only array"):
        check_output_array("y", f32(2), Foreign(elements))


def test_what_exports_a_copy_that_cannot_be_written_is_no_output() -> None:
    class Copying(np.ndarray[Any, np.dtype[np.float32]]):
        """Has a buffer that is not the memory that it exports."""

        def __dlpack__(self, **asked: Any) -> Any:
            copied = np.array(self)
            copied.setflags(write=False)
            return copied.__dlpack__(**asked)

    view = as_view(f32(2), floats(1, 2).view(Copying))
    assert view is not None
    assert not view.flags.writeable


def test_a_tensor_on_another_device_is_refused_with_where_it_is() -> None:
    text = r"^input 'x': .*device 3 of kind 2 \(DLPack\).*Copy it to the host, or import"
    with pytest.raises(InvalidArgumentError, match=text):
        as_input("x", f32(2), Foreign(floats(1, 2), (2, 3)))


def test_bfloat16_cannot_be_handed_over_and_its_bits_can() -> None:
    bits = np.array([0x3F80, 0x4000], np.uint16)  # 1 and 2
    with pytest.raises(InvalidArgumentError, match="elements' bits as uint16"):
        as_input("x", vector(DataType.BFLOAT16), BFloat16(bits))
    array_read = as_input("x", vector(DataType.BFLOAT16), Foreign(bits))
    assert address(array_read) == address(bits)


# Buffers


def anonymous(elements: Array) -> mmap.mmap:
    """A map of memory with some elements."""
    mapping = mmap.mmap(-1, elements.nbytes)
    mapping[:] = elements.tobytes()
    return mapping


X = floats(1, -2, 3, -4)


@pytest.mark.parametrize(
    "given",
    [
        X.tobytes(),
        bytearray(X.tobytes()),
        memoryview(X.tobytes()),
        anonymous(X),
        array.array("f", X.tolist()),
        X.data,
        (ctypes.c_float * 4)(*X.tolist()),
    ],
    ids=lambda buffer: type(buffer).__name__,
)
def test_a_buffer_is_read_in_place(given: Any) -> None:
    array_read = as_input("x", f32(4), given)
    assert array_read.tolist() == X.tolist()
    assert address(array_read) == address(np.frombuffer(given, np.uint8))
    assert array_read.flags.writeable is not memoryview(given).readonly


def test_bytes_take_the_shape_of_the_tensor_and_an_open_dimension_follows() -> None:
    assert as_input("x", f32(2, 2), bytearray(X.tobytes())).shape == (2, 2)
    assert as_input("x", f32(None, 2), X.tobytes()).shape == (2, 2)
    assert as_input("x", f32(), X[:1].tobytes()).shape == ()
    assert as_input("x", f32(0), b"").shape == (0,)


@pytest.mark.parametrize(
    ("info", "size", "text"),
    [
        (f32(4), 15, r"Expected FLOAT32 \(4,\), 16 bytes; got 15 bytes"),
        (f32(4), 32, r"16 bytes; got 32 bytes"),
        (f32(None, 2), 12, r"Expected FLOAT32 \(\?, 2\); got 12 bytes"),
        (f32(None, None), 16, "got 16 bytes. Give an array"),
        (TensorInfo(None, DataType.FLOAT32), 16, "got 16 bytes"),
    ],
)
def test_other_numbers_of_bytes_are_refused(info: TensorInfo, size: int, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"^input 'x': the bytes are not.*{text}"):
        as_input("x", info, bytes(size))


def test_a_typed_buffer_is_of_its_type() -> None:
    with pytest.raises(InvalidArgumentError, match="wrong type"):
        as_input("x", f32(2), array.array("d", [1, 2]))
    with pytest.raises(InvalidArgumentError, match="cannot be made an array"):
        as_input("x", f32(2), (ctypes.c_void_p * 2)())


# Whole runs


def test_a_model_reads_and_writes_foreign_tensors_in_place() -> None:
    source, target = Foreign(X.copy()), Foreign(np.zeros(4, np.float32))
    with Model(chain(3), runtime_of()) as model:
        model.run({"x": source}, {"y": target})
        assert target.elements.tolist() == [4, 1, 6, -1]
        np.testing.assert_array_equal(model(source), [4, 1, 6, -1])
