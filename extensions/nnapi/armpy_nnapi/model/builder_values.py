"""Values that operations' functions take, and their conversion to operands."""

from __future__ import annotations

import numpy as np

from armpy.ops.operation import Array
from armpy_nnapi.codes import OPERAND_TRAITS, OperandCode
from armpy_nnapi.description.operand_type import TENSOR_TYPES
from armpy_nnapi.model.operation_functions import OUTPUTS, OperationCall
from armpy_nnapi.results import bad_data, require_data


def number_of_outputs(call: OperationCall) -> int:
    """The number of outputs of a call, where an argument says it.

    Raises
    ------
    NnapiError
        BAD_DATA if none does.
    """
    # SPLIT is the one operation with any number of outputs.
    for argument, value in call.inputs:
        if argument.name == "num_splits" and isinstance(value, int):
            return value
    raise bad_data(
        "the number of outputs is not known", where=call.definition.name, fix=f"Give {OUTPUTS}=3"
    )


def any_scale(code: OperandCode) -> float:
    """A scale that an operand without a value can have."""
    return 1.0 if OPERAND_TRAITS[code].needs_scale else 0.0


def operand_code(kind: object) -> int:
    """The operand type that an OperandCode, or a dtype, stands for.

    Raises
    ------
    NnapiError
        BAD_DATA if it is neither.
    """
    # An OperandCode is an int, and so is the code of an extension's type.
    if isinstance(kind, int):
        return kind
    try:
        return TENSOR_TYPES[np.dtype(kind).name]  # type: ignore[call-overload]  # a non-dtype raises
    except (TypeError, KeyError) as error:
        raise bad_data(
            "this is not an operand type",
            expected=f"an OperandType, an OperandCode, or one of {', '.join(TENSOR_TYPES)}",
            actual=repr(kind),
        ) from error


def converted(array: Array, code: OperandCode, where: str) -> Array:
    """Numbers in the dtype of an operand's type.

    Raises
    ------
    NnapiError
        BAD_DATA if they are not the same numbers then; floats may be rounded.
    """
    dtype = OPERAND_TRAITS[code].dtype
    if array.dtype == dtype:
        return array
    # What overflows is refused below, with the numbers in the message.
    with np.errstate(over="ignore", invalid="ignore"):
        numbers = array.astype(dtype)
    # Floats are rounded as everywhere; an integer that changes is a mistake.
    is_exact = dtype.kind == "f" or np.array_equal(numbers, array)
    require_data(
        bool(is_exact),
        f"the numbers do not fit {code.name}",
        where=where,
        actual=f"{array.dtype} {array.tolist()}"[:80],
    )
    return numbers
