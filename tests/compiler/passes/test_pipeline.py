"""Which passes run, in which order, and the handling of a pass's mistakes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armpy import DataType, Network, OptimizerOptions, Quantization, TensorInfo, ops
from armpy.compiler import BUILT_IN_PASSES, OptimizerPass, PassContext
from armpy.errors import GraphValidationError, InvalidArgumentError
from armpy.graph import Graph, Rewriter
from armpy_testing.models.networks import ADD, RELU, f32, floats
from tests.support.passes import after_passes, names, run


def everything() -> Network:
    """A network in which every default pass finds something."""
    net = Network()
    x = net.input("x", f32(1, 6, 6, 4))
    turned = net.add(ops.Transpose((0, 3, 1, 2)), x)
    back = net.add(ops.Transpose((0, 2, 3, 1)), net.add(RELU, turned))
    framed = net.add(ops.Pad(((0, 0), (1, 1), (1, 1), (0, 0))), back)
    weights = net.constant(np.ones((3, 3, 3, 4), np.float32))
    image = net.add(ops.Convolution2d(), framed, weights)
    flat = net.add(ops.Reshape((9, 12)), net.add(ops.Reshape((108,)), image))
    twins = [net.add(ops.Transpose((1, 0)), flat) for _ in range(2)]
    wide = net.add(ops.BroadcastTo((2, 12, 9)), twins[0])
    net.output("y", net.add(ops.ElementwiseBinary(), wide, twins[1]))
    net.output("z", net.add(ops.ElementwiseBinary(), wide, net.input("w", f32(2, 12, 9))))
    net.output("t", net.add(ops.Transpose((0, 2, 1, 3)), net.input("v", f32(1, 1, 5, 3))))
    stored = net.input("i", TensorInfo((4,), DataType.QASYMM_S8, Quantization.per_tensor(0.3, -5)))
    number = net.add(ops.Cast(), stored, output=TensorInfo((4,), DataType.SIGNED8))
    net.output("a", net.add(ops.Cast(), number, output=stored.info))
    real = net.add(ops.Dequantize(), stored)
    net.output("b", net.add(ops.Quantize(), real, output=stored.info))
    rows = net.input("r", f32(3, 4))
    dense = net.add(ops.FullyConnected(), rows, net.constant(np.ones((2, 4), np.float32)))
    net.output("c", net.add(ADD, dense, net.constant(floats(1, 2))))
    net.output("d", net.add(ADD, *(net.add(ops.Dequantize(), stored) for _ in range(2))))
    query, key, value = (net.input(name, f32(1, 2, 3, 4)) for name in ("q", "k", "u"))
    scores = net.add(ops.BatchMatMul(transpose_y=True), query, key)
    net.output("e", net.add(ops.BatchMatMul(), net.add(ops.Softmax(), scores), value))
    return net


def test_every_pass_that_runs_by_default_has_an_effect_and_others_have_none() -> None:
    graph = everything().build()
    simple = after_passes(graph, OptimizerOptions())
    for name in BUILT_IN_PASSES:
        without = after_passes(graph, OptimizerOptions(passes={name: False}))
        runs = name not in ("move_conversions", "fold_batch_norm", "fall_back_to_float32")
        assert (described(without) != described(simple)) is runs, name


def described(graph: Graph) -> list[tuple[str, list[int | None]]]:
    """Each layer's operation, and the ids of what it reads."""
    return [
        (layer.operation.name, [None if value is None else value.id for value in layer.inputs])
        for layer in graph.layers
    ]


def test_a_pass_that_is_switched_off_does_not_run() -> None:
    net = Network()
    x = net.input("x", f32(2, 3))
    net.output("y", net.add(ops.Reshape((3, 2)), net.add(ops.Reshape((6,)), x)))
    graph = net.build()
    without = OptimizerOptions(passes={"merge_reshapes": False})
    assert len(after_passes(graph, OptimizerOptions()).layers) == 1
    assert after_passes(graph, without) is graph


def doubling(graph: Graph, context: PassContext) -> Graph:
    """A pass of an application's: every clamp is done twice."""
    rewriter = Rewriter(graph)
    for layer in graph.layers:
        clamp = rewriter.keep(layer)
        if layer.operation == RELU:
            again = rewriter.insert(RELU, [clamp.output], f"{layer.name}/again", origins=[layer])
            rewriter.alias(layer.output, again.output)
    return rewriter.finish()


def clamps(length: int = 1) -> Network:
    net = Network()
    value = net.input("x", f32(4))
    for index in range(length):
        value = net.add(RELU, value, name=f"clamp_{index}")
    net.output("y", value)
    return net


def test_applications_passes_run_in_their_order_after_the_built_in_ones() -> None:
    order = []

    def recorded(name: str) -> OptimizerPass:
        def one(graph: Graph, context: PassContext) -> Graph:
            order.append((name, len(graph.layers)))
            return doubling(graph, context)

        return one

    passes = {"b": recorded("b"), "a": recorded("a")}
    simple = after_passes(clamps().build(), OptimizerOptions(passes=passes))
    assert order == [("b", 1), ("a", 2)]
    assert [layer.origins for layer in simple.layers] == [(), ("clamp_0",)] + [("clamp_0",)] * 2


def test_a_pass_of_a_built_in_name_takes_its_place() -> None:
    options = OptimizerOptions(passes={"merge_reshapes": doubling})
    assert names(after_passes(clamps().build(), options)) == ["Activation"] * 2


def renamed(graph: Graph, context: PassContext) -> Graph:
    return replace(graph, output_names=("other",))


def unordered(graph: Graph, context: PassContext) -> Graph:
    return replace(graph, layers=graph.layers[::-1])


def nothing(graph: Graph, context: PassContext) -> Graph:
    return None  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("mistake", "text"),
    [
        (renamed, "pass 'mine': the pass has changed the graph's outputs"),
        (unordered, "pass 'mine' / Activation 'clamp_1': input 0 is read before it is written"),
        (nothing, "pass 'mine': the pass has made no graph"),
    ],
)
def test_errors_of_a_pass_name_it(mistake: OptimizerPass, text: str) -> None:
    with pytest.raises(GraphValidationError, match=text.replace("'", ".")):
        after_passes(clamps(2).build(), OptimizerOptions(passes={"mine": mistake}))


def test_what_a_pass_raises_is_the_applications_own() -> None:
    def failing(graph: Graph, context: PassContext) -> Graph:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        run(clamps(), {"x": floats(0, 0, 0, 0)}, options=OptimizerOptions(passes={"f": failing}))


def test_unknown_names_and_what_is_no_pass_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="there is no pass 'fold_pads' to be switched"):
        OptimizerOptions(passes={"fold_pads": True})
    with pytest.raises(InvalidArgumentError, match="a pass cannot be called"):
        OptimizerOptions(passes={"mine": 3})  # type: ignore[dict-item]
