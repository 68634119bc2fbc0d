"""Checks and results of finishing a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from armpy_nnapi import (
    Model,
    ModelBuilder,
    OperandCode,
    OperandType,
    OperationCode,
    ResultCode,
    validate_model,
)
from armpy_nnapi.description.model_description import (
    ChannelQuant,
    Lifetime,
    ModelDescription,
    Operand,
    OperationNode,
    Subgraph,
)

from .nnapi_models import (
    BOOL_1,
    FLOAT_2,
    FLOAT_OPEN,
    INT,
    MODEL,
    add_activation,
    add_operands,
    fails,
    floats,
    sum_model,
)

C = OperandCode
IN, OUT, TEMP = Lifetime.SUBGRAPH_INPUT, Lifetime.SUBGRAPH_OUTPUT, Lifetime.TEMPORARY_VARIABLE
X, Y = Operand(C.TENSOR_FLOAT32, (2,), lifetime=IN), Operand(C.TENSOR_FLOAT32, (2,), lifetime=OUT)
RELU = OperationNode(OperationCode.RELU, (0,), (1,))
GRAPH = Subgraph((X, Y), (RELU,), (0,), (1,))


def relus(model: Model, *pairs: tuple[int, int]) -> None:
    """Add a RELU from one operand to another for each pair."""
    for a, b in pairs:
        model.add_operation(OperationCode.RELU, [a], [b])


def test_operations_are_put_into_an_order_in_which_they_can_run() -> None:
    model = Model()
    a, b, c, d = add_operands(model, *[FLOAT_2] * 4)
    relus(model, (c, d), (b, c), (a, b))
    model.identify_inputs_and_outputs([a], [d])
    model.finish()
    assert model.operation_order == (2, 1, 0)
    assert [node.inputs for node in model.description.main.operations] == [(a,), (b,), (c,)]


def test_of_the_ready_operations_the_last_one_to_become_so_is_next() -> None:
    model = Model()
    a, b, c, d, e = add_operands(model, *[FLOAT_2] * 5)
    relus(model, (a, b), (a, c), (b, d), (c, e))
    model.identify_inputs_and_outputs([a], [d, e])
    model.finish()
    assert model.operation_order == (1, 3, 0, 2)


def test_operations_that_wait_for_each_other_are_rejected() -> None:
    model = Model()
    a, b, c, d = add_operands(model, *[FLOAT_2] * 4)
    relus(model, (b, c), (c, b), (a, d))
    model.identify_inputs_and_outputs([a], [d])
    with fails(ResultCode.BAD_DATA, r"operation 0 \(RELU\): it waits for its own output"):
        model.finish()


def test_an_operand_that_is_read_must_be_written() -> None:
    model = Model()
    a, b, c = add_operands(model, *[FLOAT_2] * 3)
    relus(model, (b, c))
    model.identify_inputs_and_outputs([a], [c])
    with fails(ResultCode.BAD_DATA, f"it reads operand {b}, which nothing writes"):
        model.finish()


def test_an_unread_operand_must_be_written_too() -> None:
    model = Model()
    a, b, unused = add_operands(model, *[FLOAT_2] * 3)
    relus(model, (a, b))
    model.identify_inputs_and_outputs([a], [b])
    with fails(ResultCode.BAD_DATA, f"operand {unused}: nothing writes it"):
        model.finish()


def test_an_operand_is_written_once() -> None:
    model = Model()
    a, b = add_operands(model, *[FLOAT_2] * 2)
    relus(model, (a, b), (a, b))
    model.identify_inputs_and_outputs([a], [b])
    with fails(ResultCode.BAD_DATA, "it writes operand 1, which has been written"):
        model.finish()


@pytest.mark.parametrize("value", [None, floats(1, 2)])
def test_only_operands_without_a_value_are_written(value: object) -> None:
    model = Model()
    a, b, c = add_operands(model, *[FLOAT_2] * 3)
    model.set_operand_value(b, value)
    relus(model, (a, b), (a, c))
    model.identify_inputs_and_outputs([a], [c])
    with fails(
        ResultCode.BAD_DATA,
        r"operation 1 / RELU: it writes operand 1, which operations may not write",
    ):
        model.finish()


def test_a_model_has_operations() -> None:
    model = Model()
    add_operands(model, FLOAT_2, FLOAT_2)
    model.identify_inputs_and_outputs([0], [1])
    with fails(ResultCode.BAD_DATA, "there are no operations"):
        model.finish()


def changed(index: int, **fields: object) -> ModelDescription:
    """The description of a RELU with one operand changed."""
    operands = list(GRAPH.operands)
    operands[index] = replace(operands[index], **fields)  # type: ignore[arg-type]  # a test's
    return ModelDescription(replace(GRAPH, operands=tuple(operands)))


@pytest.mark.parametrize(
    ("description", "problem"),
    [
        (changed(0, data=b"12345678"), "operand 0: it has elements although it is not a constant"),
        (changed(0, scale=0.5), "operand 0 / TENSOR_FLOAT32: the scale does not fit"),
        (changed(0, extension_data=b"x"), "operand 0: extension data is attached"),
        (
            changed(0, channel_quant=ChannelQuant((1.0, 1.0), 0)),
            "operand 0: per-channel scales and",
        ),
        (changed(0, subgraph=0, type=C.MODEL, dimensions=()), "operand 0: operands of type MODEL"),
        (
            changed(0, lifetime=Lifetime.CONSTANT_COPY, data=b"1234"),
            "operand 0: the constant has the wrong length. Expected 8 bytes; got 4",
        ),
        (changed(0, lifetime=Lifetime.CONSTANT_COPY), "operand 0: the constant has no elements"),
        (
            changed(0, lifetime=Lifetime.CONSTANT_COPY, data=b"", dimensions=()),
            "operand 0: a constant's dimensions are not fully known",
        ),
        (ModelDescription(replace(GRAPH, inputs=())), "inputs: these are not the operands"),
        (ModelDescription(replace(GRAPH, outputs=(1, 1))), "outputs: an operand is listed twice"),
        (ModelDescription(replace(GRAPH, outputs=(7,))), "outputs: entry 0 is an operand that"),
    ],
)
def test_descriptions_are_checked_like_built_models(
    description: ModelDescription, problem: str
) -> None:
    with fails(ResultCode.BAD_DATA, problem):
        Model.from_description(description)


@pytest.mark.parametrize(
    ("fields", "is_valid"),
    [({"scale": 0.5}, True), ({"scale": -0.5}, False), ({"zero_point": 1}, False)],
)
def test_integers_in_a_model_have_no_zero_point(fields: dict[str, float], is_valid: bool) -> None:
    integers = replace(X, type=C.TENSOR_INT32, **fields)  # type: ignore[arg-type]  # numbers
    graph = replace(
        GRAPH,
        operands=(integers, Y),
        operations=(OperationNode(OperationCode.CAST, (0,), (1,)),),
    )
    if is_valid:
        Model.from_description(ModelDescription(graph))
    else:
        with fails(ResultCode.BAD_DATA, "the scale is negative, or the zero point is not 0"):
            Model.from_description(ModelDescription(graph))


def test_a_described_models_operations_come_in_any_order() -> None:
    middle = replace(Y, lifetime=TEMP)
    second = OperationNode(OperationCode.RELU, (2,), (1,))
    first = OperationNode(OperationCode.RELU, (0,), (2,))
    graph = Subgraph((X, Y, middle), (second, first), (0,), (1,))
    model = Model.from_description(ModelDescription(graph))
    assert model.description.main.operations == (first, second)
    with fails(ResultCode.BAD_DATA, "it reads operand 2 before it is written"):
        validate_model(ModelDescription(graph))


def in_if(subgraph: int) -> Subgraph:
    """A graph with an IF whose models are the referenced graph of a number."""
    condition = Operand(C.TENSOR_BOOL8, (1,), lifetime=IN)
    other = Operand(C.MODEL, lifetime=Lifetime.SUBGRAPH, subgraph=subgraph)
    node = OperationNode(OperationCode.IF, (0, 1, 1, 0), (2,))
    return Subgraph((condition, other, replace(condition, lifetime=OUT)), (node,), (0,), (2,))


TRUTH = Operand(C.TENSOR_BOOL8, (1,), lifetime=IN)
NEGATION = OperationNode(OperationCode.LOGICAL_NOT, (0,), (1,))
GRAPH_OF_TRUTH = Subgraph((TRUTH, replace(TRUTH, lifetime=OUT)), (NEGATION,), (0,), (1,))


def test_models_do_not_refer_to_themselves() -> None:
    with fails(ResultCode.BAD_DATA, "referenced model 0: it refers to itself"):
        validate_model(ModelDescription(in_if(0), (in_if(0),)))
    with fails(ResultCode.BAD_DATA, r"referenced model \d: it refers to itself"):
        validate_model(ModelDescription(in_if(0), (in_if(1), in_if(0))))


def test_referenced_models_are_there() -> None:
    with fails(ResultCode.BAD_DATA, "operand 1: the model that it stands for is not there"):
        validate_model(ModelDescription(in_if(3), (GRAPH,)))


def test_referenced_models_are_checked_too() -> None:
    broken = replace(GRAPH, outputs=())
    with fails(ResultCode.BAD_DATA, "referenced model 0 / outputs: these are not"):
        validate_model(ModelDescription(GRAPH, (broken,)))


def test_a_model_that_is_referenced_twice_is_there_once() -> None:
    inner = sum_model()
    outer = Model()
    condition, a, b, out = add_operands(outer, BOOL_1, FLOAT_2, FLOAT_2, FLOAT_2)
    models = add_operands(outer, MODEL, MODEL)
    for index in models:
        outer.set_operand_value_from_model(index, inner)
    outer.add_operation(OperationCode.IF, [condition, *models, a, b], [out])
    outer.identify_inputs_and_outputs([condition, a, b], [out])
    outer.finish()
    assert len(outer.description.referenced) == 1


def loop(carried: OperandType) -> ModelDescription:
    """A WHILE over one tensor."""
    condition, body, outer = ModelBuilder(), ModelBuilder(), ModelBuilder()
    truths = condition.less(condition.input(carried), floats(0, 0))
    axes = np.array([0], np.int32)
    more = condition.reduce_any(truths, axes=axes, keep_dims=True, outputs=[BOOL_1])
    changed = body.relu(body.input(carried), outputs=[carried])
    models = condition.finish(more), body.finish(changed)
    model: Model = outer.finish(*outer.while_(*models, [outer.input(carried)], [carried]))
    return model.description


def test_a_single_device_takes_no_loop_of_unknown_sizes() -> None:
    validate_model(loop(FLOAT_2), for_driver=True)
    description = loop(FLOAT_OPEN)
    validate_model(description)
    with fails(ResultCode.BAD_DATA, "an operand of the loop has dimensions that are not known"):
        validate_model(description, for_driver=True)


IMAGE = OperandType(C.TENSOR_FLOAT32, (1, 2, 2, 1))
FLAG, NUMBER = OperandType(C.BOOL), OperandType(C.INT32)


def pooling(nchw: bool, *, is_input: bool = False) -> Model:
    """AVERAGE_POOL_2D with implicit padding and a layout."""
    model = Model()
    x, y, layout = add_operands(model, IMAGE, IMAGE, FLAG)
    if not is_input:
        model.set_operand_value(layout, nchw)
    scalars = add_operands(model, *[NUMBER] * 5)
    for index in scalars:
        model.set_operand_value(index, 1)
    model.add_operation(
        OperationCode.AVERAGE_POOL_2D, [x, *scalars, add_activation(model), layout], [y]
    )
    model.identify_inputs_and_outputs([x, layout] if is_input else [x], [y])
    model.finish()
    return model


@pytest.mark.parametrize(
    ("make", "count"),
    [
        (lambda: pooling(False), 7),
        (lambda: pooling(True), 8),
        (lambda: pooling(False, is_input=True), 8),
    ],
)
def test_a_trailing_constant_that_is_the_default_is_left_out(
    make: Callable[[], Model], count: int
) -> None:
    (node,) = make().description.main.operations
    assert len(node.inputs) == count


@pytest.mark.parametrize(
    ("nchw", "dilations", "count"),
    [
        (False, (1, 1), 7),
        (False, (2, 1), 10),
        (False, (1, 2), 10),  # never only one of the dilations
        (True, (1, 1), 8),
        (True, (1, 2), 10),
    ],
)
def test_dilations_are_left_out_together(
    nchw: bool, dilations: tuple[int, int], count: int
) -> None:
    model = Model()
    x, weights, bias, y = add_operands(
        model,
        IMAGE,
        OperandType(C.TENSOR_FLOAT32, (1, 1, 1, 1)),
        OperandType(C.TENSOR_FLOAT32, (1,)),
        IMAGE,
    )
    for index in (weights, bias):
        model.set_operand_value(
            index, floats(1).reshape(1, 1, 1, 1) if index == weights else floats(1)
        )
    padding, *strides = add_operands(model, *[INT] * 3)
    layout = model.add_operand(FLAG)
    last = add_operands(model, INT, INT)
    for index, value in zip(
        (padding, *strides, layout, *last), (1, 1, 1, nchw, *dilations), strict=True
    ):
        model.set_operand_value(index, value)
    inputs = [x, weights, bias, padding, *strides, add_activation(model), layout, *last]
    model.add_operation(OperationCode.CONV_2D, inputs, [y])
    model.identify_inputs_and_outputs([x], [y])
    model.finish()
    (node,) = model.description.main.operations
    assert node.inputs == tuple(inputs[:count])


@pytest.mark.parametrize(
    ("flags", "count"),
    [
        ((False, False, False), 3),
        ((True, False, False), 4),
        ((False, True, False), 5),
        ((False, False, True), 6),
    ],
)
def test_a_default_before_another_value_stays(flags: tuple[bool, ...], count: int) -> None:
    model = Model()
    x, y, width, height = add_operands(model, IMAGE, OperandType(C.TENSOR_FLOAT32), INT, INT)
    for index in (width, height):
        model.set_operand_value(index, 4)
    booleans = add_operands(model, *[FLAG] * 3)
    for index, flag in zip(booleans, flags, strict=True):
        model.set_operand_value(index, flag)
    model.add_operation(OperationCode.RESIZE_BILINEAR, [x, width, height, *booleans], [y])
    model.identify_inputs_and_outputs([x], [y])
    model.finish()
    (node,) = model.description.main.operations
    assert len(node.inputs) == count


def test_models_lie_64_deep_in_each_other_at_most() -> None:
    chain = (GRAPH_OF_TRUTH, *(in_if(number) for number in range(5000)))
    assert validate_model(ModelDescription(in_if(63), chain[:64])) == 30
    with fails(ResultCode.BAD_DATA, "too deep in control flow. Expected at most 64.*got 65"):
        validate_model(ModelDescription(in_if(64), chain[:65]))
    with fails(ResultCode.BAD_DATA, "too deep in control flow"):
        validate_model(ModelDescription(in_if(5000), chain))
