"""What the child process of a probe does: load one candidate and write down how that went."""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from armpy.plugins.candidate import Candidate, CandidateKind, RejectionError
from armpy.plugins.hook_checks import check_plugin
from armpy.plugins.loading import (
    check_invalid_id,
    describe_failure,
    open_candidate,
)
from armpy.plugins.modules import private_name
from armpy.plugins.probe_result import ProbeOutcome, ProbeResult
from armpy.plugins.snapshot import PinnedCode
from armpy.plugins.trust import pinned_code


def main(request: Mapping[str, str]) -> None:  # pragma: no cover - runs in the child process
    """Load the candidate that a request describes and leave the process at once.

    Parameters
    ----------
    request : mapping
        ``kind``, ``backend_id``, ``name``, ``path``, ``entry``, ``common``, ``distribution``,
        ``pin``, ``common_pin``, ``is_plugin`` of the candidate; ``examine``, ``answer``
        (the file to write) and ``dump_after_s``.
    """
    _leave_no_core_dump()
    faulthandler.enable()
    faulthandler.dump_traceback_later(float(request["dump_after_s"]))
    answer = Path(request["answer"])
    # What is left there goes with it: nothing is tidied up at the end of this process.
    tempfile.tempdir = str(answer.parent)
    fields = json.dumps(load_and_describe(request).as_fields())
    unfinished = answer.with_suffix(".unfinished")
    unfinished.write_text(fields)
    unfinished.replace(answer)
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # the backend may have closed or replaced it
            stream.flush()
    os._exit(0)  # whatever threads and exit handlers the backend has left


def load_and_describe(request: Mapping[str, str]) -> ProbeResult:
    """Load a candidate and say what came of it."""
    candidate = Candidate(
        request["backend_id"],
        source="",
        kind=CandidateKind(request["kind"]),
        name=request["name"],
        path=request["path"],
        entry=request["entry"],
        common=request["common"],
        distribution=request["distribution"],
        pin=request["pin"],
        common_pin=request["common_pin"],
        is_plugin=bool(request["is_plugin"]),
    )
    private = private_name(candidate.path, candidate.entry)
    try:
        pinned = pinned_code(candidate)
        make = _make_plugin if candidate.is_plugin else _make_backend
        details = _examiner(request["examine"])(make(candidate, private, pinned))
        json.dumps(details)
    except RejectionError as error:
        return _result(ProbeOutcome.REJECTED, candidate, reason=str(error))
    except BaseException as error:  # noqa: BLE001 - plugin boundary: it is the answer
        failure = describe_failure(error, private, candidate.name)
        exited = isinstance(error, SystemExit)
        return _result(
            ProbeOutcome.EXITED if exited else ProbeOutcome.RAISED,
            candidate,
            reason=failure.reason,
            traceback=failure.traceback,
            exit_code=_exit_code(error) if isinstance(error, SystemExit) else None,
            missing_module=failure.missing_module,
            missing_library=failure.missing_library,
        )
    return _result(ProbeOutcome.OK, candidate, details=details)


def _make_backend(candidate: Candidate, private: str, pinned: PinnedCode) -> object:
    """Make a candidate's backend and write down what it says of itself."""
    opened = open_candidate(candidate, private, pinned)
    candidate.backend_id, candidate.api_version = opened.backend_id, opened.api_version
    check_invalid_id(opened.backend_id)
    checked = opened.create()
    candidate.api_version = checked.api_version
    candidate.device_type = checked.device_type.name
    return checked.backend


def _make_plugin(candidate: Candidate, private: str, pinned: PinnedCode) -> object:
    """Import a candidate with hooks and check them."""
    from armpy.plugins.hooks import open_plugin  # noqa: PLC0415 - most candidates are backends

    plugin = open_plugin(candidate, pinned.module)
    check_plugin(plugin)
    return plugin


def _result(outcome: ProbeOutcome, candidate: Candidate, **fields: object) -> ProbeResult:
    """A result with what is known of the candidate."""
    return ProbeResult(
        outcome,
        backend_id=candidate.backend_id,
        api_version=candidate.api_version,
        device_type=candidate.device_type,
        **fields,  # type: ignore[arg-type]  # each caller names fields of ProbeResult
    )


def _exit_code(error: SystemExit) -> int:
    """The code with which the interpreter would have exited."""
    if error.code is None:
        return 0
    return error.code if isinstance(error.code, int) else 1


def _examiner(reference: str) -> Callable[[object], Mapping[str, object]]:
    """The function to examine the backend with: ``"module:function"``, or one that does nothing."""
    if not reference:
        return lambda _: {}
    module, _, name = reference.partition(":")
    examine: Callable[[object], Mapping[str, object]] = getattr(
        importlib.import_module(module), name
    )
    return examine


def _leave_no_core_dump() -> None:  # pragma: no cover - runs in the child process
    """Keep a crash from writing the process's memory to a file."""
    try:
        import resource  # noqa: PLC0415 - not on every platform

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):
        return
