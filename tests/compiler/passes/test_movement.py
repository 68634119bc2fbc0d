"""Transposes, reshapes and broadcasts that need not be done."""

from __future__ import annotations

import numpy as np
import pytest
from armpy_reference import ReferenceBackend

from armpy import DataType, Network, Quantization, TensorInfo, ops
from armpy.graph import Value
from armpy_testing.backends.fake_backends import FakeBackend
from armpy_testing.models.networks import ADD, MUL, RELU, f32
from tests.support.passes import after, after_pass, names

TO_NCHW = ops.Transpose((0, 3, 1, 2))
TO_NHWC = ops.Transpose((0, 2, 3, 1))


def network_of(*shape: int, info: TensorInfo | None = None) -> tuple[Network, Value]:
    net = Network()
    return net, net.input("x", info or f32(*shape))


def test_a_transpose_that_is_an_output_stays() -> None:
    net, x = network_of(2, 3, 4, 5)
    turned = net.add(TO_NCHW, x)
    net.output("turned", turned)
    net.output("y", net.add(TO_NHWC, turned))
    assert names(after("cancel_transposes", net)) == ["Transpose"]


def test_a_constant_of_lower_rank_is_broadcast_as_before() -> None:
    net, x = network_of(2, 3, 4, 5)
    row = net.constant(np.arange(4, dtype=np.float32))  # along the width of NCHW
    net.output("y", net.add(TO_NHWC, net.add(ADD, net.add(TO_NCHW, x), row)))
    rewritten = after("cancel_transposes", net)
    assert names(rewritten) == ["ElementwiseBinary"]
    assert rewritten.layers[0]["rhs"].info.shape == (1, 1, 4, 1)


@pytest.mark.parametrize("what", ["readers", "sources", "operation"])
def test_transposes_stay_where_others_need_the_order(what: str) -> None:
    net, x = network_of(1, 3, 4, 5)
    inner = net.add(RELU, net.add(TO_NCHW, x))
    if what == "operation":
        inner = net.add(ops.L2Normalization(), inner)
    if what == "sources":
        for name in ("one", "two"):
            inner = net.add(ADD, inner, net.input(name, f32(1, 5, 3, 4)))
    if what == "readers":
        net.output("z", net.add(ops.L2Normalization(), inner))
        inner = net.add(ADD, inner, net.input("one", f32(1, 5, 3, 4)))
    net.output("y", net.add(TO_NHWC, inner))
    graph = net.build()
    assert after_pass("cancel_transposes", graph) is graph


def test_scales_along_an_axis_keep_their_transposes() -> None:
    scales = Quantization.per_axis([0.5, 0.25], 0)
    info = TensorInfo((2, 3), DataType.QSYMM_S8, scales)
    turned = TensorInfo((3, 2), DataType.QSYMM_S8, Quantization.per_axis([0.5, 0.25], 1))
    net, x = network_of(info=info)
    y = net.add(ops.Transpose((1, 0)), x, output=turned)
    net.output("y", net.add(ops.Transpose((1, 0)), y, output=info))
    graph = net.build()
    assert after_pass("cancel_transposes", graph) is graph


def test_a_transpose_of_axes_of_one_element_is_a_reshape() -> None:
    net, x = network_of(1, 3, 1, 4)
    net.output("y", net.add(ops.Transpose((1, 2, 3, 0)), x, name="turn"))
    (layer,) = after("reshape_transposes", net).layers
    assert (layer.operation, layer.name) == (ops.Reshape((3, 1, 4, 1)), "turn")


def test_a_transpose_that_moves_elements_stays() -> None:
    net, x = network_of(1, 3, 1, 4)
    net.output("y", net.add(ops.Transpose((3, 1, 2, 0)), x))
    graph = net.build()
    assert after_pass("reshape_transposes", graph) is graph


def test_a_backend_that_does_not_reshape_keeps_its_transpose() -> None:
    net, x = network_of(1, 3, 1, 4)
    net.output("y", net.add(ops.Transpose((1, 2, 3, 0)), x))
    graph = net.build()
    only = FakeBackend("Only", operations=[ops.Transpose])
    assert after_pass("reshape_transposes", graph, only, ReferenceBackend()) is graph


def test_a_reshape_that_others_read_stays_beside_the_merged_one() -> None:
    net, x = network_of(4, 6)
    y = net.add(ops.Reshape((2, 12)), x)
    net.output("y", y)
    net.output("z", net.add(ops.Reshape((24,)), y))
    first, second = after("merge_reshapes", net).layers
    assert first["input"] is second["input"]


def test_equal_layers_of_one_tensor_are_one() -> None:
    net, x = network_of(2, 3)
    turned = [net.add(ops.Transpose((1, 0)), x) for _ in range(3)]
    net.output("y", net.add(ADD, turned[0], net.add(MUL, turned[1], turned[2])))
    assert names(after("merge_equal_siblings", net)).count("Transpose") == 1


def test_siblings_with_other_scales_stay() -> None:
    net, x = network_of(2, 3)
    for scale in (0.5, 0.25):
        info = TensorInfo(None, DataType.QASYMM_S8, Quantization.per_tensor(scale))
        net.output(f"y{scale}", net.add(ops.Quantize(), x, output=info))
    graph = net.build()
    assert after_pass("merge_equal_siblings", graph) is graph


def test_a_broadcast_that_gives_the_shape_stays() -> None:
    net, x = network_of(2, 3)
    wide = net.add(ops.BroadcastTo((4, 2, 3)), x)
    net.output("y", net.add(ADD, wide, net.constant(np.float32(1))))
    graph = net.build()
    assert after_pass("remove_broadcasts", graph) is graph
