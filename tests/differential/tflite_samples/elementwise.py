"""Samples of operators that work element by element, and of activations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from armpy_testing.models.tflite_writer import OptionValue
from tests.differential.tflite_samples.making import (
    EVERY,
    PLAIN,
    QUANTIZED,
    SCALED,
    Draw,
    Family,
    One,
    ints,
)

_WITH_ACTIVATION = ("ADD", "SUB", "MUL", "DIV")
_BINARY = (
    *_WITH_ACTIVATION,
    *("MAXIMUM", "MINIMUM", "FLOOR_DIV", "FLOOR_MOD", "SQUARED_DIFFERENCE", "POW", "ATAN2"),
    *("BITWISE_XOR", "RIGHT_SHIFT", "STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM"),
    *("STABLEHLO_MINIMUM", "STABLEHLO_SHIFT_LEFT", "LOGICAL_AND", "LOGICAL_OR"),
)
_DIVIDES = ("DIV", "FLOOR_DIV", "FLOOR_MOD", "RIGHT_SHIFT", "STABLEHLO_SHIFT_LEFT", "POW")
_WITHOUT_BROADCAST = ("ATAN2",)
_UNARY = (
    *("ABS", "CEIL", "COS", "EXP", "FLOOR", "LOG", "LOGICAL_NOT", "NEG", "ROUND", "RSQRT"),
    *("SIGN", "SIN", "SQRT", "SQUARE", "ZEROS_LIKE", "ELU", "GELU", "HARD_SWISH", "LEAKY_RELU"),
    *("LOGISTIC", "RELU", "RELU6", "RELU_0_TO_1", "RELU_N1_TO_1", "TANH", "STABLEHLO_CBRT"),
)
_POSITIVE = ("LOG", "RSQRT", "SQRT")
_COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")


def _binary(operator: str, draw: Draw) -> Iterator[One]:
    options: dict[str, OptionValue] | None = None
    if operator in _WITH_ACTIVATION:
        options = {"fused_activation_function": "NONE"}
        if operator in ("ADD", "SUB"):
            options["pot_scale_int16"] = False
    low = 1 if operator in _DIVIDES else None
    high = 7 if operator in _DIVIDES else None
    if operator == "RIGHT_SHIFT":  # by more bits than there are, and by less than none
        low, high = (None if draw.kind.startswith("U") else -3), 40
    is_quantized = draw.kind in QUANTIZED
    scale = {"MUL": 0.09, "SQUARED_DIFFERENCE": 0.4}.get(operator)
    out = draw.out(scale=scale if "16" not in draw.kind else None)
    steps = int(is_quantized and operator not in ("MAXIMUM", "MINIMUM"))
    yield One([draw(2, 3, 4), draw(2, 3, 4, low=low, high=high)], [out], options, steps=steps)
    if operator not in _WITHOUT_BROADCAST and not operator.startswith("STABLE"):
        yield One([draw(2, 3, 4), draw(3, 1, low=low, high=high)], [out], options, steps=steps)


def _unary(operator: str, draw: Draw) -> Iterator[One]:
    options: dict[str, OptionValue] | None = None
    if operator == "LEAKY_RELU":
        options = {"alpha": 0.2}
    if operator == "GELU":
        options = {"approximate": True}
    is_quantized = draw.kind in QUANTIZED
    low, high, out, zero_point = None, None, draw.out(), None
    if operator in _POSITIVE:
        low, high = 1, 100
        zero_point = 0 if is_quantized else None
    scale = None
    if is_quantized and operator in ("LOGISTIC", "TANH"):
        steps = {
            "INT8": (1 / 256, -128),
            "UINT8": (1 / 256, 0),
            "INT16": (1 / 32768, 0),
        }[draw.kind.split()[0]]
        if operator == "TANH" and "16" not in draw.kind:
            steps = (1 / 128, steps[1] + 128)
        out = draw.out(scale=steps[0], zero_point=steps[1])
        scale = 1 / 4096 if "16" in draw.kind else None
    source = draw(2, 3, 5, low=low, high=high, zero_point=zero_point, scale=scale)
    if operator == "NEG" and draw.kind == "INT8 quantised":
        # LiteRT negates stored integers, which is right for this zero point alone.
        source = draw(2, 3, 5, zero_point=0)
    if operator in ("NEG", "ABS", "RELU_0_TO_1", "ZEROS_LIKE") and is_quantized:
        out = draw.out(zero_point=source.zero_point)
    yield One([source], [out], options, steps=int(is_quantized))
    if operator == "GELU":
        yield One([source], [out], {"approximate": False}, steps=int(is_quantized))


def _comparison(operator: str, draw: Draw) -> Iterator[One]:
    yield One([draw(2, 3, 4), draw(2, 3, 4)], [draw.out("BOOL")])
    yield One([draw(2, 3, 4), draw(4)], [draw.out("BOOL")])


def _select(operator: str, draw: Draw) -> Iterator[One]:
    condition = draw(2, 3, 4, kind="BOOL")
    yield One([condition, draw(2, 3, 4), draw(2, 3, 4)], [draw.out()])
    if operator == "SELECT":
        yield One([draw(2, kind="BOOL"), draw(2, 3), draw(2, 3)], [draw.out()])
    else:
        yield One([draw(3, 1, kind="BOOL"), draw(2, 3, 4), draw(4)], [draw.out()])


def _prelu(operator: str, draw: Draw) -> Iterator[One]:
    yield One([draw(2, 3, 4), draw(1, 1, 4).constant], [draw.out()], steps=1)


def _add_n(operator: str, draw: Draw) -> Iterator[One]:
    yield One([draw(2, 3), draw(2, 3), draw(2, 3)], [draw.out()], {})
    yield One([draw(2, 3)], [draw.out()], {})


def _fake_quant(operator: str, draw: Draw) -> Iterator[One]:
    options: dict[str, OptionValue] = {"min": -1.5, "max": 2.25, "num_bits": 8}
    yield One([draw(2, 7)], [draw.out()], options | {"narrow_range": False})
    yield One([draw(2, 7)], [draw.out()], options | {"num_bits": 4, "narrow_range": True})


_CAST_TYPES = (
    *("FLOAT32", "FLOAT16", "FLOAT64", "INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32"),
    *("INT64", "BOOL", "COMPLEX64", "INT4", "BFLOAT16"),
)
CASTS = tuple(f"{a} to {b}" for a in _CAST_TYPES for b in _CAST_TYPES if a != b)


def _cast(operator: str, draw: Draw) -> Iterator[One]:
    source, _, target = draw.kind.partition(" to ")
    if source in ("BFLOAT16", "INT4"):
        return
    high = 3 if target in ("INT4",) or target.startswith("U") else None
    low = 0 if target.startswith("U") else (-3 if high else None)
    if target == "BFLOAT16":
        return
    yield One([draw(2, 5, kind=source, low=low, high=high)], [draw.out(target)])


_QUANTIZATIONS = tuple(
    f"{a} to {b}"
    for a in ("FLOAT32", *QUANTIZED, "INT32 quantised", "FLOAT16")
    for b in (*QUANTIZED, "INT4 quantised", "INT32 quantised")
)


def _quantize(operator: str, draw: Draw) -> Iterator[One]:
    source, _, target = draw.kind.partition(" to ")
    reach = 100 if source.startswith("INT32") else None
    real = draw(2, 5, kind=source, low=None if reach is None else -reach, high=reach)
    yield One([real], [draw.out(target)], {}, steps=1)


def _dequantize(operator: str, draw: Draw) -> Iterator[One]:
    source = draw.kind
    if source == "INT4 quantised":
        values = np.array([[-8, 7, 3], [0, -1, 5]], np.int8)
        raw = bytes([0x78, 0x03, 0x5F])
        arg = draw.out(source)
        yield One(
            [replace(arg, values=values, raw=raw, is_constant=True, zero_point=0)],
            [draw.out("FLOAT32")],
            {},
        )
        return
    yield One([draw(2, 5)], [draw.out("FLOAT32")], {})
    if source == "INT8 quantised":
        scales = [0.5, 0.25, 0.125]
        yield One([draw(2, 3, scale=scales).along(1)], [draw.out("FLOAT32")], {}, version=5)


def _bucketize(operator: str, draw: Draw) -> Iterator[One]:
    yield One([draw(2, 7)], [draw.out("INT32")], {"boundaries": [-1.5, 0.0, 2.0, 3.5]})


def _bitcast(operator: str, draw: Draw) -> Iterator[One]:
    source, _, target = draw.kind.partition(" to ")
    sizes = {"8": 1, "16": 2, "32": 4, "64": 8}
    of = sizes["".join(c for c in source if c.isdigit())]
    to = sizes["".join(c for c in target if c.isdigit())]
    shape = (3, to // of) if to > of else (3, 4)
    yield One([draw(*shape, kind=source)], [draw.out(target)])


_BITS = ("INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "FLOAT32", "INT64", "FLOAT64")


def _cumsum(operator: str, draw: Draw) -> Iterator[One]:
    for exclusive in (False, True):
        options: dict[str, OptionValue] = {"exclusive": exclusive, "reverse": exclusive}
        yield One([draw(2, 3, 4), ints(1, shape=())], [draw.out()], options)


_NEEDS_SCALE = (
    *("MUL", "DIV", "ELU", "EXP", "GELU", "HARD_SWISH", "LEAKY_RELU", "RELU", "RELU6"),
    *("RELU_0_TO_1", "RELU_N1_TO_1", "TANH", "LOGISTIC", "ABS", "LOG", "RSQRT", "NEG"),
)
"""Operators whose kernels read a scale of every 8-bit or 16-bit element."""


def _without(operators: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Operators that are not among others."""
    return tuple(name for name in operators if name not in others)


