"""No .tflite file, however damaged, does anything but load or raise a `ParserError`.

What loads and is small is also run: then any `ArmpyError` is allowed, and nothing else.

A quarter each are small sound ones with odd contents, small damaged ones, damaged ones with several
subgraphs, and real damaged ones. A failure names the number of the file, which always gives the
same bytes.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import armpy
from armpy.errors import ArmpyError, ParserError
from armpy.execution import Runtime, RuntimeOptions
from armpy.model import Model
from armpy_testing.effort import effort
from armpy_testing.models.mutations import mutated
from armpy_testing.models.tflite_control_flow import small_models
from armpy_testing.shared import SHARED
from tests.support.odd_models import odd_model, odd_option
from tests.support.tflite_cases import operator_models
from tests.support.tflite_seeds import small_files

COUNT = effort(300)
MEMORY_LIMIT_BYTES = 64 << 20
LARGEST_RUN_BYTES = 1 << 20
TIME_LIMIT_S = 2.0
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


def _try_one(data: bytes) -> str:
    """Load a file and run it if it is small; what is wrong with the outcome, or nothing."""
    started = time.perf_counter()
    try:
        with armpy.load(data, memory_limit_bytes=MEMORY_LIMIT_BYTES, runtime=RUNTIME) as model:
            duration = time.perf_counter() - started
            _run_if_small(model)
    except ParserError as error:
        duration = time.perf_counter() - started
        if not str(error):
            return "an error without a text"
    except Exception as error:  # noqa: BLE001  # any other error is what is looked for
        return f"{type(error).__name__}: {error}"
    return "" if duration < TIME_LIMIT_S else f"it took {duration:.1f} s"


def _run_if_small(model: Model) -> None:
    """Run a model on zeros; whatever is wrong with it has to be an `ArmpyError`."""
    placement = model.placement
    infos = [spec.info for spec in model.inputs]
    if placement is None or not all(info.is_fully_shaped for info in infos):
        return
    if placement.peak_bytes + sum(info.size_bytes for info in infos) > LARGEST_RUN_BYTES:
        return
    with contextlib.suppress(ArmpyError), np.errstate(all="ignore"):
        model(*(np.zeros(info.known_shape, info.data_type.dtype) for info in infos))


def _failures(make: Callable[[int], bytes], part: int) -> dict[int, str]:
    """What went wrong, by number of the file, in one part of the numbers."""
    numbers = range(part, COUNT // KINDS, PARTS)
    outcomes = {number: _try_one(make(number)) for number in numbers}
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
