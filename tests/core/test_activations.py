"""Activation functions of float32, against the mathematics library's float64."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from armpy.core.numerics import activations
from armpy.core.numerics.elementary import FAST, ROUNDED, ElementaryFunctions

POINTS = [-1e30, -88.0, -3.0, -1.0, -1e-4, 0.0, 1e-4, 0.5, 2.9, 3.0, 17.0, 1e30]

FUNCTIONS: list[tuple[Callable[..., np.ndarray], Callable[[float], float]]] = [
    (
        activations.sigmoid,
        lambda x: 0.0 if x < -700 else 1 / (1 + math.exp(-x)),
    ),
    (lambda x, f: activations.tanh(x, functions=f), math.tanh),
    (lambda x, f: activations.tanh(x, 1.5, 0.25, f), lambda x: 1.5 * math.tanh(0.25 * x)),
    (
        activations.soft_relu,
        lambda x: max(x, 0.0) + math.log1p(math.exp(-abs(x))),
    ),
    (lambda x, _: activations.leaky_relu(x, 0.25), lambda x: x if x > 0 else 0.25 * x),
    (lambda x, f: activations.elu(x, 2.0, f), lambda x: x if x > 0 else 2 * math.expm1(x)),
    (lambda x, _: activations.hard_swish(x), lambda x: x * (min(max(x + 3, 0), 6) / 6)),
    (lambda x, f: activations.gelu(x, functions=f), lambda x: x / 2 * math.erfc(-x / 2**0.5)),
]


@pytest.mark.parametrize("elementary", [FAST, ROUNDED])
@pytest.mark.parametrize("pair", FUNCTIONS, ids=range(len(FUNCTIONS)))
def test_activations_follow_their_definitions(
    pair: tuple[Callable[..., np.ndarray], Callable[[float], float]],
    elementary: ElementaryFunctions,
) -> None:
    function, definition = pair
    points = np.array(POINTS, np.float32)
    with np.errstate(over="ignore"):
        results = function(points, elementary)
    assert results.dtype == np.float32
    expected = [definition(float(x)) for x in points]
    np.testing.assert_allclose(results, expected, rtol=3e-6, atol=1e-37)
    assert points.tolist() == np.array(POINTS, np.float32).tolist()


def test_the_approximate_gelu_is_near_the_exact_one() -> None:
    points = np.linspace(-4, 4, 33).astype(np.float32)
    exact, near = activations.gelu(points), activations.gelu(points, approximate=True)
    assert 0 < np.abs(exact - near).max() < 5e-4


def test_rounded_functions_are_those_of_float64_rounded() -> None:
    points = np.linspace(-5, 5, 1001).astype(np.float32)
    for name in ("exp", "expm1", "tanh", "erfc"):
        expected = [getattr(math, name)(float(x)) for x in points]
        results = getattr(ROUNDED, name)(points)
        assert results.dtype == np.float32
        assert results.tolist() == np.array(expected, np.float64).astype(np.float32).tolist()
