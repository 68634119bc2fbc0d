"""Attention that reads and writes heads where they lie in other tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pytest
from armpy_numba_acc.passes.region import lower_region

from armpy import DataType, Network, TensorInfo, ops
from armpy.graph import SubgraphView, Value

from .support import ISAS, check_against_reference, random_array

TOKENS, HEADS, SIZE = 5, 3, 4
WIDTH = HEADS * SIZE
TURN = ops.Transpose((0, 2, 1, 3))
NEGATE = ops.ElementwiseUnary(ops.UnaryOperation.NEG)

Parts: TypeAlias = Callable[[Network, Value], list[Value]]


def gathered(net: Network, x: Value) -> list[Value]:
    """Queries, keys and values as PyTorch takes them from one product."""
    split = net.add(ops.Reshape((2, TOKENS, 3, HEADS, SIZE)), x)
    turned = net.add(ops.Transpose((2, 0, 3, 1, 4)), split)
    indices = (net.constant(np.array(index, np.int32)) for index in range(3))
    return [net.add(ops.Gather(), turned, index) for index in indices]


def split(net: Network, x: Value) -> list[Value]:
    """The same parts one after the other along the last axis."""
    layer = net.add_layer(ops.Splitter(3, axis=-1), [x])
    return [headed(net, part) for part in layer.outputs]


def sliced(net: Network, x: Value) -> list[Value]:
    size = (2, TOKENS, WIDTH)
    return [headed(net, net.add(ops.Slice((0, 0, at), size), x)) for at in (0, WIDTH, 2 * WIDTH)]


def headed(net: Network, x: Value) -> Value:
    return net.add(TURN, net.add(ops.Reshape((2, TOKENS, HEADS, SIZE)), x))


def joined(net: Network, x: Value) -> Value:
    return net.add(ops.Reshape((2, TOKENS, WIDTH)), net.add(TURN, x))


def mixed(net: Network) -> Value:
    return net.input("x", TensorInfo((2, TOKENS, 3 * WIDTH), DataType.FLOAT32))


def commands(net: Network) -> list[str]:
    """Operations that a network's program has commands for; it agrees with CpuRef."""
    graph = net.build()
    inputs = {value.name: random_array(value.info) for value in graph.inputs}
    check_against_reference(net, inputs, ISAS[0])
    program = lower_region(SubgraphView.of(graph, graph.layers), ISAS[0])
    return [info.operation for info in program.infos]


@pytest.mark.parametrize("parts", [gathered, split, sliced])
def test_heads_of_one_product_are_not_moved(parts: Parts) -> None:
    net = Network()
    query, key, value = parts(net, mixed(net))
    net.output("y", joined(net, net.add(ops.Attention(), query, key, value)))
    assert commands(net) == ["Attention"]


def test_heads_of_several_products_are_not_moved() -> None:
    net = Network()
    products = [net.input(name, TensorInfo((2, TOKENS, WIDTH), DataType.FLOAT32)) for name in "qkv"]
    heads = [headed(net, net.add(NEGATE, product)) for product in products]
    wide = net.add(NEGATE, joined(net, net.add(ops.Attention(), *heads)))
    net.output("y", wide)
    assert commands(net) == ["ElementwiseUnary"] * 3 + ["Attention", "ElementwiseUnary"]


def test_what_others_read_too_is_moved_for_them() -> None:
    net = Network()
    query, key, value = gathered(net, mixed(net))
    output = net.add(ops.Attention(), query, key, value)
    net.output("heads", output)
    net.output("y", joined(net, output))
    net.output("keys", net.add(NEGATE, key))
    assert commands(net) == [
        *("Transpose", "Attention", "Transpose", "Reshape", "ElementwiseUnary")
    ]


def test_elements_that_lie_apart_are_moved() -> None:
    net = Network()
    query = headed(net, net.input("x", TensorInfo((2, TOKENS, WIDTH), DataType.FLOAT32)))
    key = net.input("k", TensorInfo((2, HEADS, SIZE, TOKENS), DataType.FLOAT32))
    turned = net.add(ops.Transpose((0, 1, 3, 2)), net.add(ops.ReverseV2((3,)), key))
    output = net.add(ops.Attention(), query, turned, query)
    net.output("y", net.add(ops.Transpose((0, 1, 3, 2)), output))
    assert commands(net) == ["ReverseV2", "Transpose", "Attention", "Transpose"]


def test_one_tensor_may_be_query_key_and_value() -> None:
    net = Network()
    heads = headed(net, net.input("x", TensorInfo((2, TOKENS, WIDTH), DataType.FLOAT32)))
    net.output("y", joined(net, net.add(ops.Attention(), heads, heads, heads)))
    assert commands(net) == ["Attention"]


@pytest.mark.slow
def test_a_mask_is_moved() -> None:
    net = Network()
    heads = gathered(net, mixed(net))
    mask = net.input("mask", TensorInfo((TOKENS, TOKENS), DataType.FLOAT32))
    turned = net.add(ops.Transpose((1, 0)), mask)
    net.output("y", net.add(ops.Attention(), *heads, turned))
    assert commands(net) == ["Transpose", "Attention", "Attention"]


@pytest.mark.parametrize("num_heads", [HEADS, 2])
def test_attention_reads_what_other_attention_has_written(num_heads: int) -> None:
    net = Network()
    heads = headed(net, net.input("x", TensorInfo((2, TOKENS, WIDTH), DataType.FLOAT32)))
    between = joined(net, net.add(ops.Attention(), heads, heads, heads))
    shape = (2, TOKENS, num_heads, WIDTH // num_heads)
    heads = net.add(TURN, net.add(ops.Reshape(shape), between))
    net.output("y", joined(net, net.add(ops.Attention(), heads, heads, heads)))
    assert commands(net) == ["Attention", "Attention"]
