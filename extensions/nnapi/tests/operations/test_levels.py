"""Feature levels of operations by their operands, and operands that no level has.

Levels are those of NNAPI's ``OperationsValidation``: 27 to 30 are its versions 1.0 to 1.3.
"""

from __future__ import annotations

import numpy as np
import pytest

from armpy.errors import LayerValidationError
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.description.model_description import ChannelQuant, Operand

from .nnapi_operation import feature_level, integer, output, scalar, tensor

F32, F16, I32 = OperandCode.TENSOR_FLOAT32, OperandCode.TENSOR_FLOAT16, OperandCode.TENSOR_INT32
U8, S8 = OperandCode.TENSOR_QUANT8_ASYMM, OperandCode.TENSOR_QUANT8_ASYMM_SIGNED
BOOL8, U16 = OperandCode.TENSOR_BOOL8, OperandCode.TENSOR_QUANT16_ASYMM
PER_CHANNEL = OperandCode.TENSOR_QUANT8_SYMM_PER_CHANNEL
O = OperationCode  # noqa: E741  # stands before every name

NO, YES = scalar(OperandCode.BOOL, False), scalar(OperandCode.BOOL, True)
REAL = scalar(OperandCode.FLOAT32, 1.0)
SAME, NONE, ONE, TWO = integer(1), integer(0), integer(1), integer(2)
EXPLICIT = [NONE] * 4
STRIDES = [ONE, ONE]
BLOCK, NO_PADDING = tensor(I32, [2, 2]), tensor(I32, [[0, 0], [0, 0]])

Row = tuple[OperationCode, list[Operand], Operand]


def ones(code: OperandCode, *dims: int, scale: float = 0.0, zero_point: int = 0) -> Operand:
    """A tensor of ones, by default of scale 1 where its type is quantised; a vector of one."""
    scale = scale or float(code in (U8, S8, U16))
    return tensor(code, np.ones(dims or 1), scale, zero_point)


def out(code: OperandCode, scale: float = 1.0, zero_point: int = 0) -> Operand:
    """An output of unknown dimensions, by default of scale 1 where its type is quantised."""
    return output(code, (), scale if code in (U8, S8, U16) else 0.0, zero_point)


def arithmetic(operation: OperationCode, code: OperandCode) -> Row:
    """Two equal operands without an activation."""
    operand = ones(code, scale=0.5 if code is U8 else 0.0)
    return operation, [operand, operand, NONE], out(code)


def unary(operation: OperationCode, code: OperandCode, *more: Operand, rank: int = 1) -> Row:
    """A tensor of ones of some rank, and what else the operation takes."""
    return operation, [ones(code, *[1] * rank), *more], out(code)


def convolution(
    operation: OperationCode,
    code: OperandCode,
    *,
    scales: tuple[float, float, float] = (0.0, 0.0, 1.0),
    padding: list[Operand] = [SAME],  # noqa: B006 - read only
    trailing: tuple[Operand, ...] = (),
) -> Row:
    """A convolution of images of one element, of the scales of filter, bias and output."""
    bias = ones(I32, scale=scales[1]) if code in (U8, S8) else ones(code)
    image = ones(code, 1, 1, 1, 1, scale=0.5 if code in (U8, S8) else 0.0)
    tensors = [image, ones(code, 1, 1, 1, 1, scale=scales[0]), bias]
    multiplier = [ONE] if operation is O.DEPTHWISE_CONV_2D else []
    return (
        operation,
        [*tensors, *padding, *STRIDES, *multiplier, NONE, *trailing],
        out(code, scales[2]),
    )


def fully_connected(code: OperandCode, output_scale: float) -> Row:
    """One unit, of a product of scales of 0.25."""
    tensors = [ones(code, 1, 1, scale=0.5), ones(code, 1, 1, scale=0.5), ones(I32, scale=0.25)]
    return O.FULLY_CONNECTED, [*tensors, NONE], out(code, output_scale)


def pooling(code: OperandCode, padding: list[Operand], *trailing: Operand) -> Row:
    """The mean of windows of one element."""
    image = ones(code, 1, 1, 1, 1)
    return O.AVERAGE_POOL_2D, [image, *padding, *STRIDES, *STRIDES, NONE, *trailing], out(code)


def bilinear(code: OperandCode, size: Operand, *trailing: Operand) -> Row:
    """A picture of another size."""
    return O.RESIZE_BILINEAR, [ones(code, 1, 2, 2, 1), size, size, *trailing], out(code)


def to_batch(code: OperandCode, zero_point: int, *trailing: Operand) -> Row:
    """Blocks of a picture as pictures of a batch."""
    image = ones(code, 1, 2, 2, 1, zero_point=zero_point)
    return O.SPACE_TO_BATCH_ND, [image, BLOCK, NO_PADDING, *trailing], out(code, 1, zero_point)


def pad(code: OperandCode, zero_point: int = 0) -> Row:
    """A vector with elements around it."""
    source = ones(code, zero_point=zero_point)
    return O.PAD, [source, tensor(I32, [[1, 2]])], out(code, 1, zero_point)


