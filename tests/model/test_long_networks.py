"""Loading takes time in proportion to the number of layers, whatever the graph looks like."""

from __future__ import annotations

import cProfile
import pstats

import pytest

import armpy
from armpy.core import lifetimes
from armpy_testing.models.long_networks import SHAPES, long_network

pytestmark = pytest.mark.slow

FEW, MANY = 60, 600


def _calls(shape: str, num_layers: int, backends: list[str]) -> int:
    """How many functions are called while a network is loaded."""
    data = long_network(shape, num_layers)
    profile = cProfile.Profile()
    with profile:
        armpy.load(data, backends=backends, num_threads=1).close()
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]  # it is there


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backends", [["CpuRef"], ["NumbaAcc", "CpuRef"]], ids="-".join)
@pytest.mark.parametrize("shape", SHAPES)
def test_ten_times_the_layers_take_ten_times_the_calls(
    shape: str, backends: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARMPY_NUMBA_CACHE", "off")
    monkeypatch.setattr(lifetimes, "FEW_PAIRS", 0)  # a square so small would not be felt
    # Compiles kernels and imports modules.
    armpy.load(long_network(shape, FEW), backends=backends, num_threads=1).close()
    few, many = (_calls(shape, size, backends) for size in (FEW, MANY))
    assert many / few < 1.15 * MANY / FEW
