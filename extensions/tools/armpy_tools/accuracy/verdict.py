"""Decides whether a backend's errors on a model are small enough."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import comb

from armpy.core.dataclass import dataclass
from armpy.types import REFERENCE_BACKEND_ID, BackendId
from armpy_tools.accuracy.engines import PEER
from armpy_tools.accuracy.report import EngineReport, Status

_SLACK = 1e-4
"""Relative error that every backend may have: floats are added in other orders."""


FEWEST_SAMPLES = 5
"""Samples without which the peer does not judge: all of four are above a limit by chance in 6 %."""

_CHANCE = Fraction(1, 20)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Verdict on a backend that ran layers of a model."""

    status: Status
    text: str = ""  # why
    compared: str = ""
    """Errors that the limit is made of; empty if there are none."""


def verdict(
    backend_id: BackendId, reports: Mapping[str, EngineReport], tolerance: float
) -> Verdict:
    """Compare a backend's error with the smaller one of CpuRef and the peer.

    Parameters
    ----------
    reports : mapping of str to EngineReport
        Of the backend, of CpuRef and of the peer, by name. Without errors of the peer, CpuRef's
        count alone.
    tolerance : float
        How many times the smaller error the backend may have.

    Notes
    -----
    CpuRef alone does not suffice: it can be less exact than TensorFlow Lite, as on models whose
    weights alone are quantised. The peer rounds in other places, and of few samples the pooled
    errors of two equally exact engines differ by a factor of two; thus the backend has to be above
    the peer's limit in so many samples, too, that chance does not explain it: a sign test at 5 %,
    one-sided, for which `FEWEST_SAMPLES` are needed.

    References
    ----------
    Android's MLTS: "a driver's accuracy isn't worse than the CPU reference implementation".
    """
    own, usual = reports[backend_id], reports[REFERENCE_BACKEND_ID]
    if own.errors is None or usual.errors is None:
        return Verdict(Status.FAILED, "there is no answer")
    limit = tolerance * usual.errors.relative + _SLACK
    compared = f"{REFERENCE_BACKEND_ID} ({usual.errors.relative:.3g}): at most {limit:.3g}; "
    limits = {REFERENCE_BACKEND_ID: limit} if own.errors.relative > limit else {}
    peer = reports.get(PEER)
    if peer is None or peer.errors is None:
        compared += f"not with {PEER}: {'it did not run' if peer is None else peer.text}"
    elif (needed := _samples_needed(len(peer.relative_by_sample))) is None:
        compared += f"not with {PEER} ({peer.errors.relative:.3g}): "
        compared += f"it takes {FEWEST_SAMPLES} samples or more"
    else:
        limit = tolerance * peer.errors.relative + _SLACK
        above = sum(
            ours > tolerance * theirs + _SLACK
            for ours, theirs in zip(own.relative_by_sample, peer.relative_by_sample, strict=True)
        )
        compared += f"{PEER} ({peer.errors.relative:.3g}): at most {limit:.3g}, or more in fewer "
        compared += f"than {needed} of {len(peer.relative_by_sample)} samples ({above} have more)"
        if own.errors.relative > limit and above >= needed:
            limits[PEER] = limit
    if not limits:
        return Verdict(Status.OK, "", compared)
    name, limit = min(limits.items(), key=lambda item: item[1])
    text = (
        f"its relative error is {own.errors.relative:.3g}. Expected at most {limit:.3g}, by {name}"
    )
    return Verdict(Status.INACCURATE, text, compared)


def _samples_needed(number: int) -> int | None:
    """The least heads of that many coins that chance gives in at most 5 % of trials."""
    outcomes = 0
    for heads in range(number, -1, -1):
        outcomes += comb(number, heads)
        if outcomes > _CHANCE * 2**number:
            return None if heads == number else heads + 1
    raise AssertionError("all outcomes together are more than some")
