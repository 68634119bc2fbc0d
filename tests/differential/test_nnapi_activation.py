"""NNAPI's activations, softmaxes and normalisations against real arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from armpy_nnapi import OperandCode, OperationCode
from tests.differential.nnapi_peers import (
    FLOAT16,
    FLOATS,
    IMAGE_TYPES,
    SIGNED,
    Draw,
    Expected,
    Input,
    Instance,
    Reals,
    boolean,
    check_instances,
    integer,
    is_quantized,
    names,
    number,
)

_O = OperationCode


def each(function: Callable[[float], float], values: Reals) -> Reals:
    """A function of each element, one after the other."""
    results = [function(float(x)) for x in values.flat]
    return np.array(results, np.float64).reshape(values.shape)


def fixed(kind: OperandCode, real: Reals, scale: float, unsigned: int, signed: int) -> Expected:
    """An output whose quantisation the operation says."""
    if not is_quantized(kind):
        return Expected(kind, real)
    return Expected(kind, real, scale, signed if kind is SIGNED else unsigned)


def lines(shape: tuple[int, ...], axis: int) -> Iterator[tuple[int | slice, ...]]:
    """Where each line along an axis is."""
    others = [dim for i, dim in enumerate(shape) if i != axis % len(shape)]
    for index in np.ndindex(*others):
        where: list[int | slice] = list(index)
        where.insert(axis % len(shape), slice(None))
        yield tuple(where)


def along(function: Callable[[list[float]], list[float]], values: Reals, axis: int) -> Reals:
    """A function of each line along an axis."""
    results = np.empty(values.shape)
    for where in lines(values.shape, axis):
        results[where] = function([float(x) for x in values[where]])
    return results


RECTIFIERS = {
    _O.RELU: (0.0, math.inf),
    _O.RELU1: (-1.0, 1.0),
    _O.RELU6: (0.0, 6.0),
}


@pytest.mark.parametrize("kind", IMAGE_TYPES, ids=names)
@pytest.mark.parametrize("code", RECTIFIERS, ids=names)
def test_rectifiers(code: OperationCode, kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        source = draw.tensor(kind, draw.shape(), -8, 8)
        low, high = RECTIFIERS[code]
        real = each(lambda x: min(max(x, low), high), source.real)
        return Instance(code, [source], [Expected(kind, real, source.scale, source.zero_point)])

    check_instances(make)


@pytest.mark.parametrize("kind", IMAGE_TYPES, ids=names)
def test_logistic(kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        source = draw.tensor(kind, draw.shape(), -8, 8)
        real = each(lambda x: 1 / (1 + math.exp(-x)), source.real)
        return Instance(_O.LOGISTIC, [source], [fixed(kind, real, 1 / 256, 0, -128)])

    check_instances(make)


@pytest.mark.parametrize("kind", IMAGE_TYPES, ids=names)
def test_tanh(kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        source = draw.tensor(kind, draw.shape(), -4, 4)
        real = each(math.tanh, source.real)
        return Instance(_O.TANH, [source], [fixed(kind, real, 1 / 128, 128, 0)])

    check_instances(make)


@pytest.mark.parametrize("kind", FLOATS, ids=names)
def test_elu(kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        source, alpha = draw.tensor(kind, draw.shape()), draw.number(-2, 2)
        real = each(lambda x: max(0, x) + min(0, alpha * (math.exp(x) - 1)), source.real)
        return Instance(_O.ELU, [source, number(alpha, kind)], [Expected(kind, real)])

    check_instances(make)


@pytest.mark.parametrize("kind", IMAGE_TYPES, ids=names)
def test_hard_swish(kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        source = draw.tensor(kind, draw.shape(), -5, 5)
        real = each(lambda x: x * min(max(x + 3, 0), 6) / 6, source.real)
        output = draw.output(kind, real, source.scale / 128)
        return Instance(_O.HARD_SWISH, [source], [output])

    check_instances(make)


def with_axis(draw: Draw, rank: int, inputs: list[Input]) -> int:
    """An axis, and its argument after the inputs; sometimes the last one and no argument."""
    if draw.chance(0.25):
        return -1
    axis = draw.size(rank - 1, -rank)
    inputs.append(integer(axis))
    return axis


def softmax(line: list[float], beta: float) -> list[float]:
    """Exponentials, divided by their sum."""
    powers = [math.exp(beta * (x - max(line))) for x in line]
    return [power / sum(powers) for power in powers]


@pytest.mark.parametrize("kind", IMAGE_TYPES, ids=names)
def test_softmax(kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        source, beta = draw.tensor(kind, draw.shape(highest=5), -4, 4), draw.number(0.1, 2)
        inputs = [source, number(beta, kind)]
        axis = with_axis(draw, source.stored.ndim, inputs)
        real = along(lambda line: softmax(line, beta), source.real, axis)
        return Instance(_O.SOFTMAX, inputs, [fixed(kind, real, 1 / 256, 0, -128)])

    check_instances(make)


@pytest.mark.parametrize("kind", FLOATS, ids=names)
def test_log_softmax(kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        source, beta = draw.tensor(kind, draw.shape(highest=5), -4, 4), draw.number(0.1, 2)
        axis = draw.size(source.stored.ndim - 1, -source.stored.ndim)
        real = along(
            lambda line: [math.log(x) for x in softmax(line, beta)],
            source.real,
            axis,
        )
        inputs = [source, number(beta, kind), integer(axis)]
        return Instance(_O.LOG_SOFTMAX, inputs, [Expected(kind, real)])

    check_instances(make)


def normalized(line: list[float]) -> list[float]:
    """Numbers divided by the root of the sum of their squares."""
    norm = max(math.sqrt(sum(x * x for x in line)), 1e-6)
    return [x / norm for x in line]


@pytest.mark.parametrize("kind", IMAGE_TYPES, ids=names)
def test_l2_normalization(kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        source = draw.tensor(kind, draw.shape(highest=5))
        inputs: list[Input] = [source]
        axis = with_axis(draw, source.stored.ndim, inputs)
        real = along(normalized, source.real, axis)
        return Instance(_O.L2_NORMALIZATION, inputs, [fixed(kind, real, 1 / 128, 128, 0)])

    check_instances(make)


def responses(
    line: list[float], radius: int, bias: float, alpha: float, beta: float
) -> list[float]:
    """Numbers, each divided by a power of the squares around it."""
    results = []
    for i, x in enumerate(line):
        around = line[max(i - radius, 0) : i + radius + 1]
        results.append(x * (bias + alpha * sum(y * y for y in around)) ** -beta)
    return results


@pytest.mark.parametrize("kind", FLOATS, ids=names)
def test_local_response_normalization(kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        source, radius = draw.tensor(kind, draw.shape(highest=6)), draw.size(3, 0)
        bias, alpha, beta = draw.number(0.5, 3), draw.number(0, 2), draw.number(0.1, 1)
        inputs = [source, integer(radius), *(number(x, kind) for x in (bias, alpha, beta))]
        axis = with_axis(draw, source.stored.ndim, inputs)
        real = along(lambda line: responses(line, radius, bias, alpha, beta), source.real, axis)
        return Instance(_O.LOCAL_RESPONSE_NORMALIZATION, inputs, [Expected(kind, real)])

    check_instances(make)


@pytest.mark.parametrize("kind", FLOATS, ids=names)
def test_instance_normalization(kind: OperandCode) -> None:
    def make(draw: Draw) -> Instance:
        source, nchw = draw.tensor(kind, draw.shape(4)), draw.chance()
        gamma, beta, epsilon = draw.number(-2, 2), draw.number(-2, 2), draw.number(0.01, 0.1)
        real = np.empty(source.shape)
        images = source.real if nchw else np.moveaxis(source.real, -1, 1)
        results = real if nchw else np.moveaxis(real, -1, 1)
        for n in range(images.shape[0]):
            for c in range(images.shape[1]):
                pixels = [float(x) for x in images[n, c].flat]
                mean = sum(pixels) / len(pixels)
                variance = sum((x - mean) ** 2 for x in pixels) / len(pixels)
                scaled = (images[n, c] - mean) * gamma / math.sqrt(variance + epsilon)
                results[n, c] = scaled + beta
        inputs = [source, *(number(x, kind) for x in (gamma, beta, epsilon)), boolean(nchw)]
        magnitude = 4.0 if kind is FLOAT16 else 1.0
        return Instance(
            _O.INSTANCE_NORMALIZATION, inputs, [Expected(kind, real, magnitude=magnitude)]
        )

    check_instances(make)
