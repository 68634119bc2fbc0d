"""Failing models are made as small as they can be while they fail."""

from collections.abc import Callable

import numpy as np
import pytest

from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.conformance.random_graphs.shrink import (
    ModelPart,
    part_of,
    shrink,
    with_all_outputs,
)
from armpy_nnapi.description.model_description import (
    Lifetime,
    ModelDescription,
    Operand,
    OperationNode,
    Subgraph,
)
from armpy_nnapi.validation.validate_model import validate_model

ABS, NEG, SIN, EXP = OperationCode.ABS, OperationCode.NEG, OperationCode.SIN, OperationCode.EXP
CODES = (ABS, NEG, SIN, EXP)


def chain() -> ModelDescription:
    """Four operations one after the other."""
    lifetimes = [Lifetime.SUBGRAPH_INPUT, *[Lifetime.TEMPORARY_VARIABLE] * 3]
    operands = tuple(
        Operand(OperandCode.TENSOR_FLOAT32, (2,), lifetime=lifetime)
        for lifetime in (*lifetimes, Lifetime.SUBGRAPH_OUTPUT)
    )
    nodes = tuple(OperationNode(code, (i,), (i + 1,)) for i, code in enumerate(CODES))
    return ModelDescription(Subgraph(operands, nodes, (0,), (4,)))


ELEMENTS = {index: np.full(2, index, np.float32) for index in range(5)}


def codes_of(part: ModelPart) -> tuple[int, ...]:
    return tuple(node.type for node in part.description.main.operations)


def needing(*codes: OperationCode) -> Callable[[ModelPart], bool]:
    """Fails where all of some operations are together, and only for valid parts."""

    def fails(part: ModelPart) -> bool:
        validate_model(part.description)
        return set(codes) <= set(codes_of(part))

    return fails


@pytest.mark.parametrize("code", CODES)
def test_one_wrong_operation_is_left_alone(code: OperationCode) -> None:
    part = shrink(chain(), ELEMENTS, needing(code))
    assert part is not None
    assert codes_of(part) == (code,)
    (array,) = part.inputs
    np.testing.assert_array_equal(array, ELEMENTS[CODES.index(code)])


@pytest.mark.parametrize("codes", [(ABS, NEG), (ABS, EXP), (NEG, SIN, EXP)])
def test_operations_that_fail_only_together_stay_together(codes: tuple[OperationCode, ...]) -> None:
    part = shrink(chain(), ELEMENTS, needing(*codes))
    assert part is not None
    assert codes_of(part) == codes


def test_a_model_that_does_not_fail_by_itself_has_no_smallest_part() -> None:
    assert shrink(chain(), ELEMENTS, lambda part: False) is None


def test_what_others_give_comes_in_as_inputs() -> None:
    description = chain()
    first, _, _, last = description.main.operations
    part = part_of(description, [first, last], ELEMENTS)
    validate_model(part.description)
    assert [array.tolist() for array in part.inputs] == [[0, 0], [3, 3]]
    assert len(part.description.main.outputs) == 2


def test_all_that_operations_give_can_be_asked_for() -> None:
    everything = with_all_outputs(chain())
    validate_model(everything)
    assert everything.main.outputs == (1, 2, 3, 4)
