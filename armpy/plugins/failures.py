"""Failures of candidates in words: recorded, logged, and described."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Iterator

from armpy.errors import ArmpyError
from armpy.plugins.discovery.candidate import Candidate, CandidateStatus, Failure
from armpy.plugins.discovery.directories import is_common
from armpy.plugins.modules import group_of
from armpy.plugins.proxy.guarded_call import let_user_interrupt

_log = logging.getLogger("armpy.plugins")
# Systems' loaders name the library in their text only; no field has it.
_LIBRARY = re.compile(
    r"([^\s:'\"]+\.(?:so|dylib|dll)[.\d]*)(?=: cannot open|'? \(no such file|' \(or one)"
)


def leave_out(
    candidate: Candidate, status: CandidateStatus, failure: Failure, level: int = logging.WARNING
) -> None:
    """Record and log why a candidate is not used."""
    candidate.status = status
    candidate.reason, candidate.traceback = failure.reason, failure.traceback
    candidate.fix = failure.fix
    candidate.missing_module = failure.missing_module
    candidate.missing_library = failure.missing_library
    _log.log(
        level,
        "%s '%s' from %s is left out: %s; armpy doctor says what to do",
        "plugin" if candidate.is_plugin else "backend",
        candidate.label,
        candidate.source,
        candidate.reason.rstrip("."),
    )


def describe_failure(
    error: BaseException,
    # `private_name` and `name`: the private name of the module that raised it, and the one to read
    # instead.
    private_name: str = "",
    name: str = "",
) -> Failure:
    """Put an exception into words."""

    def public(text: str) -> str:
        if not private_name:
            return text
        # Private names mean nothing to people, and are others in each registry.
        return text.replace(private_name, name).replace(f"{group_of(private_name)}.", "")

    missing_module = missing_library = ""
    is_absolute = False
    for cause in _chain(error):
        if isinstance(cause, ModuleNotFoundError) and isinstance(cause.name, str):
            missing_module = public(cause.name)
            is_absolute = missing_module == cause.name
        if isinstance(cause, OSError | ImportError) and (match := _LIBRARY.search(_text(cause))):
            missing_library = match[1]
    reason = public(_text(error))
    common = missing_module.partition(".")[0]
    if is_absolute and is_common(common) and name.startswith(common.removesuffix("common")):
        reason += f". Import a vendor's common code relatively: from .{missing_module} import NAME"
    fix = "Report it to its author"
    if missing_library:
        fix = f"Install the package or driver that has the file {missing_library}"
    elif missing_module:
        fix = f"Install the package that brings the module {missing_module}"
    return Failure(
        reason,
        public("".join(traceback.format_exception(error))),
        missing_module,
        missing_library,
        fix,
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    # Causes are set by anybody's code, and may go round in a circle.
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _text(error: BaseException) -> str:
    """Describe an exception in a line, even if its own text cannot be read."""
    kind = type(error).__name__
    try:
        text = str(error)
    except BaseException as second:  # noqa: BLE001 - plugin boundary: its exceptions are its own
        let_user_interrupt(second)
        return f"{kind}, whose text cannot be read: {type(second).__name__}"
    if isinstance(error, ArmpyError):
        return text
    return f"{kind}: {text}" if text else kind
