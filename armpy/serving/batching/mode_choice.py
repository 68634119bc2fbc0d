"""Mode: whether batches or direct calls answer more items, by measuring both in turns."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from enum import Enum, auto

_LOOK_S = 0.005
"""How often a call that ends looks what there is to decide."""

_WINDOW_S = 0.05
"""How long the items of a way are counted at least."""

_ROUNDS = 3
"""How many times each of the items that are under way is answered in a window, at least."""

_LEAST_GAIN = 1.1
"""How many times as many items batches have to answer to be worth their waiting."""

_CLEAR = 1.5
"""A ratio that one trial is enough for; smaller ones have to show twice."""

_HAND_OVER_S = 3e-5
"""What handing an item to another thread and its answer back takes at least: where direct calls
answer an item in this time, no batch can be of use, and none is tried."""

_SOONEST_S, _LATEST_S = 1.0, 60.0
"""How long a decision holds: twice as long each time that a trial confirms it."""

_SHARE = 10
"""How many times as long as a trial a decision holds at least, so that trials cost next to
nothing."""

_ALONE, _SEVERAL = 1.5, 2.0
"""Items under way at a time, below which there is nobody to be batched with, and from which on
there is."""


class _ComparisonStep(Enum):
    """Step of a comparison: which window is being counted, or waited for."""

    STEADY = auto()
    SETTLING = auto()
    TRIED = auto()
    RETURNING = auto()
    AFTER = auto()


class ModeChoice:
    """Decides between batches and direct calls.

    Parameters
    ----------
    is_ready : callable
        Whether batches can be run; asks for their preparation.
    switch : callable
        Told whether items are to be batched from now on.
    is_fixed : bool
        Whether there is nothing to decide.
    computed : callable
        Seconds that the process's threads have computed.

    Attributes
    ----------
    next_look_s : float
        When to call `look` next, by `time.perf_counter`.
    is_batching : bool
        Whether items are batched now, be it for a trial.
    last_s : float
        When an item was answered last, by the same clock.
    chosen : bool
        Whether batches were found to pay.
    rates : list of float
        Items per second of direct calls and of batches, as last measured; 0 where not yet.
    changes, trials : int
        How often the decision has changed, and how often the other way was tried.

    Notes
    -----
    What counts is how many items are answered per second in which there are any, and per second of
    a processor: the geometric mean of both. The other way is tried now and then, between two
    windows of the present one, so that what else the machine does falls on both; a trial that is
    clearly worse ends at once. What is under way when the way changes is waited for and not
    counted. A lone caller of batches is served directly until there are others again; that is no
    change.
    """

    def __init__(
        self,
        is_ready: Callable[[], bool],
        switch: Callable[[bool], None],
        *,
        is_fixed: bool = False,
        computed: Callable[[], float] = time.process_time,
    ) -> None:
        self._is_ready, self._switch, self._is_fixed = is_ready, switch, is_fixed
        self._computed = computed
        self.reset()

    def reset(self) -> None:
        """Begin with direct calls, and nothing measured."""
        self._lock = threading.Lock()
        self.is_batching = self.chosen = False
        self.rates = [0.0, 0.0]
        self.changes = self.trials = 0
        self._load = 0.0
        self._load_tried = 0.0
        self._step = _ComparisonStep.STEADY
        self._pauses_s = _SOONEST_S
        self._num_agreeing = 0
        self._before = self._tried = self._began_computed_s = 0.0
        self.next_look_s = math.inf if self._is_fixed else 0.0
        self._began_s = self._trial_s = 0.0
        self.last_s = self._idle_s = 0.0
        self._next_trial_s = self._next_if_other_s = 0.0
        self._began = -1

    def resume(self, now_s: float) -> None:
        """Note that an item has come in while there were no others."""
        # Without a lock: several items may say so, and the first one counts.
        idle_s = now_s - self.last_s
        if idle_s > 0:
            self.last_s = now_s
            self._idle_s += idle_s

    def look(self, now_s: float, num_done: int, num_under_way: int) -> None:
        """Look what there is to decide; at once if another thread does so.

        Parameters
        ----------
        now_s : float
            By `time.perf_counter`.
        num_done : int
            Items answered so far.
        num_under_way : int
            Items that callers wait for now.
        """
        if not self._lock.acquire(blocking=False):
            return
        try:
            self.next_look_s = now_s + _LOOK_S
            now_s -= self._idle_s  # from here on, time stands still while there is nothing to do
            if self._began < 0:
                self._count_from(now_s, num_done)
            self._load += 0.25 * (num_under_way - self._load)
            self._go_on(now_s, num_done)
        finally:
            self._lock.release()

    def _count_from(self, now_s: float, num_done: int) -> None:
        """Begin a window."""
        self._began_s, self._began = now_s, num_done
        self._began_computed_s = self._computed()

    def _go_on(self, now_s: float, num_done: int) -> None:
        """Take the next step, if the window is long enough."""
        if self._step is _ComparisonStep.STEADY and self.chosen:
            # A caller that is alone would wait for nobody; that decides nothing about several.
            if self._load < _ALONE if self.is_batching else self._load >= _SEVERAL:
                self._turn()
                self._count_from(now_s, num_done)
            if not self.is_batching:
                return
        passed_s, count = now_s - self._began_s, num_done - self._began
        is_hopeless = (
            self._step is _ComparisonStep.TRIED
            and passed_s >= _WINDOW_S / 2
            and count * _CLEAR < self.rates[not self.is_batching] * passed_s
        )
        least = _ROUNDS * max(self._load, 1.0)
        if self._step in (_ComparisonStep.SETTLING, _ComparisonStep.RETURNING):
            # Rounds that do not count: what began before, memory that is made anew, first guesses.
            if count >= _ROUNDS * self._load or passed_s > 0.5:
                is_tried = self._step is _ComparisonStep.SETTLING
                self._step = _ComparisonStep.TRIED if is_tried else _ComparisonStep.AFTER
                self._count_from(now_s, num_done)
            return
        if not is_hopeless and (passed_s < _WINDOW_S or count < least):
            return
        self.rates[self.is_batching] = rate = count / passed_s
        # Of two ways that are as fast, the better one computes less. Where others keep processors
        # busy, it is also what their coming and going disturbs least.
        computed_s = max(self._computed() - self._began_computed_s, 1e-9)
        worth = math.sqrt(rate * (count / computed_s))
        self._count_from(now_s, num_done)
        if self._step is _ComparisonStep.STEADY:
            self._consider(worth, now_s)
        elif self._step is _ComparisonStep.TRIED:
            self._judge_trial(worth, now_s, num_done)
        else:
            self._judge(worth, now_s, num_done)

    def _consider(self, worth: float, now_s: float) -> None:
        """Try the other way if it is time to."""
        has_other_load = not 0.5 <= self._load / max(self._load_tried, 1e-9) <= 2.0
        if now_s < (self._next_if_other_s if has_other_load else self._next_trial_s):
            return
        if not self.is_batching and (
            self._load < _SEVERAL or self.rates[0] * _HAND_OVER_S > 1 or not self._is_ready()
        ):
            return
        if has_other_load:
            self._pauses_s = _SOONEST_S
        self._before, self._load_tried, self._trial_s = worth, self._load, now_s
        self.trials += 1
        self._step = _ComparisonStep.SETTLING
        self._turn()

    def _turn(self) -> None:
        """Go the other way."""
        self.is_batching = not self.is_batching
        self._switch(self.is_batching)

    def _judge_trial(self, worth: float, now_s: float, num_done: int) -> None:
        """Go back behind a trial, to measure the other way once more if it may have been worse."""
        self._tried = worth
        self._turn()
        if worth * _CLEAR < self._before:  # which holds longer
            self._pauses_s = max(self._pauses_s, 4 * _SOONEST_S)
        if worth * _LEAST_GAIN < self._before:
            self._decide(self.is_batching, now_s, num_done)
        else:
            self._step = _ComparisonStep.RETURNING

    def _judge(self, worth: float, now_s: float, num_done: int) -> None:
        """Decide by a trial between two windows of the other way."""
        # The better one of the two: what disturbs a machine makes all slower.
        ratio = self._tried / max(self._before, worth)
        # Batches have to gain something, and direct calls not to lose much.
        if ratio < (1 / _LEAST_GAIN**0.5 if self.is_batching else _LEAST_GAIN):
            self._decide(self.is_batching, now_s, num_done)
            return
        self._num_agreeing += 1
        if ratio >= _CLEAR or self._num_agreeing >= 2:
            self._turn()
            self._decide(self.is_batching, now_s, num_done)
        else:
            self._step = _ComparisonStep.STEADY
            self._next_trial_s = now_s

    def _decide(self, batches: bool, now_s: float, num_done: int) -> None:
        """Go one way until the next trial."""
        if batches != self.is_batching:
            self._turn()
        if batches != self.chosen:
            self.changes += 1
        self.chosen = batches
        self._num_agreeing = 0
        self._load_tried = self._load
        self._step = _ComparisonStep.STEADY
        least_s = _SHARE * (now_s - self._trial_s)
        self._next_if_other_s = now_s + max(_SOONEST_S, least_s)
        self._next_trial_s = now_s + max(self._pauses_s, least_s)
        # Longer each time, whatever came of it: two ways that are as good are not changed often.
        self._pauses_s = min(2 * self._pauses_s, _LATEST_S)
        self._count_from(now_s, num_done)
