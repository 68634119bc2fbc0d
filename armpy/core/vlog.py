"""Verbose logging by tags, for debugging.

Examples
--------
In a shell, for models and what backends are asked::

    ARMPY_VLOG=model,driver python application.py

Notes
-----
Messages go to the loggers ``armpy.core.vlog.<tag>`` at level DEBUG. An application that has set up
logging gets them there; others see them on standard error. A tag that is off costs the look at one
attribute.

References
----------
NNAPI ``VLOG``, ``initVLogMask`` and ``debug.nn.vlog``.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
from collections.abc import Sequence

from armpy.core.arguments import check_choice

VARIABLE = "ARMPY_VLOG"
"""Environment variable that says which tags are on."""

TAGS = ("model", "compilation", "execution", "cpuexe", "manager", "driver", "memory")
"""Subjects of messages.

``model``: graphs as they were loaded. ``compilation``: what layers go where, and what backends make
of them. ``execution``: executions and their results. ``cpuexe``: each layer that a processor
executes. ``manager``: backends that were found, set up or left out. ``driver``: calls of backends.
``memory``: buffers of backends' own.
"""

_ALL = ("1", "all")


class Switches:
    """Switches of the tags; one attribute each."""

    __slots__ = TAGS

    model: bool
    compilation: bool
    execution: bool
    cpuexe: bool
    manager: bool
    driver: bool
    memory: bool

    def __init__(self) -> None:
        for tag in TAGS:
            setattr(self, tag, False)


is_on = Switches()
"""Enabled tags, checked before a message is built: ``if is_on.driver: vlog("driver", ...)``."""

_lock = threading.Lock()  # tags are set as a whole, whichever threads begin first
_is_begun = False


def is_vlog_on(tag: str) -> bool:
    """Return whether messages of a tag are logged; a backend need not make others.

    Raises InvalidArgumentError if the tag is not one of `TAGS`.

    References
    ----------
    NNAPI ``VLOG_IS_ON``.
    """
    check_choice(tag, "tag", TAGS)
    return bool(getattr(is_on, tag))


def vlog(
    tag: str,  # one of `TAGS`; a backend's own messages are of ``driver``
    text: str,  # with ``%`` for each of the values
    *values: object,
) -> None:
    """Log a message of a tag, if that is on; errors as of `is_vlog_on`."""
    if is_vlog_on(tag):
        logging.getLogger(f"armpy.core.vlog.{tag}").debug(text, *values, stacklevel=2)


def set_vlog(
    # ``""`` for none; ``"1"`` or ``"all"``; or tags with spaces, commas or colons between them.
    tags: str,
) -> None:
    """Set the tags that are on from now on, in the place of the environment's setting.

    Networks that are loaded already say nothing of ``cpuexe``. An unknown tag is logged as an
    error, and the others are on.
    """
    global _is_begun  # noqa: PLW0603 - the process has one environment
    with _lock:
        _is_begun = True
        wanted = chosen_tags(VARIABLE, tags, TAGS, logging.getLogger("armpy.core.vlog"))
        for tag in TAGS:
            setattr(is_on, tag, tag in wanted)
            log = logging.getLogger(f"armpy.core.vlog.{tag}")
            # Not WARNING: the level that the application has set above counts then.
            log.setLevel(logging.DEBUG if tag in wanted else logging.NOTSET)
        above = logging.getLogger("armpy.core.vlog")
        if wanted and not any(isinstance(handler, _Unheard) for handler in above.handlers):
            above.addHandler(_Unheard())


def begin_vlog() -> None:
    """Read the environment, once per process; runtimes and models call it when they are made."""
    if not _is_begun:
        set_vlog(os.environ.get(VARIABLE, ""))


def chosen_tags(
    variable: str,  # environment variable that the text is the value of
    text: str,  # as of `set_vlog`
    tags: Sequence[str],  # all that there are
    log: logging.Logger,
) -> frozenset[str]:
    """The tags that a text names; unknown ones are errors in the log."""
    chosen: set[str] = set()
    for word in re.split(r"[ ,:]+", text.strip(" ,:")):
        if word in _ALL:
            chosen.update(tags)
        elif word in tags:
            chosen.add(word)
        elif word:
            log.error(
                "%s: there is no tag '%s', only %s, 1 and all. Correct the variable, or unset it",
                variable,
                word,
                ", ".join(tags),
            )
    return frozenset(chosen)


def wants_traceback(log: logging.Logger) -> bool:
    """Return whether warnings come with tracebacks: only for those who debug.

    An application that has not set up logging sees warnings on its standard error; one line
    each gives the reason, which the placement report has as well.
    """
    return log.isEnabledFor(logging.DEBUG)


class _Unheard(logging.Handler):
    """Writes to standard error what an application that has not set up logging would not see."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Write a message, unless the application's own logging writes it."""
        is_heard = logging.getLogger().handlers or logging.getLogger("armpy").handlers
        if not is_heard:
            sys.stderr.write(f"{self.format(record)}\n")
