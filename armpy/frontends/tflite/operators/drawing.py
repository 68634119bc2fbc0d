"""Operators that draw random numbers.

Notes
-----
LiteRT counts on from one invocation to the next, and armpy begins anew: the first invocation draws
the same numbers in both. Two seeds of 0 draw others each time. Of a seed only the lower 32 bits
count, as in LiteRT.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.frontends.tflite.composed import ComposedOperator, composed
from armpy.frontends.tflite.node import BoundOperator, Converter, ConverterTable, direct
from armpy.graph import Value
from armpy.ops.operation import require
from armpy.ops.sampling import (
    RandomBits,
    RandomGenerator,
    RandomMultinomial,
    RandomNormal,
    RandomUniform,
)

_GENERATORS = {
    0: RandomGenerator.PHILOX,
    1: RandomGenerator.PHILOX,
    2: RandomGenerator.THREEFRY,
}


def _seeds(node: BoundOperator) -> tuple[int, int]:
    """Both seeds, as signed integers of 32 bits."""
    options = node.options("RandomOptions")
    seed, seed2 = ((options.integer(name) + 2**31) % 2**32 - 2**31 for name in ("Seed", "Seed2"))
    return seed, seed2


def _random(operation: type[RandomNormal | RandomUniform]) -> Converter:
    """Converter of an operator that draws from a distribution."""

    def make(node: BoundOperator) -> RandomNormal | RandomUniform:
        seed, seed2 = _seeds(node)
        return operation(seed=seed, seed2=seed2)

    return direct(make)


def _multinomial(node: BoundOperator) -> Sequence[Value]:
    seeds = np.array(_seeds(node), np.int32)

    def expand(parts: ComposedOperator) -> Value:
        logits = parts.value(0)
        drawn = parts.layer(RandomMultinomial(parts.count(1)), logits, parts.constant(seeds))
        return parts.cast(drawn, parts.outputs[0].data_type)

    return composed(node, expand, decides=(1,))


def _random_bits(node: BoundOperator) -> Sequence[Value]:
    options = node.options("StablehloRngBitGeneratorOptions", "BuiltinOptions2")
    generator = options.choice("Algorithm", _GENERATORS, "RngAlgorithm")
    node.expect_outputs(2)
    shape = node.shapes[1]
    require(shape is not None, "the file does not say how many numbers are drawn")
    return node.layer(RandomBits(shape or (), generator, node.outputs[1].data_type), *node.inputs)


CONVERTERS: ConverterTable = {
    "MULTINOMIAL": _multinomial,
    "RANDOM_STANDARD_NORMAL": _random(RandomNormal),
    "RANDOM_UNIFORM": _random(RandomUniform),
    "STABLEHLO_RNG_BIT_GENERATOR": _random_bits,
}
