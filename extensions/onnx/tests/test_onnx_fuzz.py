"""No .onnx file, however damaged, does anything but load or raise a `ParserError`.

What loads and is small is also run: then any `ArmpyError` but a backend's is allowed.

Half each are node tests and models with graphs and functions inside, with damaged bytes. A failure
names the number of the file, which always gives the same bytes. Odd contents in sound bytes are
tried in `test_structured_fuzz.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("onnx")

from armpy.execution import Runtime, RuntimeOptions
from armpy_testing.effort import effort
from armpy_testing.models.mutations import mutated
from armpy_testing.models.small_runs import MEMORY_LIMIT_BYTES, fault_in

from .onnx_mutations import nested_models, node_models

COUNT = effort(200)
PARTS = 3

RUNTIME = Runtime(
    RuntimeOptions(backends=["CpuRef"], memory_limit_bytes=MEMORY_LIMIT_BYTES, loop_timeout_s=0.01)
)


def _failures(make: Callable[[int], bytes], part: int) -> dict[int, str]:
    """What went wrong, by number of the file, in one part of the numbers."""
    numbers = range(part, COUNT // 2, PARTS)
    outcomes = {number: fault_in(make(number), "onnx", RUNTIME) for number in numbers}
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
