"""Elementwise operations, activations and conversions against LiteRT's reference kernels.

Deviations on purpose, which the cases avoid: NEG of the lowest 8-bit integer saturates instead
of wrapping; LESS, LESS_EQUAL, GREATER and GREATER_EQUAL on 16-bit integers compare real
numbers, not stored ones, so that only equal scales give LiteRT's answer; floats without a
fused activation are not clamped to the largest finite number; NaN in MAXIMUM and MINIMUM
propagates.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from armpy.ops import (
    Activation,
    ActivationFunction,
    BinaryOperation,
    Cast,
    Comparison,
    ComparisonOperation,
    Dequantize,
    ElementwiseBinary,
    ElementwiseUnary,
    L2Normalization,
    LogicalBinary,
    LogicalBinaryOperation,
    LogSoftmax,
    Prelu,
    Quantize,
    Select,
    Softmax,
    UnaryOperation,
)
from armpy.ops.activations import FusedActivation
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from tests.differential.litert_oracle import litert_or_skip
from tests.differential.single_operator import (
    Array,
    Operand,
    check_operator,
    random_shape,
    random_values,
)

litert_or_skip()

U8, S8, S16 = DataType.QASYMM_U8, DataType.QASYMM_S8, DataType.QSYMM_S16
F32, F16 = DataType.FLOAT32, DataType.FLOAT16
NUM_CASES = 40

FUSED = {
    FusedActivation.NONE: "NONE",
    FusedActivation.RELU: "RELU",
    FusedActivation.RELU1: "RELU_N1_TO_1",
    FusedActivation.RELU6: "RELU6",
}


def info_of(
    rng: np.random.Generator,
    data_type: DataType,
    shape: Sequence[int] | None = None,
    scale: float | None = None,
    zero_point: int | None = None,
) -> TensorInfo:
    """An info with a moderate random scale and a random zero point unless given."""
    quantization = None
    if data_type.is_quantized:
        lowest, highest = data_type.integer_range
        if zero_point is None:
            zero_point = int(rng.integers(lowest, highest + 1))
            zero_point = 0 if data_type.is_symmetric else zero_point
        if scale is None:
            scale = float(np.float32(np.exp(rng.uniform(-5, -1))))
            scale /= 128 if data_type is S16 else 1
        quantization = Quantization.per_tensor(scale, zero_point)
    return TensorInfo(None if shape is None else tuple(shape), data_type, quantization)


def operand_of(rng: np.random.Generator, info: TensorInfo) -> Operand:
    """A tensor of random elements."""
    return info, random_values(rng, info)


def broadcasting_shapes(rng: np.random.Generator, count: int = 2) -> list[tuple[int, ...]]:
    """Shapes that broadcast to a random one."""
    full = random_shape(rng, int(rng.integers(1, 5)))
    shapes = [tuple(1 if rng.random() < 0.3 else dim for dim in full) for _ in range(count)]
    shapes = [s[int(rng.integers(0, len(s))) if rng.random() < 0.3 else 0 :] for s in shapes]
    return [full] * count if rng.random() < 0.4 else shapes


BINARY_TYPES = {
    BinaryOperation.ADD: (F32, DataType.SIGNED32, U8, S8, S16),
    BinaryOperation.SUB: (F32, DataType.SIGNED32, DataType.SIGNED64, U8, S8, S16),
    BinaryOperation.MUL: (F32, DataType.SIGNED32, DataType.SIGNED64, U8, S8, S16),
    BinaryOperation.DIV: (F32, DataType.SIGNED32, U8, S8),
    BinaryOperation.MAXIMUM: (F32, DataType.SIGNED32, DataType.SIGNED64, U8, S8, S16),
    BinaryOperation.MINIMUM: (F32, DataType.SIGNED32, DataType.SIGNED64, U8, S8, S16),
    BinaryOperation.SQUARED_DIFFERENCE: (F32, DataType.SIGNED32, S8),
    BinaryOperation.POWER: (F32, DataType.SIGNED32),
    BinaryOperation.FLOOR_DIV: (F32, DataType.SIGNED32),
    BinaryOperation.FLOOR_MOD: (F32, DataType.SIGNED32, DataType.SIGNED64),
}
CODES = {BinaryOperation.POWER: "POW"}
ARITHMETIC = (
    BinaryOperation.ADD,
    BinaryOperation.SUB,
    BinaryOperation.MUL,
    BinaryOperation.DIV,
)


@pytest.mark.parametrize(
    ("kind", "data_type"),
    [(kind, t) for kind, types in BINARY_TYPES.items() for t in types],
    ids=lambda value: value.name,
)
def test_elementwise_binary(kind: BinaryOperation, data_type: DataType) -> None:
    rng = np.random.default_rng(kind.value * 100 + data_type.value)
    for _ in range(NUM_CASES):
        infos = [info_of(rng, data_type, shape) for shape in broadcasting_shapes(rng)]
        output = info_of(rng, data_type)
        if kind in (BinaryOperation.MAXIMUM, BinaryOperation.MINIMUM):
            infos = [TensorInfo(i.shape, data_type, output.quantization) for i in infos]
        if data_type is S16 and kind is BinaryOperation.MUL:
            # The reference multiplies in 32 bits, which a factor above 1 could overflow.
            output = info_of(rng, data_type, scale=1.5 * infos[0].scale * infos[1].scale)
        operands = [operand_of(rng, info) for info in infos]
        if kind is BinaryOperation.DIV and data_type.is_quantized:
            ratio = infos[0].scale / infos[1].scale
            output = info_of(rng, data_type, scale=float(np.float32(ratio / rng.uniform(1, 50))))
            operands[0] = (infos[0], _large(*operands[0]))
        operands[1] = (infos[1], _divisor(kind, *operands[1]))
        if kind is BinaryOperation.POWER:
            operands = [(infos[0], _bases(operands[0][1])), (infos[1], operands[1][1] % 4)]
        fused = FusedActivation.NONE
        options: dict[str, object] = {}
        if kind in ARITHMETIC:
            is_wide = data_type is DataType.SIGNED64
            fused = FusedActivation.NONE if is_wide else list(FusedActivation)[rng.integers(4)]
            options["fused_activation_function"] = FUSED[fused]
        if data_type is S16 and kind in (BinaryOperation.ADD, BinaryOperation.SUB):
            options["pot_scale_int16"] = False
        check_operator(
            ElementwiseBinary(operation=kind, activation=fused),
            CODES.get(kind, kind.name),
            operands,
            options=options,
            outputs=[output],
            inputs=(0, 1),
        )


def _divisor(kind: BinaryOperation, info: TensorInfo, values: Array) -> Array:
    """Elements that are not 0 where the operation divides by them."""
    if kind in (BinaryOperation.DIV, BinaryOperation.FLOOR_DIV, BinaryOperation.FLOOR_MOD):
        return _replaced(values, values == info.zero_point, info, 1)
    return values


def _large(info: TensorInfo, values: Array) -> Array:
    """Numerators with which the reference's shifts stay within 31 bits, where C defines them."""
    distance = np.abs(values.astype(np.int32) - info.zero_point)
    return _replaced(values, distance < 32, info, 100)


