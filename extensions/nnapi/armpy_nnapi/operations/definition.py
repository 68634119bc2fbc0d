"""Definition of an NNAPI operation: its forms, the types that go together, its lowering."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from armpy.core.dataclass import dataclass
from armpy.errors import LayerValidationError
from armpy_nnapi.codes import OperationCode
from armpy_nnapi.description.model_description import Operand
from armpy_nnapi.operations.form import Arguments, Form, Match, TypeRow, spread
from armpy_nnapi.operations.lowering_context import LoweringContext

Check: TypeAlias = Callable[[Arguments], int]
"""Checks what types alone do not say; returns the lowest feature level that allows it."""

Lower: TypeAlias = Callable[[LoweringContext], Any]  # Any: a Value, or a sequence of them
"""Adds the layers that an operation is made of; returns its output or outputs."""


@dataclass(frozen=True, slots=True, eq=False)
class OperationDefinition:
    """All that armpy knows of an NNAPI operation."""

    code: OperationCode
    summary: str  # one line for documentation
    forms: tuple[Form, ...]
    type_rows: tuple[TypeRow, ...]  # empty if the forms' types are all fixed
    lower: Lower  # see `Lower`
    check: Check | None = None
    """See `Check`. Raises LayerValidationError."""
    allows_zero_sized: bool = False  # whether inputs may have a dimension of 0

    @property
    def name(self) -> str:
        """NNAPI's name."""
        return self.code.name

    @property
    def feature_level(self) -> int:
        """Lowest feature level that has the operation in any form."""
        return min(max(form.feature_level, row.feature_level) for form, row in self.signatures())

    def signatures(self) -> Iterator[tuple[Form, TypeRow]]:
        """Every form with every row of types; one empty row where the forms' types are fixed."""
        return ((form, row) for form in self.forms for row in self.type_rows or (TypeRow({}),))

    def default(self, name: str) -> object:
        """The value that stands for an argument which a form does not have; None without one."""
        arguments = (a for form in self.forms for a in form.inputs if a.name == name)
        return next((a.default for a in arguments if a.default is not None), None)

    def match(self, inputs: Sequence[Operand], outputs: Sequence[Operand]) -> Match:
        """Find the form and row that operands have; the lowest feature level if several fit.

        Raises
        ------
        LayerValidationError
            If there is none; the text names the operand that does not fit.
        """
        candidates = (Match.of(form, row, inputs, outputs) for form, row in self.signatures())
        matches = [match for match in candidates if match is not None]
        if not matches:
            raise self._mismatch(inputs, outputs)
        return min(matches, key=lambda match: match.feature_level)

    def _mismatch(
        self, inputs: Sequence[Operand], outputs: Sequence[Operand]
    ) -> LayerValidationError:
        """The error for operands that fit no form: about the form that fits furthest."""
        misfits = [_misfit(form, row, inputs, outputs) for form, row in self.signatures()]
        furthest = max(filter(None, misfits), key=lambda misfit: misfit[0], default=None)
        counts_fit = any(
            spread(form.inputs, len(inputs)) and spread(form.outputs, len(outputs)) is not None
            for form in self.forms
        )
        if furthest is None or not counts_fit:
            return LayerValidationError(
                "the number of operands is wrong",
                where=self.name,
                expected=" or ".join(sorted({_count_text(form) for form in self.forms})),
                actual=f"{len(inputs)} inputs and {len(outputs)} outputs",
            )
        _, where, wanted, actual = furthest
        return LayerValidationError(
            f"{where} has the wrong type",
            where=self.name,
            expected=f"{wanted} beside the other operands",
            actual=actual,
        )


def _misfit(
    form: Form, row: TypeRow, inputs: Sequence[Operand], outputs: Sequence[Operand]
) -> tuple[int, str, str, str] | None:
    """Return how far operands fit, the first misfit, its type in the form, and its own type."""
    # An output that differs is nearer to a fit than any input; no form has 1000 inputs.
    sides = ((0, "input", form.inputs, inputs), (1000, "output", form.outputs, outputs))
    for first, side_name, arguments, operands in sides:
        named = spread(arguments, len(operands))
        if named is None:
            return None
        for i, (argument, operand) in enumerate(zip(named, operands, strict=True)):
            wanted = argument.code(row)
            if operand.type != wanted:
                return (
                    first + i,
                    f"{side_name} {i} ({argument.name})",
                    wanted.name,
                    operand.type_name,
                )
    return None


def _count_text(form: Form) -> str:
    """Numbers of operands of a form, for messages."""
    sides = ((form.inputs, "inputs"), (form.outputs, "outputs"))
    return " and ".join(
        f"{len(side)}{' or more' * any(a.variadic for a in side)} {noun}" for side, noun in sides
    )
