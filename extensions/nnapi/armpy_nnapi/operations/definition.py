"""Definition of an NNAPI operation: its forms, the types that go together, its lowering."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

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
        return min(
            max(form.feature_level, row.feature_level)
            for form in self.forms
            for row in self.type_rows or (TypeRow({}),)
        )

    def signatures(self) -> Iterator[tuple[Form, TypeRow]]:
        """Every form with every row of types."""
        for form in self.forms:
            # Without rows every argument has a type of its own, which one empty row leaves it.
            for row in self.type_rows or (TypeRow({}),):
                yield form, row

    def default(self, name: str) -> object:
        """The value that stands for an argument which a form does not have; None if none does."""
        for form in self.forms:
            for argument in form.inputs:
                if argument.name == name and argument.default is not None:
                    return argument.default
        return None

    def match(self, inputs: Sequence[Operand], outputs: Sequence[Operand]) -> Match:
        """Find the form and row that operands have.

        Raises
        ------
        LayerValidationError
            If there is none; the text names the operand that does not fit.
        """
        found: Match | None = None
        for form, row in self.signatures():
            match = Match.of(form, row, inputs, outputs)
            # Several may fit; the lowest level counts, as a model needs no more than that.
            if match is not None and (found is None or match.feature_level < found.feature_level):
                found = match
        if found is None:
            raise self._mismatch(inputs, outputs)
        return found

    def _mismatch(
        self, inputs: Sequence[Operand], outputs: Sequence[Operand]
    ) -> LayerValidationError:
        """The error for operands that fit no form: about the form that fits furthest."""
        best: tuple[int, str, str, str] | None = None
        for form, row in self.signatures():
            for what, arguments, operands in (
                ("input", form.inputs, inputs),
                ("output", form.outputs, outputs),
            ):
                named = spread(arguments, len(operands))
                if named is None:
                    break
                for i, (argument, operand) in enumerate(zip(named, operands, strict=True)):
                    wanted = argument.code(row)
                    if operand.type != wanted:
                        where = f"{what} {i} ({argument.name})"
                        # An output that differs is nearer to a fit than any input; no form has 1000
                        # inputs.
                        fits = i + (1000 if what == "output" else 0)
                        if best is None or fits > best[0]:
                            best = (fits, where, wanted.name, operand.type_name)
                        break
                else:
                    continue
                break
        counts_fit = any(
            spread(form.inputs, len(inputs)) and spread(form.outputs, len(outputs)) is not None
            for form in self.forms
        )
        if best is None or not counts_fit:
            allowed = sorted({_count_text(form) for form in self.forms})
            return LayerValidationError(
                "the number of operands is wrong",
                where=self.name,
                expected=" or ".join(allowed),
                actual=f"{len(inputs)} inputs and {len(outputs)} outputs",
            )
        _, where, wanted_type, actual = best
        return LayerValidationError(
            f"{where} has the wrong type",
            where=self.name,
            expected=f"{wanted_type} beside the other operands",
            actual=actual,
        )


def _count_text(form: Form) -> str:
    """Numbers of operands of a form, for messages."""
    texts = []
    for arguments, what in ((form.inputs, "inputs"), (form.outputs, "outputs")):
        least = any(argument.variadic for argument in arguments)
        texts.append(f"{len(arguments)}{' or more' if least else ''} {what}")
    return " and ".join(texts)
