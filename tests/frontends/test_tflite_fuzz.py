"""No .tflite file, however damaged, does anything but load or raise a `ParserError`.

What loads and is small is also run: then any `ArmpyError` but a backend's is allowed.

A quarter each are small sound ones with odd contents, small damaged ones, damaged ones with several
subgraphs, and real damaged ones. A failure names the number of the file, which always gives the
same bytes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from flatbuffers import flexbuffers

from armpy.execution import Runtime, RuntimeOptions
from armpy_testing.effort import effort
from armpy_testing.models.mutations import mutated
from armpy_testing.models.small_runs import MEMORY_LIMIT_BYTES, fault_in
from armpy_testing.models.tflite_control_flow import small_models
from armpy_testing.models.tflite_writer import TfliteModel
from armpy_testing.shared import SHARED
from tests.differential.tflite_samples import FAMILIES, facts
from tests.differential.tflite_samples.making import Draw
from tests.support.odd_models import odd_model, odd_option
from tests.support.tflite_cases import operator_models

_RARE = ("COMPLEX64", "sparse", "INT4")
"""Kinds of elements that have code of their own."""


@cache
def small_files() -> tuple[bytes, ...]:
    """One file per operator, those of rare kinds, and others with code of their own."""
    cases = (case.model().to_bytes() for case in operator_models())
    return (*cases, *_samples(), _detection(), _external())


def _samples() -> Iterator[bytes]:
    """A sample of each operator that LiteRT runs, and one of each rare kind."""
    runs = facts()
    for family in FAMILIES:
        for operators, kinds, make in family.FAMILY:
            for operator in operators:
                run = [kind for kind in kinds if kind in runs.get(operator, ())]
                rare = (kind for kind in run[1:] if any(word in kind for word in _RARE))
                for kind in (*run[:1], *rare):
                    first_sample = next(make(operator, Draw(operator, kind)))
                    yield first_sample.sample(operator, kind, 0).file


def _detection() -> bytes:
    """A detector's last operator, which is a custom one."""
    numbers = {
        "max_detections": 3,
        "max_classes_per_detection": 1,
        "num_classes": 2,
        "nms_score_threshold": 0.1,
        "nms_iou_threshold": 0.5,
        **dict.fromkeys(("y_scale", "x_scale", "h_scale", "w_scale"), 1.0),
    }
    builder = flexbuffers.Builder()
    with builder.Map():
        for name, value in numbers.items():
            builder.Key(name)
            builder.Add(value)
    model = TfliteModel()
    graph = model.subgraph()
    shapes = ((1, 3, 4), (1, 3, 3), (3, 4))
    inputs = [graph.tensor(f"x{i}", shape) for i, shape in enumerate(shapes)]
    outputs = [graph.tensor(f"y{i}", None) for i in range(4)]
    code, options = "TFLite_Detection_PostProcess", bytes(builder.Finish())
    graph.operator("CUSTOM", inputs, outputs, custom_code=code, custom_options=options)
    graph.inputs(*inputs)
    graph.outputs(*outputs)
    return model.to_bytes()


def _external() -> bytes:
    """Constants after the flatbuffer."""
    model = TfliteModel()
    graph = model.subgraph()
    numbers = np.arange(6, dtype=np.float32).tobytes()
    x, y = graph.tensor("x", (2, 3)), graph.tensor("y", (2, 3))
    buffers = [model.buffer(numbers, external=True) for _ in range(2)]
    first, second = (
        graph.tensor(f"c{i}", (2, 3), buffer=buffer) for i, buffer in enumerate(buffers)
    )
    between = graph.tensor("z", (2, 3))
    graph.operator("ADD", [x, first], [between], {})
    graph.operator("MUL", [between, second], [y], {})
    graph.inputs(x)
    graph.outputs(y)
    return model.to_bytes()


COUNT = effort(300)
PARTS = 10
KINDS = 3

MODELS = SHARED / "models"
REAL_MODELS = (
    "micro/hello_world_int8",
    "micro/simple_add_model",
    "micro/keyword_scrambled",
    "micro/trained_lstm_int8",
    "mlperf_tiny/kws_ref_model",
)


def _control_flow_seeds() -> list[bytes]:
    """Small models with several subgraphs."""
    return [model.to_bytes() for model in small_models()]


def _real_seeds() -> list[bytes]:
    """Small real models, if they are there."""
    paths = [MODELS / f"{name}.tflite" for name in REAL_MODELS]
    return [path.read_bytes() for path in paths if path.exists()]


RUNTIME = Runtime(
    RuntimeOptions(backends=["CpuRef"], memory_limit_bytes=MEMORY_LIMIT_BYTES, loop_timeout_s=0.01)
)


def _failures(make: Callable[[int], bytes], part: int) -> dict[int, str]:
    """What went wrong, by number of the file, in one part of the numbers."""
    numbers = range(part, COUNT // KINDS, PARTS)
    outcomes = {number: fault_in(make(number), "tflite", RUNTIME) for number in numbers}
    return {number: outcome for number, outcome in outcomes.items() if outcome}


def test_every_option_can_be_made_odd() -> None:
    rng = random.Random(0)
    for case in operator_models():
        options = case.options or {}
        for name, value in options.items():
            odd = {**options, name: odd_option(name, value, rng)}
            assert replace(case, options=odd).model().to_bytes()


@pytest.mark.parametrize("part", range(PARTS))
def test_odd_models_parse_or_raise_parser_errors(part: int) -> None:
    assert _failures(odd_model, part) == {}


@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_small_models_parse_or_raise_parser_errors(part: int) -> None:
    seeds = small_files()
    assert _failures(lambda number: mutated(seeds, number), part) == {}


@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_models_with_subgraphs_parse_or_raise_parser_errors(part: int) -> None:
    seeds = _control_flow_seeds()
    assert _failures(lambda number: mutated(seeds, number), part) == {}


@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_real_models_parse_or_raise_parser_errors(part: int) -> None:
    seeds = _real_seeds()
    if not seeds:
        pytest.skip(f"no models in {MODELS}")
    assert _failures(lambda number: mutated(seeds, number), part) == {}
