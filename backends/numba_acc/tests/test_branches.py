"""If layers whose graphs are all NumbaAcc's run inside its program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy import Model, Network, Runtime, RuntimeOptions
from armpy.errors import LayerValidationError
from armpy.graph import Graph
from armpy.ops import (
    BinaryOperation,
    Comparison,
    ComparisonOperation,
    ElementwiseBinary,
    If,
    ReverseSequence,
    While,
)
from armpy.ops.operation import Array
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType

ADD = ElementwiseBinary(BinaryOperation.ADD)
SUB = ElementwiseBinary(BinaryOperation.SUB)
LESS = Comparison(ComparisonOperation.LESS)
FLAG = TensorInfo((1,), DataType.BOOLEAN)
NUMBER = TensorInfo((), DataType.SIGNED32)
VECTOR = TensorInfo((1, 5), DataType.FLOAT32)
BYTES = TensorInfo((1, 5), DataType.QASYMM_S8, Quantization.per_tensor(0.1, 3))
LONG = TensorInfo((256, 1024), DataType.FLOAT32)
FLAGS = [np.array([True]), np.array([False])]


def added(info: TensorInfo) -> Graph:
    """The sum of two values, the second one, and that sum again."""
    net = Network()
    x, y = net.input("x", info), net.input("y", info)
    total = net.add(ADD, x, y)
    for index, value in enumerate((total, y, total)):
        net.output(f"out{index}", value)
    return net.build()


def subtracted(info: TensorInfo) -> Graph:
    """The difference of two values less the first one, a constant, and the first one."""
    net = Network()
    x, y = net.input("x", info), net.input("y", info)
    numbers = np.arange(np.prod(info.known_shape)).reshape(info.known_shape) % 7
    constant = net.constant(
        numbers.astype(info.data_type.dtype),
        data_type=info.data_type,
        quantization=info.quantization,
    )
    less = net.add(SUB, net.add(SUB, x, y), x)
    for index, value in enumerate((less, constant, x)):
        net.output(f"out{index}", value)
    return net.build()


def choice_between(info: TensorInfo, *, continues: bool) -> Graph:
    """An If of both graphs, whose outputs the network gives, or sums with its input."""
    net = Network()
    flag, x, y = net.input("flag", FLAG), net.input("x", info), net.input("y", info)
    first = net.add(ADD, x, y) if continues else x
    choice = If(added(info), subtracted(info))
    for index, value in enumerate(net.add_layer(choice, (flag, first, y)).outputs):
        net.output(f"out{index}", net.add(ADD, value, x) if continues else value)
    return net.build()


def results_of(graph: Graph, backend: str, inputs: list[Array], threads: int = 1) -> list[Array]:
    """Outputs of a network that one backend runs alone, computed twice."""
    options = RuntimeOptions(backends=[backend], num_threads=threads)
    with Model(graph, Runtime(options)) as model:
        if backend == "NumbaAcc":
            assert model.placement is not None
            assert set(model.placement.layers_by_backend) == {"NumbaAcc"}
        model(*inputs)
        outputs = model(*inputs)
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


def assert_equal_to_reference(graph: Graph, *inputs: Array, threads: int = 1) -> None:
    """Check that NumbaAcc, alone, gives CpuRef's elements."""
    values = list(inputs)
    actual = results_of(graph, "NumbaAcc", values, threads)
    for output, expected in zip(actual, results_of(graph, "CpuRef", values), strict=True):
        assert output.dtype == expected.dtype
        np.testing.assert_array_equal(output, expected)


def random_elements(info: TensorInfo, seed: int) -> Array:
    """Elements of a tensor, as it stores them."""
    numbers = np.random.default_rng(seed).integers(-90, 90, info.known_shape)
    return numbers.astype(info.data_type.dtype)


@pytest.mark.parametrize("continues", [False, True])
@pytest.mark.parametrize("info", [VECTOR, BYTES, LONG], ids=str)
@pytest.mark.parametrize("flag", FLAGS, ids=["then", "else"])
def test_the_graph_that_the_condition_selects_runs(
    flag: Array, info: TensorInfo, continues: bool
) -> None:
    graph = choice_between(info, continues=continues)
    inputs = random_elements(info, 1), random_elements(info, 2)
    assert_equal_to_reference(graph, flag, *inputs, threads=2 if info is LONG else 1)


