"""Operations that rearrange, repeat or make elements without computing anything."""

from __future__ import annotations

from armpy.graph import Value
from armpy.ops.generation import Fill, Rank
from armpy.ops.joining import Concat
from armpy.ops.movement import Tile, Transpose
from armpy.ops.operation import require
from armpy.ops.reshaping import ExpandDims, Reshape, Squeeze
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.operations.definition import OperationDefinition
from armpy_nnapi.operations.form import Argument, Arguments, forms, rows
from armpy_nnapi.operations.lowering_context import LoweringContext
from armpy_nnapi.operations.shared import ANY_NUMBERS_FROM_29, quantized_like, vector, with_an_axis

_C = OperandCode
_UP_TO_4 = (1, 2, 3, 4)

_FROM_LEVEL_1 = rows(
    "T",
    (_C.TENSOR_FLOAT32, 27),
    (_C.TENSOR_QUANT8_ASYMM, 27),
    (_C.TENSOR_FLOAT16, 29),
    (_C.TENSOR_QUANT8_ASYMM_SIGNED, 30),
)
_FROM_LEVEL_2 = rows(
    "T",
    (_C.TENSOR_FLOAT32, 28),
    (_C.TENSOR_QUANT8_ASYMM, 28),
    (_C.TENSOR_FLOAT16, 29),
    (_C.TENSOR_QUANT8_ASYMM_SIGNED, 30),
)
_OUTPUT = (Argument("output", "T"),)


def _check_concatenation(arguments: Arguments) -> int:
    """Unsigned inputs that are quantised unlike the output need a newer feature level."""
    level = arguments.match.feature_level
    output = arguments["output"]
    if output.type != _C.TENSOR_QUANT8_ASYMM:
        return level
    # Level 27 could only copy; other scales have to be computed anew.
    same = all(
        (operand.scale, operand.zero_point) == (output.scale, output.zero_point)
        for operand in arguments.all("inputs")
    )
    return level if same else max(level, 29)


def _lower_concatenation(lower: LoweringContext) -> Value:
    """CONCATENATION, whose axis does not count from the end."""
    axis = lower.integer("axis")
    require(axis >= 0, "the axis is negative", expected="0 or more", actual=axis)
    return lower.add(Concat(axis), *lower.all("inputs"))


def _lower_reshape(lower: LoweringContext) -> Value:
    reshape = Reshape(vector(lower, "shape"))
    return lower.add(reshape, lower["input"], output=quantized_like(lower))


def _lower_squeeze(lower: LoweringContext) -> Value:
    axes = vector(lower, "axes") if "axes" in lower else None
    # All axes may go, and NNAPI has no tensors of rank 0.
    squeezed = lower.add(Squeeze(axes), lower["input"], output=quantized_like(lower))
    return with_an_axis(lower, squeezed)


def _lower_expand_dims(lower: LoweringContext) -> Value:
    expand = ExpandDims(lower.integer("axis"))
    return lower.add(expand, lower["input"], output=quantized_like(lower))


def _lower_transpose(lower: LoweringContext) -> Value:
    rank = len(lower.shape("input"))
    if "perm" in lower:
        perm = vector(lower, "perm", rank)
        require(min(perm) >= 0, "an axis is negative", expected="0 or more", actual=str(perm))
    else:
        # NNAPI's text reverses the axes of any rank, its code those of a matrix alone.
        require(
            rank == 2,
            "perm may only be left out for a matrix",
            expected="an input of rank 2",
            actual=lower.shape("input"),
        )
        perm = (1, 0)
    return lower.add(Transpose(perm), lower["input"], output=quantized_like(lower))


def _lower_tile(lower: LoweringContext) -> Value:
    multiples = vector(lower, "multiples", len(lower.shape("input")))
    return lower.add(Tile(multiples), lower["input"], output=quantized_like(lower))


def _lower_fill(lower: LoweringContext) -> Value:
    return lower.add(Fill(vector(lower, "dimensions")), lower["value"])


