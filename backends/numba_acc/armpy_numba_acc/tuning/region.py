"""Finds the fastest options for a region, decision by decision."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from armpy.backend import Progress, TunedChoice, TuningRequest, TuningResult, report_progress
from armpy.core.dataclass import dataclass
from armpy.graph import Layer, SubgraphView
from armpy.ops import If, While
from armpy_numba_acc.machine.cost_model.figures import typical
from armpy_numba_acc.machine.cost_model.model import MachineModel
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.passes.region import lower_region, prepared
from armpy_numba_acc.program.choices import Choices, Decision, Option
from armpy_numba_acc.store.choices import keep_choices, kept_choices
from armpy_numba_acc.store.keys import is_current, program_key, region_digest
from armpy_numba_acc.store.programs import title_of
from armpy_numba_acc.store.settings import disk_entries
from armpy_numba_acc.tuning.measuring import TuningCandidate, Turns, take_turns

_BACKEND = "NumbaAcc"

_MOST_S = 1.0
"""For the candidates of one decision."""

_WHOLE_S = 2.0
"""For the comparison of the whole region with the cost model's choice."""

_LEAST_GAIN_IN_ALL = 1.002
"""Least gain of the whole region for which any choice is kept."""

_LEAST_GAIN = 1.02
"""Smaller gains are noise, and change nothing."""

_log = logging.getLogger("armpy.NumbaAcc")


def tune_region(
    view: SubgraphView,
    isa: Isa,
    num_threads: int,
    request: TuningRequest,
    model: MachineModel | None = None,
) -> None:
    """Measure the fastest options for a region, store and return them.

    Layers are tried by themselves, on memory of their own, with each way that a lowering could
    choose. The sum of gains must hold when all of it runs: else nothing changes.

    Parameters
    ----------
    num_threads
        With `view` and `isa`, the key of the answers.
    model
        The machine for the lowerings' other choices; by default the instruction set's typical one.
    """
    model = model or typical(isa)
    what = title_of(view, isa)
    entries = disk_entries()
    key = program_key(region_digest(view), isa, num_threads) if entries is not None else ""
    if entries is None or not key or not is_current():
        request.add(TuningResult(_BACKEND, what, problem="nothing can be kept on disk"))
        return
    if any(isinstance(layer.operation, If | While) for layer in view.layers):
        # On made-up inputs a loop, which a branch may have, may run for any time.
        request.add(TuningResult(_BACKEND, what, problem="control flow is not measured"))
        return
    search = _RegionSearch(prepared(view), isa, num_threads, model, request)
    search.run()
    if not search.found:
        return
    before_us, after_us = search.settle()
    problem = ""
    changed = f"{len(search.measured)} of {len(search.found)} choices"
    answers = {**search.modelled, **search.measured}
    keep_choices(entries, key, answers, f"tuned: {changed} changed, {what}")
    if kept_choices(entries, key) != answers:
        problem, after_us = "the results could not be stored on disk", before_us
    request.add(TuningResult(_BACKEND, what, before_us, after_us, search.choices(), problem))


@dataclass(slots=True)
class _TunedDecision:
    """Finding for one decision."""

    choice: TunedChoice
    key: str  # the decision's
    is_whole: bool  # whether it is about the whole region, and not about some of its layers

    @property
    def saved_us(self) -> float:
        """Return how much shorter the layers take by themselves."""
        return self.choice.modelled_us - self.choice.measured_us


