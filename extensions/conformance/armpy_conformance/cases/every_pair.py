"""Every two of some forty layers, one after the other: whatever a compiler merges is tried.

A network has one layer and all that may follow it, each pair on an input of its own. Elements of
the inputs are odd multiples of 1/16, so that no sum is 0 and no rounding has a choice.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping

import numpy as np

from armpy.ops import (
    ActivationFunction,
    ArgMinMax,
    ArgMinMaxFunction,
    Cumulate,
    L2Normalization,
    LayerNormalization,
    ReverseV2,
    Transpose,
)
from armpy.types import DataType
from armpy_conformance.cases.layer_steps import (
    Step,
    activated,
    cast,
    clamped,
    compared,
    compared_left,
    compute,
    constant_left,
    constant_right,
    dense,
    move,
    reduced,
    unary,
    with_itself,
)
from armpy_conformance.cases.patterns import RELU, Builder
from armpy_conformance.pattern import Pattern

_A = ActivationFunction
_SIZE = 4
_ROW = (1.0, -2.0, 0.5, 4.0)

_EXACT: Mapping[str, Step] = {
    "transpose": move(Transpose((1, 0))),
    "reverse": move(ReverseV2((1,))),
    "relu": activated(_A.RELU),
    "clamp": clamped(2.0, -1.0),
    "clamp-above": clamped(3.0, 1.0),
    "leaky": activated(_A.LEAKY_RELU, 0.25),
    "falling": activated(_A.LEAKY_RELU, -0.5),
    **{name: unary(name) for name in ("ABS", "NEG", "FLOOR", "CEIL", "ROUND")},
    "add-row": constant_right("ADD", _ROW),
    "add-column": constant_right("ADD", np.reshape(_ROW, (4, 1))),
    "mul-row": constant_right("MUL", _ROW),
    "mul-column": constant_right("MUL", np.reshape(_ROW, (4, 1))),
    "mul-number": constant_right("MUL", -2.0),
    "sub-left": constant_left("SUB", _ROW),
    "div-row": constant_right("DIV", _ROW),
    "maximum-row": constant_right("MAXIMUM", (-1.0, 0.5, 1.0, 2.0)),
    "minimum-row": constant_right("MINIMUM", (1.0, 2.0, -0.5, 0.25)),
    "sub-itself": with_itself("SUB"),
    "max-0": reduced("MAX", 0),
    "max-1": reduced("MAX", 1),
}
"""Layers whose results have no error."""

_INEXACT: Mapping[str, Step] = {
    **{name: unary(name) for name in ("EXP", "LOG", "SQRT", "SQUARE", "SIN", "COS")},
    "squared": activated(_A.SQUARE),
    "tanh": activated(_A.TANH, 1.0, 1.0),
    "sigmoid": activated(_A.SIGMOID),
    "power-2": constant_right("POWER", 2.0),
    "power-half": constant_right("POWER", 0.5),
    "mul-itself": with_itself("MUL"),
    "softmax": lambda b, value, x: b.softmax(value),
    "l2": compute(L2Normalization()),
    "layer-norm": compute(LayerNormalization()),
    "sum-0": reduced("SUM", 0),
    "mean-1": reduced("MEAN", 1),
    "cumulate": move(Cumulate(axis=1)),
    "dense": dense(RELU),
}

_LAST: Mapping[str, Step] = {
    "greater": compared("GREATER", 1.0),
    "less-left": compared_left("LESS", 1.0),
    "place-0": compute(ArgMinMax(ArgMinMaxFunction.MAX, 0)),
    "place-1": compute(ArgMinMax(ArgMinMaxFunction.MAX, 1)),
    "integer": cast(DataType.SIGNED32),
}
"""Layers whose results are of other types, and jump where their inputs change a little."""

_JUMPING = ("FLOOR", "CEIL", "ROUND")


def every_pair() -> Iterator[Pattern]:
    """A network for each layer."""
    for label, first in {**_EXACT, **_INEXACT}.items():
        seconds = {**_EXACT, **_INEXACT, **_LAST}
        if label in _INEXACT:
            seconds = {n: s for n, s in seconds.items() if n not in (*_LAST, *_JUMPING)}
        name = f"{label.lower()}-and-each/float32"
        builder = Builder(name, DataType.FLOAT32)
        rng = np.random.default_rng(zlib.crc32(name.encode()))
        feeds = {}
        for second, step in seconds.items():
            x = builder.input(_SIZE, _SIZE, name=f"x-{second}")
            builder.net.output(second.lower(), step(builder, first(builder, x, x), x))
            elements = 2 * rng.integers(-24, 24, (_SIZE, _SIZE)) + 1
            feeds[x.name] = (elements / 16).astype(np.float32)
        yield Pattern(name, builder.net.build(), feeds)