def _replaced(values: Array, where: Array, info: TensorInfo, distance: int) -> Array:
    """Elements replaced by one at a distance from the zero point."""
    is_high = info.zero_point > (127 if info.data_type is U8 else 0)
    other = info.zero_point + (-distance if is_high else distance)
    return np.where(where, other, values).astype(values.dtype)


def _bases(values: Array) -> Array:
    """Positive bases, small enough for the integer powers taken of them."""
    bases: Array = np.abs(values) % 30 + 1
    return bases


@pytest.mark.parametrize("kind", [BinaryOperation.ADD, BinaryOperation.SUB], ids=lambda k: k.name)
def test_power_of_two_scales_are_shifted(kind: BinaryOperation) -> None:
    rng = np.random.default_rng(3)
    for case in range(NUM_CASES):
        shape = random_shape(rng)
        exponents = [0, -int(rng.integers(0, 12))]
        if case % 2:
            exponents.reverse()
        infos = [info_of(rng, S16, shape, 2.0 ** (e - 3)) for e in exponents]
        check_operator(
            ElementwiseBinary(operation=kind, power_of_two_scales=True),
            kind.name,
            [operand_of(rng, info) for info in infos],
            options={"pot_scale_int16": True},
            outputs=[info_of(rng, S16, scale=2.0**-3)],
            inputs=(0, 1),
        )


