"""Compares the answers of two source trees bit for bit, for changes that must not change any.

Usage::

    python scripts/compare_trees.py OLD [NEW] [--only models,vectors,random,kit] [--backend ID]
        [--instruction-set NAME] [--count N] [--every N] [--filter TEXT] [--jobs N]

OLD and NEW are folders or revisions; NEW is this checkout if left out. Each tree runs in processes
of its own, with its own packages and compiled kernels, on the same inputs, which the old tree has
made: every model with its golden inputs and random ones, NNAPI's published examples, random
networks, and the conformance kit's. Compared are type, shape and bytes of every output, which
backend ran each layer, and the text of errors.

A tree's answers are remembered as long as its source stays, so that the old one is run once. The
exit status is 1 if anything differs, 2 if a tree cannot be run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from comparison.differences import differences, worst_elements
from comparison.runs import Answers, Conditions, Docket, answers_of, keep_outputs, kept_answers
from comparison.subjects import KINDS, Selection
from comparison.trees import Store, Tree, TreeError, default_store

ROOT = Path(__file__).resolve().parents[1]
BACKENDS = ("NumbaAcc", "CpuRef")


def main() -> int:
    """Compare the trees named on the command line; return the exit status."""
    options = _options()
    store = Store(options.cache)
    try:
        store.forget()
        old, new = (Tree.named(text, store, ROOT) for text in (options.old, options.new))
        print(f"old: {old.name} {old.digest}\nnew: {new.name} {new.digest}", flush=True)
        conditions = [
            Conditions(backend, instruction_set, options.threads, options.relaxed)
            for backend in options.backend
            for instruction_set in (options.instruction_set if backend == "NumbaAcc" else [""])
        ]
        differing = 0
        for kind in options.only:
            shared = str(options.shared.resolve())
            chosen = options.count, options.seed, options.every, options.filter
            selection = Selection(kind, *chosen, shared)
            docket = Docket.made_by(old, selection)
            _check(docket.names, kind)
            for how in conditions:
                differing += _compare(old, new, docket, how, options)
        print(f"{differing} differences" if differing else "no difference")
        return int(differing > 0)
    except TreeError as error:
        print(f"compare_trees.py: error: {error}", file=sys.stderr)
        return 2


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


def _words(text: str) -> list[str]:
    """A list of words as the command line has it."""
    return text.split(",")


def _options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("old", help="folder or revision")
    parser.add_argument("new", nargs="?", default=str(ROOT), help="folder or revision; this one")
    parser.add_argument("--only", type=_words, default=list(KINDS), help=",".join(KINDS))
    parser.add_argument("--backend", type=_words, default=list(BACKENDS), help=",".join(BACKENDS))
    parser.add_argument(
        "--instruction-set", type=_words, default=[""], help="of NumbaAcc: avx512vnni,avx2,portable"
    )
    parser.add_argument("--count", type=int, default=300, help="random networks")
    parser.add_argument("--seed", type=int, default=0, help="of the first random network")
    parser.add_argument("--every", type=int, default=1, help="only every so many-th of each kind")
    parser.add_argument("--filter", default="", help="only subjects with this in their names")
    parser.add_argument("--relaxed", action="store_true", help="bfloat16 products of NumbaAcc")
    parser.add_argument("--threads", type=int, default=1, help="of NumbaAcc")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument(
        "--show", type=int, default=10, help="differences to show element by element"
    )
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared", help="test data")
    parser.add_argument("--cache", type=Path, default=default_store(), help="folder of results")
    options = parser.parse_args()
    for chosen, known in ((options.only, KINDS), (options.backend, BACKENDS)):
        if unknown := [word for word in chosen if word not in known]:
            parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(known)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
