"""Models with the extensions, as an application builds them."""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt
import pytest
from armpy_example_extensions import fibonacci, samples
from armpy_example_extensions.fibonacci import QuantParams

from armpy_conformance import run_conformance
from armpy_nnapi import (
    Compilation,
    Model,
    NnapiError,
    OperandCode,
    OperandType,
    OperationCode,
    ResultCode,
)

BACKEND_ID = "ExampleExtensions"


def extension_operand(model: Model, name: str, type_id: int, dimensions: tuple[int, ...]) -> int:
    """Add an operand of an extension's type."""
    code = model.get_extension_operand_type(name, type_id)
    return model.add_operand(OperandType(code, dimensions))


def add_numbers(model: Model, count: int, params: QuantParams | None) -> int:
    """Add FIBONACCI with quantised numbers of unknown length; returns their operand."""
    numbers = extension_operand(model, fibonacci.NAME, fibonacci.TENSOR_QUANT64_ASYMM, (0,))
    if params is not None:
        model.set_operand_extension_data(numbers, params.pack())
    operation = model.get_extension_operation_type(fibonacci.NAME, fibonacci.FIBONACCI)
    model.add_operation(operation, [count], [numbers])
    return numbers


def quantised(params: QuantParams | None) -> Compilation:
    """FIBONACCI of INT64, quantised."""
    model = Model()
    count = extension_operand(model, fibonacci.NAME, fibonacci.INT64, ())
    numbers = add_numbers(model, count, params)
    model.identify_inputs_and_outputs([count], [numbers])
    model.finish()
    compilation = Compilation(model)
    compilation.finish()
    return compilation


def in_floats() -> Compilation:
    """FIBONACCI of TENSOR_FLOAT32."""
    model = Model()
    count = model.add_operand(OperandType(OperandCode.TENSOR_FLOAT32, (1,)))
    numbers = model.add_operand(OperandType(OperandCode.TENSOR_FLOAT32, (0,)))
    operation = model.get_extension_operation_type(fibonacci.NAME, fibonacci.FIBONACCI)
    model.add_operation(operation, [count], [numbers])
    model.identify_inputs_and_outputs([count], [numbers])
    model.finish()
    compilation = Compilation(model)
    compilation.finish()
    return compilation


def test_numbers_are_quantised_as_attached_parameters_say() -> None:
    compilation = quantised(QuantParams(scale=0.5, zero_point=10))
    (numbers,) = compilation(np.int64(8))
    np.testing.assert_array_equal(numbers, [12, 12, 14, 16, 20, 26, 36, 52])


def test_how_many_there_are_is_asked_anew_each_time() -> None:
    compilation = quantised(QuantParams(scale=1, zero_point=0))
    assert [len(compilation(np.int64(count))[0]) for count in (1, 5, 3)] == [1, 5, 3]


def test_what_does_not_fit_into_64_bits_saturates() -> None:
    (numbers,) = quantised(QuantParams(scale=1, zero_point=-3))(np.int64(95))
    assert numbers[:4].tolist() == [0, 0, 0, 0]
    assert numbers[-1] == 2**64 - 1


def test_numbers_may_be_floats() -> None:
    (numbers,) = in_floats()(np.float32([6]))
    assert numbers.dtype == np.float32
    np.testing.assert_array_equal(numbers, [1, 1, 2, 3, 5, 8])


@pytest.mark.parametrize("count", [0, -1])
def test_there_is_at_least_one_number(count: int) -> None:
    compilation = quantised(QuantParams(scale=1, zero_point=0))
    with pytest.raises(NnapiError, match=f"too few numbers. Expected 1 or more; got {count}") as e:
        compilation(np.int64(count))
    assert e.value.code is ResultCode.OP_FAILED


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        (None, "need parameters. Expected a double and an int64_t"),
        (QuantParams(scale=0, zero_point=0), "the scale cannot be used. Expected above 0; got 0.0"),
    ],
    ids=["none", "scale"],
)
def test_quantised_numbers_need_parameters(params: QuantParams | None, reason: str) -> None:
    with pytest.raises(NnapiError, match=f"FIBONACCI: .*{reason}") as caught:
        quantised(params)
    assert caught.value.code is ResultCode.BAD_DATA


def test_a_type_of_one_extension_goes_into_an_operation_of_another_and_on_to_nnapi_s() -> None:
    model = Model()
    count = extension_operand(model, fibonacci.NAME, fibonacci.INT64, ())
    numbers = add_numbers(model, count, QuantParams(scale=0.25, zero_point=4))
    floats = model.add_operand(OperandType(OperandCode.TENSOR_FLOAT32, (0,)))
    doubled = model.add_operand(OperandType(OperandCode.TENSOR_FLOAT32, (0,)))
    activation = model.add_operand(OperandType(OperandCode.INT32))
    model.set_operand_value(activation, 0)
    operation = model.get_extension_operation_type(samples.NAME, samples.DEQUANTIZE64)
    model.add_operation(operation, [numbers], [floats])
    model.add_operation(OperationCode.ADD, [floats, floats, activation], [doubled])
    model.identify_inputs_and_outputs([count], [doubled])
    model.finish()
    compilation = Compilation(model)
    compilation.finish()
    (result,) = compilation(np.int64(5))
    np.testing.assert_array_equal(result, [2, 2, 4, 6, 10])


def amplify(given: list[int], gain: float, full_scales: tuple[float, ...] = ()) -> list[int]:
    """AMPLIFY of samples."""
    model = Model()
    sound = extension_operand(model, samples.NAME, samples.TENSOR_INT24, (len(given),))
    factor = model.add_operand(OperandType(OperandCode.FLOAT32))
    louder = extension_operand(model, samples.NAME, samples.TENSOR_INT24, (len(given),))
    for operand, full_scale in zip((sound, louder), full_scales, strict=False):
        model.set_operand_extension_data(operand, struct.pack("<f", full_scale))
    operation = model.get_extension_operation_type(samples.NAME, samples.AMPLIFY)
    model.add_operation(operation, [sound, factor], [louder])
    model.identify_inputs_and_outputs([sound, factor], [louder])
    model.finish()
    compilation = Compilation(model)
    compilation.finish()
    data = b"".join(sample.to_bytes(3, "little", signed=True) for sample in given)
    pairs: npt.NDArray[np.uint8] = np.frombuffer(data, np.uint8).reshape(-1, 3)
    (result,) = compilation(pairs, np.float32(gain))
    return [int.from_bytes(row.tobytes(), "little", signed=True) for row in result]


def test_samples_of_three_bytes_are_amplified() -> None:
    assert amplify([0, 1, -1, 300_000, -70_000], 2) == [0, 2, -2, 600_000, -140_000]


def test_samples_saturate() -> None:
    assert amplify([8_000_000, -8_000_000], 2) == [8_388_607, -8_388_608]


def test_another_full_scale_is_part_of_the_gain() -> None:
    assert amplify([100, -100], 1, (0.5, 2.0)) == [25, -25]


def test_the_backend_keeps_to_the_contract_and_agrees_with_the_reference() -> None:
    result = run_conformance(BACKEND_ID)
    assert result.is_passed, (result.shortcomings, result.problems)
