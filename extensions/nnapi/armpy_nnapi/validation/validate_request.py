"""Validity of requests: what is given for an execution fits the model."""

from __future__ import annotations

from dataclasses import replace

from armpy_nnapi.codes import OperandCode
from armpy_nnapi.description.model_description import ModelDescription, Operand, Subgraph
from armpy_nnapi.description.request import Request, RequestArgument, combine_dimensions
from armpy_nnapi.results import bad_data, require_data
from armpy_nnapi.validation.described import IModel, described


def validate_request(
    model: IModel | ModelDescription | Subgraph, request: Request, *, allow_unspecified: bool = True
) -> None:
    """Check a request as a device does that did not see how it was made.

    Parameters
    ----------
    model : Model, ModelDescription or Subgraph
        A finished model, a valid one, or its main graph.
    allow_unspecified : bool
        Whether outputs may have unknown dimensions.

    Raises
    ------
    NnapiError
        BAD_DATA if it does not fit the model, or a buffer is shorter than the known dimensions say;
        as of `validate_model` if it is not a model, or not finished.

    References
    ----------
    NNAPI ``validateRequest``.
    """
    if isinstance(model, Subgraph):
        graph = model
    else:
        graph = described(model, "validate_request", ", or its main Subgraph").main
    for side, indexes, arguments in (
        ("input", graph.inputs, request.inputs),
        ("output", graph.outputs, request.outputs),
    ):
        require_data(
            len(indexes) == len(arguments),
            f"the number of {side}s is not the model's",
            where="request",
            expected=str(len(indexes)),
            actual=str(len(arguments)),
        )
        for position, (index, argument) in enumerate(zip(indexes, arguments, strict=True)):
            operand = graph.operands[index]
            # An input comes with its elements, so all its dimensions are there.
            is_free = side == "output" and allow_unspecified
            _check_argument(operand, argument, f"request / {side} {position}", is_free)


def _check_argument(
    operand: Operand, argument: RequestArgument, where: str, allow_unspecified: bool
) -> None:
    if argument.data is None:  # whether the operation can go without is no matter of the request
        require_data(
            not argument.dimensions,
            "it has dimensions although it has no value",
            where=where,
            actual=str(argument.dimensions),
        )
        return
    combined = combine_dimensions(operand.dimensions, argument.dimensions)
    if combined is None:
        raise bad_data(
            "the dimensions are not those of the model",
            where=where,
            expected=str(operand.dimensions),
            actual=str(argument.dimensions),
        )
    known = replace(operand, dimensions=combined)
    require_data(
        allow_unspecified or known.is_fully_known,
        "the dimensions are not fully known",
        where=where,
        actual=str(combined),
    )
    # Only its driver knows how long an OEM scalar is. 0 bytes are needed while dimensions are open.
    needed = 0 if operand.type == OperandCode.OEM_SCALAR else known.size_bytes
    actual = memoryview(argument.data).nbytes
    require_data(
        actual >= needed,
        "the buffer is too short",
        where=where,
        expected=f"at least {needed} bytes",
        actual=f"{actual} bytes",
    )
