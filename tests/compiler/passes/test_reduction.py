"""Networks of float32 that are computed in float16."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from armpy_numba_acc import NumbaBackend
from armpy_reference import ReferenceBackend

from armpy import DataType, Network, OptimizerOptions, TensorInfo, ops
from armpy.backend import IBackendInternal, ReasonCode, Support
from armpy.errors import InvalidArgumentError
from armpy.graph import Graph, verify_graph
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy_testing.backends.fake_backends import FakeBackend
from armpy_testing.models.networks import ADD, MUL, RELU, chain, f32, floats, ints
from tests.support.passes import OFF, after_pass, names, random_inputs, run

FLOAT16, FLOAT32 = DataType.FLOAT16, DataType.FLOAT32
HALVES = OptimizerOptions(passes=OFF, reduce_fp32_to_fp16=True)


class WithoutHalf(FakeBackend):
    """Takes some operations in float16, and all in float32."""

    halves: tuple[type, ...] = ()

    def supports(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        infos = [info for info in (*inputs, *outputs) if info is not None]
        is_half = any(info.data_type is FLOAT16 for info in infos)
        if is_half and not isinstance(operation, (ops.Cast, *self.halves)):
            return Support.no(ReasonCode.DATA_TYPE, "no float16")
        return super().supports(operation, inputs, outputs)


def reduced(graph: Graph, *backends: IBackendInternal) -> Graph:
    rewritten = after_pass("reduce_fp32_to_fp16", graph, *backends)
    verify_graph(rewritten)
    return rewritten


def small_network() -> Network:
    """A convolution, a clamp, a sum and a product."""
    random = np.random.default_rng(1)
    net = Network()
    x = net.input("x", f32(1, 8, 8, 3))
    weights = net.constant(random.normal(size=(4, 3, 3, 3)).astype(np.float32))
    bias = net.constant(random.normal(size=4).astype(np.float32))
    value = net.add(RELU, net.add(ops.Convolution2d(), x, weights, bias))
    value = net.add(ADD, value, net.constant(floats(1, 2, 3, 4)))
    value = net.add(ops.Reshape((1, 144)), value)
    dense = net.constant(random.normal(size=(5, 144)).astype(np.float32))
    net.output("y", net.add(ops.FullyConnected(), value, dense))
    return net


def types(graph: Graph) -> list[DataType]:
    """Type of each layer's output."""
    return [layer.output.info.data_type for layer in graph.layers]


def test_the_caller_sees_float32_and_layers_compute_float16() -> None:
    graph = small_network().build()
    rewritten = reduced(graph)
    assert rewritten.input_infos == graph.input_infos
    assert rewritten.output_infos == graph.output_infos
    assert names(rewritten) == ["Cast", *names(graph), "Cast"]
    assert types(rewritten) == [FLOAT16] * 6 + [FLOAT32]
    constants = [v for v in rewritten.values() if v.data is not None]
    assert {v.data.dtype.name for v in constants if v.data is not None} == {"float16"}


@pytest.mark.parametrize("backend", [(), (NumbaBackend(),)], ids=["CpuRef", "NumbaAcc"])
def test_results_are_right_to_float16(backend: tuple[NumbaBackend, ...]) -> None:
    net = small_network()
    inputs = random_inputs(net.build())
    expected = run(net, inputs, *backend)["y"]
    got = run(net, inputs, *backend, options=HALVES)["y"]
    assert got.dtype == np.float32
    assert not np.array_equal(got, expected)  # it was float16 indeed
    # 144 terms of about 3, each rounded to 11 bits.
    np.testing.assert_allclose(got, expected, rtol=5 * 2.0**-10, atol=0.25)


def test_constants_beyond_float16_keep_their_layer_in_float32() -> None:
    net = Network()
    value = net.add(RELU, net.input("x", f32(2)))
    value = net.add(MUL, value, net.constant(floats(1e6, 1)))
    net.output("y", net.add(RELU, value))
    product = reduced(net.build()).layers[3]
    assert product.operation == MUL
    assert product.output.info.data_type is FLOAT32
    infinite = Network()
    bound = infinite.constant(np.float32(np.inf))
    infinite.output("y", infinite.add(ADD, infinite.input("x", f32(2)), bound))
    assert types(reduced(infinite.build())) == [FLOAT16, FLOAT16, FLOAT32]


