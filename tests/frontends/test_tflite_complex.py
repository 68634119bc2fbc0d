"""Complex numbers in .tflite files: pairs at the edges, and no bits are read as integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import armpy
from armpy.errors import ParserError
from armpy.types import DataType
from armpy_testing.models.tflite_writer import Subgraph, Tensor, TfliteModel, model_with_input
from tests.support.tflite_files import network_of


def model_of(
    build: Callable[[Subgraph, Tensor], Tensor], kind: str = "COMPLEX64", **more: Any
) -> bytes:
    """A model of one input (2, 3) and what is built on it."""
    model, graph, x = model_with_input((2, 3), kind, **more)
    y = build(graph, x)
    graph.outputs(y)
    return model.to_bytes()


def applied(operator: str, kind: str = "COMPLEX64") -> Callable[[Subgraph, Tensor], Tensor]:
    def build(graph: Subgraph, x: Tensor) -> Tensor:
        y = graph.tensor("y", (2, 3), kind)
        graph.operator(operator, [x] if operator in ("REAL", "NEG", "CAST") else [x, x], [y])
        return y

    return build


def test_inputs_and_outputs_are_pairs_of_floats() -> None:
    def build(graph: Subgraph, x: Tensor) -> Tensor:
        y = graph.tensor("y", (3, 2), "COMPLEX64")
        graph.operator("TRANSPOSE", [x, graph.tensor("p", (2,), "INT32", data=[1, 0])], [y])
        return y

    pairs = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    with armpy.load(model_of(build), backends=["CpuRef"]) as model:
        edges = [(info.shape, info.data_type) for info in (*model.inputs, *model.outputs)]
        assert edges == [((2, 3, 2), DataType.FLOAT32), ((3, 2, 2), DataType.FLOAT32)]
        np.testing.assert_array_equal(model(pairs), pairs.transpose(1, 0, 2))


def test_open_dimensions_of_complex_inputs_have_the_files_default() -> None:
    file = model_of(applied("MUL"), shape_signature=(-1, 3))
    with armpy.load(file, backends=["CpuRef"]) as model:
        assert model.inputs[0].shape == (None, 3, 2)
        output = model(np.ones((5, 3, 2), np.float32))
    np.testing.assert_array_equal(output, np.full((5, 3, 2), (0, 2)))  # (1 + i)**2 is 2i


@pytest.mark.parametrize("operator", ["ADD", "NEG", "EQUAL", "MAXIMUM", "REAL"])
def test_operators_that_would_read_bits_as_integers_are_refused(operator: str) -> None:
    with pytest.raises(ParserError, match=f"{operator}: .* does not take complex numbers"):
        network_of(model_of(applied(operator)))


def test_infinities_get_an_imaginary_part_of_0() -> None:
    def build(graph: Subgraph, x: Tensor) -> Tensor:
        y = graph.tensor("y", (2, 3), "COMPLEX64")
        graph.operator("CAST", [x], [y], {})
        return y

    with armpy.load(model_of(build, "FLOAT32"), backends=["CpuRef"]) as model:
        output = model(np.array([[1, np.inf, np.nan]] * 2, np.float32))
    np.testing.assert_array_equal(output, [[(1, 0), (np.inf, 0), (np.nan, 0)]] * 2)


def test_integers_are_no_complex_numbers() -> None:
    with pytest.raises(ParserError, match="does not take complex numbers there"):
        network_of(model_of(applied("MUL"), "UINT64"))
    with pytest.raises(ParserError, match=r"takes complex numbers\. Expected COMPLEX64; got SI"):
        network_of(model_of(applied("REAL", "INT8"), "INT8"))


def test_variables_of_complex_numbers_are_refused() -> None:
    model = TfliteModel()
    graph = model.subgraph()
    x = graph.tensor("x", (2, 3), "COMPLEX64", variable=True)
    graph.outputs(applied("MUL")(graph, x))
    with pytest.raises(ParserError, match="variables of complex numbers are not supported"):
        network_of(model)


@pytest.mark.parametrize("lengths", [(0, 8), (-1, 8), (8,), (1, 2, 4)])
def test_lengths_of_transforms_that_cannot_be_used_are_refused(lengths: tuple[int, ...]) -> None:
    def build(graph: Subgraph, x: Tensor) -> Tensor:
        y = graph.tensor("y", (1,), "COMPLEX64")
        size = graph.tensor("size", (len(lengths),), "INT32", data=lengths)
        graph.operator("RFFT2D", [x, size], [y])
        return y

    with pytest.raises(ParserError, match="lengths are not two positive numbers"):
        network_of(model_of(build, "FLOAT32"))


@pytest.mark.parametrize("lengths", [(3, 6), (5, 7), (1, 2)])
def test_transforms_are_not_of_powers_of_two_alone(lengths: tuple[int, int]) -> None:
    def build(graph: Subgraph, x: Tensor) -> Tensor:
        y = graph.tensor("y", (1,), "COMPLEX64")
        graph.operator("RFFT2D", [x, graph.tensor("n", (2,), "INT32", data=lengths)], [y])
        return y

    values = np.random.default_rng(1).normal(size=(2, 3)).astype(np.float32)
    with armpy.load(model_of(build, "FLOAT32"), backends=["CpuRef"]) as model:
        output = np.asarray(model(values))
    expected = np.fft.rfft2(values, lengths)
    np.testing.assert_allclose(output[..., 0] + 1j * output[..., 1], expected, atol=1e-5)
