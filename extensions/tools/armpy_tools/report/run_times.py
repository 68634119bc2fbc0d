"""The one estimate of a run's time that a whole report goes by."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from armpy.core.dataclass import dataclass
from armpy.profiling import Share, Summary


@dataclass(frozen=True)
class RunTimes:
    """Time of one run, divided, so that the parts add up to the whole.

    Parameters
    ----------
    summary : Summary
        Of at least one execution.
    is_busy : bool
        Whether other processes disturbed the runs.

    Notes
    -----
    A part counts with its mean in the middle half of the runs. Other processes only ever lengthen
    a part: on a busy machine each counts with its shortest time, as in a run that was not
    disturbed.
    """

    summary: Summary
    is_busy: bool = False

    @cached_property
    def runs(self) -> Sequence[int]:
        """Numbers of the runs in the middle half by their time."""
        by_time = sorted(range(len(self.summary.run_ns)), key=self.summary.run_ns.__getitem__)
        left_out = (len(by_time) + 1) // 4
        return by_time[left_out : len(by_time) - left_out]

    def time_us(self, share: Share) -> float:
        """The time of a part in one run; the mean of all runs if single ones are not known."""
        count = len(self.summary.run_ns)
        if not (count and share.run_ns):
            return share.total_us / max(self.summary.num_executions, 1)
        times_ns = [*share.run_ns, *[0] * (count - len(share.run_ns))]
        if self.is_busy:
            return min(times_ns) / 1000
        return sum(times_ns[run] for run in self.runs) / len(self.runs) / 1000

    @property
    def around(self) -> Sequence[Share]:
        """The parts of a run outside its layers."""
        return (*self.summary.overhead, *self.summary.waiting)

    @cached_property
    def layers_us(self) -> float:
        """The time of all layers."""
        return sum(map(self.time_us, self.summary.layers))

    @cached_property
    def whole_us(self) -> float:
        """The time of a run: all of its parts."""
        return self.layers_us + sum(map(self.time_us, self.around))

    @property
    def basis(self) -> str:
        """Describe the choice of the runs."""
        count, chosen = self.summary.num_executions, len(self.runs)
        if count == 1:
            return "one run"
        if self.is_busy:
            return f"every part at its shortest in {count} runs"
        if chosen == 1:
            return f"median of {count} runs"
        if chosen in (0, count):
            return f"mean of {count} runs"
        return f"mean of the middle {chosen} of {count} runs"
