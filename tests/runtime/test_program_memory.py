"""Memory that compiled programs need counts like any other."""

from __future__ import annotations

from pathlib import Path

import pytest

import armpy
from armpy.errors import ParserError

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits_int8.tflite"


def load(**options: object) -> armpy.Model:
    chosen = armpy.RuntimeOptions(backends=["NumbaAcc"], **options)  # type: ignore[arg-type]
    return armpy.load(DIGITS, runtime=armpy.Runtime(chosen))


def test_a_program_s_memory_is_in_the_placement_report() -> None:
    placement = load().placement
    assert placement is not None
    assert placement.arena_bytes["NumbaAcc"] == placement.peak_bytes > 1000


def test_a_program_s_memory_counts_towards_the_limit() -> None:
    with pytest.raises(ParserError, match="at most 1000 bytes"):
        load(memory_limit_bytes=1000)
