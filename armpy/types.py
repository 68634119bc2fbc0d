"""Small enums and value types that every package uses."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

REFERENCE_BACKEND_ID = "CpuRef"
"""Id of the backend that defines right answers and supports every operation."""

HOST = "host"
"""The core itself: it holds the caller's arrays and constants, and runs control flow."""

BackendId = str
"""A backend's name, compared by its exact text; those of `INVALID_BACKEND_IDS` are none."""

INVALID_BACKEND_IDS = frozenset(("", "Unknown", HOST))
"""Names that no backend can have."""

DEFAULT_MEMORY_LIMIT_BYTES = 4 << 30
"""Most memory that a model's tensors, or one execution, may need unless the caller says more."""


class DataType(enum.Enum):
    """Element type of a tensor, with the way its numbers are to be read.

    Quantised types stand for ``scale * (stored - zero_point)``; the scale and zero point
    are in `armpy.TensorInfo.quantization`. The first ten values are Arm NN's, with its
    numbers; the rest are those that NNAPI and model files need besides.

    Notes
    -----
    Integers of 4 and 2 bits are stored one per byte. Of the small floats, E4M3 has four bits
    for the exponent and three for the mantissa; FN has no infinities, FNUZ no negative zero
    either, so that its bit pattern is the only NaN; E8M0 are powers of two.

    Elements of STRING are ``str`` objects. They have no fixed size: such tensors are not placed
    in arenas, and `size_bytes` is that of the reference to an element.

    References
    ----------
    Arm NN ``armnn::DataType``; NNAPI ``OperandCode``; ONNX ``TensorProto.DataType``; "FP8 Formats
    for Deep Learning", 2022; OCP Microscaling Formats (MX) Specification 1.0.
    """

    FLOAT16 = 0
    FLOAT32 = 1
    QASYMM_U8 = 2
    SIGNED32 = 3
    BOOLEAN = 4
    QSYMM_S16 = 5
    QSYMM_S8 = 6
    QASYMM_S8 = 7
    BFLOAT16 = 8
    SIGNED64 = 9
    QASYMM_U16 = 10
    UNSIGNED8 = 11
    SIGNED8 = 12
    UNSIGNED16 = 13
    SIGNED16 = 14
    UNSIGNED32 = 15
    UNSIGNED64 = 16
    FLOAT64 = 17
    SIGNED4 = 18
    UNSIGNED4 = 19
    SIGNED2 = 20
    UNSIGNED2 = 21
    FLOAT8_E4M3FN = 22
    FLOAT8_E4M3FNUZ = 23
    FLOAT8_E5M2 = 24
    FLOAT8_E5M2FNUZ = 25
    FLOAT8_E8M0 = 26
    FLOAT4_E2M1 = 27
    STRING = 28

    # Cached, as every layer asks for these and members are never many.
    @cached_property
    def dtype(self) -> np.dtype[np.generic]:
        """NumPy dtype of the stored elements; see `is_bit_pattern` for small floats."""
        return np.dtype(_DTYPES[self.name])

    @cached_property
    def size_bytes(self) -> int:
        """Bytes per element."""
        return self.dtype.itemsize

    @cached_property
    def bits(self) -> int:
        """Bits per element that carry its number; fewer than those stored in small types."""
        return _BITS.get(self.name, 8 * self.size_bytes)

    @cached_property
    def is_quantized(self) -> bool:
        """Return whether elements stand for real numbers through a scale and a zero point."""
        return self.name.startswith("Q")

    @cached_property
    def is_float(self) -> bool:
        """Return whether elements are floating-point numbers."""
        return "FLOAT" in self.name

    @cached_property
    def is_bit_pattern(self) -> bool:
        """Return whether elements are floats that NumPy has no type for, stored as their bits."""
        # NumPy's own floats are of kind f.
        return self.is_float and self.dtype.kind == "u"

    @cached_property
    def is_narrow(self) -> bool:
        """True if elements are integers of fewer bits than the byte that stores each of them."""
        return self.name in _NARROW_RANGES

    @cached_property
    def is_string(self) -> bool:
        """Return whether elements are strings, which are Python objects in memory."""
        return self.name == "STRING"

    @cached_property
    def is_symmetric(self) -> bool:
        """Return whether a quantised type's zero point is always 0."""
        return self.name.startswith("QSYMM")

    @cached_property
    def integer_range(self) -> tuple[int, int]:
        """Lowest and highest stored integer; only for integer and quantised types."""
        if self.is_narrow:
            return _NARROW_RANGES[self.name]
        info = np.iinfo(self.dtype)  # type: ignore[type-var]  # floats raise ValueError here
        return int(info.min), int(info.max)

    def zeros(self, shape: Sequence[int]) -> npt.NDArray[Any]:
        """An array of stored zeros; of empty strings for STRING."""
        if self.is_string:
            return np.full(shape, "", object)
        # Zeros are not touched until they are read, however large the array is.
        return np.zeros(shape, self.dtype)

    def random(self, generator: np.random.Generator, shape: Sequence[int]) -> npt.NDArray[Any]:
        """An array of random elements that most models can take.

        Floats are from -1 to 1; quantised and unquantised bytes, and wider quantised types, have
        any stored integer; other elements are 0 or 1, as integers may be indexes. Strings are
        empty.
        """
        if self.is_string:
            return self.zeros(shape)
        if self.is_float and not self.is_bit_pattern:
            return generator.uniform(-1.0, 1.0, shape).astype(self.dtype)
        # Bytes are pixels more often than indexes.
        is_any = self.is_quantized or self.name in ("UNSIGNED8", "SIGNED8")
        low, high = self.integer_range if is_any else (0, 1)
        return generator.integers(low, high, shape, endpoint=True).astype(self.dtype)

    __hash__ = object.__hash__  # members are singletons; Enum's own hash is a slow call


