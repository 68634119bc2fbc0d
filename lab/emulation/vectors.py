"""NNAPI's published examples in this process: those of other processes would not be emulated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from armpy.execution import RuntimeOptions
from armpy_conformance.result import CaseResult
from armpy_nnapi.conformance.vectors.example import read_examples
from armpy_nnapi.conformance.vectors.judge import VectorJudge
from armpy_nnapi.conformance.vectors.runner import variations_of


def judged(directory: str, isa: str, first: int, every: int) -> Iterator[CaseResult]:
    """Results of NumbaAcc with an instruction set.

    Parameters
    ----------
    directory : str
    isa : str
    first, every : int
        The first example's number, and how many there are from one to the next.
    """
    options = RuntimeOptions(backend_options={"NumbaAcc": {"isa": isa}})
    judge = VectorJudge("NumbaAcc", options)
    for number, example in enumerate(read_examples(Path(directory))):
        if number >= first and (number - first) % every == 0:
            yield from map(judge, variations_of(example))
