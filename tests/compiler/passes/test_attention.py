"""Attention that files have written out as products and a softmax."""

from __future__ import annotations

import numpy as np
import pytest

from armpy import Network, ops
from armpy.graph import Graph, Layer, Value
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_testing.backends.fake_backends import FakeBackend
from armpy_testing.models.networks import ADD, MUL, f32
from tests.support.passes import after_pass, names, random_inputs, run

DIV = ops.ElementwiseBinary(ops.BinaryOperation.DIV)
DIFFERENT = ops.Comparison(ops.ComparisonOperation.NOT_EQUAL)
PRODUCT, SWAPPED = ops.BatchMatMul(), ops.BatchMatMul(transpose_y=True)
QUERIES, KEYS = 4, 6
LOWEST = float(np.finfo(np.float32).min)


def inputs_of(net: Network, *batches: int) -> tuple[Value, Value, Value]:
    query = net.input("q", f32(*batches, QUERIES, 8))
    return query, net.input("k", f32(*batches, KEYS, 8)), net.input("v", f32(*batches, KEYS, 5))


def scores_of(net: Network, factor: float = 0.25) -> tuple[Value, Value]:
    """Scaled scores, and values."""
    query, key, value = inputs_of(net, 2, 3)
    return net.add(MUL, net.add(SWAPPED, query, key), scalar(net, factor)), value


def scalar(net: Network, number: float) -> Value:
    return net.constant(np.array(number, np.float32))


def finish(net: Network, scores: Value, value: Value) -> Network:
    net.output("y", net.add(PRODUCT, net.add(ops.Softmax(), scores), value))
    return net


def joined(net: Network) -> Graph:
    """A network after the pass, which must agree with what it was."""
    graph = net.build()
    result = after_pass("join_attention", graph)
    inputs = random_inputs(graph)
    expected = run(graph, inputs)
    for name, got in run(result, inputs).items():
        np.testing.assert_allclose(got, expected[name], 1e-5, 1e-5, err_msg=name)
    return result


def attention(graph: Graph) -> tuple[Layer, ops.Attention]:
    """The only attention of a graph."""
    (layer,) = (
        candidate for candidate in graph.layers if isinstance(candidate.operation, ops.Attention)
    )
    assert isinstance(layer.operation, ops.Attention)
    return layer, layer.operation


def causal(number: float, past: int = KEYS - QUERIES) -> Array:
    sees = np.arange(KEYS) <= past + np.arange(QUERIES)[:, None]
    return np.where(sees, 0, number).astype(np.float32)


def test_products_around_a_softmax_are_attention() -> None:
    net = Network()
    graph = joined(finish(net, *scores_of(net)))
    assert names(graph) == ["Attention"]
    assert attention(graph)[1].scale == 0.25
    assert attention(graph)[1].scales_products


def test_scales_of_queries_and_keys_are_one() -> None:
    net = Network()
    query, key, value = inputs_of(net, 2, 3)
    swapped = net.add(ops.Transpose((0, 1, 3, 2)), key)
    halves = net.add(DIV, query, scalar(net, 2)), net.add(MUL, swapped, scalar(net, 0.25))
    layer, operation = attention(joined(finish(net, net.add(PRODUCT, *halves), value)))
    assert operation.scale == 0.125
    assert not operation.scales_products
    assert layer.inputs[0] is query


def test_scales_stay_on_their_side_of_the_product() -> None:
    """Moved across, a factor changes which products overflow."""
    net = Network()
    query, key, value = inputs_of(net, 2, 3)
    product = net.add(SWAPPED, net.add(MUL, query, scalar(net, 0.5)), key)
    graph = joined(finish(net, net.add(MUL, product, scalar(net, 0.25)), value))
    _, operation = attention(graph)
    assert (operation.scale, operation.scales_products) == (0.25, True)
    assert names(graph) == ["ElementwiseBinary", "Attention"]


def test_a_factor_above_1_stays_with_its_operand() -> None:
    """Times 4, keys overflow that queries do not."""
    net = Network()
    query, key, value = inputs_of(net, 2, 3)
    product = net.add(SWAPPED, query, net.add(MUL, key, scalar(net, 4.0)))
    graph = joined(finish(net, product, value))
    assert attention(graph)[1].scale == 1
    assert names(graph) == ["ElementwiseBinary", "Attention"]


def test_batches_of_three_axes_are_heads() -> None:
    net = Network()
    query, key, value = inputs_of(net, 6)
    layer, operation = attention(joined(finish(net, net.add(SWAPPED, query, key), value)))
    assert operation.scale == 1
    assert layer.output.info.shape == (1, 6, QUERIES, 5)


def test_a_tensor_that_is_added_is_the_mask() -> None:
    net = Network()
    scores, value = scores_of(net)
    mask = net.input("mask", f32(2, 1, 1, KEYS))
    layer, _ = attention(joined(finish(net, net.add(ADD, mask, scores), value)))
    assert layer.inputs[3] is mask


@pytest.mark.parametrize("hides", [False, True])
def test_scores_that_a_condition_replaces_are_masked(hides: bool) -> None:
    net = Network()
    scores, value = scores_of(net)
    weight = net.input("w", f32(2, 1, QUERIES, KEYS))
    condition = net.add(ops.Comparison(ops.ComparisonOperation.GREATER), weight, scalar(net, 0.0))
    sides = (scalar(net, LOWEST), scores) if hides else (scores, scalar(net, LOWEST))
    both = net.add(ADD, net.add(ops.Select(), condition, *sides), weight)
    layer, operation = attention(joined(finish(net, both, value)))
    assert layer.inputs[3] is not None
    assert not operation.is_causal


