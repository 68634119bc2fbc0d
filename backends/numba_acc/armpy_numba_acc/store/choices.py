"""Choices that were measured to be fastest for a region, on disk."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from armpy.backend import model_name
from armpy.store.entries import Entries
from armpy_numba_acc.store.host import processor

if TYPE_CHECKING:  # a process that finds everything on disk lowers nothing
    from armpy_numba_acc.program.choices import Option

_KIND = "tuned"

_log = logging.getLogger("armpy.NumbaAcc")


def kept_choices(entries: Entries, key: str) -> dict[str, Option]:
    """Measured answers for a region.

    Parameters
    ----------
    key
        The region's; see `armpy_numba_acc.store.keys.program_key`.

    Returns
    -------
    dict of str to Option
        As `armpy_numba_acc.program.choices.Choices` takes them; empty if none are known, or if
        they were measured on another processor.
    """
    parts = entries.read(_KIND, key)
    if parts is None:
        return {}
    try:
        document = json.loads(bytes(parts[0]))
        # Cache directories are shared between machines, and tiles that are best differ.
        if document["processor"] != processor():
            _log.info("measurements of another processor are not used here")
            return {}
        return {name: tuple(map(int, option)) for name, option in document["choices"].items()}
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        _log.info("the measurements are not used: %r", error)
        return {}


def keep_choices(
    entries: Entries, key: str, choices: Mapping[str, Option], description: str
) -> None:
    """Keep measured answers for a region."""
    document = {
        "processor": processor(),
        "choices": {name: [int(number) for number in option] for name, option in choices.items()},
    }
    entries.write(_KIND, key, [json.dumps(document).encode()], description, model_name())
