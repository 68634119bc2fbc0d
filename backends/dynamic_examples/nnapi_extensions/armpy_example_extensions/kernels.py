"""The device's computations; NumPy stands in for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from armpy.errors import UnimplementedError
from armpy.ops.operation import Array, Operation
from armpy_example_extensions.fibonacci import Fibonacci
from armpy_example_extensions.samples import Amplify, Dequantize64

Floats = npt.NDArray[np.float32]
Bytes = npt.NDArray[np.uint8]

_LARGEST = 1 << 128
"""Where the sequence stops to grow: above all that a float32 holds."""

_UINT64_MAX = (1 << 64) - 1
_INT24_MAX = (1 << 23) - 1


def fibonacci_numbers(length: int) -> Iterator[int]:
    """The first numbers of the sequence."""
    number, following = 1, 1
    for _ in range(length):
        yield number
        number, following = following, min(number + following, _LARGEST)


def fibonacci(operation: Fibonacci, out: Array) -> None:
    """Write the sequence, quantised if the output is.

    Parameters
    ----------
    out : ndarray, float32 or uint64, shape (length,)

    Notes
    -----
    Quantised in float64; the fraction is dropped, and the rest saturates.
    """
    for index, number in enumerate(fibonacci_numbers(len(out))):
        if out.dtype == np.float32:
            out[index] = number if number < _LARGEST else np.inf
        else:
            stored = int(number / operation.scale) + operation.zero_point
            out[index] = min(max(stored, 0), _UINT64_MAX)


def dequantize(operation: Dequantize64, stored: npt.NDArray[np.uint64], out: Floats) -> None:
    """``scale * (stored - zero_point)`` in float64."""
    out[...] = operation.scale * (stored.astype(np.float64) - operation.zero_point)


def amplify(operation: Amplify, samples: Bytes, gain: Floats, out: Bytes) -> None:
    """Multiply samples of three bytes, round half to even, and saturate."""
    louder = np.rint(unpack_int24(samples) * (float(gain) * operation.factor))
    out[...] = pack_int24(np.clip(louder, -_INT24_MAX - 1, _INT24_MAX).astype(np.int32))


def unpack_int24(samples: Bytes) -> npt.NDArray[np.int32]:
    """Signed integers (...) from their bytes (..., 3)."""
    wide = np.zeros((*samples.shape[:-1], 4), np.uint8)
    wide[..., 1:] = samples
    return (wide.view("<i4")[..., 0] >> 8).astype(np.int32)


def pack_int24(values: npt.NDArray[np.int32]) -> Bytes:
    """Bytes (..., 3) from signed integers (...)."""
    wide = np.ascontiguousarray(values[..., np.newaxis], "<i4")
    return wide.view(np.uint8)[..., :3]


def compute(operation: Operation, inputs: Sequence[Array], out: Array) -> None:
    """Run the kernel of an operation."""
    match operation:
        case Fibonacci():
            fibonacci(operation, out)
        case Dequantize64():
            dequantize(operation, inputs[0], out)
        case Amplify():
            amplify(operation, inputs[0], inputs[1], out)
        case _:
            raise UnimplementedError("there is no kernel for it", where=operation.name)
