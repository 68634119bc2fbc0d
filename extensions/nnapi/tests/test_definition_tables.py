"""Every form and row of types of every operation: valid as it is, and not with anything changed.

The operands are made from the tables; the tests check that nothing else is accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from armpy_nnapi import FeatureLevel, OperandCode, OperationCode, ResultCode, validate_operation
from armpy_nnapi.codes import (
    OPERAND_TRAITS,
)
from armpy_nnapi.description.model_description import ChannelQuant, Operand, OperationNode, Subgraph
from armpy_nnapi.operations import Argument, Form, OperationDefinition, TypeRow, definitions
from armpy_nnapi.validation.optional import optional_operands

from .nnapi_models import fails

C = OperandCode
DEFINITIONS = list(definitions().values())
NAMES = [definition.name for definition in DEFINITIONS]
every_definition = pytest.mark.parametrize("definition", DEFINITIONS, ids=NAMES)

FLOAT, HALF, INT, BYTE = "TENSOR_FLOAT32", "TENSOR_FLOAT16", "TENSOR_INT32", "TENSOR_QUANT8_ASYMM"
SIGNED = f"{BYTE}_SIGNED"
OTHER_LEVELS = {
    **dict.fromkeys([(name, INT) for name in ("ABS", "ADD", "DIV", "MUL", "SUB")], 30),
    **{("CAST", f"{name} {name}"): 30 for name in ("TENSOR_BOOL8", "TENSOR_QUANT8_SYMM")},
    **{("CAST", f"TENSOR_QUANT16_{kind} TENSOR_QUANT16_{kind}"): 30 for kind in ("ASYMM", "SYMM")},
    **dict.fromkeys([(name, BYTE) for name in ("L2_NORMALIZATION", "SUB", "TANH")], 29),
    **{("EMBEDDING_LOOKUP", name): 29 for name in (INT, BYTE)},
    ("EMBEDDING_LOOKUP", HALF): 30,
    **{("RESIZE_BILINEAR", f"{BYTE} {size}"): 29 for size in ("FLOAT32", "INT32")},
    ("RESIZE_BILINEAR", f"{FLOAT} FLOAT32"): 29,
    # NNAPI's validation leaves the level of these types to the check of operands.
    **{(name, SIGNED): 29 for name in ("ARGMAX", "ARGMIN", "SELECT")},
    **{("DEQUANTIZE", f"{SIGNED} {real}"): 29 for real in (FLOAT, HALF)},
    ("AXIS_ALIGNED_BBOX_TRANSFORM", f"TENSOR_QUANT16_ASYMM {SIGNED}"): 29,
    ("LSH_PROJECTION", f"{FLOAT} {HALF}"): 27,
}
"""Levels of types that an operation took up later, in NNAPI's documentation, or checks less."""


def operand(definition: OperationDefinition, argument: Argument, row: TypeRow) -> Operand:
    """An operand of an argument's type, of its lowest rank if ranks matter."""
    code = argument.code(row)
    dimensions = (2,) * min(argument.ranks) if code.traits.is_tensor and argument.ranks else ()
    operand_made = Operand(code, dimensions, 0.5 if code.traits.needs_scale else 0.0)
    if code != C.TENSOR_QUANT8_SYMM_PER_CHANNEL:
        return operand_made
    is_depthwise = definition.code == OperationCode.DEPTHWISE_CONV_2D
    return replace(
        operand_made,
        dimensions=dimensions or (2, 2),
        channel_quant=ChannelQuant((0.5, 0.5), 3 if is_depthwise else 0),
    )


def operands(
    definition: OperationDefinition, form: Form, row: TypeRow
) -> tuple[list[Operand], list[Operand]]:
    """Inputs and outputs of a form and row."""
    ins = [operand(definition, argument, row) for argument in form.inputs]
    return ins, [operand(definition, argument, row) for argument in form.outputs]


def level_of(
    definition: OperationDefinition,
    inputs: Sequence[Operand],
    outputs: Sequence[Operand],
    feature_level: int = FeatureLevel.LEVEL_4,
) -> int:
    """Validate an operation with these operands."""
    count = len(inputs)
    indexes = tuple(range(count + len(outputs)))
    node = OperationNode(definition.code, indexes[:count], indexes[count:])
    return validate_operation(node, [*inputs, *outputs], feature_level=feature_level)


@every_definition
def test_every_form_with_every_row_is_valid_at_its_feature_level_and_not_below(
    definition: OperationDefinition,
) -> None:
    for form, row in definition.signatures():
        ins, outs = operands(definition, form, row)
        level = level_of(definition, ins, outs)
        # A rule of its own may ask for more than form and types do.
        of_tables = max(form.feature_level, row.feature_level)
        assert level >= of_tables
        codes = {OperandCode(each.type) for each in (*ins, *outs)}
        of_types = max(code.traits.feature_level for code in codes)
        types = " ".join(code.name for code in row.types.values())
        usual = max(definition.feature_level, of_types)
        of_row = OTHER_LEVELS.get((definition.name, types), usual)
        assert of_tables == max(form.feature_level, of_row)
        assert level_of(definition, ins, outs, level) == level
        if level > FeatureLevel.LEVEL_1:
            with fails(ResultCode.BAD_DATA, f"{definition.name}: the operation with these"):
                level_of(definition, ins, outs, level - 1)


