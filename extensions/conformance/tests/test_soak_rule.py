"""Stalled executions are distinguished from stalled machines."""

from __future__ import annotations

import pytest

from armpy_conformance.contract.case import ViolationError
from armpy_conformance.contract.soak import _check_calls

CALLS = [*((number * 0.001, number * 0.001 + 0.0005) for number in range(100)), (0.2, 0.7)]
"""A hundred short executions, and one of half a second."""


def test_an_execution_that_takes_far_longer_than_the_others_is_found() -> None:
    ticks = [0.005 * number for number in range(200)]
    with pytest.raises(ViolationError, match=r"execution 101 of Softmax takes 0\.500 s"):
        _check_calls(CALLS, ticks, "Softmax")


def test_an_execution_during_a_stall_of_the_machine_is_not() -> None:
    ticks = [0.005 * number for number in range(45)]
    _check_calls(CALLS, ticks, "Softmax")
