"""Subjects of a benchmark, and how much of them is measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from armpy.cli.inputs.request import InputRequest
from armpy.core.dataclass import dataclass
from armpy.core.units import counted
from armpy.errors import InvalidArgumentError

ARMPY = "armpy"
"""The engine that subjects run on unless they name a peer."""

ENGINES = (ARMPY, "litert", "onnxruntime", "openvino")
"""Engines by name; the last ones are measured beside armpy where they are installed."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A model in one of the ways to run it."""

    model: str  # path of the file
    engine: str = ARMPY  # one of `ENGINES`
    # Ids in order of preference; all installed ones if None.
    backends: tuple[str, ...] | None = None
    num_threads: int | None = None  # for backends that have threads of their own
    callers: int = 1  # threads that call the model at the same time
    batch: int | None = None  # size of the first axis of every input; None for the model's own
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # shapes of inputs by name
    size: tuple[int, int] | None = None  # height and width of images with open sizes
    inputs: tuple[str, ...] = ()  # each ``NAME=VALUE``, as of ``--input``; others are random
    quantize_inputs: bool = False  # whether real numbers for quantised inputs are quantised
    variant: str = ""  # what its options are called; empty for none
    # Values by backend id and name.
    backend_options: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    # Further arguments of `armpy.load`: ``signature``, ``front_end``, ``front_end_options``,
    # ``preference``, ``trusted_keys``, ``code``; and ``on_fallback`` and ``dynamic_backends_path``
    # of `armpy.RuntimeOptions`.
    load_options: Mapping[str, object] = field(default_factory=dict)

    @property
    def input_request(self) -> InputRequest:
        """Return the request for its inputs, without `batch`, which also changes fixed sizes."""
        shapes = {name: tuple(shape) for name, shape in self.shapes.items()}
        return InputRequest(
            tuple(self.inputs), self.quantize_inputs, (shapes,) if shapes else (), self.size
        )

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise InvalidArgumentError(
                "there is no such engine",
                where="Subject.engine",
                expected=" or ".join(ENGINES),
                actual=repr(self.engine),
            )
        for name in ("num_threads", "callers", "batch"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise InvalidArgumentError(
                    "a benchmark has at least one",
                    where=f"Subject.{name}",
                    expected="1 or more",
                    actual=str(number),
                )


@dataclass(frozen=True, slots=True)
class Plan:
    """Amount of measuring: seconds, runs, warm-up."""

    seconds: float = 3.0  # of warm runs, about, of each subject
    runs: int | None = None  # so many runs of each subject instead
    warm_up_s: float = 0.2  # runs that do not count, in each process, about
    # So many times everything is measured in fresh processes: what falls differently in each, such
    # as where memory lies, is a part of the intervals then.
    processes: int = 6
    seed: int = 0  # of random inputs, and of the order of turns
    baseline: int = 0  # number of the subject that others are compared with
    with_layers: bool = False  # whether to find out what limits each layer, in runs of their own

    def __post_init__(self) -> None:
        for name, least in (("seconds", 0.0), ("warm_up_s", 0.0), ("processes", 1), ("runs", 1)):
            number = getattr(self, name)
            if number is not None and not number >= least:
                raise InvalidArgumentError(
                    "there is nothing to measure",
                    where=f"Plan.{name}",
                    expected=f"{least:g} or more",
                    actual=str(number),
                )


def name_subjects(subjects: Sequence[Subject]) -> list[str]:
    """Names of subjects, made of their differences; each is another one.

    Returns
    -------
    list of str
        Such as ``NumbaAcc, 2 threads``; a single one has its model's name.
    """
    rows = [_traits(subject) for subject in subjects]
    columns = range(len(rows[0])) if rows else range(0)
    differing = [c for c in columns if len({row[c] for row in rows}) > 1]
    names = [", ".join(filter(None, (row[c] for c in differing))) for row in rows]
    names = [name or _model_name(s) for name, s in zip(names, subjects, strict=True)]
    counts, seen = Counter(names), Counter[str]()
    for number, name in enumerate(names):
        if counts[name] > 1:
            seen[name] += 1
            names[number] = f"{name} #{seen[name]}"
    return names


def _model_name(subject: Subject) -> str:
    """A model's name."""
    return Path(subject.model).stem


def _traits(subject: Subject) -> tuple[str, ...]:
    """All in which subjects may differ, as texts."""
    who = " > ".join(subject.backends or ("all backends",))
    threads, callers = subject.num_threads, subject.callers
    return (
        Path(subject.model).name,
        who if subject.engine == ARMPY else subject.engine,
        "" if threads is None else counted(threads, "thread"),
        counted(callers, "caller"),
        "own batch" if subject.batch is None else f"batch {subject.batch}",
        "" if subject.size is None else "x".join(map(str, subject.size)),
        " ".join(f"{name} {'x'.join(map(str, s))}" for name, s in subject.shapes.items()),
        subject.variant,
    )
