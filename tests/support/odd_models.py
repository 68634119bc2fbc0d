"""Sound .tflite files with odd contents: shapes, types, options that go with no operator."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np

from armpy_testing.models.tflite_writer import OptionValue
from tests.support.tflite_cases import Model, Spec, operator_models

_DIMS = (0, 1, 1, 2, 2, 3, 4, 7, 1000, 2**31 - 1)
_NUMBERS = (0, 1, -1, 2, 3, -3, 7, 31, 33, 127, 255, 65536, 2**31 - 1, -(2**31))
_REALS = (0.0, 1.0, -1.0, 1e-30, 1e30, math.inf, math.nan)
_ENUMERATIONS = (
    "fused_activation_function",
    "kernel_type",
    "mode",
    "out_type",
    "output_type",
    "padding",
    "type",
)
_SCALES = (None, 0.5, 0.25, 2.0**-12, 2.0**-15, 1e-38, 1e38)
_MOST_BYTES = 4096
_ITEM_BYTES = {
    "FLOAT32": 4,
    "FLOAT64": 8,
    "FLOAT16": 2,
    "INT8": 1,
    "UINT8": 1,
    "INT16": 2,
    "INT32": 4,
    "INT64": 8,
    "BOOL": 1,
}


def odd_model(number: int) -> bytes:
    """A file of one operator of which one or two things are odd; the same for one number."""
    rng = random.Random(number)
    case = rng.choice(operator_models())
    for _ in range(rng.randint(1, 2)):
        case = _odd_case(case, rng)
    return case.model().to_bytes()


def _odd_case(case: Model, rng: random.Random) -> Model:
    """The case with something changed."""
    inputs = list(case.inputs)
    place = rng.randrange(len(inputs)) if inputs else 0
    change = rng.randrange(6)
    if change == 0 and case.options:
        name = rng.choice(list(case.options))
        value = odd_option(name, case.options[name], rng)
        return replace(case, options={**case.options, name: value})
    if change == 1:
        outputs = [_odd_spec(spec, rng, may_hold_data=False) for spec in case.outputs]
        return replace(case, outputs=outputs * rng.choice((1, 1, 1, 2, 0)))
    if change == 2 and inputs:
        other = rng.randrange(len(inputs))
        inputs[place], inputs[other] = inputs[other], inputs[place]
    elif change == 3 and inputs:
        inputs[place : place + 1] = rng.choice(([], [None], [inputs[place]] * 2))
    elif inputs:
        inputs[place] = _odd_spec(inputs[place] or Spec((1,)), rng, may_hold_data=True)
    return replace(case, inputs=inputs)


def odd_option(name: str, value: OptionValue, rng: random.Random) -> OptionValue:
    """Another value of an option's kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, float):
        return rng.choice(_REALS)
    if name in _ENUMERATIONS:
        return rng.randrange(8)
    if isinstance(value, int):
        return rng.choice(_NUMBERS)
    return [rng.choice(_NUMBERS) for _ in range(rng.randrange(5))]


def _odd_spec(spec: Spec, rng: random.Random, *, may_hold_data: bool) -> Spec:
    """Another shape, type, quantisation or content."""
    shape, kind = spec.shape, spec.type
    change = rng.randrange(4)
    if change == 0:
        shape = tuple(rng.choice(_DIMS) for _ in range(rng.choice((0, 1, 2, 3, 4, 4, 5, 8))))
    elif change == 1 and shape:
        place = rng.randrange(len(shape))
        shape = (*shape[:place], rng.choice(_DIMS), *shape[place + 1 :])
    elif change == 2:
        kind = rng.choice(list(_ITEM_BYTES))
    data: object = None
    if may_hold_data and (spec.data is not None or rng.random() < 0.3):
        data = _contents(shape, kind, rng)
    is_variable = may_hold_data and data is None and (spec.variable or rng.random() < 0.1)
    scale = rng.choice(_SCALES) if rng.random() < 0.3 else spec.scale
    return Spec(shape, kind, data, scale, rng.choice((0, 0, 3, -128)), is_variable)


def _contents(shape: tuple[int, ...], kind: str, rng: random.Random) -> object:
    """Elements of a constant; none if there would be very many."""
    size_bytes = math.prod(shape) * _ITEM_BYTES[kind]
    if size_bytes > _MOST_BYTES:
        return None
    if kind == "INT32":
        count = math.prod(shape)
        return np.array([rng.choice(_NUMBERS) for _ in range(count)], np.int32).tobytes()
    return bytes(size_bytes) if kind == "BOOL" else rng.randbytes(size_bytes)