UNARY_TYPES = {
    UnaryOperation.ABS: (F32, DataType.SIGNED32, S8, S16),
    UnaryOperation.EXP: (F32, S8, S16),
    UnaryOperation.SQRT: (F32,),
    UnaryOperation.RSQRT: (F32, S8, S16),
    UnaryOperation.NEG: (F32, DataType.SIGNED32, DataType.SIGNED64, S8),
    UnaryOperation.LOGICAL_NOT: (DataType.BOOLEAN,),
    UnaryOperation.LOG: (F32, S8, S16),
    UnaryOperation.SIN: (F32,),
    UnaryOperation.COS: (F32,),
    UnaryOperation.CEIL: (F32,),
    UnaryOperation.FLOOR: (F32,),
    UnaryOperation.ROUND: (F32,),
    UnaryOperation.SQUARE: (F32,),
}


@pytest.mark.parametrize(
    ("kind", "data_type"),
    [(kind, t) for kind, types in UNARY_TYPES.items() for t in types],
    ids=lambda value: value.name,
)
def test_elementwise_unary(kind: UnaryOperation, data_type: DataType) -> None:
    rng = np.random.default_rng(kind.value * 100 + data_type.value)
    for _ in range(NUM_CASES):
        output = info_of(rng, data_type)
        source = info_of(rng, data_type, random_shape(rng, highest=8))
        if kind is UnaryOperation.NEG and data_type is S8:
            source = info_of(rng, S8, source.known_shape, scale=0.5, zero_point=0)
            output = info_of(rng, S8, scale=0.5, zero_point=0)
        info, values = operand_of(rng, source)
        if kind is UnaryOperation.NEG and data_type is S8:
            values = np.maximum(values, -127)
        if kind in (UnaryOperation.SQRT, UnaryOperation.LOG, UnaryOperation.RSQRT):
            is_float = data_type is F32
            values = np.abs(values) + 1 if is_float else np.maximum(values, source.zero_point)
            values = values.astype(data_type.dtype)
        if kind in (UnaryOperation.ROUND, UnaryOperation.FLOOR, UnaryOperation.CEIL):
            values = np.round(values * 2) / 2
        if kind is UnaryOperation.EXP and data_type is F32:
            values = values / 10
        check_operator(
            ElementwiseUnary(operation=kind),
            kind.name,
            [(info, values)],
            outputs=[output],
            # The set of reference kernels lacks these two.
            reference=kind not in (UnaryOperation.CEIL, UnaryOperation.ROUND),
        )


COMPARISON_TYPES = (F32, DataType.SIGNED32, DataType.SIGNED64, U8, S8, S16)
COMPARISON_CODES = {
    ComparisonOperation.GREATER_OR_EQUAL: "GREATER_EQUAL",
    ComparisonOperation.LESS_OR_EQUAL: "LESS_EQUAL",
}


