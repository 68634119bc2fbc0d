"""Rates come back from times that were made with them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from armpy.inspect import Work
from armpy_tools.calibrate.clocks import measure
from armpy_tools.calibrate.fitting import fit_rate, fit_rates, workload_work
from armpy_tools.calibrate.workloads import CalibrationWorkload, reference_workloads
from armpy_tools.devices.costs import Rate
from armpy_tools.devices.records import Sample

from .fake_time import FakeTime

WORKS = [
    Work(flops, size_bytes) for flops, size_bytes in itertools.product((1e3, 1e6, 1e8), (1e3, 1e6))
]


def close(one: Rate, other: Rate) -> bool:
    """Whether two rates are the same but for rounding."""
    fields = ("overhead_s", "flop_s", "byte_s", "power")
    return all(getattr(one, f) == pytest.approx(getattr(other, f), abs=1e-16) for f in fields)


@pytest.mark.parametrize(
    "rate",
    [
        Rate(1e-6, 1e-10, 1e-9, 2.0),
        Rate(0.0, 1e-10, 0.0),
        Rate(1e-6, 0.0, 1e-9),
        Rate(1e-5, 0.0, 0.0, 0.5),
    ],
)
def test_a_rate_comes_back_from_its_own_times(rate: Rate) -> None:
    measured = [(work, Sample(rate.seconds(work), rate.power)) for work in WORKS]
    assert close(fit_rate(measured), rate)


def test_one_time_is_all_overhead() -> None:
    assert close(fit_rate([(Work(100, 100), Sample(3e-6))]), Rate(3e-6))


def test_no_number_is_below_zero_however_the_times_fall() -> None:
    generator = np.random.default_rng(1)
    for _ in range(200):
        measured = [(work, Sample(t)) for work, t in zip(WORKS, generator.random(6), strict=True)]
        rate = fit_rate(measured)
        assert min(rate.overhead_s, rate.flop_s, rate.byte_s) >= 0
        assert max(rate.overhead_s, rate.flop_s, rate.byte_s) > 0


def test_one_disturbed_time_of_six_changes_little() -> None:
    rate = Rate(1e-6, 1e-10, 1e-9)
    measured = [(work, Sample(rate.seconds(work))) for work in WORKS]
    measured[3] = (measured[3][0], Sample(measured[3][1].seconds * 100))
    rate_found = fit_rate(measured)
    for work in (WORKS[0], WORKS[-1]):
        assert rate_found.seconds(work) == pytest.approx(rate.seconds(work), rel=0.5)


def test_a_measurement_is_of_one_call() -> None:
    time = FakeTime()
    sample = measure(lambda: time.work(2e-3, 1.5), time.clock, seconds=0.1)
    assert sample.seconds == pytest.approx(2e-3)
    assert sample.power == pytest.approx(1.5)
    assert 0.1 <= time.now_s < 0.2


def test_the_quickest_round_counts_and_waiting_is_no_power() -> None:
    time, durations = FakeTime(), itertools.cycle([1e-2, 3e-2])

    def call() -> None:
        waited = next(durations) - 1e-2
        time.work(1e-2)
        time.now_s += waited

    sample = measure(call, time.clock, seconds=0.08)
    assert sample.seconds == pytest.approx(1e-2)
    assert sample.power == pytest.approx(1.0)


def test_a_slow_call_is_measured_three_times_more() -> None:
    time, calls = FakeTime(), []

    def call() -> None:
        calls.append(1)
        time.work(10.0)

    measure(call, time.clock, seconds=0.01)
    assert len(calls) == 5  # one that warms up, one that estimates the duration


def test_a_time_that_no_other_round_confirms_is_measured_longer() -> None:
    time = FakeTime()
    durations = itertools.chain([1.0, 1.0, 0.2, 0.9, 0.9, 0.9, 0.21], itertools.repeat(0.9))
    sample = measure(lambda: time.work(next(durations)), time.clock, seconds=1.0)
    assert sample.seconds == pytest.approx(0.2)
    assert time.now_s == pytest.approx(2.0 + 0.2 + 3 * 0.9 + 0.21)
    never = itertools.chain([1.0, 1.0, 0.2], itertools.repeat(0.9))
    time = FakeTime()
    measure(lambda: time.work(next(never)), time.clock, seconds=1.0)
    assert 3.0 <= time.now_s - 2.0 < 4.0


def dense(size: int) -> CalibrationWorkload:
    """A dense layer of float32; each size is some times larger than the one before."""
    by_size = [
        workload
        for workload in reference_workloads()
        if workload.types == "float32" and workload.kind.startswith("FullyConnected")
    ]
    return sorted(by_size, key=lambda workload: workload_work(workload).flops)[size]


@pytest.mark.slow
def test_what_was_measured_in_one_size_grows_as_the_next_wider_group_does() -> None:
    products = [
        workload
        for workload in reference_workloads()
        if workload.types == "float32" and workload.kind.startswith("BatchMatMul")
    ]
    usual = Rate(1e-6, 1e-10, 1e-10)
    samples = {w: Sample(usual.seconds(workload_work(w))) for w in products}
    small, large = workload_work(dense(0)), workload_work(dense(-1))
    assert large.flops > 10 * small.flops
    samples[dense(0)] = Sample(3 * usual.seconds(small))
    rates = fit_rates(samples, part_s=0.0)
    dense_rate = rates["FullyConnected/float32"]
    assert dense_rate.seconds(small) == pytest.approx(3 * usual.seconds(small))
    # The family's rate has the dense layer's own time in it, which is one of several.
    assert dense_rate.seconds(large) == pytest.approx(3 * usual.seconds(large), rel=0.5)
