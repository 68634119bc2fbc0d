"""Programs take what is too small for a normal float32 for zero; their callers do not."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_numba_acc.kernels import elementwise, executor, worker
from armpy_numba_acc.llvm.compiler import compile_assembly
from armpy_numba_acc.machine.isa import Isa, make_isa
from armpy_numba_acc.passes.support import support

from armpy import DataType, Network, TensorInfo, ops
from armpy.backend import Cancellation, cancellable
from armpy.errors import ExecutionCancelledError
from armpy.ops.operation import Array

from .networks import convolutions, image, runtime_of
from .one_layer import network_of, quantized
from .support import ISA_NAMES, ISAS, run_compiled

F16, F32, BOOL = DataType.FLOAT16, DataType.FLOAT32, DataType.BOOLEAN
SMALL = np.array([1e-39, -1e-40, 2.0**-149, -(2.0**-127), 1.5e-38, 0.0], np.float32)
LARGEST_SUBNORMAL = np.nextafter(np.float32(2.0**-126), np.float32(0))


def keeps_subnormals() -> bool:
    """Whether this thread's own arithmetic has numbers below float32's normal ones."""
    product = np.full(1, 1e-30, np.float32) * np.full(1, 1e-10, np.float32)
    return bool(product[0] > 0 and product[0] / np.float32(1e-10) > 0)


def is_zero_where_too_small(array: Array) -> bool:
    return not ((array != 0) & (np.abs(array) <= LARGEST_SUBNORMAL)).any()


@pytest.mark.parametrize("isa", ISAS, ids=ISA_NAMES)
def test_results_and_operands_are_flushed_and_the_caller_keeps_its_mode(isa: Isa) -> None:
    infos = [TensorInfo((4,), F32)] * 2
    network = network_of(ops.ElementwiseBinary(ops.BinaryOperation.MUL), infos, infos[0])
    inputs = {
        "x0": np.array([1e-30, 1e-39, 1e-30, -3.0], np.float32),
        "x1": np.array([1e-10, 1e30, 1e10, 1e-40], np.float32),
    }
    assert keeps_subnormals()
    (output,) = run_compiled(network, inputs, isa).values()
    assert keeps_subnormals()
    np.testing.assert_allclose(output, [0, 0, 1e-20, 0], rtol=1e-6)


@pytest.mark.parametrize("num_threads", [1, 3])
def test_every_thread_flushes(num_threads: int) -> None:
    infos = [TensorInfo((4_000_000,), F32)] * 2
    network = network_of(ops.ElementwiseBinary(ops.BinaryOperation.MUL), infos, infos[0])
    inputs = {f"x{n}": np.full(4_000_000, size, np.float32) for n, size in enumerate((1e-30, 1e-9))}
    with runtime_of(num_threads) as runtime:
        number = runtime.load_network(network)
        for _ in range(5):  # workers come at different times
            assert not runtime.enqueue_workload(number, inputs)["y"].any()
            assert keeps_subnormals()


def test_a_stopped_execution_leaves_the_mode_as_it_was() -> None:
    cancellation = Cancellation()
    cancellation.cancel()
    with runtime_of(2) as runtime:
        number = runtime.load_network(convolutions())
        with (
            cancellable(cancellation),
            pytest.raises(ExecutionCancelledError, match="was cancelled"),
        ):
            runtime.enqueue_workload(number, image())
        assert keeps_subnormals()


@pytest.mark.parametrize("isa", ISAS, ids=ISA_NAMES)
def test_masked_positions_have_no_share(isa: Isa) -> None:
    scores = np.zeros((2, 67), np.float32)
    scores[0, 8:] = -1e4
    scores[1] = -np.arange(67) * 2
    info = TensorInfo(scores.shape, F32)
    (probabilities,) = run_compiled(
        network_of(ops.Softmax(), [info], info), {"x0": scores}, isa
    ).values()
    wide = np.exp(scores.astype(np.float64))
    expected = wide / wide.sum(1, keepdims=True)
    assert not probabilities[0, 8:].any()
    assert is_zero_where_too_small(probabilities)
    np.testing.assert_allclose(probabilities, expected, rtol=1e-5, atol=2.0**-126)


@pytest.mark.parametrize("isa", ISAS, ids=ISA_NAMES)
def test_what_is_only_moved_keeps_its_bits(isa: Isa) -> None:
    network = Network()
    x = network.input("x", TensorInfo((2, 3), F32))
    mask = network.input("mask", TensorInfo((2, 3), BOOL))
    turned = network.add(ops.Transpose((1, 0)), x)
    network.output("turned", turned)
    network.output("joined", network.add(ops.Concat(axis=0), x, x))
    network.output("selected", network.add(ops.Select(), mask, x, x))
    elements = SMALL.reshape(2, 3)
    inputs = {"x": elements, "mask": np.array([[True, False, True], [False, True, False]])}
    actual = run_compiled(network, inputs, isa)
    expected = {
        "turned": elements.T,
        "joined": np.concatenate([elements, elements]),
        "selected": elements,
    }
    for name, array in expected.items():
        np.testing.assert_array_equal(
            actual[name].view(np.uint32), np.ascontiguousarray(array).view(np.uint32), name
        )


@pytest.mark.parametrize("isa", ISAS, ids=ISA_NAMES)
def test_every_float16_becomes_its_float32(isa: Isa) -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    network = network_of(ops.Cast(), [TensorInfo(halves.shape, F16)], TensorInfo(None, F32))
    (floats,) = run_compiled(network, {"x0": halves}, isa).values()
    np.testing.assert_array_equal(floats, halves.astype(np.float32))


@pytest.mark.parametrize("isa", ISAS, ids=ISA_NAMES)
def test_float32_is_rounded_to_the_float16_next_to_it_ties_to_even(isa: Isa) -> None:
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    ties = np.append((halves[:-1] + halves[1:]) / 2, np.float32(65520))
    numbers = [halves, ties, np.nextafter(ties, 0), np.nextafter(ties, np.inf, dtype=np.float32)]
    floats = np.concatenate([*numbers, [np.inf, np.nan, 1e38, 1e-45, 1e-37]]).astype(np.float32)
    floats = np.concatenate([floats, -floats])
    network = network_of(ops.Cast(), [TensorInfo(floats.shape, F32)], TensorInfo(None, F16))
    (rounded,) = run_compiled(network, {"x0": floats}, isa).values()
    with np.errstate(over="ignore"):
        expected = floats.astype(np.float16)
    is_nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(rounded), is_nan)
    np.testing.assert_array_equal(
        rounded[~is_nan].view(np.uint16), expected[~is_nan].view(np.uint16)
    )


@pytest.mark.parametrize("isa", ISAS, ids=ISA_NAMES)
def test_instructions_convert_float16_where_there_are_any(isa: Isa) -> None:
    function = elementwise.make(isa, "x0.half_to_float.exp.float_to_half", "u16xu16", "v")
    assert ("vcvtps2ph" in compile_assembly(function, "function", isa)) == (isa.name != "portable")


def test_quantised_tensors_whose_scale_would_be_lost_are_left_to_others() -> None:
    floats, stored = TensorInfo((4,), F32), quantized((4,), DataType.QASYMM_S8, 1e-39, 0)
    answer = support(ops.Quantize(), [floats], [stored])
    assert not answer
    assert "the scale 1e-39 of QASYMM_S8 (4,) is out of the range of kernels" in answer.text
    assert support(ops.Quantize(), [floats], [quantized((4,), DataType.QASYMM_S8, 1e-12, 0)])


@pytest.mark.slow
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("triple", "reads", "writes"),
    [
        ("x86_64-unknown-linux-gnu", "stmxcsr", "ldmxcsr"),
        ("aarch64-unknown-linux-gnu", "mrs\tx", "msr\tFPCR"),
        ("riscv64-unknown-linux-gnu", "", ""),
    ],
)
def test_both_kinds_of_threads_switch_the_mode_where_there_is_one(
    triple: str, reads: str, writes: str
) -> None:
    isa = make_isa("portable", triple, "", frozenset())
    for function in (executor.make(isa), worker.make(isa, 8)):
        text = compile_assembly(function, "function", isa)
        # Once to flush, and on every way out to restore.
        assert text.count(writes) >= 2 if writes else "csr" not in text
        assert reads in text