@every_definition
def test_one_operand_too_many_or_too_few_is_bad_data(definition: OperationDefinition) -> None:
    legal = {(len(form.inputs), len(form.outputs)) for form in definition.forms}
    if any(
        argument.variadic for form in definition.forms for argument in (*form.inputs, *form.outputs)
    ):
        legal = set()
    extra = Operand(C.TENSOR_OEM_BYTE, (2,))
    for form, row in definition.signatures():
        ins, outs = operands(definition, form, row)
        for changed_ins, changed_outs in (
            (ins[:-1], outs),
            ([*ins, extra], outs),
            (ins, outs[:-1]),
            (ins, [*outs, extra]),
        ):
            if (len(changed_ins), len(changed_outs)) in legal:
                continue  # another form; the types decide, see below
            with fails(ResultCode.BAD_DATA, f"{definition.name}: .*(number|wrong type)"):
                level_of(definition, changed_ins, changed_outs)


Types = tuple[tuple[int, ...], tuple[int, ...]]


def listed_types(definition: OperationDefinition) -> set[Types]:
    """The types that the tables have, spelled out without the code under test."""
    return {
        (tuple(a.code(row) for a in form.inputs), tuple(a.code(row) for a in form.outputs))
        for form, row in definition.signatures()
    }


def types_of(inputs: Sequence[Operand], outputs: Sequence[Operand]) -> Types:
    return tuple(o.type for o in inputs), tuple(o.type for o in outputs)


@pytest.mark.slow
@every_definition
def test_a_type_that_is_in_no_row_is_bad_data(definition: OperationDefinition) -> None:
    listed = listed_types(definition)
    for form, row in definition.signatures():
        ins, outs = operands(definition, form, row)
        for side in (ins, outs):
            for position, original in enumerate(side):
                for code in OPERAND_TRAITS:
                    side[position] = Operand(code, scale=0.5 if code.traits.needs_scale else 0.0)
                    if types_of(ins, outs) not in listed:
                        with fails(ResultCode.BAD_DATA, f"{definition.name}: "):
                            level_of(definition, ins, outs)
                side[position] = original


@every_definition
def test_a_rank_that_is_not_allowed_is_bad_data(definition: OperationDefinition) -> None:
    for form, row in definition.signatures():
        ins, outs = operands(definition, form, row)
        for side, arguments in ((ins, form.inputs), (outs, form.outputs)):
            for position, argument in enumerate(arguments):
                original = side[position]
                if not original.is_tensor or original.channel_quant is not None:
                    continue
                for rank in range(1, 7):
                    if argument.ranks and rank not in argument.ranks:
                        side[position] = replace(original, dimensions=(2,) * rank)
                        with fails(ResultCode.BAD_DATA, f"'{argument.name}' has the wrong rank"):
                            level_of(definition, ins, outs)
                side[position] = original


@every_definition
def test_an_unknown_rank_is_allowed_until_it_is_known(definition: OperationDefinition) -> None:
    for form, row in definition.signatures():
        ins, outs = operands(definition, form, row)
        for side in (ins, outs):
            side[:] = [
                typed if typed.channel_quant is not None else replace(typed, dimensions=())
                for typed in side
            ]
        level_of(definition, ins, outs)


@every_definition
def test_only_optional_outputs_are_left_out(definition: OperationDefinition) -> None:
    for form, row in definition.signatures():
        ins, outs = operands(definition, form, row)
        count = len(ins)
        indexes = tuple(range(count + len(outs)))
        node = OperationNode(definition.code, indexes[:count], indexes[count:])
        graph = Subgraph((*ins, *outs), (node,), (), node.outputs)
        for position, argument in enumerate(form.outputs):
            assert (node.outputs[position] in optional_operands(graph)) == argument.optional


def test_there_is_a_definition_of_every_operation_but_control_flow_and_oem() -> None:
    without = {OperationCode.IF, OperationCode.WHILE, OperationCode.OEM_OPERATION}
    assert set(definitions()) == set(OperationCode) - without


def test_a_code_of_no_operation_is_an_unexpected_null() -> None:
    node = OperationNode(102, (), ())
    with fails(
        ResultCode.UNEXPECTED_NULL, "unknown operation 102: the operation has no definition"
    ):
        validate_operation(node, [])


def test_oem_operations_take_anything_and_extensions_need_feature_level_29() -> None:
    anything = [Operand(C.TENSOR_OEM_BYTE, (4,))]
    oem = OperationNode(OperationCode.OEM_OPERATION, (0, 0), ())
    assert validate_operation(oem, anything, feature_level=27) == 27
    extension = OperationNode(0x10005, (0,), (0,))
    assert validate_operation(extension, anything, feature_level=29) == 29
    with fails(ResultCode.BAD_DATA, "extension operation 0x10005: .* at most 28; got 29"):
        validate_operation(extension, anything, feature_level=28)
