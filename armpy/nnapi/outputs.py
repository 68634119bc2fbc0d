"""Output shapes of an execution, and how results get into the buffers for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np

from armpy.errors import NnapiError, ResultCode
from armpy.nnapi.model_description import Operand
from armpy.nnapi.request import RequestArgument
from armpy.nnapi.results import check_index, require_data
from armpy.ops.operation import Array


class OutputShapes:
    """Dimensions of an execution's outputs, and whether each fits its buffer.

    Parameters
    ----------
    operands : sequence of Operand
        The model's outputs.
    """

    def __init__(self, operands: Sequence[Operand]) -> None:
        self._operands = tuple(operands)
        self._dimensions = [operand.dimensions for operand in operands]
        self._buffer_sizes: list[int | None] = [None] * len(operands)

    def expect(self, index: int, dimensions: tuple[int, ...]) -> None:
        """Take what is known of an output beforehand."""
        self._dimensions[index] = dimensions

    def note(self, index: int, result: Array, where: str) -> None:
        """Take the dimensions that came out.

        Raises
        ------
        NnapiError
            OP_FAILED if others were expected.
        """
        # One element of a vendor's type can be an array; its axes are no dimensions to NNAPI.
        known = self._dimensions[index]
        num_dimensions = result.ndim - len(self._operands[index].element_shape)
        actual = result.shape[:num_dimensions]
        fits = len(known) == len(actual) and all(
            one in (0, other) for one, other in zip(known, actual, strict=True)
        )
        if known and not fits:
            raise NnapiError(
                f"output {index} has other dimensions than were given for it",
                code=ResultCode.OP_FAILED,
                where=where,
                expected=str(known),
                actual=str(actual),
            )
        self._dimensions[index] = actual

    def write(
        self, arguments: Sequence[RequestArgument], results: Sequence[Array], where: str
    ) -> None:
        """Write all outputs, or none if one does not fit its buffer.

        Raises
        ------
        NnapiError
            OP_FAILED as for `note`; OUTPUT_INSUFFICIENT_SIZE.
        """
        # All are looked at before one is written or refused: with OUTPUT_INSUFFICIENT_SIZE NNAPI
        # tells the dimensions of every output, and whether it fitted.
        insufficient = []
        for index, (argument, result) in enumerate(zip(arguments, results, strict=True)):
            self.note(index, result, where)
            if argument.data is not None and result.nbytes > len(argument.data):
                self._buffer_sizes[index] = len(argument.data)
                insufficient.append(index)
        if insufficient:
            self._raise_insufficient(insufficient[0], self._dimensions[insufficient[0]], where)
        for argument, result in zip(arguments, results, strict=True):
            if argument.data is not None:
                stored = np.ascontiguousarray(result).reshape(-1).view(np.uint8)
                argument.data[: len(stored)] = stored.data

    def rank(self, index: int, where: str) -> int:
        """Rank of an output; see `dimensions`."""
        rank = len(self._of(index, where))
        self._check_sufficient(index, rank, where)
        return rank

    def dimensions(self, index: int, where: str) -> tuple[int, ...]:
        """Dimensions of an output.

        Raises
        ------
        NnapiError
            BAD_DATA if there is no such output or it is a scalar; OUTPUT_INSUFFICIENT_SIZE, with
            the answer, if it did not fit its buffer.
        """
        dimensions = self._of(index, where)
        require_data(bool(dimensions), "a scalar has no dimensions", where=where)
        self._check_sufficient(index, dimensions, where)
        return dimensions

    def _of(self, index: int, where: str) -> tuple[int, ...]:
        """Dimensions of an output that exists."""
        return self._dimensions[check_index(index, len(self._dimensions), "output", where)]

    def _check_sufficient(self, index: int, answer: object, where: str) -> None:
        """Check that an output fitted its buffer."""
        if self._buffer_sizes[index] is not None:
            self._raise_insufficient(index, answer, where)

    def _raise_insufficient(self, index: int, answer: object, where: str) -> NoReturn:
        """Raise the error for an output that did not fit."""
        operand = replace(self._operands[index], dimensions=self._dimensions[index])
        raise NnapiError(
            f"output {index} does not fit its buffer",
            code=ResultCode.OUTPUT_INSUFFICIENT_SIZE,
            value=answer,
            where=where,
            expected=f"{operand.size_bytes} bytes for dimensions {operand.dimensions}",
            actual=f"{self._buffer_sizes[index]} bytes",
        )
