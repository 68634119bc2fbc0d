"""Probe cache: results of probes of files that have not changed since."""

from __future__ import annotations

import hashlib
import importlib
import json
import logging
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from armpy.backend import cache_directory
from armpy.core.file_ownership import FileStamp
from armpy.plugins.discovery.candidate import Candidate, CandidateKind
from armpy.plugins.discovery.directories import module_files
from armpy.plugins.discovery.entry_point_cache import installed
from armpy.plugins.discovery.references import find_top_module
from armpy.plugins.probing.result import ProbeResult, result_from
from armpy.plugins.trust.policy import why_insecure
from armpy.store.owned_files import read_checked, write_checked

_log = logging.getLogger("armpy.plugins")


def fingerprint(candidate: Candidate, settings: Mapping[str, str]) -> str:
    """Digest that changes with a candidate and anything that it may import.

    Parameters
    ----------
    settings : mapping
        Of the probe; results with others do not count.

    Returns
    -------
    str
        Empty if the candidate's files cannot be found.

    Notes
    -----
    Made of the files' paths, sizes, inodes and times, the versions of armpy and Python,
    ``sys.path`` and the distributions on it, and the environment variables of armpy and its
    backends: a wrong one must not be held against a backend when it is gone.
    """
    try:
        files = [
            (full, *FileStamp.of(os.stat(full)))
            for place in _places(candidate)
            for _, full in module_files(place)
        ]
    except OSError as error:
        _log.debug("the files of '%s' cannot be read: %s", candidate.label, error)
        return ""
    if not files:
        return ""
    package = importlib.import_module("armpy")  # by name: this room imports nothing above it
    state = [
        *_identity(candidate),
        *(candidate.name, candidate.distribution, candidate.distribution_version),
        *(package.__version__, sys.version, sys.executable),
        files,
        *([str(path) for path in sys.path], installed().distributions),
        sorted(settings.items()),
        sorted((name, value) for name, value in os.environ.items() if name.startswith("ARMPY_")),
    ]
    return hashlib.sha256(json.dumps(state).encode()).hexdigest()


def recall(candidate: Candidate, state: str) -> ProbeResult | None:
    """The result of an earlier probe with the same fingerprint; None if there is none."""
    path = _cache_file(candidate)
    contents = read_checked(path) if state else None
    # Other users could have a deadly backend pass.
    if contents is None or why_insecure(str(path)):
        return None
    fields = json.loads(contents)
    result = result_from(fields["result"]) if fields["fingerprint"] == state else None
    return replace(result, remembered=True) if result else None


def remember(candidate: Candidate, state: str, result: ProbeResult) -> None:
    """Keep a result for the next time, if that can be done."""
    if state and result.is_worth_remembering:
        fields = {"fingerprint": state, "result": result.as_fields()}
        write_checked(_cache_file(candidate), json.dumps(fields).encode())


def _identity(candidate: Candidate) -> list[object]:
    """Kind and place of a candidate, which stay when its contents change."""
    place = candidate.path or [candidate.backend_id, candidate.name]
    return [candidate.is_plugin, candidate.kind.value, place]


def _cache_file(candidate: Candidate) -> Path:
    """Where a candidate's last result is; a new one takes its place, so that few are kept."""
    name = hashlib.sha256(json.dumps(_identity(candidate)).encode()).hexdigest()[:32]
    return cache_directory() / "probes" / f"{name}.json"


def _places(candidate: Candidate) -> list[str]:
    if candidate.kind is CandidateKind.DIRECTORY:
        return [candidate.path, *filter(None, [candidate.common])]
    spec = find_top_module(candidate.name)
    if spec is None:
        return []
    return list(spec.submodule_search_locations or filter(None, [spec.origin]))