_DTYPES = {
    "FLOAT16": "float16",
    "FLOAT32": "float32",
    "QASYMM_U8": "uint8",
    "SIGNED32": "int32",
    "BOOLEAN": "bool",
    "QSYMM_S16": "int16",
    "QSYMM_S8": "int8",
    "QASYMM_S8": "int8",
    # By its bits, as the small floats below: NumPy has no such types.
    "BFLOAT16": "uint16",
    "SIGNED64": "int64",
    "QASYMM_U16": "uint16",
    "UNSIGNED8": "uint8",
    "SIGNED8": "int8",
    "UNSIGNED16": "uint16",
    "SIGNED16": "int16",
    "UNSIGNED32": "uint32",
    "UNSIGNED64": "uint64",
    "FLOAT64": "float64",
    # One to a byte, the narrowest that NumPy has.
    "SIGNED4": "int8",
    "UNSIGNED4": "uint8",
    "SIGNED2": "int8",
    "UNSIGNED2": "uint8",
    "FLOAT8_E4M3FN": "uint8",
    "FLOAT8_E4M3FNUZ": "uint8",
    "FLOAT8_E5M2": "uint8",
    "FLOAT8_E5M2FNUZ": "uint8",
    "FLOAT8_E8M0": "uint8",
    "FLOAT4_E2M1": "uint8",
    "STRING": "object",
}

_BITS = {"SIGNED4": 4, "UNSIGNED4": 4, "SIGNED2": 2, "UNSIGNED2": 2, "FLOAT4_E2M1": 4}

_NARROW_RANGES = {"SIGNED4": (-8, 7), "UNSIGNED4": (0, 15), "SIGNED2": (-2, 1), "UNSIGNED2": (0, 3)}


class DataLayout(enum.Enum):
    """Order of the axes of an image or volume tensor; numbers are Arm NN's."""

    NCHW = 1
    NHWC = 2
    NDHWC = 3
    NCDHW = 4

    @property
    def channel_axis(self) -> int:
        """Index of the channel axis."""
        return 1 if self in (DataLayout.NCHW, DataLayout.NCDHW) else len(self.name) - 1

    @property
    def spatial_axes(self) -> tuple[int, ...]:
        """Indexes of the spatial axes, outermost first."""
        first = 2 if self.channel_axis == 1 else 1
        return tuple(range(first, first + len(self.name) - 2))


class DeviceType(enum.IntEnum):
    """Kind of a backend's device, in the order in which armpy prefers them."""

    ACCELERATOR = 0
    GPU = 1
    CPU_COMPILED = 2
    OTHER = 3
    CPU_REFERENCE = 4


class Priority(enum.IntEnum):
    """Priority of an execution; numbers are NNAPI's."""

    LOW = 90
    MEDIUM = 100
    HIGH = 110


class Preference(enum.StrEnum):
    """Preference in deciding where and how a network runs.

    ``ORDER`` goes by the order of the backends, ``NPU`` by the same with accelerators first; the
    others weigh what the devices cost: time of one answer, power, or answers per second over a
    long time.

    References
    ----------
    NNAPI ``PreferenceCode``: 1 is ``FASTEST``, 0 ``LEAST_POWER``, 2 ``SUSTAINED``.
    """

    ORDER = "preference"
    NPU = "npu"
    FASTEST = "fastest"
    LEAST_POWER = "least_power"
    SUSTAINED = "sustained"