@pytest.mark.parametrize("number", [-1e9, -1e4, -5.0, 0.0, 9.0, np.nan])
def test_scores_that_are_replaced_by_what_does_not_swallow_them_stay(number: float) -> None:
    for hides in (False, True):
        net = Network()
        scores, value = scores_of(net)
        condition = net.input("c", TensorInfo((2, 1, 1, KEYS), DataType.BOOLEAN))
        sides = (scalar(net, number), scores) if hides else (scores, scalar(net, number))
        graph = finish(net, net.add(ops.Select(), condition, *sides), value).build()
        assert after_pass("join_attention", graph) is graph


def test_a_row_that_is_replaced_by_zeros_is_seen_as_ever() -> None:
    net = Network()
    scores, value = scores_of(net)
    seen = net.constant(causal(1) == 0)
    net = finish(net, net.add(ops.Select(), seen, scores, scalar(net, 0.0)), value)
    assert "Attention" not in names(joined(net))


def test_a_finite_number_in_the_place_of_masked_scores_takes_the_mask_with_it() -> None:
    net = Network()
    scores, value = scores_of(net)
    masked = net.add(ADD, scores, net.input("mask", f32(2, 1, 1, KEYS)))
    condition = net.input("c", TensorInfo((2, 1, 1, KEYS), DataType.BOOLEAN))
    graph = finish(
        net, net.add(ops.Select(), condition, masked, scalar(net, LOWEST)), value
    ).build()
    assert after_pass("join_attention", graph) is graph


@pytest.mark.parametrize("ones", [(), (1, 1)], ids=["matrix", "per batch and head"])
@pytest.mark.parametrize("number", [-np.inf, np.finfo(np.float32).min, -1e9])
def test_a_constant_mask_of_what_comes_later_is_an_attribute(
    number: float, ones: tuple[int, ...]
) -> None:
    net = Network()
    scores, value = scores_of(net)
    mask = net.constant(causal(number).reshape(*ones, QUERIES, KEYS))
    graph = joined(finish(net, net.add(ADD, scores, mask), value))
    layer, operation = attention(graph)
    assert (operation.is_causal, operation.num_past) == (True, KEYS - QUERIES)
    assert len(layer.inputs) == 3


def test_a_constant_condition_beside_a_mask_is_an_attribute_if_it_hides_for_sure() -> None:
    for number, expected in ((-np.inf, True), (LOWEST, False)):
        net = Network()
        scores, value = scores_of(net)
        hidden = net.constant(causal(1) != 0)
        seen = net.add(ops.Select(), hidden, scalar(net, number), scores)
        mask = net.input("mask", f32(2, 1, 1, KEYS))
        graph = joined(finish(net, net.add(ADD, seen, mask), value))
        assert attention(graph)[1].is_causal is expected


def test_other_constant_masks_stay_masks() -> None:
    mask = causal(-np.inf)
    mask[1, 0] = -np.inf
    for elements in (mask, causal(-3.0), causal(-np.inf, past=-1)[1:2]):
        net = Network()
        scores, value = scores_of(net)
        total = net.add(ADD, scores, net.constant(elements))
        layer, operation = attention(joined(finish(net, total, value)))
        assert not operation.is_causal
        assert layer.inputs[3] is not None


def test_what_puts_0_in_the_place_of_nan_is_not_needed() -> None:
    net = Network()
    scores, value = scores_of(net)
    hidden = net.constant(np.array([[0], [0], [-np.inf], [0]], np.float32))
    weights = net.add(ops.Softmax(), net.add(ADD, scores, hidden))
    spared = net.add(ops.Select(), net.add(DIFFERENT, weights, weights), scalar(net, 0), weights)
    net.output("y", net.add(PRODUCT, spared, value))
    assert names(joined(net)) == ["Attention"]


@pytest.mark.parametrize("what", ["scaled mask", "axis", "beta", "negative", "read", "heads"])
def test_what_is_no_attention_stays(what: str) -> None:
    net = Network()
    scores, value = scores_of(net, -0.5 if what == "negative" else 0.5)
    softmax = ops.Softmax()
    if what == "scaled mask":
        mask = net.input("mask", f32(QUERIES, KEYS))
        scores = net.add(MUL, net.add(ADD, scores, mask), scalar(net, 2))
    elif what == "axis":
        softmax = ops.Softmax(axis=-2)
    elif what == "beta":
        softmax = ops.Softmax(beta=2.0)
    elif what == "heads":
        value = net.input("more", f32(1, 3, KEYS, 5))
    weights = net.add(softmax, scores)
    net.output("y", net.add(PRODUCT, weights, value))
    if what == "read":
        net.output("weights", weights)
    graph = net.build()
    assert after_pass("join_attention", graph) is graph


def test_attention_moves_to_no_less_preferred_backend() -> None:
    net = Network()
    graph = finish(net, *scores_of(net)).build()
    operations = [ops.BatchMatMul, ops.ElementwiseBinary, ops.Softmax]
    backend = FakeBackend("Only", operations=operations)
    assert after_pass("join_attention", graph, backend) is graph
