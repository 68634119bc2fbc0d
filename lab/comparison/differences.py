"""What differs between two answers to the same subject."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .answers import LOOSE, kept_name

Answer = Mapping[str, Any]  # Any: as JSON has it
Array = npt.NDArray[Any]  # Any: of every type

_SHOWN_PLACES = 3


def differences(old: Answer, new: Answer) -> list[str]:
    """What differs between the answers to one subject; empty if nothing does."""
    texts = []
    if old["error"] != new["error"]:
        texts.append(f"error: {old['error'] or 'none'} -> {new['error'] or 'none'}")
    texts += _output_differences(old.get("outputs", []), new.get("outputs", []))
    before, after = old.get("placement", []), new.get("placement", [])
    if before != after:
        gone = [line for line in before if line not in after]
        come = [line for line in after if line not in before]
        shown = [f"- {line}" for line in gone[:_SHOWN_PLACES]]
        shown += [f"+ {line}" for line in come[:_SHOWN_PLACES]]
        texts.append(f"placement: {'; '.join(shown) or 'another order'}")
    return texts


def _output_differences(old: list[list[str]], new: list[list[str]]) -> Iterator[str]:
    """Outputs that differ, call by call."""
    if len(old) != len(new):
        yield f"{len(old)} calls -> {len(new)} calls"
    for call, (before, after) in enumerate(zip(old, new, strict=False)):
        if len(before) != len(after):
            yield f"call {call}: {len(before)} outputs -> {len(after)} outputs"
        for number, (first, other) in enumerate(zip(before, after, strict=False)):
            if first != other:
                yield f"call {call} output {number}: {first} -> {other}"


def distances(
    subject: str, one: Answer, other: Answer, folders: Sequence[Path], most: float
) -> list[str]:
    """What differs between answers that need not have the same bits; empty if nothing does.

    Elements have to be equal unless they follow from floating point (`after_floats`). Of these,
    floats may be apart by ``most`` of the output's largest element, or of 1, integers by 1.
    """
    if one["error"] or other["error"]:
        # Texts name backends and systems.
        kinds = [answer["error"].partition(":")[0] for answer in (one, other)]
        return (
            [] if kinds[0] == kinds[1] else [f"error: {kinds[0] or 'none'} -> {kinds[1] or 'none'}"]
        )
    paths = [folder / kept_name(subject) for folder in folders]
    with np.load(paths[0]) as before, np.load(paths[1]) as after:
        if before.files != after.files:
            return [f"{len(before.files) - 1} outputs -> {len(after.files) - 1} outputs"]
        names = [name for name in before.files if name != LOOSE]
        pairs = zip(names, before[LOOSE], strict=True)
        texts = [
            (name, _apart(before[name], after[name], most, is_loose=is_loose))
            for name, is_loose in pairs
        ]
    return [f"{name}: {text}" for name, text in texts if text]


def _apart(first: Array, other: Array, most: float, *, is_loose: bool) -> str:
    """How far apart two arrays are, if they are too far; else empty."""
    if (first.dtype, first.shape) != (other.dtype, other.shape):
        return f"{first.dtype} {first.shape} -> {other.dtype} {other.shape}"
    equal = first == other
    if first.dtype.kind == "f":
        equal = equal & (np.signbit(first) == np.signbit(other)) | np.isnan(first) & np.isnan(other)
    if np.all(equal):
        return ""
    if first.dtype.kind not in "fiu":
        return f"{np.count_nonzero(~equal)} elements differ"
    one, two = first.astype(np.float64), other.astype(np.float64)
    with np.errstate(invalid="ignore"):
        gap = float(np.where(equal, 0, np.abs(one - two)).max(initial=0))
    text = f"{np.count_nonzero(~equal)} elements differ, by up to {gap:.3g}"
    if not is_loose:
        return text
    largest = float(np.abs(one[np.isfinite(one)]).max(initial=0))
    allowed = most * max(1.0, largest) if first.dtype.kind == "f" else 1.0
    return "" if gap <= allowed else text


def worst_elements(subject: str, old: Path, new: Path) -> Iterator[str]:
    """Where and by how much the kept outputs of a subject differ."""
    name = kept_name(subject)
    if not ((old / name).exists() and (new / name).exists()):
        return
    with np.load(old / name) as before, np.load(new / name) as after:
        for key in before.files:
            if key == LOOSE or key not in after.files:
                continue
            first, other = np.ravel(before[key]), np.ravel(after[key])
            if (first.dtype, first.size) != (other.dtype, other.size) or not first.size:
                continue
            bits = first.view(np.uint8).reshape(first.size, -1)
            places = np.flatnonzero(
                (bits != other.view(np.uint8).reshape(first.size, -1)).any(axis=1)
            )
            if places.size:
                with np.errstate(all="ignore"):
                    gaps = np.abs(
                        first[places].astype(np.float64) - other[places].astype(np.float64)
                    )
                worst = places[int(np.argmax(np.nan_to_num(gaps)))]
                yield (
                    f"{key}: {places.size} of {first.size} elements, most at {worst}: "
                    f"{first[worst]!r} -> {other[worst]!r}"
                )
