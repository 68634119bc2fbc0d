"""Models built with a function per operation."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np
import pytest

from armpy_nnapi import (
    FuseCode,
    ModelBuilder,
    ModelOperand,
    OperandCode,
    OperandType,
    PaddingCode,
    ResultCode,
)
from armpy_nnapi.description.model_description import OperationNode, Subgraph
from armpy_nnapi.operations import definitions

from .nnapi_models import FLOAT_2, compiled, devices_of, fails, floats

C = OperandCode
DEVICES = devices_of()
"""The reference alone, which compiles nothing."""


def only_operation(builder: ModelBuilder, *outputs: ModelOperand) -> tuple[OperationNode, Subgraph]:
    """The operation of a model that has one."""
    main = builder.finish(*outputs).description.main
    (node,) = main.operations
    return node, main


def test_a_model_is_built_with_a_function_per_operation() -> None:
    builder = ModelBuilder(DEVICES)
    image = builder.input(np.float32, (1, 3, 3, 1))
    convolution = builder.conv_2d(
        image,
        np.ones((2, 2, 2, 1), np.float32),
        floats(0, 100),
        padding=PaddingCode.VALID,
        stride_width=1,
        stride_height=1,
        activation=FuseCode.RELU,
    )
    total = builder.add(convolution, floats(1))
    model = builder.finish(builder.reshape(total, [-1, 2]))
    (result,) = compiled(model)(np.arange(9, dtype=np.float32).reshape(1, 3, 3, 1))
    # Sums of the four windows: 0+1+3+4, 1+2+4+5, 3+4+6+7, 4+5+7+8.
    assert result.tolist() == [[9, 109], [13, 113], [21, 121], [25, 125]]


def test_there_is_a_function_for_every_operation() -> None:
    builder = ModelBuilder(DEVICES)
    for definition in definitions().values():
        name = definition.name.lower()
        function = getattr(builder, name)
        assert function.__name__ == name
        assert definition.name in (inspect.getdoc(function) or "")
        assert name in dir(builder)
        named = inspect.signature(function).parameters
        assert {a.name for form in definition.forms for a in form.inputs} == set(named) - {
            "outputs"
        }


def test_what_does_not_exist_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no operation or attribute 'nothing'"):
        ModelBuilder(DEVICES).nothing  # noqa: B018 - asking is the test


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        ({"padding": PaddingCode.SAME}, 7),
        ({"padding": PaddingCode.SAME, "nchw": False}, 7),
        ({"padding": PaddingCode.SAME, "nchw": True}, 8),
        ({"padding_left": 0, "padding_right": 0, "padding_top": 0, "padding_bottom": 0}, 10),
    ],
)
def test_the_form_follows_from_the_arguments(arguments: dict[str, object], count: int) -> None:
    builder = ModelBuilder(DEVICES)
    image = builder.input(np.float32, (1, 2, 2, 2))
    sizes = dict.fromkeys(("stride_width", "stride_height", "filter_width", "filter_height"), 1)
    node, _ = only_operation(builder, builder.max_pool_2d(image, **arguments, **sizes))
    assert len(node.inputs) == count


Build = Callable[[ModelBuilder, ModelOperand], object]


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (lambda b, x: b.add(x), "ADD: missing a required argument: 'input1'"),
        (lambda b, x: b.add(x, x, colour=3), "ADD: got an unexpected keyword argument 'colour'"),
        (lambda b, x: b.max_pool_2d(x, stride_width=1), "MAX_POOL_2D: arguments are missing, or"),
        (
            lambda b, x: b.max_pool_2d(x, padding=1, padding_left=1),
            "MAX_POOL_2D: arguments are missing, or do not go together. Expected input, padding, ",
        ),
        (
            lambda b, x: b.add(x, np.array([1], np.int32)),
            "ADD: the operation does not take operands of",
        ),
        (lambda b, x: b.add(x, np.array([1], np.uint8)), "input1 TENSOR_QUANT8_ASYMM"),
        (
            lambda b, x: b.dequantize(np.array([1], np.uint8)),
            "input has no scale. Give quantised elements with ModelBuilder.constant",
        ),
        (lambda b, x: b.softmax(x, beta="high"), "SOFTMAX: the operation does not take"),
        (lambda b, x: b.expand_dims(x, axis=2**40), "EXPAND_DIMS / axis: the numbers do not fit"),
        (lambda b, x: b.relu(ModelBuilder(DEVICES).input(np.float32)), "input belongs to another"),
        (lambda b, x: b.concatenation(x, axis=0), "inputs is not a sequence"),
        (lambda b, x: b.split(x, axis=0, num_splits=b.scalar(2, C.INT32)), "Give outputs=3"),
        (lambda b, x: b.input("no dtype"), "this is not an operand type"),
        (
            lambda b, x: b.quantize(x, outputs=[OperandType(C.TENSOR_FLOAT32)]),
            r"QUANTIZE: output 0 \(output\) has the wrong type|scale of output",
        ),
        (lambda b, x: b.topk_v2(x, k=1, outputs=3), "TOPK_V2: .*3 outputs"),
    ],
)
def test_calls_that_mean_nothing_are_bad_data(build: Build, problem: str) -> None:
    builder = ModelBuilder(DEVICES)
    with fails(ResultCode.BAD_DATA, problem):
        build(builder, builder.input(FLOAT_2))


def test_numbers_become_scalars_of_the_type_that_goes_with_the_tensor() -> None:
    for dtype, code in ((np.float32, C.FLOAT32), (np.float16, C.FLOAT16)):
        builder = ModelBuilder(DEVICES)
        node, main = only_operation(builder, builder.elu(builder.input(dtype, (2,)), alpha=2))
        assert main.operands[node.inputs[1]].type == code


@pytest.mark.parametrize(
    ("code", "zero_point", "expected"),
    [(C.TENSOR_QUANT8_ASYMM, 3, 3), (C.TENSOR_QUANT8_ASYMM_SIGNED, -5, -5)],
)
def test_an_output_is_quantised_as_the_first_input_of_its_type(
    code: OperandCode, zero_point: int, expected: int
) -> None:
    builder = ModelBuilder(DEVICES)
    output = builder.relu(builder.input(code, (2,), 0.5, zero_point))
    assert output.type == OperandType(code, (), 0.5, expected)


@pytest.mark.parametrize(
    ("name", "arguments", "scale", "zero_point"),
    [
        ("softmax", {"beta": 1.0}, 1 / 256, 0),
        ("logistic", {}, 1 / 256, 0),
        ("tanh", {}, 1 / 128, 128),
    ],
)
def test_a_prescribed_quantisation_is_given_to_the_output(
    name: str, arguments: dict[str, float], scale: float, zero_point: int
) -> None:
    for code, offset in ((C.TENSOR_QUANT8_ASYMM, 0), (C.TENSOR_QUANT8_ASYMM_SIGNED, -128)):
        builder = ModelBuilder(DEVICES)
        output = getattr(builder, name)(builder.input(code, (1, 2), 0.5, 0), **arguments)
        assert output.type == OperandType(code, (), scale, zero_point + offset)
        compiled(builder.finish(output))


def test_types_of_outputs_may_be_given() -> None:
    builder = ModelBuilder(DEVICES)
    x = builder.input(FLOAT_2)
    q8 = OperandType(C.TENSOR_QUANT8_ASYMM, (2,), 0.5, 10)
    first, second = builder.quantize(x, outputs=q8), builder.quantize(x, outputs=[q8])
    results = compiled(builder.finish(first, second))(floats(1, -2))
    assert [result.tolist() for result in results] == [[12, 6], [12, 6]]


def test_constants_take_scales_for_tensors_and_for_channels() -> None:
    builder = ModelBuilder(DEVICES)
    constant = builder.constant(np.array([1, 2], np.uint8), 0.5, 3)
    many = builder.constant([[1, 2], [3, 4]], channel_scales=[0.5, 1.0], channel_dim=0)
    assert constant.type == OperandType(C.TENSOR_QUANT8_ASYMM, (2,), 0.5, 3)
    assert many.type == OperandType(C.TENSOR_QUANT8_SYMM_PER_CHANNEL, (2, 2))
    results = compiled(builder.finish(builder.dequantize(constant), builder.dequantize(many)))()
    assert [result.tolist() for result in results] == [[-1, -0.5], [[0.5, 1], [3, 4]]]


def test_a_condition_has_the_dimensions_that_follow_so_that_a_loop_can_be_built() -> None:
    whole = OperandType(OperandCode.TENSOR_INT32, (1,))
    condition = ModelBuilder(DEVICES)
    i, n = condition.input(whole), condition.input(whole)
    is_less = condition.less(i, n)
    assert is_less.type == OperandType(OperandCode.TENSOR_BOOL8, (1,))
    body = ModelBuilder(DEVICES)
    count, limit = body.input(whole), body.input(whole)
    counted = body.finish(body.add(count, np.array([1], np.int32), outputs=whole))
    assert limit.type == whole
    outer = ModelBuilder(DEVICES)
    ends = outer.while_(
        condition.finish(is_less), counted, [outer.input(whole), outer.input(whole)], [whole]
    )
    (result,) = compiled(outer.finish(*ends))(np.array([0], np.int32), np.array([3], np.int32))
    np.testing.assert_array_equal(result, [3])


def test_dimensions_that_do_not_follow_stay_open() -> None:
    builder = ModelBuilder(DEVICES)
    a, b, c = (
        builder.input(OperandType(OperandCode.TENSOR_INT32, shape))
        for shape in [(2, 1), (3,), (0,)]
    )
    assert builder.less(a, b).type.dimensions == (2, 3)
    assert builder.less(a, c).type.dimensions == ()
    assert (
        builder.equal(a, builder.input(OperandType(OperandCode.TENSOR_INT32))).type.dimensions == ()
    )
    output_type = OperandType(OperandCode.TENSOR_BOOL8, (0, 0))
    assert builder.less(a, b, outputs=output_type).type == output_type
    truth = builder.logical_not(builder.logical_and(builder.less(a, b), builder.greater(a, b)))
    assert truth.type.dimensions == (2, 3)
