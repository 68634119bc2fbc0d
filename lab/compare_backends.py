"""Counts the elements in which NumbaAcc differs from CpuRef, of everything that has to be equal.

Usage::

    python lab/compare_backends.py [--only models,vectors,random,kit,networks,instances]
        [--instruction-set NAME,NAME] [--threads 1,2,5] [--count N] [--start N] [--every N]
        [--filter TEXT] [--models FOLDER] [--layers] [--table FILE]

Everything that is computed of 8-bit and 16-bit elements, indices and conditions has to be equal,
up to where floating point arithmetic comes before it. Of outputs in floating point, every number
of threads has to give the same bits. Where an output differs, the first layer that does is named,
as ``armpy diff --exact`` finds it; with ``--layers`` every layer is tried on the right inputs even
where no output differs.

Subjects are model files with golden and random inputs, NNAPI's published examples, random NNAPI
models (``random``), the conformance kit's networks (``kit``), NumbaAcc's random networks of a few
layers (``networks``), and instances of every operation with sizes, attributes and quantisations
made of chance (``instances``: ``--count`` says how many times all, ``--filter`` which). Of networks
of many layers, what every fifth one gives is compared, too. The exit status is 1 if anything
differs.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

from comparison.equality import Bench, Conditions, Count
from comparison.subjects import KINDS, BuiltNetwork, Selection, Subject, subjects

ROOT = Path(__file__).resolve().parents[1]
ALL = (*KINDS, "networks", "instances")


def main() -> int:
    """Compare the trees named on the command line; return the exit status."""
    options = _options()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    conditions = [
        Conditions(isa, threads) for isa in options.instruction_set for threads in options.threads
    ]
    bench = Bench(conditions, layers=options.layers)
    totals = {how: Count() for how in conditions}
    subjects_run = num_taken = failed = 0
    begin = time.perf_counter()
    for kind in options.only:
        for subject in _subjects(kind, options):
            counts = bench.count(subject)
            subjects_run += bool(counts)
            num_taken += any(count.taken for count in counts.values())
            for how, count in counts.items():
                totals[how].join(count)
                failed += not count.is_equal
                if not count.is_equal or (options.table and kind == "models"):
                    line = _line(subject.name, how, count)
                    print(line, flush=True)
                    if options.table:
                        with options.table.open("a", encoding="utf-8") as file:
                            file.write(line + "\n")
    print(f"{subjects_run} subjects, NumbaAcc ran layers of {num_taken}; ", end="")
    print(f"CpuRef refuses {len(bench.refused)} others; ", end="")
    print(f"{failed} differ; {time.perf_counter() - begin:.0f} s")
    for how, total in totals.items():
        total.errors, total.first = [], ""
        print(_line("all", how, total))
    if not num_taken:
        print("nothing was compared")
    return int(failed > 0 or not num_taken)


def _line(name: str, how: Conditions, count: Count) -> str:
    """One subject's counts."""
    text = f"{name} on {how}: {count.differing} of {count.elements} differ"
    if count.differing:
        text += f", by up to {count.steps:g}"
    if count.after_floats:
        text += f"; after floats {count.after_floats_differing} of {count.after_floats}"
        text += f", by up to {count.after_floats_steps:g}" if count.after_floats_differing else ""
    if count.apart:
        text += f"; {count.apart} depend on the number of threads"
    text += "".join(f"\n    {error}" for error in count.errors)
    return text + (f"\n    {count.first}" if count.first else "")


def _subjects(kind: str, options: argparse.Namespace) -> Iterator[Subject]:
    """What one kind has to compare."""
    chosen = options.count, options.start, options.every, options.filter
    models = [str(path) for path in options.models]
    selection = Selection(kind, *chosen, str(options.shared.resolve()), models)
    if kind == "networks":
        yield from _networks(options.start, options.count, options.every)
    elif kind == "instances":
        yield from _instances(options.start, options.count, options.filter)
    else:
        yield from subjects(selection)


def _networks(start: int, count: int, every: int) -> Iterator[BuiltNetwork]:
    """NumbaAcc's random networks."""
    sys.path.insert(0, str(ROOT))
    from backends.numba_acc.tests.random_networks import random_network  # noqa: PLC0415

    for seed in range(start, start + count, every):
        network, inputs = random_network(seed)
        yield BuiltNetwork(f"networks/{seed}", network.build(), (inputs,))


def _instances(start: int, count: int, chosen: str) -> Iterator[BuiltNetwork]:
    """The conformance kit's layers of each kind and type, drawn so many times."""
    from armpy_conformance.cases import all_case_templates  # noqa: PLC0415 - seldom needed
    from armpy_conformance.sampling.case_sampling import drawn, roots  # noqa: PLC0415

    for template in roots(all_case_templates()):
        for seed in range(start, start + count):
            for case in drawn(template, seed).cases(seed):
                name = f"instances/{seed}/{case.id}"
                if chosen in name:
                    yield BuiltNetwork(name, case.graph(), (case.feeds(),))


def _options() -> argparse.Namespace:
    """The command line."""

    def words(text: str) -> list[str]:
        return text.split(",")

    def numbers(text: str) -> list[int]:
        return [int(word) for word in text.split(",")]

    def folders(text: str) -> list[Path]:
        return [Path(word) for word in text.split(",")]

    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", type=words, default=list(ALL), help=",".join(ALL))
    parser.add_argument(
        "--instruction-set", type=words, default=[""], help="avx512vnni,avx2; the best if left out"
    )
    parser.add_argument("--threads", type=numbers, default=[1], help="numbers, as 1,2,5")
    parser.add_argument("--count", type=int, default=300, help="of random models and networks each")
    parser.add_argument("--start", type=int, default=0, help="number of the first random one")
    parser.add_argument("--every", type=int, default=1, help="only every so many-th of each kind")
    parser.add_argument("--filter", default="", help="only subjects with this in their names")
    parser.add_argument(
        "--models", type=folders, default=[], help="folders or files to take instead"
    )
    parser.add_argument("--layers", action="store_true", help="try every layer on right inputs")
    parser.add_argument("--table", type=Path, help="file to add a line to for each model")
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared", help="test data")
    options = parser.parse_args()
    if unknown := [word for word in options.only if word not in ALL]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(ALL)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
