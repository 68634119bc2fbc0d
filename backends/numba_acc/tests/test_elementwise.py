"""Elementwise operations: the same as CpuRef on every instruction set."""

import numpy as np
import pytest
from armpy_numba_acc.lowering.broadcasting import collapsed
from armpy_numba_acc.passes.region import lower_region
from armpy_numba_acc.passes.support import support

from armpy import Network, ops
from armpy.graph import SubgraphView
from armpy.ops.tolerance import Tolerance
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType

from .one_layer import (
    BROADCASTS,
    FLOAT_FUNCTIONS,
    FLOAT_OPERATIONS,
    INTEGER_OPERATIONS,
    check_layer,
    quantized,
)
from .support import ISAS, check_against_reference

F32, S8, U8 = DataType.FLOAT32, DataType.QASYMM_S8, DataType.QASYMM_U8
I32, I64, BOOL = DataType.SIGNED32, DataType.SIGNED64, DataType.BOOLEAN


def typed(data_type: DataType) -> TensorInfo:
    """An output whose shape follows."""
    return TensorInfo(None, data_type)


@pytest.mark.parametrize("shapes", BROADCASTS, ids=str)
def test_inputs_broadcast_in_any_way(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    operation = ops.ElementwiseBinary(ops.BinaryOperation.SUB)
    check_layer(operation, [TensorInfo(shape, F32) for shape in shapes], typed(F32))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("operation", FLOAT_OPERATIONS, ids=lambda o: o.name)
def test_binary_operations_of_floats(operation: ops.BinaryOperation) -> None:
    special = np.array([0, -0.0, 1, -1, 2, -2, 3, 0.5, -0.5, 100, -37, 1e-3, np.inf, -np.inf])
    special = np.append(special, [np.nan] * (operation is not ops.BinaryOperation.POWER))
    special = special.astype(np.float32)
    shapes = [(special.size, 1), (1, special.size)]
    operands = [special.reshape(shape) for shape in shapes]
    infos = [TensorInfo(shape, F32) for shape in shapes]
    check_layer(ops.ElementwiseBinary(operation), infos, typed(F32), given=operands)


@pytest.mark.parametrize("name", ["POWER", "ADD"])
def test_powers_of_two_are_squares(name: str) -> None:
    """With the layer after them, or alone."""
    network, special = Network(), [0, -0.0, 1, -1.5, 3e-20, -1e-30, 2e19, -np.inf, np.nan]
    x = network.input("x", TensorInfo((3, 3), F32))
    power = ops.ElementwiseBinary(ops.BinaryOperation.POWER)
    y = network.add(power, x, network.constant(np.full((1, 1), 2, np.float32)))
    if name == "ADD":
        y = network.add(ops.ElementwiseBinary(ops.BinaryOperation.ADD), y, x)
    network.output("y", y)
    graph = network.build()
    program = lower_region(SubgraphView.of(graph, graph.layers), ISAS[0])
    (kernel,) = program.kernels
    assert "square" in str(kernel)
    assert "power" not in str(kernel)
    inputs = {"x": np.array(special, np.float32).reshape(3, 3)}
    check_against_reference(network, inputs, ISAS[0])


@pytest.mark.parametrize("name", ["FLOOR_DIV", "FLOOR_MOD", "TRUNC_MOD"])
def test_quotients_of_any_size_leave_the_rests_of_cpu_ref(name: str) -> None:
    rng = np.random.default_rng(11)
    exponents = rng.integers(-60, 61, (2, 5000))
    operands = [*(rng.normal(size=(2, 5000)) * 2.0**exponents).astype(np.float32)]
    operands[0][:2000] = np.round(operands[1][:2000] * rng.integers(-(2**23), 2**23, 2000))
    infos = [TensorInfo((5000,), F32)] * 2
    operation = ops.ElementwiseBinary(ops.BinaryOperation[name])
    check_layer(operation, infos, typed(F32), given=operands)


def test_quotients_of_float16_are_those_of_cpu_ref() -> None:
    """LLVM makes a call of the compiler's library of the two roundings after a floor."""
    operands = [np.linspace(-40, 40, 400, dtype=np.float16), np.full(400, 3.5, np.float16)]
    infos = [TensorInfo((400,), DataType.FLOAT16)] * 2
    operation = ops.ElementwiseBinary(ops.BinaryOperation.FLOOR_DIV)
    check_layer(operation, infos, typed(DataType.FLOAT16), given=operands)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("data_type", [I32, I64], ids=lambda t: t.name)
@pytest.mark.parametrize("name", ["SHIFT_LEFT", "SHIFT_RIGHT"])
def test_bits_are_shifted_by_any_distance(name: str, data_type: DataType) -> None:
    low, high = data_type.integer_range
    values = np.array([1, -1, 5, -7, 1000, low, high], data_type.dtype).reshape(7, 1)
    distances = np.array([0, 1, 5, 31, 32, 33, 63, 64, 65, -1, low, high], np.int64)
    distances = distances.astype(data_type.dtype).reshape(1, 12)
    infos = [TensorInfo(array.shape, data_type) for array in (values, distances)]
    operation = ops.ElementwiseBinary(ops.BinaryOperation[name])
    check_layer(operation, infos, typed(data_type), given=[values, distances])


@pytest.mark.parametrize("activation", ops.FusedActivation, ids=lambda a: a.name)
def test_floats_and_bytes_are_clamped_by_the_activation(activation: ops.FusedActivation) -> None:
    operation = ops.ElementwiseBinary(ops.BinaryOperation.ADD, activation)
    check_layer(operation, [TensorInfo((3, 50), F32)] * 2, typed(F32))
    infos = [quantized((3, 50), U8, 0.11, 130), quantized((3, 50), U8, 0.07, 120)]
    check_layer(operation, infos, quantized(None, U8, 0.1, 128))


@pytest.mark.sampled(11)
@pytest.mark.parametrize("data_type", [I32, I64], ids=lambda t: t.name)
@pytest.mark.parametrize("operation", INTEGER_OPERATIONS, ids=lambda o: o.name)
def test_binary_operations_of_integers_with_all_divisors(
    operation: ops.BinaryOperation, data_type: DataType
) -> None:
    low, high = data_type.integer_range
    special = np.array([0, 1, -1, 2, -2, 3, -3, 7, 100, low, high], data_type.dtype)
    infos = [TensorInfo((11, 1), data_type), TensorInfo((1, 11), data_type)]
    operands = [special.reshape(11, 1), special.reshape(1, 11)]
    check_layer(ops.ElementwiseBinary(operation), infos, typed(data_type), given=operands)


@pytest.mark.parametrize("operation", FLOAT_FUNCTIONS, ids=lambda o: o.name)
def test_unary_operations_of_floats(operation: ops.UnaryOperation) -> None:
    values = np.concatenate(
        [
            *(np.linspace(-30, 30, 1001), np.linspace(-1, 1, 501), np.logspace(-38, 3, 500)),
            [0, -0.0, 0.5, 1.5, 2.5, -2.5],
        ]
    )
    special = np.array([np.inf, -np.inf, np.nan, 1e30, -1e30, 1e-42, 2.0**23, 12582911.5])
    if operation in (ops.UnaryOperation.SIN, ops.UnaryOperation.COS):
        special = np.array([1e4, 1e6, -1e8])
    values = np.append(values, special).astype(np.float32)
    info = TensorInfo(values.shape, F32)
    relative = Tolerance(1e-7, 5 * 2.0**-23)
    check_layer(ops.ElementwiseUnary(operation), [info], typed(F32), relative, [values])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("data_type", [I32, I64], ids=lambda t: t.name)
def test_unary_operations_of_integers(data_type: DataType) -> None:
    for operation in ("ABS", "NEG", "SIGN", "SQUARE", "BITWISE_NOT"):
        info = TensorInfo((3, 21), data_type)
        check_layer(ops.ElementwiseUnary(ops.UnaryOperation[operation]), [info], typed(data_type))


@pytest.mark.sampled(7)
@pytest.mark.parametrize("operation", ops.ComparisonOperation, ids=lambda o: o.name)
def test_comparisons(operation: ops.ComparisonOperation) -> None:
    special = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 3] * 3, np.float32)
    infos = [TensorInfo((24, 1), F32), TensorInfo((1, 24), F32)]
    operands = [special.reshape(24, 1), special.reshape(1, 24)]
    check_layer(ops.Comparison(operation), infos, typed(BOOL), given=operands)
    for data_type in (I32, I64):
        infos = [TensorInfo((3, 50), data_type), TensorInfo((50,), data_type)]
        check_layer(ops.Comparison(operation), infos, typed(BOOL))
    infos = [quantized((40, 50), S8, 0.02, 3), quantized((50,), S8, 0.03, -8)]
    check_layer(ops.Comparison(operation), infos, typed(BOOL))


