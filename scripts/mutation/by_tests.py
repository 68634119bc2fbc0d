"""Judges mutations of any code of a tree by the tests that execute it."""

from __future__ import annotations

import argparse
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .reached import Reached
from .sites import Site, mutated, sampled, sites
from .tree import Outcome, TreeCopy

_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
_NO_TESTS = 5
"""pytest's exit status if it found no test."""
_GONE = "a test that is not there any more"
"""Stands for what caught a mutation where tests were measured that were renamed since."""


@dataclass(frozen=True, slots=True)
class _Trial:
    """A mutation of a room, and what noticed it: a test, another text, or nothing."""

    room: str
    site: Site
    caught_by: str


def judge_by_tests(options: argparse.Namespace) -> int:
    """Judge a sample of each room's mutations, and print which were caught.

    Parameters
    ----------
    options : argparse.Namespace
        The command line's arguments.

    Returns
    -------
    int
        0 if the part that is to be caught has been caught in each room, else 1.
    """
    with tempfile.TemporaryDirectory(prefix="mutate-") as scratch:
        copy = TreeCopy(options.tree.resolve(), Path(scratch, "tree"), options.python)
        measured = (options.measured or Path(scratch, "measured")).resolve()
        reached = Reached.measured(copy, options.rooms, options.tests, measured)
        trials: list[_Trial] = []
        for room in options.rooms:
            for site in _chosen(copy.folder, room, options):
                trials.append(_judged(copy, room, site, reached, options))
                trial = trials[-1]
                verdict = f"caught by {trial.caught_by}" if trial.caught_by else "SURVIVED"
                print(f"{trial.site}\n    {verdict}", flush=True)
        unsure = _failing_anyway(copy, trials) | {_GONE}
    print(_table(trials, unsure))
    shares = [_share(trials, room, unsure) for room in options.rooms]
    return 0 if trials and min(shares) >= options.least else 1


def _chosen(tree: Path, room: str, options: argparse.Namespace) -> list[Site]:
    """The mutations of a room to try."""
    everything = list(_all_sites(tree, tree / room))
    chosen = sampled(everything, options)
    print(f"{room}: {len(chosen)} of {len(everything)} mutations", flush=True)
    return chosen


def _all_sites(tree: Path, room: Path) -> Iterator[Site]:
    """Every mutation of a folder or file."""
    for path in sorted(room.rglob("*.py")) if room.is_dir() else [room]:
        yield from sites(str(path.relative_to(tree)), path.read_text(encoding="utf-8"))


def _judged(
    copy: TreeCopy, room: str, site: Site, reached: Reached, options: argparse.Namespace
) -> _Trial:
    """Run the tests that may catch a mutation."""
    tests = reached.tests_of(site, options.budget)
    if not tests:
        return _Trial(room, site, "")
    text = mutated((copy.folder / site.module).read_text(encoding="utf-8"), site)
    with copy.changed(site.module, text):
        outcome = copy.pytest([*tests, "-x", "-n", "0"], options.limit)
    return _Trial(room, site, _what_caught(outcome))


def _what_caught(outcome: Outcome) -> str:
    """The test that failed, or how else a run ended that did not pass; empty if it passed."""
    if outcome.status in (0, _NO_TESTS):
        return ""
    if outcome.status is None:
        return "the limit of time"
    if "ERROR: not found: " in outcome.output:
        return _GONE
    failed = _FAILED.search(outcome.output)
    return failed[1] if failed else f"pytest's exit status {outcome.status}"


def _failing_anyway(copy: TreeCopy, trials: Sequence[_Trial]) -> frozenset[str]:
    """Tests that caught something and fail on the unchanged copy, too."""
    tests = sorted({trial.caught_by for trial in trials if "::" in trial.caught_by})
    if not tests:
        return frozenset()
    outcome = copy.pytest([*tests, "-n", "0"], 1800.0)
    return frozenset(tests) & frozenset(_FAILED.findall(outcome.output))


def _share(trials: Sequence[_Trial], room: str, unsure: frozenset[str]) -> float:
    """The part of a room's mutations that was caught."""
    there = [trial for trial in trials if trial.room == room and trial.caught_by not in unsure]
    return sum(bool(trial.caught_by) for trial in there) / len(there) if there else 1.0


def _table(trials: Sequence[_Trial], unsure: frozenset[str]) -> str:
    """Rooms with their numbers, and what survived."""
    lines = ["", f"{'room':24} mutants  caught  survived  share"]
    rooms = dict.fromkeys(trial.room for trial in trials)
    judged = [trial for trial in trials if trial.caught_by not in unsure]
    for room in rooms:
        survived = Counter(not trial.caught_by for trial in judged if trial.room == room)
        share = _share(trials, room, unsure)
        row = f"{survived.total():7}  {survived[False]:6}  {survived[True]:8}  {share:5.0%}"
        lines.append(f"{room:24} {row}")
    lines += ["", *(f"survived  {trial.site}" for trial in judged if not trial.caught_by)]
    lines += [
        f"not counted, as the unchanged tree fails, too  {trial.site}: {trial.caught_by}"
        for trial in trials
        if trial.caught_by in unsure
    ]
    return "\n".join(lines)
