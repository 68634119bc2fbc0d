"""Changes single expressions of armpy's code and finds out how many changes are noticed.

Usage::

    python scripts/mutate.py kit [--count 100] [--seed 0] [--vectors FOLDER]
    python scripts/mutate.py tests PACKAGE... [--count 50] [--seed 0] [--tree FOLDER]

``kit`` changes CpuRef: each mutant is a copy of it under another backend id, and the conformance
kit judges it as a third party's backend. Of those that it lets through, many more layers say
whether they change any result: the kit's cases with other elements and scales, models that are
made up, and NNAPI's published examples where ``--vectors`` says where these are.

``tests`` changes any folders or files of a tree, in a copy: ``armpy/execution armpy/compiler``.
Each mutant is judged by tests that execute the changed line, which coverage finds beforehand.
A mutant that takes more than ``--limit`` seconds counts as caught.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

# Before NumPy is imported: its threads do not survive a fork.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from mutation.by_kit import judge_by_kit
from mutation.by_tests import judge_by_tests

_TESTS = (
    *(
        f"tests/{folder}"
        for folder in (
            "runtime",
            "profiling",
            "processes",
            "optimizer",
            "plugins",
            "isolation",
            "devices",
            "backend",
            "prepared",
        )
    ),
    "extensions/nnapi/tests",
)


def main() -> int:
    """Judge a sample of mutations and print what became of them.

    Returns
    -------
    int
        0 if the part of mutations that is to be caught has been caught, else 1.
    """
    options = _options()
    status: int = options.judge(options)
    return status


def _options() -> argparse.Namespace:
    """The command line's arguments."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True, metavar="kit|tests")
    by_kit = commands.add_parser("kit", help="mutate CpuRef, judged by the conformance kit")
    by_tests = commands.add_parser("tests", help="mutate packages, judged by their tests")
    for command, judge, count, least in (
        (by_kit, judge_by_kit, 100, 0.95),
        (by_tests, judge_by_tests, 50, 0.0),
    ):
        command.set_defaults(judge=judge)
        command.add_argument("--count", type=int, default=count, help="mutations to try")
        command.add_argument("--seed", type=int, default=0, help="of their choice")
        command.add_argument("--skip", type=int, default=0, help="of that choice, to leave out")
        command.add_argument("--least", type=float, default=least, help="part to be caught")
        command.add_argument(
            "--choose",
            action="append",
            default=[],
            metavar="TEXT",
            help="mutations to try instead, as 'module: kind: before -> after'",
        )
    _add_kit_options(by_kit)
    _add_test_options(by_tests)
    return parser.parse_args()


def _add_kit_options(parser: argparse.ArgumentParser) -> None:
    """Options of mutations that the kit judges."""
    parser.add_argument("--variations", type=int, default=12, help="of each of the kit's cases")
    parser.add_argument("--models", type=int, default=3000, help="made up, to take layers from")
    parser.add_argument("--runs", type=int, default=2000, help="per operation and source, at most")
    parser.add_argument("--vectors", type=Path, help="folder of NNAPI's examples")
    parser.add_argument("--verbose", action="store_true", help="list caught mutations, too")


def _add_test_options(parser: argparse.ArgumentParser) -> None:
    """Options of mutations that tests judge."""
    parser.add_argument("rooms", nargs="+", metavar="PACKAGE", help="folders or files of the tree")
    parser.add_argument("--tree", type=Path, default=Path(), help="the tree (this folder)")
    parser.add_argument("--python", default=sys.executable, help="interpreter of its environment")
    parser.add_argument(
        "--tests", nargs="+", default=_TESTS, metavar="PATH", help="tests that may judge"
    )
    parser.add_argument("--measured", type=Path, help="keeps what coverage measured, for next time")
    parser.add_argument("--budget", type=float, default=20, help="seconds of tests for a mutant")
    parser.add_argument("--limit", type=float, default=120, help="seconds that a mutant may take")


if __name__ == "__main__":
    sys.exit(main())
