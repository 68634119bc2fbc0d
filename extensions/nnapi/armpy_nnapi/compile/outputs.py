"""Output shapes of an execution, and how results get into the buffers for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NoReturn

import numpy as np

from armpy.ops.operation import Array
from armpy_nnapi.compile.signature import ArgumentSlot
from armpy_nnapi.errors import NnapiError, ResultCode
from armpy_nnapi.results import check_index, require_data


class OutputShapes:
    """Dimensions of an execution's outputs, and whether each fits its buffer.

    Parameters
    ----------
    slots : sequence of ArgumentSlot
        The model's outputs.
    """

    __slots__ = ("_buffer_sizes", "_dimensions", "_expected", "_slots")

    def __init__(self, slots: Sequence[ArgumentSlot]) -> None:
        self._slots = slots
        self._expected = [slot.operand.dimensions for slot in slots]
        self._dimensions = self._expected
        self._buffer_sizes: dict[int, int] = {}

    def expect(self, index: int, dimensions: tuple[int, ...]) -> None:
        """Take the dimensions that are known of an output before the execution."""
        self._expected[index] = dimensions

    def begin(self) -> None:
        """Forget what came out of an earlier execution."""
        # A copy, as results are filled in one by one, and the next run starts from the same.
        self._dimensions = [*self._expected]
        self._buffer_sizes.clear()

    def note(self, index: int, result: Array, where: str) -> None:
        """Take the dimensions that came out.

        Raises
        ------
        NnapiError
            OP_FAILED if others were expected.
        """
        # One element of a vendor's type can be an array; its axes are not dimensions to NNAPI.
        known = self._expected[index]
        num_dimensions = result.ndim - len(self._slots[index].operand.element_shape)
        actual = result.shape[:num_dimensions]
        # A dimension of 0 was open, and fits any.
        fits = len(known) == len(actual) and all(
            size in (0, other) for size, other in zip(known, actual, strict=True)
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

    def note_all(self, results: Sequence[Array], where: str) -> None:
        """Take the dimensions of every result; errors as for `note`."""
        for index, result in enumerate(results):
            self.note(index, result, where)

    def note_expected(self) -> None:
        """Take the dimensions of the slots, for results that were written in place."""
        self._dimensions = [slot.dimensions for slot in self._slots]

    @property
    def noted(self) -> list[tuple[int, ...]]:
        """Dimensions of every output, as far as they are known."""
        return self._dimensions

    @property
    def are_known(self) -> bool:
        """Return whether every dimension is known beforehand."""
        return all(
            not slot.operand.is_tensor or (bool(known) and 0 not in known)
            for slot, known in zip(self._slots, self._expected, strict=True)
        )

    def write(self, buffers: Sequence[Array | None], results: Sequence[Array], where: str) -> None:
        """Write all outputs, or none if one does not fit its buffer.

        Parameters
        ----------
        buffers : sequence of (ndarray or None)
            Contiguous, of any type; None for an output that is not wanted.

        Raises
        ------
        NnapiError
            OP_FAILED as for `note`; OUTPUT_INSUFFICIENT_SIZE.
        """
        # All are looked at before one is written or refused: with OUTPUT_INSUFFICIENT_SIZE NNAPI
        # reports the dimensions of every output, and whether it fitted.
        for index, (buffer, result) in enumerate(zip(buffers, results, strict=True)):
            self.note(index, result, where)
            if buffer is not None and result.nbytes > buffer.nbytes:
                self._buffer_sizes[index] = buffer.nbytes
        if self._buffer_sizes:
            first = min(self._buffer_sizes)
            self._raise_insufficient(first, self._dimensions[first], where)
        for buffer, result in zip(buffers, results, strict=True):
            if buffer is not None:
                # As bytes: the buffer may be larger than the result, and of another type.
                stored = np.ascontiguousarray(result).reshape(-1).view(np.uint8)
                buffer.reshape(-1).view(np.uint8)[: stored.size] = stored

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
        if index in self._buffer_sizes:
            self._raise_insufficient(index, answer, where)

    def _raise_insufficient(self, index: int, answer: object, where: str) -> NoReturn:
        """Raise the error for an output that did not fit."""
        operand = replace(self._slots[index].operand, dimensions=self._dimensions[index])
        raise NnapiError(
            f"output {index} does not fit its buffer",
            code=ResultCode.OUTPUT_INSUFFICIENT_SIZE,
            value=answer,
            where=where,
            expected=f"{operand.size_bytes} bytes for dimensions {operand.dimensions}",
            actual=f"{self._buffer_sizes[index]} bytes",
        )
