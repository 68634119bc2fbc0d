"""Feature levels: what a model needs, and what a device of a lower level can take of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from armpy_nnapi import (
    Model,
    ModelBuilder,
    OperandCode,
    OperandType,
    OperationCode,
    PaddingCode,
    ResultCode,
    compliant_slice,
    convert,
    minimum_feature_level,
    validate_model,
    validate_operation,
)
from armpy_nnapi.conformance.vectors.example import read_examples
from armpy_nnapi.description.model_description import Lifetime, ModelDescription, Operand
from armpy_nnapi.validation.validate_model import operand_feature_level
from armpy_testing.shared import shared_file

from .nnapi_models import FLOAT_2, FLOAT_ANY, fails

C = OperandCode
ROW = OperandType(C.TENSOR_FLOAT32, (1, 4))


def built(build: str, operand_type: OperandType = ROW) -> ModelDescription:
    """A model of one operation with outputs of the input's type."""
    builder = ModelBuilder()
    x = builder.input(operand_type)
    same = operand_type
    outputs = {
        "floor": lambda: builder.floor(x, outputs=same),
        "sub": lambda: builder.sub(x, x, outputs=same),
        "add": lambda: builder.add(x, x, outputs=same),
        "exp": lambda: builder.exp(x, outputs=same),
        "elu": lambda: builder.elu(x, alpha=1.0, outputs=same),
        "softmax": lambda: builder.softmax(x, beta=1.0, outputs=same),
        "softmax along 0": lambda: builder.softmax(x, beta=1.0, axis=0, outputs=same),
        "relu": lambda: builder.relu(x, outputs=same),
        "reduce_max": lambda: builder.reduce_max(x, [0], True, outputs=same),
    }[build]()
    return builder.finish(outputs).description


@pytest.mark.parametrize(
    ("description", "level"),
    [
        (built("floor"), 27),
        (built("add"), 27),
        (built("sub"), 28),
        (built("exp"), 29),
        (built("elu"), 30),
        (built("floor", OperandType(C.TENSOR_FLOAT16, (2,))), 29),
        (built("relu", OperandType(C.TENSOR_QUANT8_ASYMM, (2,), 0.5)), 27),
        (built("relu", OperandType(C.TENSOR_QUANT8_ASYMM_SIGNED, (2,), 0.5)), 30),
        (built("add", OperandType(C.TENSOR_INT32, (2,))), 30),
        (built("floor", OperandType(C.TENSOR_FLOAT32, (0, 2))), 27),
        (built("floor", FLOAT_ANY), 29),
        (built("reduce_max", OperandType(C.TENSOR_QUANT8_ASYMM, (1, 4), 0.5)), 29),
        (built("reduce_max", OperandType(C.TENSOR_QUANT8_ASYMM_SIGNED, (1, 4), 0.5)), 30),
        (built("softmax"), 27),
        (built("softmax along 0"), 29),
    ],
)
def test_a_model_needs_the_level_of_what_is_newest_in_it(
    description: ModelDescription, level: int
) -> None:
    assert minimum_feature_level(description) == level


def test_every_check_counts_an_unknown_rank() -> None:
    """NNAPI's operands have a rank to level 28; to HAL 1.1 only dimensions may be open."""
    builder = ModelBuilder()
    x = builder.input(FLOAT_2)
    ranked = builder.finish(builder.tanh(x, outputs=FLOAT_2)).description
    assert (validate_model(ranked), minimum_feature_level(ranked)) == (27, 27)
    *inputs, output = ranked.main.operands
    main = replace(ranked.main, operands=(*inputs, replace(output, dimensions=())))
    unranked = replace(ranked, main=main)
    assert (validate_model(unranked), minimum_feature_level(unranked)) == (29, 29)
    (node,) = main.operations
    assert validate_operation(node, main.operands) == 29
    with fails(ResultCode.BAD_DATA, "TANH: .* at most 28; got 29"):
        validate_operation(node, main.operands, feature_level=28)


