"""Compares the answers of two trees to the subjects of one kind, on each backend."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from .differences import differences, worst_elements
from .runs import Answers, Conditions, Docket, answers_of, keep_outputs, kept_answers
from .subjects import Selection
from .trees import Tree, TreeError


def compare(
    kind: str, old: Tree, new: Tree, options: argparse.Namespace
) -> tuple[int, dict[str, int]]:
    """Compare the answers on all backends and instruction sets.

    Returns
    -------
    int
        How many answers differ.
    dict of str to int
        The same for each backend and instruction set.

    Raises
    ------
    TreeError
        If a tree cannot be run, or if there is nothing to compare.
    """
    chosen = options.count, options.seed, options.every, options.filter
    models = [str(path) for path in options.models]
    selection = Selection(kind, *chosen, str(options.shared.resolve()), models)
    docket = Docket.made_by(old, selection)
    _check(docket.names, kind)
    num_unlike = {}
    for backend in options.backend:
        for instruction_set in options.instruction_set if backend == "NumbaAcc" else [""]:
            how = Conditions(backend, instruction_set, options.threads, options.relaxed)
            num_unlike[str(how)] = _compare(old, new, docket, how, options)
    return sum(num_unlike.values()), num_unlike


def _check(names: Sequence[str], kind: str) -> None:
    """Refuse a comparison of nothing, and one in which names stand for several things."""
    if not names:
        raise TreeError(f"there are no {kind} to compare")
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise TreeError(f"names stand for several things: {', '.join(twice[:5])}")


def _compare(
    old: Tree, new: Tree, docket: Docket, how: Conditions, options: argparse.Namespace
) -> int:
    """Compare all answers on one backend; how many differ."""
    before, after = (_answers(tree, docket, how, options.jobs) for tree in (old, new))
    names = docket.names
    unlike = {
        number: texts
        for number, name in enumerate(names)
        if (texts := differences(before[name], after[name]))
    }
    kind = names[0].partition("/")[0]
    num_taken = _num_taken(how.backend, before)
    errors = sum(bool(answer["error"]) for answer in before.values())
    if not num_taken:
        raise TreeError(f"{how} ran no layer of these {kind} subjects, which proves nothing")
    print(
        f"{kind} on {how}: {len(names) - len(unlike)} of {len(names)} equal, {len(unlike)} differ; "
        f"{how.backend} ran layers of {num_taken}, {errors} are errors",
        flush=True,
    )
    shown = list(unlike)[: options.show]
    with tempfile.TemporaryDirectory(prefix="armpy-compare-") as scratch:
        folders = Path(scratch, "old"), Path(scratch, "new")
        for tree, folder in zip((old, new), folders, strict=True):
            if shown:
                keep_outputs(tree, docket, shown, how, folder)
        for number in shown:
            print(f"DIFFERS {names[number]} on {how}")
            for text in (*unlike[number], *worst_elements(names[number], *folders)):
                print(f"    {text}")
    for number in list(unlike)[len(shown) :]:
        print(f"DIFFERS {names[number]} on {how}: {unlike[number][0][:200]}")
    return len(unlike)


def _answers(tree: Tree, docket: Docket, how: Conditions, jobs: int) -> Answers:
    """A tree's answers; says how long they took."""
    begin = time.perf_counter()
    is_kept = kept_answers(tree, docket, how).exists()
    answers = answers_of(tree, docket, how, jobs)
    took = "remembered" if is_kept else f"{time.perf_counter() - begin:.0f} s"
    print(f"  {how} in {tree.name}: {took}", flush=True)
    return answers


def _num_taken(backend: str, answers: Answers) -> int:
    """In how many networks a backend ran some of the layers."""
    placements = [answer.get("placement", ()) for answer in answers.values()]
    return sum(any(line.endswith(f" on {backend}") for line in lines) for lines in placements)