@pytest.mark.parametrize("start", [0, 3, 8])
def test_a_loop_chooses_in_each_turn(start: int) -> None:
    """``while i < 8: x, y = (x + y, y) if i < 4 else (x - y - x, constant)``."""

    def below(limit: int) -> Graph:
        net = Network()
        number, *_ = (
            net.input(f"in{index}", each) for index, each in enumerate((NUMBER, VECTOR, VECTOR))
        )
        net.output("goes_on", net.add(LESS, number, net.constant(np.array(limit, np.int32))))
        return net.build()

    body = Network()
    number, x, y = (
        body.input(f"in{index}", each) for index, each in enumerate((NUMBER, VECTOR, VECTOR))
    )
    is_early = body.add(LESS, number, body.constant(np.array(4, np.int32)))
    chosen = body.add_layer(If(added(VECTOR), subtracted(VECTOR)), (is_early, x, y)).outputs
    body.output("next", body.add(ADD, number, body.constant(np.array(1, np.int32))))
    body.output("x", chosen[0])
    body.output("y", chosen[1])
    net = Network()
    inputs = [net.input(f"in{index}", each) for index, each in enumerate((NUMBER, VECTOR, VECTOR))]
    for index, value in enumerate(net.add_layer(While(below(8), body.build()), inputs).outputs):
        net.output(f"out{index}", value)
    values = random_elements(VECTOR, 1), random_elements(VECTOR, 2)
    assert_equal_to_reference(net.build(), np.array(start, np.int32), *values)


def test_of_a_constant_condition_one_graph_is_compiled() -> None:
    """The other one may have layers that NumbaAcc has no kernel for."""
    then, unsupported = Network(), Network()
    then.output("out0", then.input("x", VECTOR))
    value = unsupported.input("x", VECTOR)
    lengths = unsupported.constant(np.array([3], np.int32))
    unsupported.output("out0", unsupported.add(ReverseSequence(1, 0), value, lengths))
    body = Network()
    number, vector = body.input("n", NUMBER), body.input("x", VECTOR)
    is_true = body.constant(np.array([True]))
    (kept,) = body.add_layer(If(then.build(), unsupported.build()), (is_true, vector)).outputs
    body.output("next", body.add(ADD, number, body.constant(np.array(1, np.int32))))
    body.output("x", body.add(ADD, kept, kept))
    condition = Network()
    count, _ = condition.input("n", NUMBER), condition.input("x", VECTOR)
    condition.output("on", condition.add(LESS, count, condition.constant(np.array(3, np.int32))))
    net = Network()
    start, first = net.input("n", NUMBER), net.input("x", VECTOR)
    loop = While(condition.build(), body.build())
    net.output("out", net.add_layer(loop, (start, first)).outputs[1])
    assert_equal_to_reference(net.build(), np.array(0, np.int32), random_elements(VECTOR, 1))


def test_graphs_of_different_shapes_are_left_to_the_core() -> None:
    def cut(rows: int) -> Graph:
        net = Network()
        net.input("x", VECTOR)
        net.output("out0", net.constant(np.zeros((rows, 5), np.float32)))
        return net.build()

    net = Network()
    flag, x = net.input("flag", FLAG), net.input("x", VECTOR)
    net.output("out0", net.add_layer(If(cut(2), cut(3)), (flag, x)).outputs[0])
    graph = net.build()
    with Model(graph, Runtime(RuntimeOptions(backends=["NumbaAcc", "CpuRef"]))) as model:
        shapes = [np.asarray(model(flag, random_elements(VECTOR, 1))).shape for flag in FLAGS]
    assert shapes == [(2, 5), (3, 5)]


def test_a_branch_that_does_not_fit_the_shapes_is_an_error_of_the_program(tmp_path: Path) -> None:
    def with_three(*, fits: bool) -> Graph:
        net = Network()
        x = net.input("x", TensorInfo((1, None), DataType.FLOAT32))
        other = net.constant(np.ones((1, 5 if fits else 3), np.float32))
        net.output("out0", net.add(ADD, x, other, name="sum"))
        return net.build()

    for fitting in (0, 1):
        net = Network()
        flag, x = net.input("flag", FLAG), net.input("x", VECTOR)
        choice = If(with_three(fits=fitting == 0), with_three(fits=fitting == 1))
        net.output("out0", net.add(choice, flag, x, name="choice"))
        graph, values = net.build(), random_elements(VECTOR, 1)
        assert_equal_to_reference(graph, FLAGS[fitting], values)
        path = tmp_path / f"{fitting}.armpy"
        with Model(graph, Runtime(RuntimeOptions(backends=["NumbaAcc"]))) as model:
            model.save(path)
        with armpy.load(path) as light, armpy.load(path, code="never") as whole:
            for model in (light, light, whole):
                with pytest.raises(LayerValidationError, match=r"cannot run.*'sum': .*\(1, 3\)"):
                    model(FLAGS[1 - fitting], values)
                np.testing.assert_array_equal(model(FLAGS[fitting], values), values + 1)
