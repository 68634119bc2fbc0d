"""Batches of requests: which run together, as what arrays, and whose rows the answers are."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError
from armpy.tensor import format_shape
from armpy_serving.contents import Array
from armpy_serving.filling import fill_up


@dataclass(frozen=True, slots=True)
class TritonCall:
    """One request of those that came together."""

    index: int  # its place among them
    request: Any  # Any: of the server's module
    """Request as the server has it."""
    inputs: Mapping[str, Array]
    rows: int  # how many it has in the batch
    timeout_s: float | None  # how long it may take


def count_rows(inputs: Mapping[str, Array]) -> int:
    """Return how many rows a request has in a batch.

    Raises
    ------
    InvalidArgumentError
        If its inputs have not equally many.
    """
    counts = {int(array.shape[0]) for array in inputs.values()}
    if len(counts) == 1:
        return counts.pop()
    raise InvalidArgumentError(
        "the inputs have not equally many rows",
        where="request",
        actual=", ".join(f"{name} {format_shape(a.shape)}" for name, a in inputs.items()),
    )


def groups_of(calls: Sequence[TritonCall]) -> list[list[TritonCall]]:
    """Calls that can run together: those whose rows have equal shapes."""
    groups: dict[tuple[object, ...], list[TritonCall]] = {}
    for call in calls:
        key = tuple((name, array.shape[1:]) for name, array in sorted(call.inputs.items()))
        groups.setdefault(key, []).append(call)
    return [*groups.values()]


def joined(calls: Sequence[TritonCall], sizes: Sequence[int]) -> dict[str, Array]:
    """Inputs of several calls as one batch, filled up to a size that is prepared.

    Notes
    -----
    A call alone goes in as it is where it has such a size. Without any row, the smallest size is
    run all the same: only the model knows the outputs' shapes and types.
    """
    rows = sum(call.rows for call in calls)
    at = bisect_left(sizes, rows)
    size = sizes[at] if at < len(sizes) else rows
    if len(calls) == 1 and size == rows:
        return dict(calls[0].inputs)
    batch: dict[str, Array] = {}
    for name, first in calls[0].inputs.items():
        filled = np.empty((size, *first.shape[1:]), first.dtype)
        begin = 0
        for call in calls:
            filled[begin : begin + call.rows] = call.inputs[name]
            begin += call.rows
        batch[name] = fill_up(filled, rows)
    return batch


def divided(
    calls: Sequence[TritonCall], inputs: Mapping[str, Array], outputs: Mapping[str, Array]
) -> list[dict[str, Array]]:
    """Each call's rows of a batch's outputs, as views.

    Raises
    ------
    InvalidArgumentError
        If an output has not as many rows as the batch.
    """
    size = next(iter(inputs.values())).shape[0]
    for name, array in outputs.items():
        if array.ndim == 0 or array.shape[0] != size:
            raise InvalidArgumentError(
                "an output has not as many rows as the inputs",
                where=f"output '{name}'",
                expected=str(size),
                actual=format_shape(array.shape),
                fix="Export the model without max_batch",
            )
    answers, begin = [], 0
    for call in calls:
        answers.append({n: a[begin : begin + call.rows] for n, a in outputs.items()})
        begin += call.rows
    return answers