_OF_BITS = ("BITWISE_XOR", "RIGHT_SHIFT")
_STABLEHLO = tuple(name for name in _BINARY if name.startswith("STABLEHLO"))
_UNSCALED = (*_OF_BITS, *_STABLEHLO, "FLOOR_DIV", "FLOOR_MOD")
"""Operators that know no scales."""

FAMILY: Family = [
    (_UNSCALED, PLAIN, _binary),
    (_without(_BINARY, (*_NEEDS_SCALE, *_UNSCALED)), EVERY, _binary),
    (_without(_UNARY, _NEEDS_SCALE), EVERY, _unary),
    (_without(_BINARY, _without(_BINARY, _NEEDS_SCALE)), SCALED, _binary),
    (_without(_UNARY, _without(_UNARY, _NEEDS_SCALE)), SCALED, _unary),
    (_COMPARISONS, EVERY, _comparison),
    (("SELECT", "SELECT_V2"), EVERY, _select),
    (("PRELU",), SCALED, _prelu),
    (("ADD_N",), EVERY, _add_n),
    (("FAKE_QUANT",), ("FLOAT32",), _fake_quant),
    (("CAST",), CASTS, _cast),
    (("QUANTIZE",), _QUANTIZATIONS, _quantize),
    (("DEQUANTIZE",), ("FLOAT16", "FLOAT32", *QUANTIZED, "INT4 quantised"), _dequantize),
    (("BUCKETIZE",), ("FLOAT32", "FLOAT64", "INT32", "INT64"), _bucketize),
    (("BITCAST",), tuple(f"{a} to {b}" for a in _BITS for b in _BITS if a != b), _bitcast),
    (("CUMSUM",), EVERY, _cumsum),
]
