"""What NNAPI says of comparisons and logic beyond the table of types."""

from __future__ import annotations

import pytest

from armpy_nnapi.codes import OperandCode, OperationCode

from .nnapi_operation import output, run, tensor

Q8A, Q8S = OperandCode.TENSOR_QUANT8_ASYMM, OperandCode.TENSOR_QUANT8_ASYMM_SIGNED
BOOL8 = OperandCode.TENSOR_BOOL8
O = OperationCode  # noqa: E741  # stands before every name


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (O.EQUAL, [False, True, False]),
        (O.NOT_EQUAL, [True, False, True]),
        (O.GREATER, [False, False, True]),
        (O.GREATER_EQUAL, [False, True, True]),
        (O.LESS, [True, False, False]),
        (O.LESS_EQUAL, [True, True, False]),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_quantised_elements_are_compared_as_real_numbers(
    code: OperationCode, expected: list[bool]
) -> None:
    # Real 1.0, 1.5, 2.0 against 1.5, broadcast.
    lhs = tensor(Q8A, [130, 131, 132], 0.5, 128)
    rhs = tensor(Q8A, [6], 0.25, 0)

    assert run(code, (lhs, rhs), [output(BOOL8, [3])])[0].tolist() == expected


def test_logic_broadcasts() -> None:
    lhs, rhs = tensor(BOOL8, [True, False]), tensor(BOOL8, [[True], [False]])

    both = run(O.LOGICAL_AND, (lhs, rhs), [output(BOOL8, (2, 2))])[0]
    either = run(O.LOGICAL_OR, (lhs, rhs), [output(BOOL8, (2, 2))])[0]

    assert both.tolist() == [[True, False], [False, False]]
    assert either.tolist() == [[True, True], [True, False]]
