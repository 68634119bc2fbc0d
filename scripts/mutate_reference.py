"""Mutates CpuRef's code and finds out how much of it the conformance kit notices.

Usage::

    python scripts/mutate_reference.py [--count 100] [--seed 0] [--vectors FOLDER]

Each mutant is a copy of CpuRef with one expression changed, under another backend id; the kit
judges it as a third party's backend. Of those that it lets through, many more layers say whether
they change any result: the kit's cases with other elements and scales, models that are made up,
and NNAPI's published examples where ``--vectors`` says where these are.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

# Before NumPy is imported: its threads do not survive a fork.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from mutation.corpus import Corpus
from mutation.sites import Site, sites
from mutation.trial import Court, Trial, Verdict
from mutation.twin import NOT_MUTATED, Sources

from armpy.testing.cases import all_case_templates

_AT_A_TIME = 50
"""Mutations after which the figures are printed."""

_LISTED = (Verdict.ESCAPED, Verdict.TOLERATED, Verdict.EQUIVALENT, Verdict.ENDED)


def main() -> int:
    """Judge a sample of mutations and print what became of them.

    Returns
    -------
    int
        0 if the kit has caught the part of mutations that it is to catch, else 1.
    """
    options = _options()
    sources = Sources()
    everything = _all_sites(sources)
    chosen = [site for site in everything if site.text in options.choose]
    if not options.choose:
        chosen = random.Random(options.seed).sample(everything, len(everything))
        chosen = chosen[options.skip : options.skip + options.count]
    print(f"{len(chosen)} of {len(everything)} mutations", flush=True)
    court = Court(sources, _corpus(options))
    trials = []
    for site in chosen:
        trial = court.judge(site)
        trials.append(trial)
        if trial.verdict in _LISTED or options.verbose:
            print(f"{trial.verdict.name}  {site}\n    {trial.text}", flush=True)
        if len(trials) % _AT_A_TIME == 0:
            print(f"{len(trials)} judged: {_summary(trials)[0][-2]}", flush=True)
    lines, share = _summary(trials)
    print("\n".join(lines))
    return 0 if trials and share >= options.least else 1


def _all_sites(sources: Sources) -> list[Site]:
    """Every mutation that can be made."""
    return [
        site
        for module, source in sources.texts.items()
        if module not in NOT_MUTATED
        for site in sites(module, source)
    ]


def _corpus(options: argparse.Namespace) -> Corpus:
    """The layers that say whether a mutation changes anything."""
    corpus = Corpus(options.runs)
    corpus.add_templates(all_case_templates(), range(1, options.variations + 1))
    corpus.add_random_models(range(options.models))
    if options.vectors:
        corpus.add_vectors(options.vectors)
    print(f"{corpus.counts().total()} layers to try them on", flush=True)
    return corpus


def _summary(trials: Sequence[Trial]) -> tuple[list[str], float]:
    """How many mutations had which end, and the part that was caught of those that matter."""
    counts = Counter(trial.verdict for trial in trials)
    lines = [f"{counts[verdict]:5} {verdict.value}" for verdict in Verdict]
    caught = counts[Verdict.CAUGHT] + counts[Verdict.ENDED]
    changing = caught + counts[Verdict.ESCAPED]
    for text, whole in (
        ("that change any result at all", changing + counts[Verdict.TOLERATED]),
        ("that change a result beyond its tolerance", changing),
    ):
        share = caught / whole if whole else 1.0
        lines.append(f"caught {caught} of {whole} {text}: {share:.1%}")
    return lines, share


def _options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100, help="mutations to try")
    parser.add_argument("--seed", type=int, default=0, help="of their choice")
    parser.add_argument("--skip", type=int, default=0, help="mutations of that choice to leave out")
    parser.add_argument(
        "--choose",
        action="append",
        default=[],
        metavar="TEXT",
        help="mutations to try instead, as 'module: kind: before -> after'",
    )
    parser.add_argument("--least", type=float, default=0.95, help="part that has to be caught")
    parser.add_argument("--variations", type=int, default=12, help="of each of the kit's cases")
    parser.add_argument("--models", type=int, default=3000, help="made up, to take layers from")
    parser.add_argument("--runs", type=int, default=2000, help="per operation and source, at most")
    parser.add_argument("--vectors", type=Path, help="folder of NNAPI's examples")
    parser.add_argument("--verbose", action="store_true", help="list what is caught, too")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
