from __future__ import annotations

import pytest

from armpy.profiling import Share
from armpy_tools.benchmark.layers import layer_costs
from armpy_tools.measure.limits import limit_of


@pytest.mark.parametrize(
    ("time_us", "compute_us", "memory_us", "limit"),
    [
        (10.0, 8.0, 2.0, "compute"),
        (10.0, 2.0, 8.0, "memory"),
        (10.0, 1.0, 3.0, "overhead"),  # 3.3 times the machine's need
        (10.0, 0.0, 0.0, "not known"),
    ],
)
def test_the_longer_of_two_least_times_limits_unless_both_are_far(
    time_us: float, compute_us: float, memory_us: float, limit: str
) -> None:
    assert limit_of(time_us, compute_us, memory_us) == limit


def share(name: str, us: float, **details: float) -> Share:
    return Share(f"Conv '{name}'", "Npu", "Conv", name, 1, round(1000 * us), details)


def test_a_layer_takes_the_median_of_its_runs() -> None:
    runs = [
        [share("a", us, compute_us=40.0, memory_us=1.0, operations=100.0), share("b", 50.0)]
        for us in (50.0, 60.0, 900.0)
    ]
    a, b = layer_costs(runs)
    assert (a.name, a.time_us, a.limit, a.operations) == ("a", 60.0, "compute", 100.0)
    assert a.reached == pytest.approx(40 / 60)
    assert (b.name, b.time_us, b.limit) == ("b", 50.0, "not known")
    assert a.share + b.share == pytest.approx(1)
