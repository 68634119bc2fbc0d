"""Facts that results of pictures depend on, by which results of one job are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import armpy
from armpy.core.file_digest import content_digest

if TYPE_CHECKING:
    from armpy.cli.load_request import CliLoadRequest

_OF_NO_RESULT = frozenset({"image", "inputs", "output", "repeat", "trace", "labels"})
"""Fields of a `PictureRequest` that change no result, or whose file's digest counts."""

_DIGITS = 32
"""Of a SHA-256: the first half."""


def job_facts(
    load_request: CliLoadRequest,
    options: Mapping[str, Any],  # Any: fields of PictureRequest
    batch: int | None,
) -> dict[str, str]:
    """All that the result of a picture depends on, besides the picture, in words.

    Parameters
    ----------
    load_request : CliLoadRequest
    options : mapping
        Fields of a `PictureRequest`.
    batch : int, optional

    Notes
    -----
    Files of a model's constants that lie beside it do not count.
    """
    facts = {
        "armpy": armpy.__version__,
        "model": content_digest(load_request.model)[:_DIGITS],
    }
    if options.get("labels") is not None:
        facts["labels"] = content_digest(options["labels"])[:_DIGITS]
    by_name = {**load_request.options.given(), "batch": batch, "size": options["inputs"].size}
    by_name |= {name: value for name, value in options.items() if name not in _OF_NO_RESULT}
    for name in ("front_end_options", "backend_options"):
        by_name[name] = getattr(load_request, name) or None
    return facts | {
        name: str(value) for name, value in sorted(by_name.items()) if value not in (None, False)
    }