def concatenation(code: OperandCode, first: float, second: float) -> Row:
    """Two vectors of some scales, the first of which is the output's."""
    return (
        O.CONCATENATION,
        [ones(code, scale=first), ones(code, scale=second), NONE],
        out(code, first),
    )


def response(rank: int, *axis: Operand) -> Row:
    """A local response normalisation."""
    values = output(F32, [1] * rank)
    return O.LOCAL_RESPONSE_NORMALIZATION, [values, ONE, REAL, REAL, REAL, *axis], out(F32)


LEVELS: list[tuple[int, Row]] = [
    # Activations
    (27, unary(O.SOFTMAX, F32, REAL, rank=2)),
    (29, unary(O.SOFTMAX, F32, REAL, rank=3)),
    (29, unary(O.SOFTMAX, F32, REAL, ONE, rank=2)),
    (27, unary(O.L2_NORMALIZATION, F32, rank=4)),
    (29, unary(O.L2_NORMALIZATION, F32, rank=2)),
    (29, unary(O.L2_NORMALIZATION, F32, ONE, rank=4)),
    (29, unary(O.TANH, U8)),
    (27, unary(O.LOGISTIC, U8)),
    (27, response(4)),
    (29, response(4, NONE)),
    (29, response(2)),
    (29, response(0)),
    # Arithmetic and comparison
    (27, arithmetic(O.ADD, F32)),
    (27, arithmetic(O.ADD, U8)),
    (28, arithmetic(O.SUB, F32)),
    (29, arithmetic(O.SUB, U8)),
    (28, arithmetic(O.DIV, F32)),
    (29, arithmetic(O.DIV, F16)),
    (30, arithmetic(O.DIV, I32)),
    (30, unary(O.ABS, I32)),
    (29, unary(O.NEG, I32)),
    (30, (O.LESS, [ones(S8), ones(S8)], out(BOOL8))),
    (29, (O.LESS, [ones(U8), ones(U8)], out(BOOL8))),
    # The signed type comes before its feature level.
    (29, (O.SELECT, [ones(BOOL8), ones(S8), ones(S8)], out(S8))),
    (29, (O.ARGMAX, [ones(S8, 2), NONE], out(I32))),
    # Conversion
    (27, (O.DEQUANTIZE, [ones(U8)], out(F32))),
    (29, (O.DEQUANTIZE, [ones(U8)], out(F16))),
    (29, (O.DEQUANTIZE, [ones(S8)], out(F32))),
    (29, (O.DEQUANTIZE, [ones(S8)], out(F16))),
    (30, (O.CAST, [ones(U16)], out(U16))),
    (29, (O.CAST, [ones(U8)], out(U8))),
    (29, (O.CAST, [ones(F32, 1, 2)], output(I32, (0, 2)))),
    # Movement
    (27, concatenation(F32, 0.0, 0.0)),
    (27, concatenation(U8, 0.5, 0.5)),
    (29, concatenation(U8, 0.5, 0.25)),
    (30, concatenation(S8, 0.5, 0.25)),
    (28, to_batch(F32, 0)),
    (29, to_batch(F32, 0, YES)),
    (29, to_batch(F16, 0)),
    (28, to_batch(U8, 0)),
    (29, to_batch(U8, 3)),
    (30, to_batch(S8, 3)),
    # Nothing is padded here, so that the zero point does not matter.
    (28, (O.BATCH_TO_SPACE_ND, [ones(U8, 4, 1, 1, 1, zero_point=3), BLOCK], out(U8, 1, 3))),
    (28, pad(F32)),
    (29, pad(F16)),
    (28, pad(U8)),
    (29, pad(U8, 1)),
    (30, pad(S8)),
    # Windows
    *(
        (level, pooling(code, padding, *trailing))
        for padding in ([SAME], EXPLICIT)
        for level, code, trailing in (
            (27, F32, []),
            (29, F32, [YES]),
            (29, F16, []),
            (27, U8, []),
            (30, S8, []),
        )
    ),
    (27, bilinear(F32, TWO)),
    (29, bilinear(F32, TWO, NO)),
    (30, bilinear(F32, TWO, NO, NO)),
    (30, bilinear(F32, TWO, NO, NO, YES)),
    (29, bilinear(F32, REAL)),
    (29, bilinear(U8, TWO)),
    (29, bilinear(U8, REAL)),
    (30, bilinear(S8, TWO)),
    (29, (O.RESIZE_NEAREST_NEIGHBOR, [ones(F32, 1, 2, 3, 1), TWO, TWO, NO], out(F32))),
    # A filter's scale of 1 or more needs level 29, whatever the output's is.
    *(
        (level, convolution(code, U8, scales=scales))
        for code in (O.CONV_2D, O.DEPTHWISE_CONV_2D)
        for level, scales in (
            (27, (0.5, 0.0, 0.001)),
            (27, (0.5, 0.0, 10.0)),
            (29, (1.0, 0.0, 10.0)),
            (29, (2.0, 0.0, 100.0)),
        )
    ),
    *(
        (level, convolution(O.CONV_2D, code, padding=padding, trailing=trailing))
        for padding in ([SAME], EXPLICIT)
        for level, code, trailing in (
            (27, F32, ()),
            (29, F32, (YES,)),
            (29, F32, (YES, ONE, ONE)),
            (29, F16, ()),
        )
    ),
    (30, convolution(O.CONV_2D, S8, scales=(2.0, 1.0, 1.0))),
    (27, fully_connected(U8, 0.3)),
    (29, fully_connected(U8, 0.25)),
    (29, fully_connected(U8, 0.2)),
    (30, fully_connected(S8, 0.2)),
]
"""The lowest level that has an operation with these operands."""

