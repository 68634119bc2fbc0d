"""Requests: the inputs of one execution and the places for its outputs."""

from __future__ import annotations

from armpy.core.dataclass import dataclass
from armpy_nnapi.description.model_description import Operand
from armpy_nnapi.description.operand_type import OperandType, validate_operand_type
from armpy_nnapi.results import require_data


@dataclass(frozen=True, slots=True)
class RequestArgument:
    """An input or output of one execution; HAL ``RequestArgument``."""

    data: memoryview | None  # elements, or where they go; None if it has no value
    dimensions: tuple[int, ...] = ()  # as far as the application gives them; 0 where not known

    @property
    def has_no_value(self) -> bool:
        """Return whether the input or output is left out."""
        return self.data is None


@dataclass(frozen=True, slots=True)
class Request:
    """All inputs and outputs of one execution; HAL ``Request``."""

    inputs: tuple[RequestArgument, ...]
    outputs: tuple[RequestArgument, ...]


def check_dimensions(
    operand: Operand, given: OperandType | None, where: str, *, allow_unspecified: bool
) -> tuple[int, ...]:
    """Check the type that an application gives with an input or output.

    Parameters
    ----------
    operand : Operand
        Operand of the model.
    allow_unspecified : bool
        Whether dimensions may be left unknown.

    Returns
    -------
    tuple of int
        The dimensions, as far as they are known.

    Raises
    ------
    NnapiError
        BAD_DATA if they do not fit each other, or too little is known.
    """
    if given is None:
        require_data(
            allow_unspecified or operand.is_fully_known,
            "the model does not say all dimensions",
            where=where,
            expected="an operand type with all of them",
            actual=str(operand.dimensions),
        )
        return operand.dimensions
    validate_operand_type(
        given, operand.extension_type, where=where, allow_partial=allow_unspecified
    )
    # In a model, no dimensions stand for a rank that is not known, and 0 for a dimension that
    # is not: the caller may say anything there, and nothing else elsewhere.
    wanted = operand.dimensions
    fits = len(wanted) == len(given.dimensions) and all(
        ours in (0, theirs) for ours, theirs in zip(wanted, given.dimensions, strict=True)
    )
    require_data(
        not wanted or fits,
        "the dimensions are not those of the model",
        where=where,
        expected=str(wanted),
        actual=str(given.dimensions),
        fix="Reshape the array; 0 in the model stands for any size",
    )
    return given.dimensions


def combine_dimensions(known: tuple[int, ...], others: tuple[int, ...]) -> tuple[int, ...] | None:
    """Combine the known dimensions of two descriptions; None if they contradict each other."""
    # No dimensions stand for an open rank, which agrees with any.
    if not known or not others:
        return known or others
    if len(known) != len(others):
        return None
    if any(a and b and a != b for a, b in zip(known, others, strict=True)):
        return None
    return tuple(a or b for a, b in zip(known, others, strict=True))
