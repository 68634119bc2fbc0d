"""Odd arguments of a batcher: each is refused with one clear error, or used as a number."""

from __future__ import annotations

import pytest

from armpy import Model, Runtime, RuntimeOptions
from armpy_serving import Batcher
from armpy_testing.models.networks import chain
from armpy_testing.odd_arguments import refuses_or_uses


@pytest.mark.parametrize("name", ["max_batch", "max_wait_ms", "max_waiting", "workers", "sizes"])
def test_batchers_of_odd_sizes_are_refused(name: str) -> None:
    with Runtime(RuntimeOptions(backends=["CpuRef"])) as runtime:
        model = Model(chain(1), runtime)
        refuses_or_uses(
            lambda value: Batcher(model, **{name: value}).close()  # type: ignore[arg-type]
        )
