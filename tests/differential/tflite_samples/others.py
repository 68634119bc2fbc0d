"""Samples of operators that make random numbers, transform, search boxes, or run subgraphs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from armpy_testing.models.tflite_writer import OptionValue, TfliteModel
from tests.differential.tflite_samples.making import EVERY, Draw, Family, One, Whole, ints


def _random(operator: str, draw: Draw) -> Iterator[One]:
    for seeds in ((0, 0), (7, 11)):
        options: dict[str, OptionValue] = {"seed": seeds[0], "seed2": seeds[1]}
        yield One([ints(3, 5)], [draw.out()], options, is_random=seeds == (0, 0))


def _multinomial(operator: str, draw: Draw) -> Iterator[One]:
    for kind, seed in (("INT32", 3), ("INT64", -(2**40))):
        options: dict[str, OptionValue] = {"seed": seed, "seed2": 5}
        yield One([draw(2, 4), ints(6, shape=())], [draw.out(kind)], options)


def _rfft(operator: str, draw: Draw) -> Iterator[Whole]:
    """The transform and what reads it: magnitudes, real and imaginary parts."""
    for after in ("COMPLEX_ABS", "REAL", "IMAG"):
        for shape, size in (((2, 8), (1, 8)), ((1, 4, 8), (4, 8)), ((1, 2, 5), (1, 8))):
            model = TfliteModel()
            graph = model.subgraph()
            values = draw(*shape, kind="FLOAT32").values
            assert values is not None
            source = graph.tensor("x", shape)
            length = graph.tensor("size", (2,), "INT32", data=size)
            between = graph.tensor("spectrum", (1,), "COMPLEX64")
            target = graph.tensor("y", (1,))
            graph.operator("RFFT2D", [source, length], [between], {})
            graph.operator(after, [between], [target])
            graph.inputs(source)
            graph.outputs(target)
            yield Whole(model.to_bytes(), [values])


def _complex(operator: str, draw: Draw) -> Iterator[One]:
    yield One([draw(2, 3)], [draw.out("FLOAT32")])


def _suppression(operator: str, draw: Draw) -> Iterator[One]:
    corners = draw(12, 2, kind="FLOAT32", low=0, high=4).values
    sizes = draw(12, 2, kind="FLOAT32", low=1, high=3).values
    assert corners is not None
    assert sizes is not None
    boxes = replace(draw(12, 4), values=np.concatenate([corners, corners + sizes], axis=1))
    scores = draw(12, low=0, high=1)
    for limit, overlap, least in ((12, 0.3, 0.1), (3, 0.5, 0.0), (5, 0.7, 0.8)):
        numbers = [
            replace(draw(), values=np.array(n, np.float32), is_constant=True)
            for n in (overlap, least)
        ]
        args = [boxes, scores, ints(limit, shape=()), *numbers]
        if operator.endswith("V4"):
            yield One(args, [draw.out("INT32"), draw.out("INT32")], {})
            continue
        for sigma in (0.0, 0.5):
            soft = replace(draw(), values=np.array(sigma, np.float32), is_constant=True)
            outs = [draw.out("INT32"), draw.out(), draw.out("INT32")]
            yield One([*args, soft], outs, {})


def _pad(operator: str, draw: Draw) -> Iterator[One]:
    for low, high, inside in (([1, 0], [0, 2], [0, 0]), ([0, -1], [1, -1], [1, 2])):
        options: dict[str, OptionValue] = {
            "edge_padding_low": np.array(low, np.int64),
            "edge_padding_high": np.array(high, np.int64),
            "interior_padding": np.array(inside, np.int64),
        }
        yield One([draw(3, 4), draw()], [draw.out()], options)


def _local_response(operator: str, draw: Draw) -> Iterator[One]:
    for radius, bias, alpha, beta in ((2, 1.0, 0.5, 0.75), (1, 2.0, 0.1, 0.5), (9, 1.0, 1.0, 1.0)):
        options: dict[str, OptionValue] = {
            "radius": radius,
            "bias": bias,
            "alpha": alpha,
            "beta": beta,
        }
        yield One([draw(1, 2, 3, 6)], [draw.out()], options)


def _gather(operator: str, draw: Draw) -> Iterator[One]:
    options: dict[str, OptionValue] = {
        "offset_dims": np.array([2], np.int64),
        "collapsed_slice_dims": np.array([0], np.int64),
        "start_index_map": np.array([0, 1], np.int64),
        "index_vector_dim": 2,
        "slice_sizes": np.array([1, 2], np.int64),
    }
    places = ints(0, 1, 2, 2, 1, 0, 3, 9, shape=(2, 2, 2))
    result = replace(draw.out(), shape=(2, 2, 2))
    yield One([draw(4, 5), replace(places, is_constant=False)], [result], options)
    options = {
        "offset_dims": np.array([0, 2], np.int64),
        "collapsed_slice_dims": np.array([], np.int64),
        "start_index_map": np.array([1], np.int64),
        "index_vector_dim": 1,
        "slice_sizes": np.array([2, 3], np.int64),
    }
    places = ints(1, -4, 5, kind="INT64", shape=(3, 1))
    yield One([draw(2, 6), places], [replace(draw.out(), shape=(2, 3, 3))], options)


def _window_options(strides: tuple[int, ...]) -> dict[str, OptionValue]:
    """Options of a window of 2 by 2."""
    return {
        "window_dimensions": np.array([2, 2], np.int64),
        "window_strides": np.array(strides, np.int64),
        "base_dilations": np.array([1, 2], np.int64),
        "window_dilations": np.array([1, 1], np.int64),
        "padding": np.array([0, 1, 1, 0], np.int64),
        "body_subgraph_index": 1,
    }


def _reduce_window(operator: str, draw: Draw) -> Iterator[One]:
    functions = ("ADD", "MUL", "MINIMUM", "MAXIMUM")
    for function in functions if draw.kind != "BOOL" else ("MINIMUM", "ALL", "ANY"):
        sizes, strides, dilations = (ints(*n, kind="INT64") for n in ((2, 3), (1, 2), (2, 1)))
        args = [draw(5, 7, low=1, high=3), draw(low=1, high=2), sizes, strides, dilations]
        yield One(args, [draw.out()], {"reduce_function": function})


def _hlo_window(operator: str, draw: Draw) -> Iterator[Whole]:
    bodies = [f"STABLEHLO_{body}" for body in ("ADD", "MULTIPLY", "MAXIMUM", "MINIMUM")]
    for body in bodies if draw.kind != "BOOL" else ("LOGICAL_AND", "LOGICAL_OR"):
        yield _with_body(operator, draw, body)


def _with_body(operator: str, draw: Draw, body: str) -> Whole:
    """A reduction of windows whose function is a subgraph."""
    model = TfliteModel()
    graph, inner = model.subgraph(), model.subgraph("body")
    source, start = draw(5, 4, low=1, high=3), draw(low=1, high=2)
    x, s = source.write(graph, "x"), start.write(graph, "start")
    y = draw.out().write(graph, "y")
    graph.operator(operator, [x, s], [y], _window_options((2, 1)))
    graph.inputs(x, s)
    graph.outputs(y)
    a, b, c = (draw.out().write(inner, name) for name in "abc")
    inner.operator(body, [a, b], [c])
    inner.inputs(a, b)
    inner.outputs(c)
    assert source.values is not None
    assert start.values is not None
    return Whole(model.to_bytes(), [source.values, start.values])


def _hlo_scatter(operator: str, draw: Draw) -> Iterator[Whole]:
    for body in (
        "STABLEHLO_ADD",
        "STABLEHLO_MULTIPLY",
        "STABLEHLO_MAXIMUM",
        "STABLEHLO_MINIMUM",
        "",
    ):
        model = TfliteModel()
        graph, inner = model.subgraph(), model.subgraph("body")
        source, places, updates = draw(4, 5), ints(0, 2, 7, kind="INT32", shape=(3, 1)), draw(3, 5)
        x, u = source.write(graph, "x"), updates.write(graph, "updates")
        p, y = places.write(graph, "places"), draw.out().write(graph, "y")
        options: dict[str, OptionValue] = {
            "update_window_dims": np.array([1], np.int64),
            "inserted_window_dims": np.array([0], np.int64),
            "scatter_dims_to_operand_dims": np.array([0], np.int64),
            "index_vector_dim": 1,
            "update_computation_subgraph_index": 1,
        }
        graph.operator(operator, [x, p, u], [y], options)
        graph.inputs(x, u)
        graph.outputs(y)
        a, b, c = (draw.out().write(inner, name) for name in "abc")
        if body:
            inner.operator(body, [a, b], [c])
        inner.inputs(a, b)
        inner.outputs(c if body else b)
        assert source.values is not None
        assert updates.values is not None
        yield Whole(model.to_bytes(), [source.values, updates.values])


def _composite(operator: str, draw: Draw) -> Iterator[Whole]:
    model = TfliteModel()
    graph, inner = model.subgraph(), model.subgraph("decomposition")
    source = draw(2, 3)
    x, y = source.write(graph, "x"), replace(draw.out(), shape=(2, 3)).write(graph, "y")
    options: dict[str, OptionValue] = {
        "name": "test.twice",
        "decomposition_subgraph_index": 1,
        "composite_attributes": np.zeros(1, np.uint8),
    }
    graph.operator(operator, [x], [y], options, options_table="StableHLOCompositeOptions")
    graph.inputs(x)
    graph.outputs(y)
    a, b = (replace(draw.out(), shape=(2, 3)).write(inner, name) for name in "ab")
    inner.operator("ADD", [a, a], [b], {})
    inner.inputs(a)
    inner.outputs(b)
    assert source.values is not None
    yield Whole(model.to_bytes(), [source.values])


def _random_bits(operator: str, draw: Draw) -> Iterator[One]:
    for algorithm, size in (("THREEFRY", 2), ("PHILOX", 3), ("PHILOX", 2), ("DEFAULT", 3)):
        state = np.arange(1, size + 1, dtype=np.uint64) * np.uint64(0x123456789ABCDEF)
        source = replace(draw(size, kind="UINT64"), values=state)
        outs = [replace(draw.out("UINT64"), shape=(size,)), replace(draw.out(), shape=(3, 5))]
        yield One([source], outs, {"algorithm": algorithm})


FAMILY: Family = [
    (("RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL"), ("FLOAT32",), _random),
    (("MULTINOMIAL",), ("FLOAT32",), _multinomial),
    (("RFFT2D",), ("FLOAT32",), _rfft),
    (("COMPLEX_ABS", "REAL", "IMAG"), ("COMPLEX64",), _complex),
    (("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5"), ("FLOAT32",), _suppression),
    (("LOCAL_RESPONSE_NORMALIZATION",), ("FLOAT32",), _local_response),
    (("STABLEHLO_PAD",), EVERY, _pad),
    (("STABLEHLO_GATHER",), EVERY, _gather),
    (("REDUCE_WINDOW",), EVERY, _reduce_window),
    (("STABLEHLO_REDUCE_WINDOW",), EVERY, _hlo_window),
    (("STABLEHLO_SCATTER",), EVERY, _hlo_scatter),
    (("STABLEHLO_COMPOSITE",), ("FLOAT32", "INT32"), _composite),
    (
        ("STABLEHLO_RNG_BIT_GENERATOR",),
        ("INT32", "INT64", "UINT32", "UINT64"),
        _random_bits,
    ),
]
