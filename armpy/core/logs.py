"""Log records of armpy: with tracebacks or without."""

from __future__ import annotations

import logging


def wants_traceback(log: logging.Logger) -> bool:
    """Whether warnings come with tracebacks: only for those who debug.

    Notes
    -----
    An application that has not set up logging sees warnings on its standard error; one line
    each tells the reason, which the placement report has as well.
    """
    return log.isEnabledFor(logging.DEBUG)
