"""The operands of a model under construction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from armpy_nnapi.codes import (
    MAX_IMMEDIATE_COPY_BYTES,
    MAX_OPERANDS,
    MAX_SIZE_BYTES,
    OperandCode,
)
from armpy_nnapi.description.buffers import readable_bytes
from armpy_nnapi.description.model_description import Lifetime, Operand
from armpy_nnapi.results import check_index, require_data


class OperandList:
    """Operands of a model, with types and values as far as they are set.

    Attributes
    ----------
    operands : list of Operand
        Large values are not in them yet, see `copy_large_values`.
    """

    def __init__(self) -> None:
        self.operands: list[Operand] = []
        # Above the limit the buffer is the application's until the model is finished.
        self._large_values: dict[int, memoryview] = {}

    def add(self, operand: Operand, where: str) -> int:
        """Add an operand; returns its index."""
        require_data(len(self.operands) < MAX_OPERANDS, "there are too many operands", where=where)
        self.operands.append(operand)
        return len(self.operands) - 1

    def get(self, index: int, where: str) -> Operand:
        """The operand of an index.

        Raises
        ------
        NnapiError
            BAD_DATA if there is none.
        """
        return self.operands[check_index(index, len(self.operands), "operand", where)]

    def set_value(self, index: int, value: object, where: str) -> None:
        """Make an operand a constant, or one without a value; see `Model.set_operand_value`."""
        operand = self.get(index, where)
        if value is None:
            # An omitted operand needs no dimensions.
            self._set(index, Lifetime.NO_VALUE, None)
            return
        _check_known(operand, where)
        data = readable_bytes(value, operand, where)
        require_data(len(data) <= MAX_SIZE_BYTES, "the value is too large", where=where)
        # Only its driver knows how long an OEM scalar is.
        if operand.type != OperandCode.OEM_SCALAR:
            _check_length(operand, len(data), where)
        # NNAPI copies small values at once, so their buffer may change after the call.
        if len(data) <= MAX_IMMEDIATE_COPY_BYTES:
            self._set(index, Lifetime.CONSTANT_COPY, bytes(data))
        else:
            self._set(index, Lifetime.CONSTANT_REFERENCE, None)
            self._large_values[index] = data

    def check_region(self, index: int, length: int, where: str) -> None:
        """Check that an operand can have a value of this length.

        Raises
        ------
        NnapiError
            BAD_DATA if there is no such operand, its dimensions are not fully known, or its
            size is another.
        """
        operand = self.get(index, where)
        _check_known(operand, where)
        _check_length(operand, length, where)

    def set_region(self, index: int, data: memoryview) -> None:
        """Make an operand a constant that is read in place."""
        self._set(index, Lifetime.CONSTANT_REFERENCE, data)

    def set_model(self, index: int, number: int) -> None:
        """Let an operand stand for a referenced graph."""
        self._set(index, Lifetime.SUBGRAPH, None, number)

    def mark(self, inputs: Sequence[int], outputs: Sequence[int], where: str) -> None:
        """Make operands inputs and outputs of the model.

        Raises
        ------
        NnapiError
            BAD_DATA if one does not exist, has a value, or is listed twice; nothing is marked.
        """
        listed = [(Lifetime.SUBGRAPH_INPUT, i) for i in inputs]
        listed += [(Lifetime.SUBGRAPH_OUTPUT, i) for i in outputs]
        for _, index in listed:
            self.get(index, where)
        seen: set[int] = set()
        for _, index in listed:
            lifetime = self.operands[index].lifetime
            require_data(
                lifetime is Lifetime.TEMPORARY_VARIABLE and index not in seen,
                f"operand {index} cannot be an input or output"
                + (" twice" if index in seen else ""),
                where=where,
                expected="one that has no value and is listed once",
                actual=lifetime.name,
            )
            seen.add(index)
        # Marked only when all are checked: a call that fails changes nothing.
        for lifetime, index in listed:
            self.operands[index] = replace(self.operands[index], lifetime=lifetime)

    def copy_large_values(self) -> None:
        """Copy the values that belong to the application still."""
        for index, data in self._large_values.items():
            self.operands[index] = replace(self.operands[index], data=bytes(data))
        self._large_values.clear()

    def _set(
        self,
        index: int,
        lifetime: Lifetime,
        data: bytes | memoryview | None,
        subgraph: int | None = None,
    ) -> None:
        """Give an operand its value in place of the one it had."""
        # A value that is set again replaces the one before, also a large one not yet copied.
        self._large_values.pop(index, None)
        self.operands[index] = replace(
            self.operands[index], lifetime=lifetime, data=data, subgraph=subgraph
        )


def _check_known(operand: Operand, where: str) -> None:
    """Check that a tensor can be given elements."""
    require_data(
        operand.is_fully_known,
        "the operand's dimensions are not fully known",
        where=where,
        expected=f"{operand.type_name} with all dimensions",
        actual=str(operand.dimensions),
    )


def _check_length(operand: Operand, length: int, where: str) -> None:
    require_data(
        length == operand.size_bytes,
        "the value has the wrong length",
        where=where,
        expected=f"{operand.size_bytes} bytes for {operand.type_name}{operand.dimensions or ''}",
        actual=f"{length} bytes",
    )
