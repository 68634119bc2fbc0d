"""Descriptions of what a backend's code raises, with its own line."""

from __future__ import annotations

from armpy.errors import ArmpyError
from armpy.plugins.proxy.guarded_call import author_line

_CALLERS = ("armpy", "armpy_conformance")
"""Packages between a case and the backend's code."""


def described(error: BaseException, *callers: str) -> str:
    """An exception's type, text and line of the backend's code.

    Errors of armpy's tree have the line of the exception that they come from in their text.

    Parameters
    ----------
    *callers : str
        Further packages between the trial and the backend's code.
    """
    text = f"{type(error).__name__}: {error}"
    line = author_line(error, (*_CALLERS, *callers))
    is_located = isinstance(error, ArmpyError) and error.__cause__ is not None
    return f"{text} (raised at {line})" if line and not is_located else text
