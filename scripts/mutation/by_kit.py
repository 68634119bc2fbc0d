"""Judges mutations of CpuRef's code by the conformance kit."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence

from armpy_conformance.cases import all_case_templates

from .corpus import Corpus
from .sites import Site, sampled, sites
from .trial import Court, Trial, Verdict
from .twin import NOT_MUTATED, Sources

_AT_A_TIME = 50
"""Mutations after which the figures are printed."""

_LISTED = (Verdict.ESCAPED, Verdict.TOLERATED, Verdict.EQUIVALENT, Verdict.ENDED)


def judge_by_kit(options: argparse.Namespace) -> int:
    """Judge a sample of mutations and print what became of them.

    Parameters
    ----------
    options : argparse.Namespace
        The command line's arguments.

    Returns
    -------
    int
        0 if the kit has caught the part of mutations that it is to catch, else 1.
    """
    sources = Sources()
    everything = _all_sites(sources)
    chosen = sampled(everything, options)
    print(f"{len(chosen)} of {len(everything)} mutations", flush=True)
    court = Court(sources, _corpus(options), {site.module for site in chosen})
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
