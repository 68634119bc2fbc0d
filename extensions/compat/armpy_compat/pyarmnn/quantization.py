"""PyArmNN's quantize and dequantize."""

from __future__ import annotations

import functools

import numpy as np

from armpy_compat.pyarmnn.fields import as_float32, as_signed

_RANGES = {
    "uint8": (0, 255),
    "int8": (-128, 127),
    "int16": (-32768, 32767),
    "int32": (-2147483648, 2147483647),
}


def _quantize(name: str, value: float, scale: float, offset: int) -> int:
    """The stored integer of a real number, as Arm NN computes it in float32."""
    step, zero_point = _parameters("Quantize", name, scale, offset)
    if np.isnan(value):
        raise RuntimeError("Quantize: Value is NaN")
    lowest, highest = _RANGES[name]
    ratio = np.float64(np.float32(value) / step)
    rounded = np.float32(np.copysign(np.floor(np.abs(ratio) + 0.5), ratio))
    return int(min(max(float(np.float32(zero_point) + rounded), lowest), highest))


def _dequantize(name: str, value: int, scale: float, offset: int) -> float:
    """The real number of a stored integer, as Arm NN computes it in float32."""
    step, zero_point = _parameters("Dequantize", name, scale, offset)
    return float(np.float32(value - zero_point) * step)


def _parameters(action: str, name: str, scale: float, offset: int) -> tuple[np.float32, int]:
    method = f"in method '{action}_{name}_t'"
    try:
        step = np.float32(as_float32(scale))
    except (TypeError, OverflowError) as error:
        raise type(error)(f"{method}, argument 2 of type 'float'") from error
    try:
        zero_point = as_signed(offset)
    except (TypeError, OverflowError) as error:
        raise type(error)(f"{method}, argument 3 of type 'int32_t'") from error
    if step == 0:
        raise RuntimeError(f"{action}: Scale cannot be 0.f")
    return step, zero_point


Quantize_uint8_t = functools.partial(_quantize, "uint8")
Quantize_int8_t = functools.partial(_quantize, "int8")
Quantize_int16_t = functools.partial(_quantize, "int16")
Quantize_int32_t = functools.partial(_quantize, "int32")
Dequantize_uint8_t = functools.partial(_dequantize, "uint8")
Dequantize_int8_t = functools.partial(_dequantize, "int8")
Dequantize_int16_t = functools.partial(_dequantize, "int16")
Dequantize_int32_t = functools.partial(_dequantize, "int32")


def quantize(value: float, scale: float, offset: int, target_dtype: str) -> int:
    """Store a real number as an integer.

    Parameters
    ----------
    target_dtype : {"uint8", "int8", "int16", "int32"}

    Raises
    ------
    ValueError
        If there is no such type.

    Notes
    -----
    The quotient is rounded with halves away from zero, and the result saturated.
    """
    if target_dtype not in _RANGES:
        raise ValueError(
            f"Unexpected target datatype {target_dtype} given. Armnn currently supports"
            f" quantization to {list(_RANGES)} values."
        )
    return _quantize(target_dtype, float(value), scale, offset)


def dequantize(value: int, scale: float, offset: int, from_dtype: str) -> float:
    """Compute the real number that a stored integer stands for.

    Parameters
    ----------
    from_dtype : {"uint8", "int8", "int16", "int32"}

    Raises
    ------
    ValueError
        If there is no such type, or the integer is beyond its range.
    """
    if from_dtype not in _RANGES:
        raise ValueError(
            f"Unexpected value datatype {from_dtype} given. Armnn currently supports"
            f" dequantization from {list(_RANGES)} values."
        )
    lowest, highest = _RANGES[from_dtype]
    if not lowest <= value <= highest:
        raise ValueError(f"Value is not within range of the given datatype {from_dtype}")
    return _dequantize(from_dtype, int(value), scale, offset)
