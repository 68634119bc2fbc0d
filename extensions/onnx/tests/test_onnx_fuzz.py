"""No .onnx file, however damaged, does anything but load or raise a `ParserError`.

What loads and is small is also run: then any `ArmpyError` but a backend's is allowed.

Half each are node tests and models with graphs and functions inside, with damaged bytes. A failure
names the number of the file, which always gives the same bytes. Odd contents in sound bytes are
tried in `test_structured_fuzz.py`.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

pytest.importorskip("onnx")

import armpy
from armpy.errors import ParserError
from armpy.execution import Runtime, RuntimeOptions
from armpy_testing.effort import effort
from armpy_testing.models.mutations import mutated
from armpy_testing.models.small_runs import run_if_small

from .onnx_mutations import nested_models, node_models

COUNT = effort(200)
MEMORY_LIMIT_BYTES = 64 << 20
TIME_LIMIT_S = 5.0
PARTS = 3

RUNTIME = Runtime(
    RuntimeOptions(backends=["CpuRef"], memory_limit_bytes=MEMORY_LIMIT_BYTES, loop_timeout_s=0.01)
)


def _try_one(data: bytes) -> str:
    """Load a file and run it if it is small; return the fault in the outcome, or nothing."""
    started = time.perf_counter()
    try:
        with armpy.load(
            data, front_end="onnx", memory_limit_bytes=MEMORY_LIMIT_BYTES, runtime=RUNTIME
        ) as model:
            duration = time.perf_counter() - started
            run_if_small(model)
    except ParserError as error:
        duration = time.perf_counter() - started
        if not str(error):
            return "an error without a text"
    except Exception as error:  # noqa: BLE001  # the test looks for any other error
        return f"{type(error).__name__}: {error}"
    return "" if duration < TIME_LIMIT_S else f"it took {duration:.1f} s"


def _failures(make: Callable[[int], bytes], part: int) -> dict[int, str]:
    """What went wrong, by number of the file, in one part of the numbers."""
    numbers = range(part, COUNT // 2, PARTS)
    outcomes = {number: _try_one(make(number)) for number in numbers}
    return {number: outcome for number, outcome in outcomes.items() if outcome}


@pytest.mark.slow
@pytest.mark.sampled(5)
@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_node_tests_parse_or_raise_parser_errors(part: int) -> None:
    seeds = node_models()
    assert _failures(lambda number: mutated(seeds, number), part) == {}


@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_models_with_graphs_inside_parse_or_raise_parser_errors(part: int) -> None:
    seeds = nested_models()
    assert _failures(lambda number: mutated(seeds, number), part) == {}