@pytest.mark.slow
def test_logic() -> None:
    infos = [TensorInfo((3, 5, 70), BOOL), TensorInfo((5, 1), BOOL)]
    for operation in ops.LogicalBinaryOperation:
        check_layer(ops.LogicalBinary(operation), infos, typed(BOOL))
    check_layer(ops.ElementwiseUnary(ops.UnaryOperation.LOGICAL_NOT), infos[:1], typed(BOOL))
    check_layer(ops.Comparison(ops.ComparisonOperation.NOT_EQUAL), infos, typed(BOOL))


@pytest.mark.parametrize("data_type", [F32, I32, I64, S8, BOOL], ids=lambda t: t.name)
def test_select_broadcasts_all_three(data_type: DataType) -> None:
    quantization = Quantization.per_tensor(0.1, 3) if data_type is S8 else None
    infos = [
        TensorInfo((3, 1, 17), BOOL),
        TensorInfo((4, 1), data_type, quantization),
        TensorInfo((3, 4, 17), data_type, quantization),
    ]
    output = TensorInfo(None, data_type, quantization)
    check_layer(ops.Select(), infos, output)


@pytest.mark.parametrize("data_type", [S8, U8, DataType.QSYMM_S16], ids=lambda t: t.name)
def test_select_brings_both_to_the_scale_of_the_output(data_type: DataType) -> None:
    zero_points = (0, 0, 0) if data_type is DataType.QSYMM_S16 else (3, 120, 5)
    first, second, output = (
        quantized(shape, data_type, scale, zero_point)
        for shape, scale, zero_point in zip(
            [(4, 1), (3, 4, 170), None], (0.1, 0.07, 0.1), zero_points, strict=True
        )
    )
    check_layer(ops.Select(), [TensorInfo((3, 1, 170), BOOL), first, second], output)