@pytest.mark.parametrize("data_type", COMPARISON_TYPES, ids=lambda t: t.name)
@pytest.mark.parametrize("kind", list(ComparisonOperation), ids=lambda k: k.name)
def test_comparison(kind: ComparisonOperation, data_type: DataType) -> None:
    rng = np.random.default_rng(kind.value * 100 + data_type.value)
    is_equality = kind in (ComparisonOperation.EQUAL, ComparisonOperation.NOT_EQUAL)
    needs_same_scale = data_type is S16 and not is_equality
    for _ in range(NUM_CASES // 2):
        infos = [info_of(rng, data_type, shape) for shape in broadcasting_shapes(rng)]
        if needs_same_scale or rng.random() < 0.5:
            infos[1] = TensorInfo(infos[1].shape, data_type, infos[0].quantization)
        operands = [operand_of(rng, info) for info in infos]
        if not data_type.is_quantized:
            operands = [(i, np.trunc(v / 10).astype(v.dtype)) for i, v in operands]
        check_operator(
            Comparison(operation=kind),
            COMPARISON_CODES.get(kind, kind.name),
            operands,
            outputs=[TensorInfo(None, DataType.BOOLEAN)],
            inputs=(0, 1),
        )


@pytest.mark.parametrize("kind", list(LogicalBinaryOperation), ids=lambda k: k.name)
def test_logical_binary(kind: LogicalBinaryOperation) -> None:
    rng = np.random.default_rng(kind.value)
    for _ in range(NUM_CASES):
        shapes = broadcasting_shapes(rng)
        operands = [operand_of(rng, info_of(rng, DataType.BOOLEAN, shape)) for shape in shapes]
        check_operator(LogicalBinary(operation=kind), kind.name, operands, inputs=(0, 1))


@pytest.mark.parametrize("data_type", [F32, U8, S8], ids=lambda t: t.name)
def test_prelu(data_type: DataType) -> None:
    rng = np.random.default_rng(data_type.value)
    for _ in range(4 * NUM_CASES):
        shape = random_shape(rng)
        alpha = tuple(1 if rng.random() < 0.5 else dim for dim in shape)
        operands = [operand_of(rng, info_of(rng, data_type, s)) for s in (shape, alpha)]
        check_operator(Prelu(), "PRELU", operands, outputs=[info_of(rng, data_type)], inputs=(0, 1))


@pytest.mark.parametrize("data_type", [F32, U8, S8, S16, DataType.SIGNED32], ids=lambda t: t.name)
def test_select(data_type: DataType) -> None:
    rng = np.random.default_rng(data_type.value)
    for _ in range(NUM_CASES):
        shapes = broadcasting_shapes(rng, 3)
        output = info_of(rng, data_type)
        infos = [TensorInfo(shape, data_type, output.quantization) for shape in shapes[1:]]
        condition = operand_of(rng, info_of(rng, DataType.BOOLEAN, shapes[0]))
        operands = [condition, *(operand_of(rng, info) for info in infos)]
        check_operator(Select(), "SELECT_V2", operands, outputs=[output], inputs=(0, 1, 2))


ACTIVATIONS = {
    "RELU": (Activation(ActivationFunction.RELU), (F32, U8, S8, S16)),
    "RELU6": (Activation(ActivationFunction.BOUNDED_RELU, a=6.0), (F32, U8, S8, S16)),
    "RELU_N1_TO_1": (Activation(ActivationFunction.BOUNDED_RELU, a=1.0, b=-1.0), (F32, U8, S8)),
    "RELU_0_TO_1": (Activation(ActivationFunction.BOUNDED_RELU, a=1.0), (F32, U8, S8)),
    "HARD_SWISH": (Activation(ActivationFunction.HARD_SWISH), (F32, U8, S8)),
    "ELU": (Activation(ActivationFunction.ELU, a=1.0), (F32, S8)),
    "TANH": (Activation(ActivationFunction.TANH, a=1.0, b=1.0), (F32, U8, S8, S16)),
    "LOGISTIC": (Activation(ActivationFunction.SIGMOID), (F32, U8, S8, S16)),
}


@pytest.mark.parametrize(
    ("code", "data_type"),
    [(code, t) for code, (_, types) in ACTIVATIONS.items() for t in types],
    ids=lambda value: getattr(value, "name", value),
)
def test_activation(code: str, data_type: DataType) -> None:
    rng = np.random.default_rng(data_type.value)
    operation = ACTIVATIONS[code][0]
    for case in range(4 * NUM_CASES):
        output = info_of(rng, data_type)
        source = info_of(rng, data_type, random_shape(rng, highest=8))
        if code == "LOGISTIC" and data_type in (U8, S8):
            output = info_of(rng, data_type, scale=2.0**-8)
        if data_type is S16 and code in ("LOGISTIC", "TANH"):
            output = info_of(rng, S16, scale=2.0**-15)
            if case % 4 == 0:
                source = info_of(
                    rng, S16, source.known_shape, scale=2.0 ** -int(rng.integers(9, 14))
                )
        if code == "HARD_SWISH" and data_type is not F32:
            # LiteRT refuses a finer output.
            output = info_of(rng, data_type, scale=source.scale * (0.01 + rng.random()))
        check_operator(
            operation,
            code,
            [operand_of(rng, source)],
            outputs=[output],
            reference=code != "ELU",  # which the set of reference kernels lacks
        )


@pytest.mark.parametrize("data_type", [F32, U8, S8, S16], ids=lambda t: t.name)
def test_leaky_relu(data_type: DataType) -> None:
    rng = np.random.default_rng(data_type.value)
    for _ in range(4 * NUM_CASES):
        alpha = float(np.float32(rng.uniform(-1, 1)))
        source = info_of(rng, data_type, random_shape(rng, highest=8))
        check_operator(
            Activation(ActivationFunction.LEAKY_RELU, a=alpha),
            "LEAKY_RELU",
            [operand_of(rng, source)],
            options={"alpha": alpha},
            outputs=[info_of(rng, data_type)],
        )


@pytest.mark.parametrize("data_type", [F32, U8, S8], ids=lambda t: t.name)
@pytest.mark.parametrize("approximate", [False, True])
def test_gelu(approximate: bool, data_type: DataType) -> None:
    rng = np.random.default_rng(data_type.value)
    for _ in range(2 * NUM_CASES):
        source = info_of(rng, data_type, random_shape(rng, highest=8))
        check_operator(
            Activation(ActivationFunction.GELU, approximate=approximate),
            "GELU",
            [operand_of(rng, source)],
            options={"approximate": approximate},
            outputs=[info_of(rng, data_type)],
        )


@pytest.mark.parametrize(
    ("source_type", "target_type"),
    [(F32, F32), (U8, U8), (S8, S8), (S8, S16), (U8, S16), (S16, S16)],
    ids=lambda t: t.name,
)
def test_softmax(source_type: DataType, target_type: DataType) -> None:
    rng = np.random.default_rng(source_type.value)
    bits = {U8: 8, S8: 8, S16: 15 if source_type is S16 else 16}.get(target_type, 0)
    lowest = {U8: 0, S8: -128, S16: 0 if source_type is S16 else -32768}.get(target_type, 0)
    for _ in range(4 * NUM_CASES):
        beta = float(np.float32(rng.uniform(0.2, 2)))
        shape = (*random_shape(rng, int(rng.integers(0, 4))), int(rng.integers(1, 200)))
        source = info_of(rng, source_type, shape)
        output = info_of(rng, target_type, scale=2.0**-bits, zero_point=lowest)
        check_operator(
            Softmax(beta=beta),
            "SOFTMAX",
            [operand_of(rng, source)],
            options={"beta": beta},
            outputs=[output],
        )


@pytest.mark.parametrize("data_type", [F32, U8, S8], ids=lambda t: t.name)
def test_log_softmax(data_type: DataType) -> None:
    rng = np.random.default_rng(data_type.value)
    for _ in range(4 * NUM_CASES):
        shape = (*random_shape(rng, int(rng.integers(0, 4))), int(rng.integers(1, 200)))
        source = info_of(rng, data_type, shape)
        highest = 255 if data_type is U8 else 127
        check_operator(
            LogSoftmax(),
            "LOG_SOFTMAX",
            [operand_of(rng, source)],
            outputs=[info_of(rng, data_type, scale=1 / 16, zero_point=highest)],
        )


@pytest.mark.parametrize("data_type", [F32, U8, S8], ids=lambda t: t.name)
def test_l2_normalization(data_type: DataType) -> None:
    rng = np.random.default_rng(data_type.value)
    for case in range(4 * NUM_CASES):
        shape = (*random_shape(rng, int(rng.integers(1, 4))), int(rng.integers(1, 40)))
        info, values = operand_of(rng, info_of(rng, data_type, shape))
        if case % 10 == 0:
            values[...] = info.zero_point
        zero_point = 128 if data_type is U8 else 0
        check_operator(
            L2Normalization(),
            "L2_NORMALIZATION",
            [(info, values)],
            options={},
            outputs=[info_of(rng, data_type, scale=2.0**-7, zero_point=zero_point)],
        )


CONVERSIONS = [
    (F32, U8),
    (F32, S8),
    (F32, S16),
    (U8, U8),
    (U8, S8),
    (S8, U8),
    (S8, S8),
    (S16, S8),
    (S16, S16),
    (S16, DataType.SIGNED32),
    (DataType.SIGNED32, S8),
    (DataType.SIGNED32, S16),
]


@pytest.mark.parametrize(("source_type", "target_type"), CONVERSIONS, ids=lambda t: t.name)
def test_quantize(source_type: DataType, target_type: DataType) -> None:
    rng = np.random.default_rng(source_type.value * 100 + target_type.value)
    for case in range(4 * NUM_CASES):
        source = info_of(rng, source_type, random_shape(rng))
        target = info_of(rng, target_type)
        if source_type is DataType.SIGNED32:
            source = TensorInfo(source.shape, source_type, Quantization.per_tensor(2.0**-9, 0))
        if target_type is DataType.SIGNED32:
            target = TensorInfo(None, target_type, Quantization.per_tensor(2.0**-12, 0))
        if case % 5 == 0 and source_type in (U8, S8):
            shift = int(rng.integers(-100, 100))
            zero_point = int(np.clip(source.zero_point + shift, *target_type.integer_range))
            target = info_of(rng, target_type, scale=source.scale, zero_point=zero_point)
        check_operator(Quantize(), "QUANTIZE", [operand_of(rng, source)], outputs=[target])


@pytest.mark.parametrize("target_type", [U8, S8, S16], ids=lambda t: t.name)
def test_quantize_per_axis(target_type: DataType) -> None:
    rng = np.random.default_rng(target_type.value)
    for _ in range(NUM_CASES):
        shape = random_shape(rng, 3)
        target = TensorInfo(None, target_type, per_axis(rng, shape, target_type))
        operand = operand_of(rng, info_of(rng, F32, shape))
        check_operator(Quantize(), "QUANTIZE", [operand], outputs=[target])


def per_axis(rng: np.random.Generator, shape: tuple[int, ...], data_type: DataType) -> Quantization:
    """Scales and zero points along a random axis."""
    axis = int(rng.integers(0, len(shape)))
    scales = tuple(float(np.float32(s)) for s in np.exp(rng.uniform(-4, 0, shape[axis])))
    highest = 1 if data_type is S16 else 100
    return Quantization(scales, tuple(int(z) for z in rng.integers(0, highest, shape[axis])), axis)


@pytest.mark.parametrize("source_type", [U8, S8, S16, F16], ids=lambda t: t.name)
def test_dequantize(source_type: DataType) -> None:
    rng = np.random.default_rng(source_type.value)
    for case in range(2 * NUM_CASES):
        source = info_of(rng, source_type, random_shape(rng, 3))
        if case % 3 == 0 and source_type in (U8, S8):
            quantization = per_axis(rng, source.known_shape, source_type)
            source = TensorInfo(source.shape, source_type, quantization)
        output = TensorInfo(None, F32)
        check_operator(Dequantize(), "DEQUANTIZE", [operand_of(rng, source)], outputs=[output])


CAST_TYPES = (
    F32,
    DataType.SIGNED64,
    DataType.SIGNED32,
    DataType.SIGNED16,
    DataType.SIGNED8,
    DataType.UNSIGNED8,
    DataType.BOOLEAN,
    F16,
    DataType.UNSIGNED32,
    DataType.FLOAT64,
)


@pytest.mark.parametrize("target_type", CAST_TYPES, ids=lambda t: t.name)
@pytest.mark.parametrize("source_type", CAST_TYPES, ids=lambda t: t.name)
def test_cast(source_type: DataType, target_type: DataType) -> None:
    rng = np.random.default_rng(source_type.value * 100 + target_type.value)
    for _ in range(5):
        source = info_of(rng, source_type, random_shape(rng))
        info, values = operand_of(rng, source)
        if source_type.is_float and target_type in (DataType.UNSIGNED8, DataType.UNSIGNED32):
            values = np.abs(values)
        check_operator(Cast(), "CAST", [(info, values)], outputs=[TensorInfo(None, target_type)])
