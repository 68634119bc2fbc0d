"""Rules of IF and WHILE about the models that they refer to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from armpy.errors import LayerValidationError
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.description.model_description import Lifetime, Operand, OperationNode, Subgraph
from armpy_nnapi.validation.validate_control_flow import check_control_flow

MODEL = Operand(OperandCode.MODEL, lifetime=Lifetime.SUBGRAPH, subgraph=0)
OTHER_MODEL = replace(MODEL, subgraph=1)
TRUTH = Operand(OperandCode.TENSOR_BOOL8, (1,))
FLAG = Operand(OperandCode.BOOL)
X = Operand(OperandCode.TENSOR_FLOAT32, (2, 3))
COUNT = Operand(OperandCode.TENSOR_INT32, (1,))
Q = Operand(OperandCode.TENSOR_QUANT8_ASYMM, (2,), 0.5, 3)


def graph(inputs: Sequence[Operand], outputs: Sequence[Operand]) -> Subgraph:
    """A model with these inputs and outputs; its operations do not matter here."""
    count = len(inputs)
    indexes = range(count + len(outputs))
    return Subgraph((*inputs, *outputs), (), tuple(indexes[:count]), tuple(indexes[count:]))


def check(
    code: OperationCode,
    inputs: Sequence[Operand],
    outputs: Sequence[Operand],
    *referenced: Subgraph,
    allow_unknown_sizes: bool = True,
) -> None:
    """Check one operation."""
    indexes = range(len(inputs) + len(outputs))
    node = OperationNode(code, tuple(indexes[: len(inputs)]), tuple(indexes[len(inputs) :]))
    check_control_flow(
        node, (*inputs, *outputs), referenced, allow_unknown_sizes=allow_unknown_sizes
    )


def check_if(
    inner: tuple[Sequence[Operand], Sequence[Operand]],
    inputs: Sequence[Operand] = (X,),
    outputs: Sequence[Operand] = (X,),
    condition: Operand = TRUTH,
) -> None:
    """Check an IF whose else model is as given, and whose then model fits."""
    models = graph(inputs, outputs), graph(*inner)
    check(OperationCode.IF, [condition, MODEL, OTHER_MODEL, *inputs], outputs, *models)


def check_while(
    condition: Subgraph, body: Subgraph, outputs: Sequence[Operand] = (X,), *, sizes: bool = True
) -> None:
    """Check a WHILE over X and COUNT."""
    inputs = [MODEL, OTHER_MODEL, X, COUNT]
    check(OperationCode.WHILE, inputs, outputs, condition, body, allow_unknown_sizes=sizes)


UNTIL = graph([X, COUNT], [TRUTH])
BODY = graph([X, COUNT], [X, COUNT])


@pytest.mark.parametrize(
    "inner",
    [
        replace(X, dimensions=()),
        replace(X, dimensions=(2, 0)),
    ],
)
def test_dimensions_may_be_unknown_on_either_side(inner: Operand) -> None:
    check_if(([inner], [inner]))
    check_if(([X], [X]), [inner], [inner])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (X, replace(X, dimensions=(2, 4))),
        (X, replace(X, dimensions=(2, 3, 1))),
        (X, replace(X, type=OperandCode.TENSOR_FLOAT16)),
        (Q, replace(Q, scale=0.25)),
        (Q, replace(Q, zero_point=4)),
    ],
)
def test_operands_of_a_model_are_those_they_stand_for(one: Operand, other: Operand) -> None:
    with pytest.raises(LayerValidationError, match="else model's input 0 is not what"):
        check_if(([other], [one]), [one], [one])
    with pytest.raises(LayerValidationError, match="else model's output 0 is not what"):
        check_if(([one], [other]), [one], [one])


@pytest.mark.parametrize(
    ("inner", "match"),
    [
        (([X, X], [X]), r"another number of else model's inputs.*Expected 1; got 2"),
        (([X], [X, X]), r"another number of else model's outputs.*Expected 1; got 2"),
        (([], [X]), r"another number of else model's inputs.*Expected 1; got 0"),
    ],
)
def test_models_of_an_if_take_and_give_what_it_does(
    inner: tuple[Sequence[Operand], Sequence[Operand]], match: str
) -> None:
    with pytest.raises(LayerValidationError, match=match):
        check_if(inner)


@pytest.mark.parametrize(
    "condition",
    [
        FLAG,
        replace(TRUTH, dimensions=(2,)),
        replace(TRUTH, dimensions=(0,)),
        replace(TRUTH, dimensions=()),
        replace(TRUTH, dimensions=(1, 1)),
        COUNT,
    ],
)
def test_a_condition_is_a_tensor_of_one_truth_value(condition: Operand) -> None:
    with pytest.raises(LayerValidationError, match="the condition is not one truth value"):
        check_if(([X], [X]), condition=condition)
    with pytest.raises(LayerValidationError, match="condition model's output is not one truth"):
        check_while(graph([X, COUNT], [condition]), BODY)


@pytest.mark.parametrize("code", [OperationCode.IF, OperationCode.WHILE])
@pytest.mark.parametrize(
    ("inputs", "outputs"), [([TRUTH, MODEL], [X]), ([TRUTH, MODEL, MODEL, X], [])]
)
def test_control_flow_has_three_inputs_and_an_output_at_least(
    code: OperationCode, inputs: Sequence[Operand], outputs: Sequence[Operand]
) -> None:
    with pytest.raises(LayerValidationError, match=r"number of operands is wrong.*3 or more"):
        check(code, inputs, outputs, graph([X], [X]))


@pytest.mark.parametrize("model", [X, replace(MODEL, subgraph=None), replace(MODEL, subgraph=7)])
def test_models_must_be_there(model: Operand) -> None:
    with pytest.raises(LayerValidationError, match="else operand stands for no model"):
        check(OperationCode.IF, [TRUTH, MODEL, model, X], [X], graph([X], [X]))


@pytest.mark.parametrize("outputs", [[X], [X, COUNT]])
def test_a_loop_need_not_give_out_all_that_it_carries(outputs: Sequence[Operand]) -> None:
    check_while(UNTIL, BODY, outputs)


def test_a_loop_may_have_inputs_that_stay() -> None:
    check_while(UNTIL, graph([X, COUNT], [X]))


@pytest.mark.parametrize(
    ("condition", "body", "outputs", "match"),
    [
        (graph([X], [TRUTH]), BODY, [X], "another number of condition model's inputs"),
        (graph([X, COUNT], [TRUTH, TRUTH]), BODY, [X], "condition model has the wrong number"),
        (UNTIL, graph([X], [X]), [X], "another number of body model's inputs"),
        (UNTIL, graph([X, COUNT], [X]), [X, COUNT], r"wrong number of outputs.*2 to 2; got 1"),
        (UNTIL, graph([X, COUNT], [X, COUNT, X]), [X], r"wrong number of outputs.*1 to 2; got 3"),
        (UNTIL, BODY, [COUNT], "body model's output 0 is not what the operation's is"),
        (UNTIL, graph([X, COUNT], [X, X]), [X], "body model's output 1 is not what its input is"),
    ],
)
def test_a_loop_feeds_its_body_with_what_the_body_gave(
    condition: Subgraph, body: Subgraph, outputs: Sequence[Operand], match: str
) -> None:
    with pytest.raises(LayerValidationError, match=match):
        check_while(condition, body, outputs)


@pytest.mark.parametrize("unknown", [replace(X, dimensions=()), replace(X, dimensions=(2, 0))])
def test_sizes_in_a_loop_may_have_to_be_known(unknown: Operand) -> None:
    body = graph([unknown, COUNT], [unknown, COUNT])
    check_while(UNTIL, body)
    check_while(UNTIL, BODY, sizes=False)
    for arguments in ((UNTIL, body, [X]), (UNTIL, BODY, [unknown])):
        with pytest.raises(LayerValidationError, match="dimensions that are not known"):
            check_while(*arguments, sizes=False)
