"""Rules of elementwise operations, activations and conversions."""

from __future__ import annotations

import pytest

from armpy.errors import LayerValidationError
from armpy.ops import (
    Activation,
    ActivationFunction,
    BinaryOperation,
    BitCast,
    Cast,
    Comparison,
    Dequantize,
    ElementwiseBinary,
    ElementwiseUnary,
    L2Normalization,
    LogicalBinary,
    LogSoftmax,
    Prelu,
    Quantize,
    RandomNormal,
    RandomUniform,
    Select,
    Softmax,
    UnaryOperation,
)
from armpy.ops.operation import Operation
from armpy.tensor import Quantization, Shape, TensorInfo
from armpy.types import DataType

F32, F16, BOOL = DataType.FLOAT32, DataType.FLOAT16, DataType.BOOLEAN
S8, U8, S16, I32 = (
    DataType.QASYMM_S8,
    DataType.QASYMM_U8,
    DataType.QSYMM_S16,
    DataType.SIGNED32,
)
HALF = Quantization.per_tensor(0.5, 3)
QUARTER = Quantization.per_tensor(0.25, 3)


def info(
    shape: Shape | None, data_type: DataType = F32, quantization: Quantization | None = None
) -> TensorInfo:
    return TensorInfo(shape, data_type, quantization)


@pytest.mark.parametrize(
    ("operation", "data_type"),
    [
        (ElementwiseBinary(), F32),
        (Comparison(), F32),
        (LogicalBinary(), BOOL),
        (Prelu(), F32),
    ],
    ids=lambda value: value.name,
)
@pytest.mark.parametrize(
    ("lhs", "rhs", "expected"),
    [
        ((2, 3), (2, 3), (2, 3)),
        ((2, 1), (3,), (2, 3)),
        ((), (4,), (4,)),
        ((), (), ()),
        ((None, 3), (5, 1), (5, 3)),
        ((None, 1), (1, None), (None, None)),
        (None, (1,), None),
    ],
)
def test_shapes_of_two_inputs_broadcast(
    operation: Operation, data_type: DataType, lhs: Shape, rhs: Shape, expected: Shape
) -> None:
    (output,) = operation.infer([info(lhs, data_type), info(rhs, data_type)])
    assert output.shape == expected


def test_select_broadcasts_three_inputs_and_has_the_type_of_the_second() -> None:
    (output,) = Select().infer([info((3, 1), BOOL), info((1, 4), I32), info((), I32)])
    assert (output.shape, output.data_type) == ((3, 4), I32)


def test_shapes_that_do_not_broadcast_are_rejected() -> None:
    with pytest.raises(LayerValidationError, match=r"broadcast.*\(2, 3\) and \(4, 3\)"):
        ElementwiseBinary().infer([info((2, 3)), info((4, 3))])


@pytest.mark.parametrize(
    "operation",
    [
        ElementwiseUnary(),
        Activation(),
        Softmax(),
        LogSoftmax(),
        L2Normalization(),
        Cast(),
    ],
    ids=lambda operation: operation.name,
)
def test_functions_of_one_input_keep_its_shape(operation: Operation) -> None:
    assert operation.infer([info((None, 3))]) == (info((None, 3)),)


def test_comparison_gives_booleans() -> None:
    assert Comparison().infer([info((2,), S8, HALF), info((2,), S8, HALF)]) == (info((2,), BOOL),)


def test_types_of_two_inputs_must_be_equal() -> None:
    with pytest.raises(LayerValidationError, match=r"data types.*'lhs' FLOAT32, 'rhs' FLOAT16"):
        ElementwiseBinary().infer([info((2,)), info((2,), F16)])


def test_logical_operations_take_booleans_only() -> None:
    with pytest.raises(LayerValidationError, match=r"BOOLEAN.*SIGNED32"):
        LogicalBinary().infer([info((2,), I32), info((2,), I32)])


def test_select_needs_a_boolean_condition() -> None:
    with pytest.raises(
        LayerValidationError, match=r"'condition' SIGNED32, '\w+' FLOAT32, '\w+' FLOAT32"
    ):
        Select().infer([info((2,), I32), info((2,)), info((2,))])


def test_logical_not_takes_booleans_only() -> None:
    operation = ElementwiseUnary(operation=UnaryOperation.LOGICAL_NOT)
    assert operation.infer([info((2,), BOOL)]) == (info((2,), BOOL),)
    with pytest.raises(LayerValidationError, match="LOGICAL_NOT does not compute FLOAT32"):
        operation.infer([info((2,))])


def test_functions_of_numbers_do_not_take_booleans() -> None:
    with pytest.raises(LayerValidationError, match="ABS does not compute BOOLEAN"):
        ElementwiseUnary().infer([info((2,), BOOL)])


