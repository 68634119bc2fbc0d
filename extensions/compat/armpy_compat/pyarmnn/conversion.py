"""Conversions between PyArmNN's descriptions and errors, and armpy's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import armpy
from armpy.errors import ArmpyError
from armpy.tensor import Shape
from armpy_compat.pyarmnn import constants
from armpy_compat.pyarmnn.tensors.tensor_info import TensorInfo, TensorShape

ARMPY_TYPES = {
    number: armpy.DataType(number)
    for number in (
        constants.DataType_Float16,
        constants.DataType_Float32,
        constants.DataType_QAsymmU8,
        constants.DataType_Signed32,
        constants.DataType_Boolean,
        constants.DataType_QSymmS16,
        constants.DataType_QSymmS8,
        constants.DataType_QAsymmS8,
        constants.DataType_BFloat16,
        constants.DataType_Signed64,
    )
}
"""armpy's data types, by the ``DataType_`` constant."""

_NUMBERS = {
    **{data_type: number for number, data_type in ARMPY_TYPES.items()},
    # Arm NN's parsers read integers without a scale as quantised ones of scale 1.
    armpy.DataType.UNSIGNED8: constants.DataType_QAsymmU8,
    armpy.DataType.SIGNED8: constants.DataType_QAsymmS8,
    armpy.DataType.SIGNED16: constants.DataType_QSymmS16,
}


@contextmanager
def runtime_errors() -> Iterator[None]:
    """Raise armpy's errors as the RuntimeError that programs for PyArmNN expect."""
    try:
        yield
    except ArmpyError as error:
        raise RuntimeError(str(error)) from error


def to_armpy(info: TensorInfo, *, where: str) -> armpy.TensorInfo:
    """The description for armpy.

    Raises
    ------
    RuntimeError
        If there is no such data type, or a quantised one has no scale.
    """
    data_type = ARMPY_TYPES.get(info.GetDataType())
    if data_type is None:
        raise RuntimeError(f"{where}: there is no data type {info.GetDataType()}")
    quantization = None
    if info.IsQuantized():
        if info.GetQuantizationScale() == 0:
            raise RuntimeError(
                f"{where} is of type Quantized value but the scale parameter has not been set"
            )
        quantization = armpy.Quantization.per_tensor(
            info.GetQuantizationScale(), info.GetQuantizationOffset()
        )
    return armpy.TensorInfo(tuple(info.GetShape()), data_type, quantization)


def from_armpy(info: armpy.TensorInfo, shape: Shape, *, where: str) -> TensorInfo:
    """The description for programs; a scalar has one dimension of 1, an open dimension is 1.

    Raises
    ------
    RuntimeError
        If PyArmNN has no such data type, or not as many dimensions.
    """
    number = _NUMBERS.get(info.data_type)
    if number is None:
        raise RuntimeError(
            f"Unsupported data type {info.data_type.name} for tensor: {where}. Load the model with"
            " armpy.load, which has it."
        )
    sizes = tuple(1 if size is None else size for size in shape) or (1,)
    if info.quantization is None:
        return TensorInfo(TensorShape(sizes), number, 1.0)
    scale, zero_point = info.quantization.scale, info.quantization.zero_point
    return TensorInfo(TensorShape(sizes), number, float(scale), zero_point)