def pooled() -> ModelDescription:
    """AVERAGE_POOL_2D that says NHWC, as no method of this package leaves it."""
    builder = ModelBuilder()
    image = OperandType(C.TENSOR_FLOAT32, (1, 2, 2, 1))
    sizes = dict.fromkeys(("stride_width", "stride_height", "filter_width", "filter_height"), 1)
    averages = builder.average_pool_2d(
        builder.input(image), padding=PaddingCode.SAME, nchw=False, outputs=image, **sizes
    )
    layout = builder.scalar(False, C.BOOL)
    description = builder.finish(averages).description
    (node,) = description.main.operations
    longer = replace(node, inputs=(*node.inputs[:7], layout.index))
    return replace(description, main=replace(description.main, operations=(longer,)))


def test_an_operand_that_nothing_uses_any_more_goes_too() -> None:
    description = convert(pooled(), 27)
    (node,) = description.main.operations
    assert len(node.inputs) == 7
    assert all(operand.type != C.BOOL for operand in description.main.operands)
    assert validate_model(description) == minimum_feature_level(description) == 27


def mixed() -> ModelDescription:
    """One operation of each level, each after the one before, and one more of the lowest."""
    builder = ModelBuilder()
    x = builder.input(ROW)
    y = builder.input(ROW)
    first = builder.floor(x, outputs=ROW)
    second = builder.sub(first, y, outputs=ROW)
    third = builder.exp(second, outputs=ROW)
    fourth = builder.elu(third, alpha=1.0, outputs=ROW)
    last = builder.add(fourth, third, outputs=ROW)
    return builder.finish(last).description


@pytest.mark.parametrize(
    ("level", "operations", "num_inputs", "num_outputs"),
    [
        # FLOOR and ADD: ADD's inputs come from outside, and are one with x, of the same type.
        (27, (0, 4), 1, 2),
        (28, (0, 1, 4), 1, 2),
        (29, (0, 1, 2, 4), 1, 1),
        (30, (0, 1, 2, 3, 4), 2, 1),
    ],
)
def test_a_device_is_asked_about_the_operations_of_its_level(
    level: int, operations: tuple[int, ...], num_inputs: int, num_outputs: int
) -> None:
    part = compliant_slice(mixed(), level)
    assert part is not None
    assert part.operations == operations
    assert len(part.description.main.inputs) == num_inputs
    assert len(part.description.main.outputs) == num_outputs
    assert validate_model(part.description) <= level


def test_what_only_newer_operations_read_is_an_output_of_the_slice() -> None:
    builder = ModelBuilder()
    inner = builder.floor(builder.input(ROW), outputs=ROW)
    description = builder.finish(builder.exp(inner, outputs=ROW)).description
    part = compliant_slice(description, 27)
    assert part is not None
    main = part.description.main
    assert main.operands[main.outputs[0]].lifetime is Lifetime.SUBGRAPH_OUTPUT
    assert len(main.operands) == 2


def test_inputs_of_different_types_stay_apart() -> None:
    builder = ModelBuilder()
    first, two = builder.input(ROW), builder.input(OperandType(C.TENSOR_FLOAT32, (1, 1)))
    builder_sum = builder.add(builder.exp(first, outputs=ROW), two, outputs=ROW)
    part = compliant_slice(builder.finish(builder_sum).description, 27)
    assert part is not None
    assert len(part.description.main.inputs) == 2


@pytest.mark.parametrize("level", [27, 28])
def test_a_model_without_an_operation_of_a_level_gives_no_slice(level: int) -> None:
    assert compliant_slice(built("exp"), level) is None


def test_operations_without_outputs_are_no_slice() -> None:
    builder = ModelBuilder()
    x = builder.input(ROW)
    builder.model.add_operation(OperationCode.OEM_OPERATION, [x.index], [])
    description = builder.finish(builder.exp(x, outputs=ROW)).description
    assert compliant_slice(description, 27) is None


def test_operands_of_extensions_need_level_29() -> None:
    assert operand_feature_level(Operand(0x10001, (2,))) == 29


@pytest.mark.slow
@pytest.mark.parametrize("version", ["V1_0", "V1_1", "V1_2", "V1_3"])
def test_published_models_need_at_most_the_level_they_were_published_for(version: str) -> None:
    for example in read_examples(shared_file("nnapi_cts", version)):
        if example.expects_failure:
            continue
        model = Model.from_description(example.model)
        assert minimum_feature_level(model.description) <= example.feature_level, example.name
        # The operands omitted at the end of operations were not needed.
        assert validate_model(model.description) <= example.feature_level, example.name
