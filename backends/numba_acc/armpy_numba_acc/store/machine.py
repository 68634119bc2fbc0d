"""Model of this machine on disk: measured once, and used by all processes from then on."""

from __future__ import annotations

import hashlib
import json
import logging
import math
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, fields
from functools import cache
from typing import Any

from armpy.store.entries import Entries
from armpy_numba_acc.machine.cost_model.figures import BUILT_IN
from armpy_numba_acc.machine.cost_model.model import (
    FinishCost,
    Level,
    MachineModel,
    Pace,
    Unit,
    Width,
)
from armpy_numba_acc.store.host import processor
from armpy_numba_acc.store.keys import package_version

_KIND = "machine"
_COMPARISON = "comparison"
_FORMAT = 4
"""Raised where figures come to mean something else."""

_ENTRIES: Mapping[str, type[Any]] = {  # Any: dataclasses
    "paces": Pace,
    "widths": Width,
    "levels": Level,
    "finishes": FinishCost,
}

_log = logging.getLogger("armpy.NumbaAcc")


def kept_model(entries: Entries) -> MachineModel | None:
    """The figures of this processor; None if none are kept, or none that can be used."""
    parts = entries.read(_KIND, _key())
    if parts is None:
        return None
    try:
        document = json.loads(bytes(parts[0]))
        # Cache directories are shared between machines.
        if document["processor"] != processor():
            _log.info("the figures of another processor are not used here")
            return None
        return _model_of(document["model"])
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        _log.info("kept figures of this machine are not used: %r", error)
        return None


def keep_model(entries: Entries, model: MachineModel) -> None:
    """Keep the figures of this processor."""
    document = {"processor": processor(), "model": asdict(model)}
    about = f"figures of this machine: {model.name}"
    entries.write(_KIND, _key(), [json.dumps(document).encode()], about, "armpy itself")


def keep_comparison(entries: Entries, model: MachineModel, ratios: Mapping[str, float]) -> None:
    """Keep how long kernels take that a measured model chooses, by the time of built-in ones."""
    document = {"processor": processor(), "model": model.digest, "ratios": dict(ratios)}
    about = f"kernels chosen by {model.name} by those of built-in figures"
    entries.write(_COMPARISON, _key(), [json.dumps(document).encode()], about, "armpy itself")


def kept_comparison(entries: Entries, model: MachineModel) -> dict[str, float]:
    """Return what `keep_comparison` has kept of a model; nothing if damaged, or of another one."""
    parts = entries.read(_COMPARISON, _key())
    if parts is None:
        return {}
    try:
        document = json.loads(bytes(parts[0]))
        if (document["processor"], document["model"]) != (processor(), model.digest):
            return {}
        return {str(name): float(_positive(x)) for name, x in document["ratios"].items()}
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        _log.info("the comparison of this machine's figures is not used: %r", error)
        return {}


def making_model(entries: Entries) -> AbstractContextManager[bool]:
    """Wait until no other process measures."""
    return entries.making(_KIND, _key())


@cache
def _key() -> str:
    """Return their key: with the built-in figures, which stand for missing measurements."""
    built_in = [*BUILT_IN.values()]
    text = f"{processor()} {package_version('armpy')} {_FORMAT} {built_in!r}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _model_of(document: Mapping[str, Any]) -> MachineModel:  # Any: JSON
    """A model of what `dataclasses.asdict` has made of one; raises `ValueError` if it is none."""
    document_fields = {
        **document,
        **{
            name: tuple(_record(kind, item) for item in document[name])
            for name, kind in _ENTRIES.items()
        },
        "unit": None if document["unit"] is None else _record(Unit, document["unit"]),
    }
    for name in ("cycle_ns", "fork_ns", "wake_ns"):
        document_fields[name] = _number(document[name])
    if (
        not document_fields["paces"]
        or len(document_fields["levels"]) < 2
        or not document_fields["widths"]
    ):
        raise ValueError("figures are missing")
    model = MachineModel(**document_fields)
    # What every choice asks for must be there: better an error here than in a lowering.
    model.finish("f32")
    model.pace("f32", 64)
    return model


def _record(kind: type[Any], document: Mapping[str, Any]) -> Any:  # Any: as above
    """A part of a model."""
    if document.keys() != {field.name for field in fields(kind)}:
        raise ValueError(f"it is not a {kind.__name__}")
    return kind(**{k: v if isinstance(v, str) else _number(v) for k, v in document.items()})


def _positive(value: object) -> Any:  # Any: int or float
    """A finite number above 0."""
    if _number(value) <= 0:
        raise ValueError(f"{value!r} is not above 0")
    return value


def _number(value: object) -> Any:  # Any: int or float
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is not a number")
    return value
