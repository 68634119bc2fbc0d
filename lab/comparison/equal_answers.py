"""Compares the answers of two sides to the subjects of one kind, on each backend."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from .differences import differences, distances, worst_elements
from .runs import Answers, Docket, answers_of, answers_with_outputs, kept_answers
from .sides import Side
from .subjects import Selection
from .trees import TreeError


def compare(
    kind: str, old: Side, new: Side, options: argparse.Namespace
) -> tuple[int, dict[str, int]]:
    """Compare the answers on all backends.

    Returns
    -------
    int
        How many answers differ.
    dict of str to int
        The same for each backend.

    Raises
    ------
    TreeError
        If a side cannot be run, or if there is nothing to compare.
    """
    chosen = options.count, options.seed, options.every, options.filter
    models = [str(path) for path in options.models]
    selection = Selection(kind, *chosen, str(options.shared.resolve()), models)
    docket = Docket.made_by(old.tree, selection)
    _check(docket.names, kind)
    num_unlike = {}
    for backend in [""] if old.backend and new.backend else options.backend:
        one, other = old.on(backend), new.on(backend)
        compared = _compare if one.is_like(other) else _compare_outputs
        num_unlike[str(one)] = compared(one, other, docket, options)
    return sum(num_unlike.values()), num_unlike


def _check(names: Sequence[str], kind: str) -> None:
    """Refuse a comparison of nothing, and one in which names stand for several things."""
    if not names:
        raise TreeError(f"there are no {kind} to compare")
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise TreeError(f"names stand for several things: {', '.join(twice[:5])}")


def _compare(old: Side, new: Side, docket: Docket, options: argparse.Namespace) -> int:
    """Compare bits and placements; how many answers differ."""
    before, after = (_answers(side, docket, options.jobs) for side in (old, new))
    names = docket.names
    unlike = {
        number: texts
        for number, name in enumerate(names)
        if (texts := differences(before[name], after[name]))
    }
    _summarise(old, new, (before, after), docket, len(unlike))
    shown = list(unlike)[: options.show]
    with tempfile.TemporaryDirectory(prefix="armpy-compare-") as scratch:
        folders = Path(scratch, "old"), Path(scratch, "new")
        for side, folder in zip((old, new), folders, strict=True):
            if shown:
                answers_with_outputs(side, docket, shown, folder)
        for number in shown:
            print(f"DIFFERS {names[number]} on {new}")
            for text in (*unlike[number], *worst_elements(names[number], *folders)):
                print(f"    {text}")
    for number in list(unlike)[len(shown) :]:
        print(f"DIFFERS {names[number]} on {new}: {unlike[number][0][:200]}")
    return len(unlike)


def _compare_outputs(old: Side, new: Side, docket: Docket, options: argparse.Namespace) -> int:
    """Compare elements within what rounding may move; how many answers differ."""
    names = docket.names
    with tempfile.TemporaryDirectory(prefix="armpy-compare-") as scratch:
        folders = Path(scratch, "old"), Path(scratch, "new")
        before, after = (
            answers_with_outputs(side, docket, range(len(names)), folder, options.jobs)
            for side, folder in zip((old, new), folders, strict=True)
        )
        unlike = {
            name: texts
            for name in names
            if (texts := distances(name, before[name], after[name], folders, options.tolerance))
        }
    _summarise(old, new, (before, after), docket, len(unlike))
    for name, texts in unlike.items():
        print(f"DIFFERS {name} on {new}: {'; '.join(texts)[:400]}")
    return len(unlike)


def _summarise(
    old: Side, new: Side, answers: tuple[Answers, Answers], docket: Docket, num_unlike: int
) -> None:
    """Print how many answers are alike; refuse a side whose backend ran nothing."""
    kind = docket.names[0].partition("/")[0]
    taken = []
    for side, given in zip((old, new), answers, strict=True):
        taken.append(_num_taken(side.backend, given))
        if not taken[-1]:
            raise TreeError(f"{side} ran no layer of these {kind} subjects, which proves nothing")
    errors = sum(bool(answer["error"]) for answer in answers[0].values())
    count = len(docket.names)
    print(
        f"{kind} on {old} and {new}: {count - num_unlike} of {count} alike, {num_unlike} differ; "
        f"layers of {taken[0]} and {taken[1]} ran on the backends, {errors} are errors",
        flush=True,
    )


def _answers(side: Side, docket: Docket, jobs: int) -> Answers:
    """A side's answers; says how long they took."""
    begin = time.perf_counter()
    is_kept = kept_answers(side, docket).exists()
    answers = answers_of(side, docket, jobs)
    took = "remembered" if is_kept else f"{time.perf_counter() - begin:.0f} s"
    print(f"  {side}: {took}", flush=True)
    return answers


def _num_taken(backend: str, answers: Answers) -> int:
    """In how many networks a backend ran some of the layers."""
    placements = [answer.get("placement", ()) for answer in answers.values()]
    return sum(any(line.endswith(f" on {backend}") for line in lines) for lines in placements)
