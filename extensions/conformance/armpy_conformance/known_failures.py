"""The strict file of a backend's known failures: ``case id  # reason``, one per line."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from armpy.errors import InvalidArgumentError, did_you_mean
from armpy_conformance.result import CaseResult, Outcome


def read_known_failures(path: str | Path, case_ids: Collection[str]) -> dict[str, str]:
    """Read a file of known failures.

    Parameters
    ----------
    path : path
        UTF-8 text. Each line is a case's id, two spaces or more, ``#`` and the reason. Lines
        that are empty or begin with ``#`` say nothing.
    case_ids : collection of str
        Every case that there is.

    Returns
    -------
    dict of str to str
        Reason by case id.

    Raises
    ------
    InvalidArgumentError
        If a line has no reason, repeats a case, or names none that there is.
    """
    known: dict[str, str] = {}
    for number, line in enumerate(Path(path).read_text("utf-8").splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        where = f"{path}, line {number}"
        case, _, reason = (part.strip() for part in line.partition("#"))
        if not reason:
            raise InvalidArgumentError(
                f"the known failure '{case}' has no reason",
                where=where,
                expected="case id  # reason",
                actual=line.strip(),
            )
        if case in known:
            raise InvalidArgumentError(f"the case '{case}' is listed twice", where=where)
        if case not in case_ids:
            raise InvalidArgumentError(
                f"there is no case '{case}'",
                where=where,
                fix=did_you_mean(case, case_ids, "Remove the line"),
            )
        known[case] = reason
    return known


def apply_known_failures(
    results: Iterable[CaseResult], known: Mapping[str, str]
) -> tuple[tuple[CaseResult, ...], tuple[str, ...]]:
    """Take known failures out of the failures.

    Returns
    -------
    tuple of CaseResult
        A listed case that failed is a known failure with the reason in front of its text.
    tuple of str
        Listed cases of the run that did not fail.
    """
    judged, unused = [], []
    for result in results:
        reason = known.get(result.case)
        if reason is None:
            judged.append(result)
        elif result.outcome.is_bad:
            text = f"{reason}: {result.text}"
            judged.append(replace(result, outcome=Outcome.KNOWN, text=text))
        else:
            judged.append(result)
            unused.append(result.case)
    return tuple(judged), tuple(unused)
