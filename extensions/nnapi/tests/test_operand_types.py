"""Which operand types are valid."""

from __future__ import annotations

import numpy as np
import pytest

from armpy_nnapi import OperandCode, OperandType, ResultCode
from armpy_nnapi.description.model_description import ExtensionTypeInformation
from armpy_nnapi.description.operand_type import validate_operand_type

from .nnapi_models import fails

C = OperandCode
SCALARS = (C.FLOAT32, C.INT32, C.UINT32, C.BOOL, C.FLOAT16, C.MODEL)
PLAIN_TENSORS = (
    C.TENSOR_FLOAT32,
    C.TENSOR_FLOAT16,
    C.TENSOR_BOOL8,
    C.TENSOR_QUANT8_SYMM_PER_CHANNEL,
)
ZERO_POINTS = {
    C.TENSOR_QUANT8_ASYMM: (0, 255),
    C.TENSOR_QUANT8_ASYMM_SIGNED: (-128, 127),
    C.TENSOR_QUANT8_SYMM: (0, 0),
    C.TENSOR_QUANT16_SYMM: (0, 0),
    C.TENSOR_QUANT16_ASYMM: (0, 65535),
}


@pytest.mark.parametrize("code", SCALARS)
def test_scalars_have_no_dimensions(code: OperandCode) -> None:
    validate_operand_type(OperandType(code))
    with fails(ResultCode.BAD_DATA, f"{code.name}: a scalar has no dimensions"):
        validate_operand_type(OperandType(code, (1,)))


@pytest.mark.parametrize("code", [*SCALARS, *PLAIN_TENSORS])
def test_types_without_quantisation_have_neither_scale_nor_zero_point(code: OperandCode) -> None:
    with fails(ResultCode.BAD_DATA, r"the scale does not fit the type. Expected 0; got 0.5"):
        validate_operand_type(OperandType(code, (), 0.5))
    with fails(ResultCode.BAD_DATA, r"the zero point does not fit the type. Expected 0; got 1"):
        validate_operand_type(OperandType(code, (), 0.0, 1))


@pytest.mark.parametrize(("code", "limits"), ZERO_POINTS.items())
def test_zero_points_are_within_the_types_range(code: OperandCode, limits: tuple[int, int]) -> None:
    for zero_point in limits:
        validate_operand_type(OperandType(code, (2,), 1.0, zero_point))
    for zero_point in (limits[0] - 1, limits[1] + 1):
        with fails(ResultCode.BAD_DATA, f"the zero point .* got {zero_point}"):
            validate_operand_type(OperandType(code, (2,), 1.0, zero_point))


@pytest.mark.parametrize("code", ZERO_POINTS)
@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf"), 1e-60])
def test_quantised_types_need_a_positive_scale(code: OperandCode, scale: float) -> None:
    with fails(ResultCode.BAD_DATA, "the scale does not fit the type. Expected a float32 above 0"):
        validate_operand_type(OperandType(code, (2,), scale))


@pytest.mark.parametrize("code", [C.TENSOR_INT32, C.TENSOR_OEM_BYTE])
def test_integers_and_oem_bytes_have_any_quantisation(code: OperandCode) -> None:
    validate_operand_type(OperandType(code, (2,), 0.25, 7))


def test_a_tensor_of_4_gib_is_too_large() -> None:
    validate_operand_type(OperandType(C.TENSOR_FLOAT32, (2**30 - 1, 0)))
    with fails(ResultCode.BAD_DATA, "the tensor is too large"):
        validate_operand_type(OperandType(C.TENSOR_FLOAT32, (2**30, 0)))


def test_dimensions_are_counted_from_0() -> None:
    with fails(ResultCode.BAD_DATA, "a dimension is out of range"):
        validate_operand_type(OperandType(C.TENSOR_FLOAT32, (-1,)))


@pytest.mark.parametrize("dimensions", [(), (2, 0)])
def test_a_type_can_be_required_to_be_complete(dimensions: tuple[int, ...]) -> None:
    operand_type = OperandType(C.TENSOR_FLOAT32, dimensions)
    validate_operand_type(operand_type)
    with fails(ResultCode.BAD_DATA, "the dimensions are not fully given"):
        validate_operand_type(operand_type, allow_partial=False)


@pytest.mark.parametrize("code", [16, 9999, 10002, -1])
def test_codes_of_no_type_are_rejected(code: int) -> None:
    with fails(ResultCode.BAD_DATA, "unknown operand type|nothing is known"):
        validate_operand_type(OperandType(code))


def test_an_extensions_type_has_neither_scale_nor_zero_point() -> None:
    tensor = ExtensionTypeInformation(1, is_tensor=True, size_bytes=8)
    validate_operand_type(OperandType(0x10001, (2,)), tensor)
    with fails(ResultCode.BAD_DATA, "the scale does not fit the type"):
        validate_operand_type(OperandType(0x10001, (2,), 1.0), tensor)
    with fails(ResultCode.BAD_DATA, "a scalar has no dimensions"):
        scalar = ExtensionTypeInformation(0, is_tensor=False, size_bytes=8)
        validate_operand_type(OperandType(0x10000, (2,)), scalar)


def test_no_type_is_an_unexpected_null() -> None:
    with fails(ResultCode.UNEXPECTED_NULL, "the operand type is None"):
        validate_operand_type(None)


@pytest.mark.parametrize("fields", [("a",), (3, 5), (3, (1.5,)), (3, (), "x"), (3, (), 0.0, 0.5)])
def test_fields_of_the_wrong_kind_are_rejected(fields: tuple[object, ...]) -> None:
    with fails(ResultCode.BAD_DATA, "a field has the wrong type"):
        OperandType(*fields)  # type: ignore[arg-type]  # the error under test


@pytest.mark.parametrize(
    ("dtype", "code"),
    [
        (np.float32, C.TENSOR_FLOAT32),
        (np.float16, C.TENSOR_FLOAT16),
        (np.int32, C.TENSOR_INT32),
        (np.bool_, C.TENSOR_BOOL8),
        (np.uint8, C.TENSOR_QUANT8_ASYMM),
        (np.int8, C.TENSOR_QUANT8_ASYMM_SIGNED),
        (np.uint16, C.TENSOR_QUANT16_ASYMM),
        (np.int16, C.TENSOR_QUANT16_SYMM),
    ],
)
def test_an_arrays_type_follows_from_its_dtype(dtype: type[np.generic], code: OperandCode) -> None:
    assert OperandType.of(np.zeros((2, 3), dtype), 0.5, 1) == OperandType(code, (2, 3), 0.5, 1)


def test_an_array_of_another_dtype_has_no_type() -> None:
    with fails(ResultCode.BAD_DATA, "no tensor type has the array's dtype.*got float64"):
        OperandType.of(np.zeros(2))
