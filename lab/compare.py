"""Compares two sides: source trees, backends, instruction sets, numbers of threads, systems.

Usage::

    python lab/compare.py SIDE [SIDE] [--only answers,times]
        [--models MODEL...] [--backend ID,ID] [--json FILE] [OPTION...]

A side is a source tree, a folder or a revision, and what it runs on: ``HEAD~3``,
``.,isa=avx2,threads=5``, ``.,backend=CpuRef``, ``.,relaxed``, or for another system
``.,python=wine C:/Python/python.exe,root=Z:``, where ``root`` goes ahead of absolute paths. The
second side is this checkout if left out. Each side runs in processes of its own, with its tree's
packages and compiled kernels. Sides without a backend are compared on each of ``--backend``.
``--only`` takes these kinds, or a group's name for all of its kinds:

- ``answers``: ``models`` with their golden inputs and random ones, NNAPI's published examples
  (``vectors``), ``random`` networks, and the conformance ``kit``'s; not in the group: ``instances``
  of every operation, drawn by chance. The first side makes the inputs for both. Trees are compared
  bit for bit: type, shape and bytes of every output, which backend ran each layer, and the text of
  errors; their answers are remembered as long as the source stays. Other backends and systems have
  to give the same elements, except those that follow from floating point: see ``--tolerance``.
- ``times``: ``calls`` of models, ``overhead`` of a call of one layer of no work, and ``starts`` of
  processes until their first result, on one thread.

Processes of both sides take turns, so that whatever else the machine does falls on both alike. Only
ratios of their times mean anything: above 1, the new tree is faster. The exit status is 1 if
answers differ, 2 if a side cannot be run.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from comparison import equal_answers, times
from comparison.sides import Side
from comparison.subjects import KINDS
from comparison.trees import Store, TreeError, default_store

ROOT = Path(__file__).resolve().parents[1]
BACKENDS = ("NumbaAcc", "CpuRef")

COMPARISONS = {
    **dict.fromkeys(KINDS, equal_answers.compare),
    **dict.fromkeys(times.KINDS, times.compare),
}
"""The function that compares two sides, by kind. It returns how much is wrong, and figures."""

GROUPS = {"answers": KINDS[:-1], "times": tuple(times.KINDS)}


def main() -> int:
    """Compare the sides named on the command line; return the exit status."""
    options = _options()
    results = {}
    num_wrong = 0
    try:
        store = Store(options.cache)
        store.forget()
        old, new = (Side.named(text, store, ROOT) for text in (options.old, options.new))
        print(f"old: {old.name} {old.tree.digest}\nnew: {new.name} {new.tree.digest}", flush=True)
        for kind in options.only:
            wrong, results[kind] = COMPARISONS[kind](kind, old, new, options)
            num_wrong += wrong
    except TreeError as error:
        print(f"compare.py: error: {error}", file=sys.stderr)
        return 2
    if set(options.only) - set(times.KINDS):
        print(f"{num_wrong} differences" if num_wrong else "no difference")
    if options.json is not None:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return int(num_wrong > 0)


def _words(text: str) -> list[str]:
    """Split a list of words of the command line."""
    return text.split(",")


def _kinds(text: str) -> list[str]:
    """The kinds that words of the command line name."""
    return [kind for word in _words(text) for kind in GROUPS.get(word, (word,))]


def _options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("old", metavar="SIDE", help="TREE[,KEY=VALUE...]")
    parser.add_argument("new", metavar="SIDE", nargs="?", default=str(ROOT), help="this checkout")
    names = ",".join((*GROUPS, *COMPARISONS))
    parser.add_argument(
        "--only", type=_kinds, default=list(GROUPS["answers"]), help=f"{names}; answers"
    )
    parser.add_argument(
        "--models",
        nargs="+",
        type=lambda text: Path(text).resolve(),
        default=[],
        metavar="MODEL",
        help="files to take instead of the shared ones",
    )
    parser.add_argument(
        "--backend",
        type=_words,
        default=list(BACKENDS),
        help=f"{','.join(BACKENDS)}; calls and starts take the first one alone",
    )
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared", help="test data")
    parser.add_argument("--cache", type=Path, default=default_store(), help="folder of results")
    parser.add_argument("--json", type=Path, help="file for the figures of all kinds")

    answers = parser.add_argument_group("answers")
    answers.add_argument("--count", type=int, default=300, help="random networks")
    answers.add_argument("--seed", type=int, default=0, help="of the first random network")
    answers.add_argument("--every", type=int, default=1, help="only every so many-th of each kind")
    answers.add_argument("--filter", default="", help="only subjects with this in their names")
    answers.add_argument("--jobs", type=int, default=1, help="processes at a time")
    answers.add_argument(
        "--tolerance",
        type=float,
        default=1e-5,
        help="of floats that follow from floats, by the largest element, or 1; integers: 1 step",
    )
    answers.add_argument(
        "--show", type=int, default=10, help="differences to show element by element"
    )

    turns = parser.add_argument_group("times")
    turns.add_argument("--pairs", type=int, default=5, help="of processes, for each model")
    turns.add_argument("--seconds", type=float, default=1.0, help="of calls, for each pair")
    turns.add_argument("--starts", type=int, default=15, help="of each tree, for each model")

    options = parser.parse_args()
    for chosen, known in ((options.only, COMPARISONS), (options.backend, BACKENDS)):
        if unknown := [word for word in chosen if word not in known]:
            parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