DEEP = ones(F32, 1, 1, 1, 1, 1)
IMAGE = ones(F32, 1, 1, 1, 1)
PLAIN = [IMAGE, IMAGE, ones(F32)]
UNIT_SCALES = tensor(PER_CHANNEL, [[1]], channel_quant=ChannelQuant((1.0,), 0))

REFUSED: list[tuple[str, Row]] = [
    # Ranks
    (r"'input0' has the wrong rank.*1 or 2 or 3", (O.ADD, [DEEP, ones(F32), NONE], out(F32))),
    ("'inputs' has the wrong rank", (O.CONCATENATION, [ones(F32, 2, 3), DEEP, NONE], out(F32))),
    ("'input' has the wrong rank", (O.PAD, [DEEP, tensor(I32, [[0, 0]] * 5)], out(F32))),
    ("'input' has the wrong rank", (O.REDUCE_SUM, [DEEP, tensor(I32, [0]), NO], out(F32))),
    (
        r"'input' has the wrong rank.*\(1, 3, 3\)",
        (O.CONV_2D, [ones(F32, 1, 3, 3), *PLAIN[1:], SAME, *STRIDES, NONE], out(F32)),
    ),
    # Types
    (r"output 0 \(output\) has the wrong type", (O.CAST, [ones(S8)], out(F32))),
    (r"DIV: input 0.*got TENSOR_QUANT8_ASYMM", (O.DIV, [ones(U8), ones(U8), NONE], out(U8))),
    (
        r"input 2 \(value\) has the wrong type",
        (O.PAD_V2, [ones(F32), tensor(I32, [[1, 2]]), ONE], out(F32)),
    ),
    *(
        (
            r"input 0 \(input\) has the wrong type",
            (O.L2_POOL_2D, [ones(code, 1, 1, 1, 1), TWO, *STRIDES, *STRIDES, NONE], out(code)),
        )
        for code in (U8, S8)
    ),
    (
        r"input 1 \(filter\) has the wrong type",
        (O.FULLY_CONNECTED, [ones(U8, 1, 1), UNIT_SCALES, tensor(I32, [0]), NONE], out(U8)),
    ),
    ("wrong type", (O.RESIZE_BILINEAR, [ones(F16, 1, 2, 2, 1), REAL, REAL, NO], out(F16))),
    # Numbers of operands
    ("number of operands is wrong", (O.RESIZE_NEAREST_NEIGHBOR, [IMAGE, TWO, TWO], out(F32))),
    (
        r"number of operands.*3 inputs.*got 2 inputs",
        (O.LOG_SOFTMAX, [ones(F32, 1, 2), REAL], out(F32)),
    ),
    # One dilation alone
    ("wrong", convolution(O.CONV_2D, F32, trailing=(NO, ONE))),
    ("wrong", convolution(O.CONV_2D, F32, padding=EXPLICIT, trailing=(NO, ONE))),
    # Known shapes
    (r"different shapes.*\(1, 2\); got \(2, 1\)", (O.CAST, [ones(F32, 1, 2)], output(I32, (2, 1)))),
    (
        r"(?i)multiple of 4 elements.*\(2, 3\)",
        (O.FULLY_CONNECTED, [ones(F32, 2, 3), ones(F32, 2, 4), ones(F32, 2), NONE], out(F32)),
    ),
    (
        r"(?i)expected 2.*got 3",
        (O.FULLY_CONNECTED, [ones(F32, 2, 4), ones(F32, 2, 4), ones(F32, 3), NONE], out(F32)),
    ),
]
"""What is wrong with operands that an operation has at no level."""


def named(value: object) -> str:
    """The name of a row's operation."""
    return value[0].name if isinstance(value, tuple) else str(value)


@pytest.mark.parametrize(("level", "row"), LEVELS, ids=named)
def test_an_operation_is_of_a_feature_level(level: int, row: Row) -> None:
    operation, inputs, result = row
    assert feature_level(operation, inputs, [result]) == level


@pytest.mark.parametrize(("problem", "row"), REFUSED, ids=named)
def test_operands_that_no_level_has_are_refused(problem: str, row: Row) -> None:
    operation, inputs, result = row
    with pytest.raises(LayerValidationError, match=problem):
        feature_level(operation, inputs, [result])