@pytest.mark.parametrize(
    "kind", [UnaryOperation.ABS, UnaryOperation.NEG, UnaryOperation.SQUARE], ids=lambda k: k.name
)
def test_functions_that_stay_integer_take_integers(kind: UnaryOperation) -> None:
    assert ElementwiseUnary(operation=kind).infer([info((2,), I32)]) == (info((2,), I32),)


def test_other_functions_do_not_take_integers() -> None:
    with pytest.raises(LayerValidationError, match=r"EXP does not compute SIGNED32.*Cast"):
        ElementwiseUnary(operation=UnaryOperation.EXP).infer([info((2,), I32)])


@pytest.mark.parametrize(("a", "b"), [(0.0, 1.0), (1.0, 0.0)])
def test_tanh_needs_both_parameters(a: float, b: float) -> None:
    operation = Activation(ActivationFunction.TANH, a=a, b=b)
    with pytest.raises(LayerValidationError, match=rf"TANH.*a = {a:g}, b = {b:g}"):
        operation.infer([info((2,))])


def test_bounds_of_bounded_relu_must_be_in_order() -> None:
    with pytest.raises(LayerValidationError, match="a = 1, b = 6"):
        Activation(ActivationFunction.BOUNDED_RELU, a=1, b=6).infer([info((2,))])


@pytest.mark.parametrize(
    ("operation", "output", "expected"),
    [
        (Activation(ActivationFunction.LINEAR, a=1), HALF, 0),
        (Activation(ActivationFunction.LINEAR, a=1), QUARTER, None),
        (Activation(ActivationFunction.LINEAR, a=1, b=1), HALF, None),
        (Activation(ActivationFunction.LINEAR, a=2), HALF, None),
        (Activation(ActivationFunction.RELU, a=1), HALF, None),
        (Quantize(), HALF, 0),
        (Quantize(), QUARTER, None),
        (Cast(), HALF, 0),
    ],
)
def test_identity(operation: Operation, output: Quantization, expected: int | None) -> None:
    assert operation.identity_of([info((2,), S8, HALF)], [info((2,), S8, output)]) == expected


def test_conversion_to_another_type_is_no_identity() -> None:
    assert Dequantize().identity_of([info((2,), F16)], [info((2,), F32)]) is None
    assert Dequantize().identity_of([info((2,), F16)], [info((2,), F16)]) == 0


@pytest.mark.parametrize("operation", [Softmax(axis=2), LogSoftmax(axis=-3), L2Normalization(2)])
def test_an_axis_that_does_not_exist_is_rejected(operation: Operation) -> None:
    with pytest.raises(LayerValidationError, match=r"axis.*-2 to 1"):
        operation.infer([info((2, 3))])


@pytest.mark.parametrize("kind", [Softmax, LogSoftmax])
def test_beta_must_be_positive(kind: type[Softmax | LogSoftmax]) -> None:
    with pytest.raises(LayerValidationError, match=r"beta is not positive.*above 0.*-1"):
        kind(beta=-1).infer([info((2, 3))])


def test_softmax_of_8_bits_may_give_16() -> None:
    output = info((2, 3), S16, Quantization.per_tensor(2**-16))
    assert Softmax().infer([info((2, 3), S8, HALF)], [output]) == (output,)


def test_softmax_of_16_bits_does_not_give_8() -> None:
    with pytest.raises(LayerValidationError, match=r"QSYMM_S16 and outputs \(QASYMM_S8\)"):
        Softmax().infer([info((2,), S16, HALF)], [info((2,), S8, HALF)])


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (info((2,)), info((2,), U8, HALF)),
        (info((2,)), info((2,), S8, Quantization((0.5, 1.0), (0, 0), 0))),
        (info((2,), S16, HALF), info((2,), I32, HALF)),
        (info((2,), I32, HALF), info((2,), S8, HALF)),
        (info((2,), U8, HALF), info((2,), S8, QUARTER)),
    ],
    ids=str,
)
def test_quantize_converts_to_the_declared_output(source: TensorInfo, target: TensorInfo) -> None:
    assert Quantize().infer([source], [target]) == (target,)


def test_quantize_of_floats_needs_a_declared_output() -> None:
    with pytest.raises(LayerValidationError, match="needs its scale and zero point"):
        Quantize().infer([info((2,))])


def test_quantize_without_a_declared_output_changes_nothing() -> None:
    source = info((2,), U8, HALF)
    assert Quantize().infer([source]) == (source,)


@pytest.mark.parametrize("per_axis_input", [True, False])
def test_quantize_does_not_rescale_along_an_axis(per_axis_input: bool) -> None:
    plain = info((2,), S8, HALF)
    per_axis = info((2,), S8, Quantization((0.5, 1.0), (0, 0), 0))
    source, target = (per_axis, plain) if per_axis_input else (plain, per_axis)
    with pytest.raises(LayerValidationError, match="along an axis cannot be rescaled"):
        Quantize().infer([source], [target])