def test_state_stays_float32() -> None:
    net = Network()
    state = net.variable("state", f32(3))
    total = net.add(ADD, net.input("x", f32(3)), state)
    net.assign(state, total)
    net.output("y", total)
    rewritten = reduced(net.build())
    assert rewritten.variables[0].next_value.info.data_type is FLOAT32
    inputs = {"x": floats(0.5, 1.5, 2.5)}
    np.testing.assert_array_equal(run(net, inputs, options=HALVES)["y"], inputs["x"])


def test_a_backend_without_float16_computes_float32() -> None:
    graph = chain(3)
    rewritten = reduced(graph, WithoutHalf("Wide"), ReferenceBackend())
    assert rewritten is graph


def test_layers_that_a_backend_refuses_in_float16_are_float32_between_conversions() -> None:
    class SomeHalf(WithoutHalf):
        halves = (ops.ElementwiseBinary,)

    net = Network()
    value = net.add(ADD, net.input("x", f32(4)), net.constant(np.float32(1)))
    value = net.add(RELU, value)
    net.output("y", net.add(ADD, value, net.constant(np.float32(2))))
    rewritten = reduced(net.build(), SomeHalf("Some"), ReferenceBackend())
    assert types(rewritten) == [FLOAT16, FLOAT16, FLOAT32, FLOAT32, FLOAT16, FLOAT16, FLOAT32]
    assert [layer.operation.name for layer in rewritten.layers][3] == "Activation"


def test_files_of_float16_can_fall_back_to_float32() -> None:
    half = TensorInfo((4,), FLOAT16)
    net = Network()
    net.output("y", net.add(RELU, net.input("x", half)))
    graph = net.build()
    rewritten = after_pass("fall_back_to_float32", graph, WithoutHalf("Wide"), ReferenceBackend())
    assert names(rewritten) == ["Cast", "Activation", "Cast"]
    assert rewritten.outputs[0].info == half
    assert after_pass("fall_back_to_float32", graph) is graph
    inputs = random_inputs(graph)
    np.testing.assert_array_equal(run(rewritten, inputs)["y"], run(graph, inputs)["y"])


def test_what_draws_numbers_stays_float32() -> None:
    net = Network()
    rows = net.add(ADD, net.input("x", f32(2, 3)), net.constant(np.float32(1)))
    net.output("y", net.add(ops.RandomMultinomial(4), rows, net.constant(ints(1, 2))))
    rewritten = reduced(net.build())
    assert rewritten.layers[-1].inputs[0].info.data_type is FLOAT32  # type: ignore[union-attr]


def truncated(values: Array) -> Array:
    """float32 numbers whose last 16 bits are 0, rounded to nearest by adding half of the first."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x8000) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def test_products_read_numbers_of_bfloat16_and_sum_in_float32() -> None:
    random = np.random.default_rng(2)
    weights = random.normal(size=(5, 3)).astype(np.float32)
    bias = random.normal(size=5).astype(np.float32)
    net = Network()
    x = net.input("x", f32(4, 3))
    value = net.add(ops.FullyConnected(), x, net.constant(weights), net.constant(bias))
    net.output("y", net.add(RELU, value))
    graph = net.build()
    rewritten = after_pass("reduce_fp32_to_bf16", graph)
    verify_graph(rewritten)
    assert names(rewritten) == ["Cast", "Cast", "FullyConnected", "Activation"]
    rows = random.normal(size=(4, 3)).astype(np.float32)
    options = OptimizerOptions(passes=OFF, reduce_fp32_to_bf16=True)
    got = run(graph, {"x": rows}, options=options)["y"]
    sums = truncated(rows).astype(np.float64) @ truncated(weights).T.astype(np.float64) + bias
    np.testing.assert_allclose(got, np.maximum(sums, 0), rtol=1e-6, atol=1e-6)


def test_backends_that_do_not_convert_to_bfloat16_keep_float32() -> None:
    graph = small_network().build()
    only = FakeBackend("Only", [ops.Convolution2d, ops.FullyConnected])
    assert after_pass("reduce_fp32_to_bf16", graph, only, ReferenceBackend()) is graph
    assert len(after_pass("reduce_fp32_to_bf16", graph).layers) == len(graph.layers) + 4


def test_float32_is_reduced_to_one_type() -> None:
    with pytest.raises(InvalidArgumentError, match="reduce_fp32_to_bf16"):
        OptimizerOptions(reduce_fp32_to_fp16=True, reduce_fp32_to_bf16=True)
