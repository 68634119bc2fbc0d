"""Probe cache: what probes found out about files that have not changed since."""

from __future__ import annotations

import hashlib
import importlib
import json
import logging
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from armpy.backend import cache_directory
from armpy.core.file_ownership import make_own_folder
from armpy.plugins.discovery.candidate import Candidate, CandidateKind
from armpy.plugins.discovery.directories import module_files
from armpy.plugins.discovery.references import find_top_module
from armpy.plugins.probing.result import ProbeResult, result_from
from armpy.plugins.trust.policy import why_insecure
from armpy.plugins.trust.snapshot import read_regular

# To hash a library of some hundred MiB would take as long as the probe.
_LARGEST_HASHED_BYTES = 16 << 20
"""Of larger files only the size and the time of the last change count."""

_VARIABLES = "ARMPY_"
"""What environment variables begin with that backends may heed."""

_log = logging.getLogger("armpy.plugins")


def fingerprint(candidate: Candidate, settings: Mapping[str, str]) -> str:
    """What changes when a candidate, or anything that it may import, is changed.

    Parameters
    ----------
    candidate : Candidate
    settings : mapping
        Of the probe; results with others do not count.

    Returns
    -------
    str
        Empty if the candidate's files cannot be found.

    Notes
    -----
    Made of the files' paths, sizes, times and contents, the versions of armpy and Python, the
    distributions that are installed on ``sys.path``, and the environment variables of armpy and
    its backends: a wrong one must not be held against a backend when it is gone.
    """
    if candidate.kind is CandidateKind.DIRECTORY:
        paths = [candidate.path, *filter(None, [candidate.common])]
    else:
        paths = _module_paths(candidate.name)
    try:
        files = [_file_state(full) for path in paths for _, full in module_files(path)]
    except OSError as error:
        _log.debug("the files of '%s' cannot be read: %s", candidate.label, error)
        return ""
    if not files:
        return ""
    package = importlib.import_module("armpy")  # by name: this room imports nothing above it
    state = [
        *(candidate.is_plugin, candidate.kind.value, candidate.name, candidate.distribution),
        candidate.distribution_version,
        *(package.__version__, sys.version, sys.executable),
        files,
        [_installed(str(path)) for path in sys.path],
        sorted(settings.items()),
        sorted((name, value) for name, value in os.environ.items() if name.startswith(_VARIABLES)),
    ]
    return hashlib.sha256(json.dumps(state).encode()).hexdigest()


def recall(candidate: Candidate, state: str) -> ProbeResult | None:
    """The result of an earlier probe with the same fingerprint; None if there is none."""
    if not state:
        return None
    path = _cache_file(candidate)
    try:
        # Whoever can write it could have a deadly backend pass.
        if reason := why_insecure(str(path)):
            raise OSError(reason)
        fields = json.loads(read_regular(str(path)))
    except (OSError, ValueError, RecursionError) as error:
        _log.debug("no probe is remembered in %s: %s", path, error)
        return None
    if not isinstance(fields, dict) or fields.get("fingerprint") != state:
        return None
    result = result_from(fields.get("result"))
    return replace(result, remembered=True) if result else None


def remember(candidate: Candidate, state: str, result: ProbeResult) -> None:
    """Keep a result for the next time, if that can be done."""
    if not state or not result.is_worth_remembering:
        return
    path = _cache_file(candidate)
    fields = json.dumps({"fingerprint": state, "result": result.as_fields()})
    unfinished = ""
    try:
        make_own_folder(path.parent)
        # Put in place whole, as other processes read and write it at the same time.
        handle, unfinished = tempfile.mkstemp(dir=path.parent)
        with open(handle, "w") as file:
            file.write(fields)
        os.replace(unfinished, path)
    except OSError as error:
        _log.debug("the probe is not remembered in %s: %s", path, error)
        if unfinished:
            Path(unfinished).unlink(missing_ok=True)


def _cache_file(candidate: Candidate) -> Path:
    """Where a candidate's last result is."""
    identity = json.dumps(
        [
            candidate.is_plugin,
            candidate.kind.value,
            # Not the contents: a new result takes the old one's place, and few files are kept.
            candidate.path or [candidate.backend_id, candidate.name],
        ]
    )
    name = hashlib.sha256(identity.encode()).hexdigest()[:32]
    return cache_directory() / "probes" / f"{name}.json"


def _module_paths(reference: str) -> list[str]:
    """The file or packages that an entry point's object reference leads to."""
    spec = find_top_module(reference)
    if spec is None:
        return []
    if spec.submodule_search_locations is not None:
        return list(spec.submodule_search_locations)
    return [spec.origin] if spec.origin and os.path.isfile(spec.origin) else []


def _file_state(path: str) -> tuple[object, ...]:
    """What changes when a file is changed."""
    info = os.stat(path)
    is_small = info.st_size <= _LARGEST_HASHED_BYTES
    digest = hashlib.sha256(read_regular(path)).hexdigest() if is_small else ""
    return path, info.st_size, info.st_mtime_ns, digest


def _installed(path: str) -> tuple[object, ...]:
    """What changes when something is installed in a folder."""
    try:
        names = os.listdir(path)
    except OSError:
        names = []
    return path, sorted(n for n in names if n.endswith((".dist-info", ".egg-info", ".pth")))