@pytest.mark.parametrize("source", [info((2,), S8, HALF), info((2,), F16), info((2,), I32, HALF)])
def test_dequantize_gives_float32_unless_declared(source: TensorInfo) -> None:
    assert Dequantize().infer([source]) == (info((2,)),)
    assert Dequantize().infer([source], [info((2,), F16)]) == (info((2,), F16),)


def test_cast_gives_the_declared_type() -> None:
    assert Cast().infer([info((2,))], [info((2,), I32)]) == (info((2,), I32),)


@pytest.mark.parametrize(
    ("operation", "inputs", "message"),
    [
        (UnaryOperation.BITWISE_NOT, (F32,), "BITWISE_NOT does not compute FLOAT32"),
        (UnaryOperation.BITWISE_NOT, (BOOL,), "BITWISE_NOT does not compute BOOLEAN"),
        (UnaryOperation.ERF, (I32,), "ERF does not compute SIGNED32"),
        (UnaryOperation.ERF, (S8,), "ERF does not compute QASYMM_S8"),
        (UnaryOperation.LOGICAL_NOT, (F32,), "LOGICAL_NOT does not compute FLOAT32"),
        (BinaryOperation.BITWISE_AND, (F32, F32), "BITWISE_AND does not compute FLOAT32"),
        (BinaryOperation.SHIFT_LEFT, (U8, U8), "SHIFT_LEFT does not compute QASYMM_U8"),
        (BinaryOperation.ATAN2, (I32, I32), "ATAN2 does not compute SIGNED32"),
        (BinaryOperation.TRUNC_MOD, (S8, S8), "TRUNC_MOD does not compute QASYMM_S8"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_functions_refuse_types_that_they_make_no_sense_of(
    operation: UnaryOperation | BinaryOperation, inputs: tuple[DataType, ...], message: str
) -> None:
    infos = [info((2,), t, HALF if t.is_quantized else None) for t in inputs]
    layer: Operation
    if isinstance(operation, UnaryOperation):
        layer = ElementwiseUnary(operation)
    else:
        layer = ElementwiseBinary(operation)
    with pytest.raises(LayerValidationError, match=message):
        layer.infer(infos)


@pytest.mark.parametrize(
    ("source", "target", "shape", "expected"),
    [
        (F32, I32, (2, 3), (2, 3)),
        (F32, DataType.UNSIGNED8, (2, None), (2, None, 4)),
        (DataType.UNSIGNED8, F32, (2, 4), (2,)),
        (DataType.UNSIGNED8, F32, (2, None), (2,)),
        (DataType.SIGNED4, DataType.UNSIGNED4, (5,), (5,)),
        (DataType.FLOAT64, F32, (), (2,)),
    ],
)
def test_bits_make_up_as_many_elements_as_they_fill(
    source: DataType, target: DataType, shape: Shape, expected: Shape
) -> None:
    (output,) = BitCast(target).infer([info(shape, source)])
    assert (output.shape, output.data_type) == (expected, target)


@pytest.mark.parametrize(
    ("source", "target", "shape", "message"),
    [
        (DataType.UNSIGNED8, F32, (2, 3), "the last axis does not make up elements"),
        (DataType.UNSIGNED8, F32, (), "the last axis does not make up elements"),
        (DataType.SIGNED4, DataType.SIGNED8, (2,), "goes with types of as many bits"),
        (DataType.UNSIGNED8, BOOL, (2,), "not every pattern of bits is a truth value"),
    ],
)
def test_bits_that_make_up_no_elements_are_refused(
    source: DataType, target: DataType, shape: Shape, message: str
) -> None:
    with pytest.raises(LayerValidationError, match=message):
        BitCast(target).infer([info(shape, source)])


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (RandomUniform((2, -1)), "a size of the shape is negative"),
        (RandomUniform((2,), 1.0, 0.0), "the bounds are in the wrong order"),
        (RandomUniform((2,), 0.0, float("inf")), "a bound is not finite"),
        (RandomNormal((2,), deviation=-1.0), "the deviation is negative"),
        (RandomNormal(), "shape"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_random_numbers_need_a_shape_and_a_distribution(operation: Operation, message: str) -> None:
    with pytest.raises(LayerValidationError, match=message):
        operation.infer([])


def test_a_cast_knows_three_ways_of_rounding() -> None:
    with pytest.raises(LayerValidationError, match=r"unknown rounding.*nearest.*sideways"):
        Cast(rounding="sideways").infer([info((2,))], [info(None, DataType.FLOAT8_E8M0)])
