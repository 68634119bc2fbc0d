"""Comparison of the answers of two runs of a program."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from armpy.core.dataclass import dataclass
from armpy.core.units import counted
from armpy_compat.trial.program_runs import ProgramRun

_ROUNDINGS = 5
"""Roundings of an answer's own type that are always allowed, as half precision has few digits."""

Call = Mapping[str, Any]  # Any: JSON


@dataclass(frozen=True, slots=True)
class ModelAnswers:
    """How far the answers of one model are alike.

    Parameters
    ----------
    key : str
        Content of the model's file, or its name.
    total : int
        Calls on the side that has more of them.
    equal : int
        Calls whose answers are equal within the tolerance.
    identical : int
        Calls of these whose answers have the same bits.
    other_inputs : int
        Calls of `total` whose inputs differ on both sides.
    uncompared : int
        Calls whose answers were not recorded on both sides.
    largest : float
        Largest difference between numbers of an answer, relative to the answer's largest number if
        that is above 1; infinite if an answer has another form, or other texts.
    is_complete : bool
        Whether both sides have the same number of calls.
    first_difference : str
        The first answer that differs, and how; empty if none does.
    """

    key: str
    total: int
    equal: int
    identical: int
    other_inputs: int
    uncompared: int
    largest: float
    is_complete: bool
    first_difference: str


def compare_runs(own: ProgramRun, armpy: ProgramRun, within: float) -> list[ModelAnswers]:
    """Compare the answers of each model, in the order of the models' opening.

    Notes
    -----
    Calls are paired by equal inputs, as threads may call in another order, the others by order: the
    inputs of a call may be an earlier answer.
    """
    ours, theirs = calls_by_model(armpy), calls_by_model(own)
    return [
        _compared(key, own, theirs.get(key, []), armpy, ours.get(key, []), within)
        for key in dict.fromkeys([*theirs, *ours])
    ]


def calls_by_model(run: ProgramRun) -> dict[str, list[Call]]:
    """Calls of a run by the content of their model, or by its name."""
    keys = [model["content"] or model["name"] for model in run.models]
    calls: dict[str, list[Call]] = {key: [] for key in keys}
    for call in run.calls:
        calls.setdefault(keys[call["model"]] if call["model"] >= 0 else "", []).append(call)
    return calls


def _compared(
    key: str,
    own: ProgramRun,
    theirs: Sequence[Call],
    armpy: ProgramRun,
    ours: Sequence[Call],
    within: float,
) -> ModelAnswers:
    equal = identical = other_inputs = uncompared = 0
    largest, first = 0.0, ""
    for number, (one, other) in enumerate(_pairs(theirs, ours)):
        other_inputs += one["inputs"] != other["inputs"]
        if one.get("outputs") is not None and one.get("outputs") == other.get("outputs"):
            equal, identical = equal + 1, identical + 1
            continue
        expected, actual = own.arrays(one), armpy.arrays(other)
        if expected is None or actual is None:
            uncompared += 1
            continue
        difference = _difference_of_answers(expected, actual, within)
        largest = max(largest, difference.size)
        if difference.is_allowed:
            equal += 1
        elif not first:
            first = f"call {number + 1}: {difference.text}"
    total = max(len(theirs), len(ours))
    is_complete = len(theirs) == len(ours)
    if not is_complete:
        first = first or f"{counted(len(theirs), 'call')} on the engine, {len(ours)} on armpy"
    return ModelAnswers(
        key, total, equal, identical, other_inputs, uncompared, largest, is_complete, first
    )


def _pairs(theirs: Sequence[Call], ours: Sequence[Call]) -> list[tuple[Call, Call]]:
    """Calls of two runs that belong together, in the order of the first run."""
    waiting: dict[str, deque[int]] = defaultdict(deque)
    for position, call in enumerate(ours):
        if call["inputs"] is not None:
            waiting[call["inputs"]].append(position)
    partners: list[int | None] = []
    for call in theirs:
        queue = waiting.get(call["inputs"] or "")
        partners.append(queue.popleft() if queue else None)
    taken = set(partners)
    rest = deque(position for position in range(len(ours)) if position not in taken)
    pairs = []
    for call, partner in zip(theirs, partners, strict=True):
        index: int | None = rest.popleft() if partner is None and rest else partner
        if index is not None:
            pairs.append((call, ours[index]))
    return pairs


@dataclass(frozen=True, slots=True)
class _Difference:
    """How far two answers, or outputs of them, are apart."""

    size: float
    """Largest difference of numbers; infinite if the answers are not of the same form."""
    is_allowed: bool
    text: str


def _difference_of_answers(
    expected: Sequence[npt.NDArray[Any]], actual: Sequence[npt.NDArray[Any]], within: float
) -> _Difference:
    """The largest difference of the outputs."""
    if len(expected) != len(actual):
        return _another_form(f"{len(actual)} outputs instead of {len(expected)}")
    differences = [
        _difference(f"output {number}", one, other, within)
        for number, (one, other) in enumerate(zip(expected, actual, strict=True))
    ]
    refused = [difference for difference in differences if not difference.is_allowed]
    return max(refused or differences, key=lambda difference: difference.size)


def _difference(
    name: str, expected: npt.NDArray[Any], actual: npt.NDArray[Any], within: float
) -> _Difference:
    """The difference of two outputs."""
    kind = expected.dtype.kind
    if expected.shape != actual.shape:
        return _another_form(f"{name} has shape {actual.shape}, not {expected.shape}")
    if kind != actual.dtype.kind:
        return _another_form(f"{name} has type {actual.dtype}, not {expected.dtype}")
    if kind in "Ub":
        is_same = np.array_equal(expected, actual)
        return _Difference(0.0, True, "") if is_same else _another_form(f"{name} differs")
    wide = np.complex128 if kind == "c" else np.float64
    first, second = expected.astype(wide), actual.astype(wide)
    finite = np.isfinite(first)
    is_finite_there = bool(np.isfinite(second[finite]).all())
    if not is_finite_there or not np.array_equal(first[~finite], second[~finite], equal_nan=True):
        return _another_form(f"{name} has other infinities or NaN")
    scale = max(1.0, float(np.abs(first[finite]).max(initial=0)))
    size = float(np.abs(first[finite] - second[finite]).max(initial=0)) / scale
    least = _ROUNDINGS * float(np.finfo(expected.dtype).eps) if kind in "fc" else 0.0
    return _Difference(size, size <= max(within, least), f"the difference is {size:.2g}")


def _another_form(text: str) -> _Difference:
    return _Difference(float("inf"), False, text)
