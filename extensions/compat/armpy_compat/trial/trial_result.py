"""Result of a trial: figures, the lines that people read, and the JSON document."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from math import isinf

from armpy.core.dataclass import dataclass
from armpy.core.units import bytes_text, counted, time_text
from armpy_compat.trial.comparison import ModelAnswers, calls_by_model, compare_runs
from armpy_compat.trial.engine_calls import ENGINES
from armpy_compat.trial.program_runs import ProgramRun

SIDES = ("own", "armpy")


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of one side.

    Parameters
    ----------
    call_us : mapping of str to float
        Median time by model of calls with input shapes that an earlier call of the process had.
    first_call_us : mapping of str to float
        Mean time by model of a run's other calls: they prepare the model for their shapes.
    calls_us : float
        Time of all calls of a run together.
    program_s, processor_s : float
        Time of the whole program, without the start of Python, and its processor time.
    first_start_s, later_start_s : float or None
        From the start of the process to the first answer, in the first run and in later ones.
    peak_bytes : int
        Largest resident memory.
    """

    call_us: Mapping[str, float]
    first_call_us: Mapping[str, float]
    calls_us: float
    program_s: float
    processor_s: float
    first_start_s: float | None
    later_start_s: float | None
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class TrialModel:
    """A model that the program loaded."""

    key: str
    name: str
    engine: str
    num_sessions: int
    num_shapes: int
    """Input shapes of its calls on the engine that differ."""
    placement: str
    answers: ModelAnswers


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What a program does on its own engine and on armpy."""

    program: str
    engine: str
    within: float
    rounds: int
    models: tuple[TrialModel, ...]
    own: Figures
    armpy: Figures
    own_ending: str
    armpy_ending: str
    armpy_error_text: str
    """End of what the program wrote to standard error on armpy, if it ended differently there."""
    missing: tuple[str, ...]
    """Names that the program asked for, which the engine has and armpy lacks."""
    errors: tuple[str, ...]
    """Errors that armpy raised in calls of the engine, and the engine did not."""
    num_printed: tuple[int, int]
    """Lines that the program prints on its engine and on armpy."""
    printed_difference: str
    """The first line that differs there, on both; empty if none does."""
    lacks_input: bool
    """Whether the program read standard input, and was given none."""
    num_unrecorded: int

    @property
    def total(self) -> int:
        """Number of calls."""
        return sum(model.answers.total for model in self.models)

    @property
    def equal(self) -> int:
        """Number of calls whose answers are equal."""
        return sum(model.answers.equal for model in self.models)

    @property
    def is_same(self) -> bool:
        """Whether all answers are equal, and both runs end alike."""
        return 0 < self.total == self.equal and self.own_ending == self.armpy_ending

    @property
    def headline(self) -> str:
        """Times and answers in one line."""
        answers = f"{self.equal} of {self.total} answers equal within {_short(self.within)}"
        if not self.armpy.first_call_us:
            time = time_text(self.own.calls_us)
            return f"{self.engine} {time}, armpy computed nothing; {answers}"
        called = [model.key for model in self.models if model.answers.total]
        if len(called) == 1:
            own, armpy, kind = _call_times(called[0], self.own, self.armpy)
            if own and armpy:
                return f"{self.engine} {time_text(own)}, armpy {time_text(armpy)} {kind}; {answers}"
        times = f"{self.engine} {time_text(self.own.calls_us)}, armpy"
        times += f" {time_text(self.armpy.calls_us)}"
        models = counted(len(called), "model")
        return f"{times} for {counted(self.total, 'call')} of {models}; {answers}"

    @property
    def model_rows(self) -> list[tuple[str, ...]]:
        """Rows of `MODEL_COLUMNS`."""
        return [_row(model, self.own, self.armpy) for model in self.models]

    @property
    def program_rows(self) -> list[tuple[str, ...]]:
        """Rows of a quantity, the engine's figure and armpy's."""
        rows: list[tuple[str, Callable[[Figures], str]]] = [
            ("whole program", lambda side: time_text(1e6 * side.program_s)),
            ("processor time", lambda side: time_text(1e6 * side.processor_s)),
            ("first start to first answer", lambda side: _seconds(side.first_start_s)),
            ("later start to first answer", lambda side: _seconds(side.later_start_s)),
            ("peak memory", lambda side: bytes_text(side.peak_bytes)),
        ]
        own_lines, armpy_lines = map(str, self.num_printed)
        verdict = "different" if self.printed_difference else "the same"
        return [
            *((name, text(self.own), text(self.armpy)) for name, text in rows),
            ("printed lines", own_lines, f"{armpy_lines}, {verdict}"),
        ]

    def remarks(self) -> Iterator[str]:
        """Sentences on what differs, is missing, or limits the result."""
        if self.own_ending != self.armpy_ending:
            yield f"On {self.engine} the program {self.own_ending}."
            yield f"On armpy the program {self.armpy_ending}."
        elif self.own_ending != _USUAL_ENDING:
            yield f"On both, the program {self.own_ending}."
        for model in self.models:
            yield from self._model_remarks(model)
        if self.printed_difference:
            yield f"The program prints something else on armpy: {self.printed_difference}."
        if self.missing:
            yield f"The program asked for what armpy lacks: {', '.join(self.missing)}."
        for error in self.errors:
            yield f"Only on armpy: {error}"
        if self.lacks_input:
            yield "The program read standard input, which was empty: give it a file as stdin."
        uncompared = sum(model.answers.uncompared for model in self.models)
        if uncompared:
            yield f"{counted(uncompared, 'answer')} could not be compared: not recorded."
        if self.num_unrecorded:
            yield f"{counted(self.num_unrecorded, 'further call')} were only counted."

    def _model_remarks(self, model: TrialModel) -> Iterator[str]:
        """Sentences on the calls of one model."""
        name, answers = model.name, model.answers
        own, armpy = (side.first_call_us.get(model.key) for side in (self.own, self.armpy))
        if model.num_shapes > 1 and own and armpy:
            yield (
                f"{name} is called with {model.num_shapes} sets of input shapes: the first calls"
                f" with them take {time_text(model.num_shapes * own)} together on {self.engine},"
                f" {time_text(model.num_shapes * armpy)} on armpy."
            )
        if answers.first_difference:
            yield f"{name}: {answers.first_difference}."
        if answers.other_inputs and answers.equal < answers.total:
            yield (
                f"{name}: {counted(answers.other_inputs, 'call')} had other inputs on armpy:"
                " earlier answers, the time or chance are in them."
            )


MODEL_COLUMNS = ("model", "calls>", "engine>", "armpy>", "ratio>", "equal>", "difference>")
"""Columns of `TrialResult.model_rows`."""

_LETTERS_BEFORE, _MOST_LETTERS = 20, 60
_USUAL_ENDING = "ended with status 0"


def result_of(
    program: str,
    own: Sequence[ProgramRun],
    armpy: Sequence[ProgramRun],
    within: float,
    *,
    has_input: bool,
) -> TrialResult:
    """Judge the runs of a program: the answers of the first ones, the times of the later ones."""
    answers = {part.key: part for part in compare_runs(own[0], armpy[0], within)}
    engines = dict.fromkeys(model["engine"] for model in own[0].models)
    names = [*engines] or [ENGINES[name] for name in own[0].record.get("engines", ())]
    differs = own[0].ending != armpy[0].ending
    errors = [_errors(run) for run in (own[0], armpy[0])]
    absent = own[0].record.get("missing", ())
    return TrialResult(
        program,
        " and ".join(names),
        within,
        len(own),
        tuple(_models(own[0], armpy[0], answers)),
        _figures(own),
        _figures(armpy),
        own[0].ending,
        armpy[0].ending,
        armpy[0].error_text if differs else "",
        tuple(n for n in armpy[0].record.get("missing", ()) if n not in absent),
        tuple(error for error in errors[1] if error not in errors[0]),
        (len(own[0].printed), len(armpy[0].printed)),
        _printed_difference(own[0].printed, armpy[0].printed),
        not has_input and bool(own[0].record.get("reads_input")),
        int(own[0].record.get("num_unrecorded", 0)),
    )


def _models(
    own: ProgramRun, armpy: ProgramRun, answers: Mapping[str, ModelAnswers]
) -> Iterator[TrialModel]:
    calls = calls_by_model(own)
    for key, part in answers.items():
        sessions = [model for model in own.models if (model["content"] or model["name"]) == key]
        ours = [model for model in armpy.models if (model["content"] or model["name"]) == key]
        placement = next((model["placement"] for model in ours if model["placement"]), "")
        first = next(iter([*sessions, *ours]), {"name": "a model", "engine": ""})
        num_shapes = len({call["shapes"] for call in calls.get(key, ())})
        yield TrialModel(
            key, first["name"], first["engine"], len(sessions), num_shapes, placement, part
        )


def _figures(runs: Sequence[ProgramRun]) -> Figures:
    """Figures of one side: of later runs where there are some, as the first one compiles."""
    later = [run for run in runs[1:] if run.record] or [run for run in runs if run.record]
    repeated: dict[str, list[float]] = {}
    first: dict[str, list[float]] = {}
    for run in later:
        for key, calls in calls_by_model(run).items():
            known: set[str | None] = set()
            first_us: list[float] = []
            for call in calls:
                times = repeated.setdefault(key, []) if call["shapes"] in known else first_us
                times.append(call["us"])
                known.add(call["shapes"])
            if first_us:
                first.setdefault(key, []).append(statistics.mean(first_us))
    starts = [run.record.get("first_answer_s") for run in runs]
    return Figures(
        {key: statistics.median(values) for key, values in repeated.items()},
        {key: statistics.median(values) for key, values in first.items()},
        _median([sum(call["us"] for call in run.calls) for run in later]),
        _median([run.record["program_s"] for run in later]),
        _median([run.record["processor_s"] for run in later]),
        starts[0],
        _median([start for start in starts[1:] if start is not None]) or None,
        max((run.record["peak_bytes"] for run in later), default=0),
    )


def _median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else 0.0


def _errors(run: ProgramRun) -> list[str]:
    return [f"{e['where']}: {e['type']}: {e['text']}" for e in run.record.get("errors", ())]


def _printed_difference(own: Sequence[str], armpy: Sequence[str]) -> str:
    """The first lines that differ; empty if all are equal."""
    for number, (one, other) in enumerate(zip_longest(own, armpy, fillvalue=""), 1):
        if one != other:
            pairs = enumerate(zip(one, other, strict=False))
            same = next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
            place = max(0, same - _LETTERS_BEFORE)
            return f"line {number} is {_cut(other, place)!r}, not {_cut(one, place)!r}"
    return ""


def _cut(line: str, place: int) -> str:
    """A few letters of a line from a place on."""
    end = place + _MOST_LETTERS
    return f"{'...' * (place > 0)}{line[place:end]}{'...' * (end < len(line))}"


def _call_times(key: str, own: Figures, armpy: Figures) -> tuple[float | None, float | None, str]:
    """Times of a model's calls on both sides, and of which calls they are."""
    if key in own.call_us and key in armpy.call_us:
        return own.call_us[key], armpy.call_us[key], "a call"
    return own.first_call_us.get(key), armpy.first_call_us.get(key), "for a first call"


def _row(model: TrialModel, own: Figures, armpy: Figures) -> tuple[str, ...]:
    answers = model.answers
    *times, _ = _call_times(model.key, own, armpy)
    ratio = f"{times[0] / times[1]:.3g}" if times[0] and times[1] else ""
    texts = ["" if time is None else time_text(time) for time in times]
    difference = "other" if isinf(answers.largest) else f"{answers.largest:.2g}"
    return (
        model.name,
        str(answers.total),
        *texts,
        ratio,
        str(answers.equal),
        difference,
    )


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else time_text(1e6 * seconds)


def _short(number: float) -> str:
    """``1e-5``, not ``1e-05``."""
    return f"{number:g}".replace("e-0", "e-")
