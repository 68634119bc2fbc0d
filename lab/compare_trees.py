"""Compares two source trees: answers bit for bit, times in turns, and compiled models.

Usage::

    python lab/compare_trees.py OLD [NEW] [--only answers,times,prepared,pictures]
        [--models MODEL...] [--backend ID,ID] [--json FILE] [OPTION...]

OLD and NEW are folders or revisions; NEW is this checkout if left out. Each tree runs in processes
of its own, with its own packages and compiled kernels. ``--only`` takes these kinds, or a group's
name for all of its kinds:

- ``answers``: ``models`` with their golden inputs and random ones, NNAPI's published examples
  (``vectors``), ``random`` networks, and the conformance ``kit``'s. The old tree makes the inputs
  for both. Compared are type, shape and bytes of every output, which backend ran each layer, and
  the text of errors. A tree's answers are remembered as long as its source stays.
- ``times``: ``calls`` of models, ``overhead`` of a call of one layer of no work, and ``starts`` of
  processes until their first result, on one thread.
- ``prepared``: models that are compiled to files, and run by a Python with NumPy alone. The outputs
  have to equal the model's, bit for bit.
- ``pictures``: how many pictures a second ``armpy pictures`` gets through.

Processes of both trees take turns, so that whatever else the machine does falls on both alike. Only
ratios of their times mean anything: above 1, the new tree is faster. The exit status is 1 if
answers differ, 2 if a tree cannot be run.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from comparison import equal_answers, pictures, prepared, times
from comparison.subjects import KINDS
from comparison.trees import Store, Tree, TreeError, default_store

ROOT = Path(__file__).resolve().parents[1]
BACKENDS = ("NumbaAcc", "CpuRef")

COMPARISONS = {
    **dict.fromkeys(KINDS, equal_answers.compare),
    **dict.fromkeys(times.KINDS, times.compare),
    "prepared": prepared.compare_trees,
    "pictures": pictures.compare,
}
"""The function that compares two trees, by kind. It returns how much is wrong, and figures."""

GROUPS = {"answers": KINDS, "times": tuple(times.KINDS)}


def main() -> int:
    """Compare the trees named on the command line; return the exit status."""
    options = _options()
    results = {}
    num_wrong = 0
    try:
        store = Store(options.cache)
        store.forget()
        old, new = (Tree.named(text, store, ROOT) for text in (options.old, options.new))
        print(f"old: {old.name} {old.digest}\nnew: {new.name} {new.digest}", flush=True)
        for kind in options.only:
            wrong, results[kind] = COMPARISONS[kind](kind, old, new, options)
            num_wrong += wrong
    except TreeError as error:
        print(f"compare_trees.py: error: {error}", file=sys.stderr)
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
    parser.add_argument("old", help="folder or revision")
    parser.add_argument("new", nargs="?", default=str(ROOT), help="folder or revision; this one")
    names = ",".join((*GROUPS, *COMPARISONS))
    parser.add_argument("--only", type=_kinds, default=list(KINDS), help=f"{names}; answers")
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
    answers.add_argument(
        "--instruction-set", type=_words, default=[""], help="of NumbaAcc: avx512vnni,avx2,portable"
    )
    answers.add_argument("--count", type=int, default=300, help="random networks")
    answers.add_argument("--seed", type=int, default=0, help="of the first random network")
    answers.add_argument("--every", type=int, default=1, help="only every so many-th of each kind")
    answers.add_argument("--filter", default="", help="only subjects with this in their names")
    answers.add_argument("--relaxed", action="store_true", help="bfloat16 products of NumbaAcc")
    answers.add_argument("--threads", type=int, default=1, help="of NumbaAcc")
    answers.add_argument("--jobs", type=int, default=1, help="processes at a time")
    answers.add_argument(
        "--show", type=int, default=10, help="differences to show element by element"
    )

    turns = parser.add_argument_group("times and pictures")
    turns.add_argument("--pairs", type=int, default=5, help="of processes, for each model")
    turns.add_argument("--seconds", type=float, default=1.0, help="of calls, for each pair")
    turns.add_argument("--starts", type=int, default=15, help="of each tree, for each model")
    turns.add_argument("--pictures", type=int, default=2000, help="to show to each model")

    options = parser.parse_args()
    for chosen, known in ((options.only, COMPARISONS), (options.backend, BACKENDS)):
        if unknown := [word for word in chosen if word not in known]:
            parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
