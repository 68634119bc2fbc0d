"""No .armnn file, however damaged, does anything but load or raise a `ParserError`.

What loads and is small is also run: then any `ArmpyError` but a backend's is allowed.

A failure names the number of the file, which always gives the same bytes.
"""

from __future__ import annotations

from functools import cache

import pytest

import armpy
from armpy_testing.effort import effort
from armpy_testing.models.mutations import mutated
from armpy_testing.models.small_runs import MEMORY_LIMIT_BYTES, fault_in

from ..armnn_texts import armnn_file
from .armnn_networks import OLD_FILES
from .test_published_cases import CASES

COUNT = effort(300)
PARTS = 3

RUNTIME = armpy.Runtime(
    armpy.RuntimeOptions(backends=["CpuRef"], memory_limit_bytes=MEMORY_LIMIT_BYTES)
)


@cache
def _seeds() -> tuple[bytes, ...]:
    """Arm NN's published files, where they are beside the checkout, and files of old versions."""
    return (*(armnn_file(case.text) for case in CASES), *(file.data() for file in OLD_FILES))


@pytest.mark.parametrize("part", range(PARTS))
def test_a_damaged_file_loads_or_raises_a_parser_error(part: int) -> None:
    numbers = range(part, COUNT, PARTS)
    outcomes = {number: fault_in(mutated(_seeds(), number), "armnn", RUNTIME) for number in numbers}
    assert {number: outcome for number, outcome in outcomes.items() if outcome} == {}