def test_prelu() -> None:
    infos = [TensorInfo((2, 3, 4, 35), F32), TensorInfo((1, 1, 35), F32)]
    check_layer(ops.Prelu(), infos, typed(F32))
    infos = [quantized((2, 3, 4, 35), S8, 0.1, 3), quantized((1, 1, 35), S8, 0.01, -20)]
    check_layer(ops.Prelu(), infos, quantized(None, S8, 0.08, 1))


def test_axes_are_joined_where_all_inputs_run_alike() -> None:
    assert collapsed([(2, 3, 4), (2, 3, 4)], (2, 3, 4)) == [(24, (1, 1))]
    assert collapsed([(2, 3, 4), (4,)], (2, 3, 4)) == [(6, (4, 0)), (4, (1, 1))]
    assert collapsed([(2, 3, 4), (2, 1, 1)], (2, 3, 4)) == [(2, (12, 1)), (12, (1, 0))]
    assert collapsed([(1, 1), (1,)], (1, 1)) == [(1, (1, 1))]


def test_what_cannot_be_lowered_says_why() -> None:
    info = TensorInfo((2, 3), I32)
    refusal = support(ops.ElementwiseBinary(ops.BinaryOperation.POWER), [info, info], [info])
    assert not refusal
    assert "POWER of SIGNED32 is not supported" in str(refusal)
    for function in ("ASIN", "TAN", "ACOSH"):
        info = TensorInfo((2, 3), F32)
        refusal = support(ops.ElementwiseUnary(ops.UnaryOperation[function]), [info], [info])
        assert f"{function} of FLOAT32 is not supported" in str(refusal)
    refusal = support(ops.ElementwiseBinary(ops.BinaryOperation.ATAN2), [info, info], [info])
    assert "ATAN2 of FLOAT32 is not supported" in str(refusal)
    info = quantized((2, 3), U8, 0.1, 3)
    refusal = support(ops.ElementwiseBinary(ops.BinaryOperation.FLOOR_MOD), [info, info], [info])
    assert "FLOOR_MOD of QASYMM_U8 is not supported" in str(refusal)
    info = TensorInfo((2, 3), DataType.FLOAT64)
    assert "FLOAT64 is not supported" in str(support(ops.ElementwiseBinary(), [info, info], [info]))
    info = TensorInfo((2, 3), DataType.SIGNED64)
    refusal = support(ops.Prelu(), [info, info], [info])
    assert "SIGNED64 is not supported" in str(refusal)
