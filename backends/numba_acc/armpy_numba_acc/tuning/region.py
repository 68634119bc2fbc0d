"""Finds what is fastest for a region, decision by decision."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from armpy.backend import Progress, TunedChoice, TuningRequest, TuningResult, report_progress
from armpy.graph import Layer, SubgraphView
from armpy.ops import While
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.machine.lessons import lessons_of
from armpy_numba_acc.machine.model import MachineModel
from armpy_numba_acc.machine.model_figures import typical
from armpy_numba_acc.passes.region import lower_region, prepared
from armpy_numba_acc.program.choices import Choices, Decision, Option
from armpy_numba_acc.runtime.machine import learn
from armpy_numba_acc.store.choices import keep_choices, kept_choices
from armpy_numba_acc.store.keys import is_current, program_key
from armpy_numba_acc.store.programs import title_of
from armpy_numba_acc.store.settings import disk_entries
from armpy_numba_acc.tuning.measuring import Candidate, take_turns

_BACKEND = "NumbaAcc"

_MOST_S = 1.0
"""For the candidates of one decision."""

_WHOLE_S = 2.0
"""For the comparison of the whole region with what the model of the cost would have."""

_LEAST_GAIN = 1.02
"""What is not faster by so much is noise, and changes nothing."""

_log = logging.getLogger("armpy.NumbaAcc")


def tune_region(
    view: SubgraphView,
    isa: Isa,
    num_threads: int,
    request: TuningRequest,
    model: MachineModel | None = None,
) -> None:
    """Measure what is fastest for a region, keep it, and say what it is.

    Parameters
    ----------
    view : SubgraphView
    isa : Isa
    num_threads : int
        With `view` and `isa`, what the answers hold for.
    request : TuningRequest
    model : MachineModel, optional
        What the lowerings choose by otherwise; the typical one of the instruction set if left out.

    Notes
    -----
    Layers are tried by themselves, on memory of their own, with each way that a lowering could
    choose. What is faster in sum must be so when all of it runs: else nothing changes.
    """
    model = model or typical(isa)
    what = title_of(view, isa)
    entries = disk_entries()
    key = program_key(view, isa, num_threads) if entries is not None else ""
    if entries is None or not key or not is_current():
        request.add(TuningResult(_BACKEND, what, problem="nothing can be kept on disk"))
        return
    if any(isinstance(layer.operation, While) for layer in view.layers):
        # On made-up inputs a loop may run for any time.
        request.add(TuningResult(_BACKEND, what, problem="it has loops, which are not measured"))
        return
    search = _Search(prepared(view), isa, num_threads, model, request)
    search.run()
    if not search.found:
        return
    before_us, after_us = search.compare()
    problem = ""
    if after_us * 1.005 > before_us and search.measured:
        # What is faster layer by layer is not so together.
        search.measured.clear()
        after_us = before_us
    changed = f"{len(search.measured)} of {len(search.found)} choices"
    answers = {**search.modelled, **search.measured}
    keep_choices(entries, key, answers, f"tuned: {changed} changed, {what}")
    if kept_choices(entries, key) != answers:
        problem, after_us = "what was found could not be kept on disk", before_us
    learn(key, lessons_of(search.tried))
    request.add(TuningResult(_BACKEND, what, before_us, after_us, tuple(search.found), problem))


@dataclass
class _Search:
    """The search for one region.

    Attributes
    ----------
    measured : dict of str to Option
        What is to be chosen otherwise than the model of the cost says.
    modelled : dict of str to Option
        What it says where the answer was looked for: other figures might say something else.
    found : list of TunedChoice
    tried : list of list of (str, float, float)
        What `armpy_numba_acc.machine.lessons.lessons_of` takes.
    """

    view: SubgraphView
    isa: Isa
    num_threads: int
    model: MachineModel
    request: TuningRequest
    measured: dict[str, Option] = field(default_factory=dict)
    modelled: dict[str, Option] = field(default_factory=dict)
    found: list[TunedChoice] = field(default_factory=list)
    tried: list[list[tuple[str, float, float]]] = field(default_factory=list)
    _done: set[str] = field(default_factory=set)

    def run(self) -> None:
        """Go through all layers that are lowered together."""
        groups = self._groups()
        for number, layers in enumerate(groups):
            report_progress(Progress(_BACKEND, "measuring", number, len(groups)))
            part = self.view.part(layers)
            while (decision := self._next_decision(part)) is not None:
                self.found.append(self._decide(part, decision, len(groups) - number))
        while (decision := self._next_decision(self.view)) is not None:
            self.found.append(self._decide(self.view, decision, 1))
        report_progress(Progress(_BACKEND, "measuring", len(groups), len(groups)))

    def compare(self) -> tuple[float, float]:
        """Time of the whole region without and with what was found, in microseconds."""
        tables = [{}, self.measured] if self.measured else [{}]
        about = self.view, self.isa, self.num_threads, self.model
        programs = [Candidate(*about, table) for table in tables]
        times = take_turns(programs, _WHOLE_S)
        return times[0], times[-1]

    def _groups(self) -> list[tuple[Layer, ...]]:
        """Layers that are lowered together, where there is something to choose."""
        choices = Choices(self.isa, self.model)
        lower_region(self.view, self.isa, self.num_threads, choices)
        decisions = [d for d in choices.made.values() if len(d.options) > 1 and d.layers]
        return list(dict.fromkeys(decision.layers for decision in decisions))

    def _next_decision(self, part: SubgraphView) -> Decision | None:
        """One that was not tried yet; what is chosen first may lead to others."""
        choices = Choices(self.isa, self.model, self.measured)
        lower_region(part, self.isa, self.num_threads, choices)
        found = (d for d in choices.made.values() if len(d.options) > 1)
        is_whole = part is self.view
        return next((d for d in found if d.key not in self._done and (d.layers or is_whole)), None)

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
        times_us = take_turns(candidates, min(self.request.remaining_s / num_left / 2, _MOST_S))
        self.modelled[decision.key] = decision.modelled
        if decision.expected:
            expected = dict(zip(decision.options, decision.expected, strict=True))
            timed = zip(options, times_us, strict=True)
            self.tried.append([(*expected[option], 1000 * us) for option, us in timed])
        best = min(range(len(options)), key=times_us.__getitem__)
        if times_us[best] * _LEAST_GAIN > times_us[0]:
            best = 0
        else:
            self.measured[decision.key] = options[best]
        return TunedChoice(*about, modelled, _text(options[best]), times_us[0], times_us[best])

    def _candidates(
        self, part: SubgraphView, decision: Decision
    ) -> tuple[Sequence[Option], Sequence[Candidate]]:
        """Options that are right, the model's first, and a program with each."""
        options: list[Option] = []
        candidates: list[Candidate] = []
        for option in dict.fromkeys((decision.modelled, *decision.options)):
            table = {**self.measured, decision.key: option}
            about = part, self.isa, self.num_threads, self.model
            candidate = Candidate(*about, table, is_part=part is not self.view)
            candidate.run()
            if candidates and not candidate.agrees_with(candidates[0]):
                _log.warning("%s is not right for %s", _text(option), decision.key)
                continue
            options.append(option)
            candidates.append(candidate)
        return options, candidates


def _text(option: Option) -> str:
    """An option for people."""
    return "x".join(map(str, option)) if type(option) is tuple else str(option)
