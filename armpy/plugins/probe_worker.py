"""Worker of a probe: loads one candidate and says how that went."""

from __future__ import annotations

import faulthandler
import json
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from armpy.backend import OptionScope
from armpy.backend.options import check_options
from armpy.errors import ArmpyError, DeviceNotFoundError
from armpy.plugins.checks import OpenedCandidate, check_invalid_id
from armpy.plugins.discovery.candidate import (
    BACKENDS,
    MISSING_DEVICE,
    Candidate,
    RejectionError,
)
from armpy.plugins.discovery.references import load_reference
from armpy.plugins.failures import describe_failure
from armpy.plugins.hooks.checks import check_plugin
from armpy.plugins.libraries import open_library
from armpy.plugins.loading import create, open_candidate, open_plugin
from armpy.plugins.modules import private_name
from armpy.plugins.probe import ProbeOutcome, ProbeResult
from armpy.plugins.trust.pinned_code import read_pinned


class Prober:
    """Handler that loads a candidate in a worker."""

    def answer(
        self,
        # The candidate; what to examine it with; a folder for temporary files; after how many
        # seconds to write down where it hangs.
        request: tuple[Candidate, str, str, float],
        attachments: object,
    ) -> Mapping[str, object]:
        """Load a candidate."""
        candidate, examine, folder, dump_after_s = request
        # The rest goes with it: nothing is tidied up at the end of this process.
        tempfile.tempdir = folder
        # The only word of one that hangs: the process that asks kills it.
        faulthandler.dump_traceback_later(dump_after_s)
        try:
            return load_and_describe(candidate, examine).as_fields()
        finally:
            # Now, as the process may be ended without a chance to write its buffers.
            for stream in (sys.stdout, sys.stderr):
                with suppress(Exception):  # the backend may have closed or replaced it
                    stream.flush()


def load_and_describe(candidate: Candidate, examine: str) -> ProbeResult:
    """Load a candidate and say what came of it."""
    private = private_name(candidate)
    outcome, fields = ProbeOutcome.OK, dict[str, Any]()  # Any: of ProbeResult
    try:
        if candidate.is_unidentified_library:  # its backends are examined once they are known
            fields["details"] = _examine_library(candidate)
        else:
            backend = _make(candidate, private)
            examiner: Any = load_reference(examine) if examine else None  # Any: anybody's function
            fields["details"] = examiner(backend) if examine else {}
        # Tried here, so that what cannot be sent is this candidate's failure.
        json.dumps(fields)
    except RejectionError as error:
        outcome, fields = ProbeOutcome.REJECTED, {"reason": str(error), "fix": error.fix}
    except BaseException as error:  # noqa: BLE001 - plugin boundary: it is the answer
        failure = describe_failure(error, private, candidate.name)
        outcome = ProbeOutcome.RAISED
        fields = {name: getattr(failure, name) for name in failure.__slots__}
        if isinstance(error, SystemExit):
            outcome = ProbeOutcome.EXITED
            # The code with which the interpreter would have exited.
            code = 0 if error.code is None else error.code
            fields["exit_code"] = code if isinstance(code, int) else 1
    return ProbeResult(
        outcome,
        backend_id=candidate.backend_id,
        api_version=candidate.api_version,
        device_type=candidate.device_type,
        **fields,
    )


def _examine_library(candidate: Candidate) -> dict[str, object]:
    """Ids of a library's backends with why they cannot be used, or why it has no device.

    Each is made and opened as a runtime does it: a library may crash or hang only there, and a
    backend that cannot be opened must not take the id from another.
    """
    try:
        factories = open_library(candidate, read_pinned(candidate))
    except DeviceNotFoundError as error:
        return {BACKENDS: {}, MISSING_DEVICE: str(error)}
    reasons = dict.fromkeys(factories, "")
    for backend_id, factory in factories.items():
        check_invalid_id(backend_id)
        backend = OpenedCandidate(backend_id, "", factory).create().backend
        options = check_options(backend.options, {}, backend_id)[OptionScope.RUNTIME]
        try:
            context = backend.for_runtime(options).create_backend_context(options)
            if context is not None:
                context.close()
        except ArmpyError as error:
            reasons[backend_id] = str(error)
    return {BACKENDS: reasons}


def _make(candidate: Candidate, private: str) -> object:
    """A candidate's backend or plugin; its facts are stored in the candidate."""
    # Read again here, as the bytes that were hashed are in the other process.
    pinned = read_pinned(candidate)
    if candidate.is_plugin:
        plugin = open_plugin(candidate, pinned)
        check_plugin(plugin)
        return plugin
    opened = open_candidate(candidate, private, pinned)
    candidate.backend_id, candidate.api_version = opened.backend_id, opened.api_version
    check_invalid_id(opened.backend_id)
    return create(candidate, opened).backend
