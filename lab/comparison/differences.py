"""Says what differs between two answers to the same subjects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .answers import kept_name

Answer = Mapping[str, Any]  # Any: as JSON has it

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


def worst_elements(subject: str, old: Path, new: Path) -> Iterator[str]:
    """Where and by how much the kept outputs of a subject differ."""
    name = kept_name(subject)
    if not ((old / name).exists() and (new / name).exists()):
        return
    with np.load(old / name) as before, np.load(new / name) as after:
        for key in before.files:
            if key not in after.files:
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
