"""Requests as a device checks them that did not see how they were made."""

from __future__ import annotations

from dataclasses import replace

import pytest

from armpy.errors import ResultCode
from armpy_nnapi import OperandCode
from armpy_nnapi.description.model_description import Lifetime, Operand, Subgraph
from armpy_nnapi.description.request import (
    Request,
    RequestArgument,
    combine_dimensions,
    validate_request,
)
from tests.support.nnapi_models import fails

BYTES = memoryview(bytes(8))
X = Operand(OperandCode.TENSOR_FLOAT32, (2, 0), lifetime=Lifetime.SUBGRAPH_INPUT)
GRAPH = Subgraph((X, replace(X, lifetime=Lifetime.SUBGRAPH_OUTPUT)), (), (0,), (1,))
GOOD = RequestArgument(BYTES, (2, 1))


def test_a_request_that_fits_the_model_is_valid() -> None:
    validate_request(GRAPH, Request((GOOD,), (GOOD,)), allow_unspecified=False)
    validate_request(GRAPH, Request((RequestArgument(None),), (RequestArgument(BYTES),)))


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
