"""Requests as a device checks them that did not see how they were made."""

from __future__ import annotations

from dataclasses import replace

import pytest

from armpy_nnapi import OperandCode, ResultCode
from armpy_nnapi.description.model_description import Lifetime, Operand, Subgraph
from armpy_nnapi.description.request import (
    Request,
    RequestArgument,
    combine_dimensions,
)
from armpy_nnapi.validation.validate_request import validate_request

from .nnapi_models import fails, sum_model

BYTES = memoryview(bytes(8))
X = Operand(OperandCode.TENSOR_FLOAT32, (2, 0), lifetime=Lifetime.SUBGRAPH_INPUT)
GRAPH = Subgraph((X, replace(X, lifetime=Lifetime.SUBGRAPH_OUTPUT)), (), (0,), (1,))
GOOD = RequestArgument(BYTES, (2, 1))


def test_a_request_that_fits_the_model_is_valid() -> None:
    validate_request(GRAPH, Request((GOOD,), (GOOD,)), allow_unspecified=False)
    validate_request(GRAPH, Request((RequestArgument(None),), (RequestArgument(BYTES),)))


def test_a_request_is_checked_against_a_model_or_its_description() -> None:
    model = sum_model()
    argument = RequestArgument(BYTES, (2,))
    for described in (model, model.description):
        validate_request(described, Request((argument, argument), (argument,)))
        with fails(ResultCode.BAD_DATA, "the number of inputs is not the model's"):
            validate_request(described, Request((), ()))
    with fails(ResultCode.BAD_DATA, "this is not a model.*or its main Subgraph; got None"):
        validate_request(None, Request((), ()))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (Request((), (GOOD,)), "the number of inputs is not the model's. Expected 1; got 0"),
        (Request((GOOD,), (GOOD, GOOD)), "the number of outputs is not the model's"),
        (
            Request((RequestArgument(None, (2, 1)),), (GOOD,)),
            "request / input 0: it has dimensions although it has no value",
        ),
        (
            Request((RequestArgument(BYTES, (3, 1)),), (GOOD,)),
            "request / input 0: the dimensions are not those of the model",
        ),
        (
            Request((RequestArgument(BYTES, (2,)),), (GOOD,)),
            "request / input 0: the dimensions are not those of the model",
        ),
        (
            Request((RequestArgument(BYTES),), (GOOD,)),
            r"request / input 0: the dimensions are not fully known. Got \(2, 0\)",
        ),
    ],
)
def test_a_request_that_does_not_fit_is_bad_data(request_: Request, problem: str) -> None:
    with fails(ResultCode.BAD_DATA, problem):
        validate_request(GRAPH, request_)


SCALAR = Operand(OperandCode.INT32, lifetime=Lifetime.SUBGRAPH_INPUT)
OEM = replace(SCALAR, type=OperandCode.OEM_SCALAR)


@pytest.mark.parametrize(
    ("operand", "dimensions", "needed"),
    [
        (X, (2, 3), 24),
        (replace(X, dimensions=(2, 3)), (), 24),
        (replace(X, type=OperandCode.TENSOR_FLOAT16), (2, 3), 12),
        (replace(X, type=OperandCode.TENSOR_BOOL8), (2, 3), 6),
        (SCALAR, (), 4),
        (replace(SCALAR, type=OperandCode.FLOAT16), (), 2),
    ],
)
@pytest.mark.parametrize("side", ["input", "output"])
def test_a_buffer_is_long_enough(
    operand: Operand, dimensions: tuple[int, ...], needed: int, side: str
) -> None:
    graph = Subgraph((operand,), (), (0,), ())
    if side == "output":
        graph = Subgraph((replace(operand, lifetime=Lifetime.SUBGRAPH_OUTPUT),), (), (), (0,))

    def validate(length: int) -> None:
        argument = (RequestArgument(memoryview(bytes(length)), dimensions),)
        is_input = side == "input"
        validate_request(graph, Request(argument, ()) if is_input else Request((), argument))

    validate(needed)
    validate(needed + 64)  # as memory that is padded is
    for length in (0, needed - 1):
        problem = f"request / {side} 0: the buffer is too short. Expected at least {needed} bytes"
        with fails(ResultCode.BAD_DATA, problem):
            validate(length)


def test_only_the_driver_knows_how_long_an_oem_scalar_is() -> None:
    argument = RequestArgument(memoryview(bytes(1)))
    validate_request(Subgraph((OEM,), (), (0,), ()), Request((argument,), ()))


def test_outputs_can_be_required_to_be_known() -> None:
    open_output = Request((GOOD,), (RequestArgument(BYTES, (2, 0)),))
    validate_request(GRAPH, open_output)
    with fails(ResultCode.BAD_DATA, "request / output 0: the dimensions are not fully known"):
        validate_request(GRAPH, open_output, allow_unspecified=False)


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        ((), (2, 0), (2, 0)),
        ((2, 0), (), (2, 0)),
        ((2, 0), (0, 3), (2, 3)),
        ((2, 3), (2, 3), (2, 3)),
        ((2, 3), (2, 4), None),
        ((2,), (2, 3), None),
    ],
)
def test_dimensions_are_combined(
    one: tuple[int, ...], other: tuple[int, ...], both: tuple[int, ...] | None
) -> None:
    assert combine_dimensions(one, other) == both