@dataclass
class _RegionSearch:
    """The search for one region."""

    view: SubgraphView
    isa: Isa
    num_threads: int
    model: MachineModel
    request: TuningRequest
    # Choices that differ from the cost model's.
    measured: dict[str, Option] = field(default_factory=dict)
    # Its answer where the result was looked up: other figures might answer otherwise.
    modelled: dict[str, Option] = field(default_factory=dict)
    found: list[_TunedDecision] = field(default_factory=list)
    _done: set[str] = field(default_factory=set)

    def run(self) -> None:
        """Go through all layers that are lowered together."""
        groups = self._groups()
        for number, layers in enumerate(groups):
            report_progress(Progress(_BACKEND, "measuring", number, len(groups)))
            part = self.view.part(layers)
            while (decision := self._next_decision(part)) is not None:
                self._find(part, decision, len(groups) - number)
        while (decision := self._next_decision(self.view)) is not None:
            self._find(self.view, decision, 1)
        report_progress(Progress(_BACKEND, "measuring", len(groups), len(groups)))

    def settle(self) -> tuple[float, float]:
        """Keep those of the results that make the whole region faster.

        Options that are faster one by one need not be so together. If they are not, the half that
        saves most is tried, and then what saves most of all.

        Returns
        -------
        before_us, after_us : float
            Time of the whole region without and with it, measured in turns; the same if there is
            nothing left.
        """
        changes = sorted(
            (each for each in self.found if each.key in self.measured), key=lambda f: -f.saved_us
        )
        for count in dict.fromkeys((len(changes), (len(changes) + 1) // 2, min(len(changes), 1))):
            kept = {each.key: self.measured[each.key] for each in changes[:count]}
            threads = {each.key for each in changes[:count] if each.is_whole}
            rest = {key: option for key, option in kept.items() if key not in threads}
            tables: list[Mapping[str, Option]] = [{}]
            if kept:
                tables.append(kept)
            if threads and rest:
                tables.append(rest)
            turns = self._compare(tables)
            times = turns.medians_us
            if not kept or turns.gain(1) >= _LEAST_GAIN_IN_ALL:
                break
        else:
            kept, times = {}, times[:1]
        self.measured = kept
        self._set_whole_times(times[-1] if len(times) == 3 else times[0], times[len(times) > 1])
        return times[0], times[len(times) > 1]

    def _compare(self, tables: Sequence[Mapping[str, Option]]) -> Turns:
        """Time the whole region in turns with each of several tables."""
        about = self.view, self.isa, self.num_threads, self.model
        return take_turns([TuningCandidate(*about, table) for table in tables], _WHOLE_S)

    def _set_whole_times(self, without_us: float, after_us: float) -> None:
        """Replace the times of choices about the whole region by the last comparison's."""
        for each in self.found:
            if each.is_whole and each.choice.measured:
                before_us = without_us if each.key in self.measured else after_us
                each.choice = replace(each.choice, modelled_us=before_us, measured_us=after_us)

    def choices(self) -> tuple[TunedChoice, ...]:
        """Return the choices, the greatest saving first; only kept ones have a gain."""
        self.found.sort(key=lambda each: -each.saved_us)
        reported = []
        for each in self.found:
            choice = each.choice
            if choice.measured != choice.modelled and each.key not in self.measured:
                reported.append(
                    replace(
                        choice,
                        measured=f"{choice.modelled}; {choice.measured} is no faster in all"
                        if choice.measured
                        else "",
                        measured_us=choice.modelled_us,
                    )
                )
            else:
                reported.append(choice)
        return tuple(sorted(reported, key=lambda c: c.measured_us - c.modelled_us))

    def _groups(self) -> list[tuple[Layer, ...]]:
        """Layers that are lowered together, where there is something to choose.

        What takes longest comes first: the search may be stopped at any time.
        """
        choices = Choices(self.isa, self.model)
        lower_region(self.view, self.isa, self.num_threads, choices)
        costs: dict[tuple[Layer, ...], float] = {}
        for each in choices.made.values():
            if len(each.options) > 1 and each.layers:
                costs[each.layers] = costs.get(each.layers, 0.0) + each.cost
        return sorted(costs, key=lambda layers: -costs[layers])

    def _next_decision(self, part: SubgraphView) -> Decision | None:
        """One that was not tried yet; the first choice may lead to others."""
        choices = Choices(self.isa, self.model, self.measured)
        lower_region(part, self.isa, self.num_threads, choices)
        found = (d for d in choices.made.values() if len(d.options) > 1)
        is_whole = part is self.view
        return next((d for d in found if d.key not in self._done and (d.layers or is_whole)), None)

    def _find(self, part: SubgraphView, decision: Decision, num_left: int) -> None:
        """Try every option of a decision, and store the results."""
        choice = self._decide(part, decision, num_left)
        self.found.append(_TunedDecision(choice, decision.key, part is self.view))

    def _decide(self, part: SubgraphView, decision: Decision, num_left: int) -> TunedChoice:
        """Try every option of a decision."""
        self._done.add(decision.key)
        names = " + ".join(layer.name for layer in decision.layers)
        about = names or "all of it", decision.key
        modelled = _text(decision.modelled)
        if not self.request.remaining_s:
            return TunedChoice(*about, modelled)
        begin = time.monotonic()
        options, candidates = self._candidates(part, decision)
        self.request.extend(time.monotonic() - begin)
        turns = take_turns(candidates, min(self.request.remaining_s / num_left / 2, _MOST_S))
        times_us = turns.medians_us
        self.modelled[decision.key] = decision.modelled
        best = min(range(len(options)), key=times_us.__getitem__)
        if times_us[best] * _LEAST_GAIN > times_us[0] or turns.gain(best) <= 1:
            best = 0
        else:
            self.measured[decision.key] = options[best]
        return TunedChoice(*about, modelled, _text(options[best]), times_us[0], times_us[best])

    def _candidates(
        self, part: SubgraphView, decision: Decision
    ) -> tuple[Sequence[Option], Sequence[TuningCandidate]]:
        """Options that are right, the model's first, and a program with each."""
        options: list[Option] = []
        candidates: list[TuningCandidate] = []
        for option in dict.fromkeys((decision.modelled, *decision.options)):
            table = {**self.measured, decision.key: option}
            about = part, self.isa, self.num_threads, self.model
            candidate = TuningCandidate(*about, table, is_part=part is not self.view)
            candidate.run()
            if candidates and not candidate.agrees_with(candidates[0]):
                _log.warning("%s is not right for %s", _text(option), decision.key)
                continue
            options.append(option)
            candidates.append(candidate)
        return options, candidates


def _text(option: Option) -> str:
    if names := getattr(option, "_fields", ()):
        return " ".join(f"{name}={number}" for name, number in zip(names, option, strict=True))
    return "x".join(map(str, option)) if type(option) is tuple else str(option)