DEFINITIONS: tuple[OperationDefinition, ...] = (
    OperationDefinition(
        OperationCode.CONCATENATION,
        "Tensors one after the other along an axis.",
        forms(
            (
                Argument("inputs", "T", "Equal but for the axis.", variadic=True, ranks=_UP_TO_4),
                Argument("axis", _C.INT32, "From 0; does not count from the end."),
            ),
            outputs=_OUTPUT,
        ),
        _FROM_LEVEL_1,
        _lower_concatenation,
        check=_check_concatenation,
        allows_zero_sized=True,
    ),
    OperationDefinition(
        OperationCode.RESHAPE,
        "The same elements with another shape.",
        forms(
            (
                # Of the input alone: NNAPI does not count the axes of the result.
                Argument("input", "T", ranks=_UP_TO_4),
                Argument(
                    "shape",
                    _C.TENSOR_INT32,
                    "One size may be -1 and follows from the others.",
                    decisive=True,
                ),
            ),
            outputs=_OUTPUT,
        ),
        _FROM_LEVEL_1,
        _lower_reshape,
    ),
    OperationDefinition(
        OperationCode.SQUEEZE,
        "Axes of size 1 removed.",
        forms(
            (
                Argument("input", "T", ranks=_UP_TO_4),
                Argument(
                    "axes",
                    _C.TENSOR_INT32,
                    "Every axis of size 1 if it has no value.",
                    optional=True,
                    decisive=True,
                ),
            ),
            outputs=_OUTPUT,
        ),
        _FROM_LEVEL_2,
        _lower_squeeze,
    ),
    OperationDefinition(
        OperationCode.TRANSPOSE,
        "The axes in another order.",
        forms(
            (
                Argument("input", "T", ranks=_UP_TO_4),
                Argument(
                    "perm",
                    _C.TENSOR_INT32,
                    "Input axis that becomes each output axis; a matrix may go without it.",
                    optional=True,
                    decisive=True,
                ),
            ),
            outputs=_OUTPUT,
        ),
        _FROM_LEVEL_2,
        _lower_transpose,
        allows_zero_sized=True,
    ),
    OperationDefinition(
        OperationCode.EXPAND_DIMS,
        "An axis of size 1 inserted.",
        forms(
            (
                Argument("input", "T"),
                Argument("axis", _C.INT32, "In the output; negative counts from its end."),
            ),
            outputs=_OUTPUT,
        ),
        ANY_NUMBERS_FROM_29,
        _lower_expand_dims,
    ),
    OperationDefinition(
        OperationCode.TILE,
        "A tensor repeated along its axes.",
        forms(
            (
                Argument("input", "T"),
                Argument("multiples", _C.TENSOR_INT32, "One per axis.", decisive=True),
            ),
            outputs=_OUTPUT,
        ),
        ANY_NUMBERS_FROM_29,
        _lower_tile,
    ),
    OperationDefinition(
        OperationCode.FILL,
        "A tensor whose elements are all one number.",
        forms(
            (
                Argument("dimensions", _C.TENSOR_INT32, "Of the output.", decisive=True),
                Argument("value", "V"),
            ),
            outputs=_OUTPUT,
        ),
        rows(
            "V T",
            (_C.FLOAT16, _C.TENSOR_FLOAT16, 30),
            (_C.FLOAT32, _C.TENSOR_FLOAT32, 30),
            (_C.INT32, _C.TENSOR_INT32, 30),
        ),
        _lower_fill,
    ),
    OperationDefinition(
        OperationCode.RANK,
        "Number of axes of a tensor.",
        forms((Argument("input", "T"),), outputs=(Argument("output", _C.INT32),)),
        rows(
            "T",
            (_C.TENSOR_FLOAT16, 30),
            (_C.TENSOR_FLOAT32, 30),
            (_C.TENSOR_INT32, 30),
            (_C.TENSOR_QUANT8_ASYMM, 30),
            (_C.TENSOR_QUANT16_SYMM, 30),
            (_C.TENSOR_BOOL8, 30),
            (_C.TENSOR_QUANT8_SYMM_PER_CHANNEL, 30),
            (_C.TENSOR_QUANT16_ASYMM, 30),
            (_C.TENSOR_QUANT8_SYMM, 30),
            (_C.TENSOR_QUANT8_ASYMM_SIGNED, 30),
        ),
        lambda lower: lower.add(Rank(), lower["input"]),
    ),
)
