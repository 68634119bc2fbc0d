"""Whether batches or direct calls are chosen, by simulated rates and clocks."""

from __future__ import annotations

import random

import pytest

from armpy.serving.batching.mode_choice import ModeChoice

STEP_S = 0.005


class Simulation:
    """Callers whose items are answered at rates that are known, by a clock of its own."""

    def __init__(self, direct: float, batched: float, *, noise: float = 0.0) -> None:
        self.rates = [direct, batched]
        self.noise = noise
        self.now_s = 100.0
        self.done = self.computed_s = self.batched_s = 0.0
        self.switches: list[bool] = []
        self.is_prepared = True
        self.choice = ModeChoice(
            lambda: self.is_prepared, self.switches.append, computed=lambda: self.computed_s
        )
        self._random = random.Random(1)

    def go_on(self, seconds: float, load: float = 8) -> ModeChoice:
        """Let so many callers call for some time."""
        for _ in range(round(seconds / STEP_S)):
            rate = self.rates[self.choice.is_batching]
            rate *= self._random.uniform(1 - self.noise, 1 + self.noise)
            self.now_s += STEP_S
            self.done += rate * STEP_S
            self.computed_s += STEP_S
            self.batched_s += STEP_S * self.choice.is_batching
            self.choice.last_s = self.now_s
            if self.now_s >= self.choice.next_look_s:
                self.choice.look(self.now_s, int(self.done), round(load))
        return self.choice


def test_batches_that_answer_more_are_chosen_soon_and_for_good() -> None:
    simulation = Simulation(1000, 2500)
    assert simulation.go_on(3).chosen
    choice = simulation.go_on(300)
    assert choice.chosen
    assert choice.changes == 1
    assert simulation.batched_s > 0.97 * 303


def test_batches_that_answer_less_cost_next_to_nothing() -> None:
    simulation = Simulation(5000, 1000)
    choice = simulation.go_on(60)
    assert not choice.chosen
    assert choice.changes == 0
    assert choice.trials > 1
    assert simulation.done > 0.99 * 5000 * 60


@pytest.mark.parametrize("ratio", [0.95, 1.0, 1.05])
def test_two_ways_that_are_about_as_good_are_not_changed_again_and_again(ratio: float) -> None:
    choice = Simulation(2000, 2000 * ratio, noise=0.4).go_on(1200)
    assert choice.changes <= 4


def test_another_load_is_measured_anew() -> None:
    simulation = Simulation(1000, 800)
    assert not simulation.go_on(120, load=4).chosen
    simulation.rates = [1000, 3000]
    assert simulation.go_on(10, load=32).chosen


def test_what_has_become_better_is_found_though_the_load_is_the_same() -> None:
    simulation = Simulation(1000, 2500)
    assert simulation.go_on(5).chosen
    simulation.rates = [2500, 1000]
    assert not simulation.go_on(130).chosen


def test_a_lone_caller_is_never_batched() -> None:
    simulation = Simulation(1000, 100)
    simulation.go_on(60, load=1)
    assert not simulation.switches


def test_a_caller_that_others_have_left_is_served_directly_until_they_are_back() -> None:
    simulation = Simulation(1000, 2500)
    simulation.go_on(3)
    choice = simulation.go_on(1, load=1)
    assert choice.chosen
    assert not choice.is_batching
    assert simulation.go_on(0.1).is_batching
    assert choice.changes == 1


def test_nothing_is_tried_where_handing_over_takes_longer_than_a_call() -> None:
    simulation = Simulation(100_000, 200_000)
    simulation.go_on(60)
    assert not simulation.switches


def test_nothing_is_tried_before_it_is_prepared() -> None:
    simulation = Simulation(1000, 2500)
    simulation.is_prepared = False
    assert not simulation.go_on(10).trials
    simulation.is_prepared = True
    assert simulation.go_on(3).chosen


def test_time_without_items_does_not_count() -> None:
    simulation = Simulation(1000, 800)
    for _ in range(40):
        choice = simulation.go_on(0.4)
        simulation.now_s += 20
        choice.resume(simulation.now_s)
    assert not choice.chosen
    assert choice.rates == pytest.approx([1000, 800], rel=0.15)


def test_what_is_fixed_is_never_looked_at() -> None:
    choice = ModeChoice(lambda: True, lambda _: None, is_fixed=True)
    assert choice.next_look_s == float("inf")
    choice.reset()
    assert choice.next_look_s == float("inf")
