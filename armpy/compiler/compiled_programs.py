"""Saved programs: what a backend writes down of a compiled program, checked.

The core's cache (`compiled_cache`) and compiled models (`armpy.model.save`) keep programs in files
of their own; `compiled_parts.Programs` reads them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from armpy.backend import IBackendInternal, IPrograms, OptionValues, SavedProgram
from armpy.backend.programs import HOST_TARGET
from armpy.errors import BackendError, ParserError
from armpy.graph import SubgraphView
from armpy.plugins.proxy.guarded_call import ask_method, describe
from armpy.store.archive.packed_views import checked


def saved_program(
    backend: IBackendInternal,  # one that has programs (`get_programs`)
    options: OptionValues,  # options of scope MODEL that the program was made with
    program: object,  # as it was compiled for this machine
    # The program's layers, which are compiled again for other targets.
    view: SubgraphView | None = None,
    target: str = HOST_TARGET,
) -> SavedProgram | None:
    """Let a backend write a program down; None if it cannot be kept."""
    kinds: tuple[type[Any], ...] = (SavedProgram, type(None))  # Any: no common name
    asked = ("save", program) if target == HOST_TARGET else ("save_for", view, target)
    method, *arguments = asked
    saved: SavedProgram | None = ask_method(
        backend.get_id(), kinds, backend.get_programs(), method, *arguments, options
    )
    # While it is written: later, the faulty backend could not be identified.
    if saved is not None and (problem := _why_unkept(saved)):
        raise BackendError(
            f"its saved program cannot be stored: {problem}",
            where=f"{backend.get_id()} / {IPrograms.__name__}.save",
        )
    return saved


def _why_unkept(saved: SavedProgram) -> str:
    """Why a program cannot be in a file; empty if it can."""
    if not isinstance(saved.about, Mapping) or not isinstance(saved.parts, Mapping):
        return f"about and parts are {describe(saved[:2])}, no mappings"
    try:
        # Tried out, as a mapping can have anything deep inside.
        json.dumps(dict(saved.about))
    except (TypeError, ValueError) as error:
        return f"about cannot be written as JSON: {error}"
    if not isinstance(saved.code, tuple | list):
        return f"code is {describe(saved.code)}, not a tuple of names"
    for name, part in saved.parts.items():
        if not isinstance(name, str):
            return f"a part is called {describe(name)}, which is not text"
        is_array = isinstance(part, np.ndarray) and part.dtype == np.uint8
        if not is_array and not isinstance(part, bytes):
            return (
                f"the part {name!r} is {describe(part)}, neither bytes nor an array of uint8. Pass "
                "array.reshape(-1).view(np.uint8)"
            )
    if missing := [name for name in saved.code if name not in saved.parts]:
        return f"there is no part {missing[0]!r}, which is to be code"
    if not isinstance(saved.views, Mapping):
        return f"views are {describe(saved.views)}, no mapping"
    if others := [name for name in saved.views if name not in saved.parts or name in saved.code]:
        return f"there are views of {others[0]!r}, which is not a part with data"
    try:
        for name, views in saved.views.items():
            json.dumps(list(views))
            for view in views:
                checked(view, len(saved.parts[name]))
    except (TypeError, ValueError, ParserError) as error:
        return f"a view of a part is wrong: {error}"
    return ""
