"""Facts that a job's results depend on, by which a job that is taken up again is known."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import armpy
from armpy.core.file_digest import content_digest

if TYPE_CHECKING:
    from armpy.cli.load_request import CliLoadRequest

_OF_NO_RESULT = frozenset({"image", "inputs", "output", "repeat", "trace", "seed", "labels"})
"""Fields of a `RunRequest` that change no result of a picture, or whose file's digest counts."""

_DIGITS = 32
"""Of a SHA-256: the first half."""


def job_facts(
    load_request: CliLoadRequest,
    pictures: Sequence[str],
    truths: Sequence[str],
    options: Mapping[str, Any],  # Any: fields of RunRequest
    batch: int | None,
) -> dict[str, str]:
    """All that the results of a job depend on, in words.

    Parameters
    ----------
    load_request : CliLoadRequest
    pictures : sequence of str
        Paths.
    truths : sequence of str
        What they show; empty if that is not asked for.
    options : mapping
        Fields of a `RunRequest`.
    batch : int, optional

    Notes
    -----
    Files of a model's constants that lie beside it, and what is in the pictures, do not count.
    """
    facts = {
        "armpy": armpy.__version__,
        "model": content_digest(load_request.model)[:_DIGITS],
        "pictures": f"{len(pictures):,}, {_digest(pictures)}",
    }
    if options.get("labels") is not None:
        facts["labels"] = content_digest(options["labels"])[:_DIGITS]
    if truths:
        facts["truth"] = _digest(truths)
    given = {**load_request.options.given(), "batch": batch}
    given |= {name: value for name, value in options.items() if name not in _OF_NO_RESULT}
    for name in ("front_end_options", "backend_options"):
        given[name] = getattr(load_request, name) or None
    return facts | {
        name: str(value) for name, value in sorted(given.items()) if value not in (None, False)
    }


def _digest(texts: Iterable[str]) -> str:
    """The first half of a SHA-256 of several texts."""
    return hashlib.sha256(json.dumps(list(texts)).encode()).hexdigest()[:_DIGITS]
