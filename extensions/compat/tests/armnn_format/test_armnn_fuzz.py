"""No .armnn file, however damaged, does anything but load or raise a `ParserError`.

What loads and is small is also run: then any `ArmpyError` but a backend's is allowed.

A failure names the number of the file, which always gives the same bytes.
"""

from __future__ import annotations

import time
from functools import cache

import pytest

import armpy
from armpy.errors import ParserError
from armpy_testing.effort import effort
from armpy_testing.models.mutations import mutated
from armpy_testing.models.small_runs import run_if_small

from ..armnn_texts import armnn_file
from .armnn_networks import OLD_FILES
from .test_published_cases import CASES

COUNT = effort(300)
MEMORY_LIMIT_BYTES = 64 << 20
TIME_LIMIT_S = 5.0
PARTS = 3

RUNTIME = armpy.Runtime(
    armpy.RuntimeOptions(backends=["CpuRef"], memory_limit_bytes=MEMORY_LIMIT_BYTES)
)


@cache
def _seeds() -> tuple[bytes, ...]:
    """Arm NN's published files, where they are beside the checkout, and files of old versions."""
    return (*(armnn_file(case.text) for case in CASES), *(file.data() for file in OLD_FILES))


def _try_one(data: bytes) -> str:
    """Load a file and run it if it is small; what is wrong with the outcome, or nothing."""
    started = time.perf_counter()
    try:
        with armpy.load(
            data, front_end="armnn", memory_limit_bytes=MEMORY_LIMIT_BYTES, runtime=RUNTIME
        ) as model:
            duration = time.perf_counter() - started
            run_if_small(model)
    except ParserError as error:
        duration = time.perf_counter() - started
        if not error.where:
            return "an error without a place"
    except armpy.BackendCapabilityError as error:
        # StandIn layers have no backend; the file is not damaged.
        return "" if "StandIn" in str(error) else str(error)
    except Exception as error:  # noqa: BLE001  # any other error is what is looked for
        return f"{type(error).__name__}: {error}"
    return "" if duration < TIME_LIMIT_S else f"it took {duration:.1f} s"


@pytest.mark.parametrize("part", range(PARTS))
def test_a_damaged_file_loads_or_raises_a_parser_error(part: int) -> None:
    numbers = range(part, COUNT, PARTS)
    outcomes = {number: _try_one(mutated(_seeds(), number)) for number in numbers}
    assert {number: outcome for number, outcome in outcomes.items() if outcome} == {}
