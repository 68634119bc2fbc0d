"""Validation of IF and WHILE, the operations that refer to other models."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.errors import LayerValidationError
from armpy.ops.operation import require
from armpy.tensor import Shape, format_shape, shapes_agree
from armpy_nnapi.codes import OperandCode, OperationCode, is_extension
from armpy_nnapi.description.model_description import Operand, OperationNode, Subgraph

# After the condition and the two models.
_IF_FIRST_INPUT = 3
# After the model of the condition and the body.
_WHILE_FIRST_INPUT = 2


def check_control_flow(
    node: OperationNode,
    operands: Sequence[Operand],
    referenced: Sequence[Subgraph],
    *,
    allow_unknown_sizes: bool = True,
) -> None:
    """Check the operands of an IF or WHILE against the models that it refers to.

    Parameters
    ----------
    operands : sequence of Operand
        Operands of the graph that the operation is in.
    referenced : sequence of Subgraph
        Graphs that MODEL operands stand for, by index.
    allow_unknown_sizes : bool
        Whether operands of WHILE may have dimensions that are not known; those of IF may
        always.

    Raises
    ------
    LayerValidationError
        If counts, types, dimensions or quantisation do not go together.

    References
    ----------
    NNAPI IF, WHILE.
    """
    inputs = [operands[index] for index in node.inputs]
    outputs = [operands[index] for index in node.outputs]
    require(
        len(inputs) >= 3 and len(outputs) >= 1,
        "the number of operands is wrong",
        expected="3 or more inputs and 1 or more outputs",
        actual=f"{len(inputs)} inputs and {len(outputs)} outputs",
    )
    if node.type == OperationCode.IF:
        _check_if(inputs, outputs, referenced)
    else:
        _check_while(inputs, outputs, referenced, allow_unknown_sizes)


def _check_if(
    inputs: Sequence[Operand], outputs: Sequence[Operand], referenced: Sequence[Subgraph]
) -> None:
    """Check an IF: both models take its inputs and give its outputs."""
    _check_condition(inputs[0], "the condition")
    for branch, model in (("then", inputs[1]), ("else", inputs[2])):
        ins, outs = _edges(model, referenced, branch)
        _check_same(f"{branch} model's input", ins, inputs[_IF_FIRST_INPUT:])
        _check_same(f"{branch} model's output", outs, outputs)


def _check_while(
    inputs: Sequence[Operand],
    outputs: Sequence[Operand],
    referenced: Sequence[Subgraph],
    allow_unknown_sizes: bool,
) -> None:
    """Check a WHILE.

    With m outputs of the operation, k more of the body, and n inputs that no output feeds,
    operation and models take m + k + n inputs.
    """
    # Each model is handed all values; the body's outputs become its first inputs in the next
    # turn, and the rest of the inputs stays the same in all turns.
    values = inputs[_WHILE_FIRST_INPUT:]
    condition_ins, condition_outs = _edges(inputs[0], referenced, "condition")
    body_ins, body_outs = _edges(inputs[1], referenced, "body")
    _check_same("condition model's input", condition_ins, values)
    require(
        len(condition_outs) == 1,
        "the condition model has the wrong number of outputs",
        expected="1",
        actual=len(condition_outs),
    )
    _check_condition(condition_outs[0], "the condition model's output")
    _check_same("body model's input", body_ins, values)
    # The body may carry values (k of them) that the operation does not give away.
    require(
        len(outputs) <= len(body_outs) <= len(body_ins),
        "the body model has the wrong number of outputs",
        expected=f"{len(outputs)} to {len(body_ins)}",
        actual=len(body_outs),
    )
    _check_same("body model's output", body_outs[: len(outputs)], outputs)
    _check_same("body model's output", body_outs, body_ins[: len(body_outs)], "its input")
    # The runtime runs loops whose tensors grow; NNAPI's drivers are never given one.
    if not allow_unknown_sizes:
        for operand in (*values, *outputs, *condition_ins, *body_ins, *body_outs):
            require(
                _has_known_size(operand),
                "an operand of the loop has dimensions that are not known",
                expected="known dimensions where a single device runs the model",
                actual=f"{operand.type_name} {format_shape(_shape(operand))}",
            )


def _edges(
    model: Operand, referenced: Sequence[Subgraph], branch: str
) -> tuple[list[Operand], list[Operand]]:
    """Inputs and outputs of the model that an operand stands for."""
    index = model.subgraph
    if model.type != OperandCode.MODEL or index is None or not 0 <= index < len(referenced):
        raise LayerValidationError(
            f"the {branch} operand stands for no model",
            expected="a MODEL operand that is set to a finished model",
            actual=model.type_name,
        )
    graph = referenced[index]
    return [graph.operands[i] for i in graph.inputs], [graph.operands[i] for i in graph.outputs]


def _check_condition(operand: Operand, noun: str) -> None:
    """Check that an operand is one truth value."""
    require(
        # Not an open shape either: NNAPI wants conditions fully specified.
        operand.type == OperandCode.TENSOR_BOOL8 and operand.dimensions == (1,),
        f"{noun} is not one truth value",
        expected="TENSOR_BOOL8 (1,)",
        actual=f"{operand.type_name} {format_shape(_shape(operand))}",
    )


def _check_same(
    noun: str, inner: Sequence[Operand], outer: Sequence[Operand], other: str = "the operation's"
) -> None:
    """Check that operands of a model can be those they stand for."""
    require(
        len(inner) == len(outer),
        f"there is another number of {noun}s than of {other}",
        expected=str(len(outer)),
        actual=len(inner),
    )
    for number, (first, two) in enumerate(zip(inner, outer, strict=True)):
        require(
            # Dimensions that are not known (0) agree with any: they may be learnt from either.
            first.type == two.type
            and shapes_agree(_shape(first), _shape(two))
            and (first.scale, first.zero_point) == (two.scale, two.zero_point)
            and (first.channel_quant, first.extension_data)
            == (two.channel_quant, two.extension_data),
            f"the {noun} {number} is not what {other} is",
            expected=_text(two),
            actual=_text(first),
        )


def _text(operand: Operand) -> str:
    """Type, dimensions and quantisation of an operand, for messages."""
    text = f"{operand.type_name} {format_shape(_shape(operand))}"
    return f"{text} scale {operand.scale:g} zero point {operand.zero_point}"


def _shape(operand: Operand) -> Shape | None:
    """Dimensions, with None where not known; also of types that nothing is known of."""
    return tuple(dim or None for dim in operand.dimensions) or None


def _has_known_size(operand: Operand) -> bool:
    """Return whether the size of the elements is known, where it follows from dimensions at all."""
    is_tensor = not is_extension(operand.type) and operand.is_tensor
    return not is_tensor or (bool(operand.dimensions) and 0 not in operand.dimensions)
