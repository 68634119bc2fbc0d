"""Finds out what is wrong with backends and plugins, and what to do about it."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import armpy
from armpy.backend import BACKEND_API_VERSION
from armpy.cli.doctor.diagnose_backend import EXAMINATION
from armpy.cli.doctor.diagnose_plugin import EXAMINATION as PLUGIN_EXAMINATION
from armpy.cli.doctor.remedies import missing_thing, remedy
from armpy.core.processes.worker import find_in_force
from armpy.plugins import (
    BackendRegistry,
    Candidate,
    CandidateKind,
    CandidateStatus,
    PluginOptions,
    ProbeResult,
    SkippedPath,
)
from armpy.plugins.discovery.directories import ENVIRONMENT_VARIABLE as PATH_VARIABLE
from armpy.plugins.trust.policy import ENVIRONMENT_VARIABLE as TRUST_VARIABLE
from armpy.store.archive.kernel_packs import FoundPack, found_packs

OK = "ok"
"""Status of a backend that has nothing wrong with it."""

PROBLEM = "problem"
"""Status of one that loads and does not work."""

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Diagnosis of one candidate."""

    id: str
    name: str
    kind: str
    source: str
    path: str
    status: str
    """`OK`, `PROBLEM`, or what became of the candidate."""
    loads: bool
    cause: str
    """What is wrong, in a line; empty if nothing is."""
    missing: str
    """A module or library that it lacks."""
    remedy: str
    """What to do."""
    # Of the backend, as far as it could be asked.
    version: str
    api_version: str
    device_type: str
    details: Mapping[str, Any]  # Any: JSON
    """What it tells about itself, and how it did in small networks; see `examine_backend`."""
    # Of the exception that it raised, and the last that it wrote.
    traceback: str = ""
    output: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether there is nothing to do."""
        return self.status == OK


@dataclass(frozen=True, slots=True)
class Examination:
    """Examination of the installation by the doctor."""

    facts: dict[str, str]
    """About this machine and environment."""
    candidates: tuple[Diagnosis, ...]
    """In the order in which the candidates were found."""
    plugins: tuple[Diagnosis, ...]
    """Likewise, of plugins with hooks."""
    skipped: tuple[SkippedPath, ...]
    """Paths that were not taken up, with reasons."""
    bad_directories: tuple[SkippedPath, ...]
    """Those among them that were named as directories to look in."""

    @property
    def num_problems(self) -> int:
        """Of candidates, plugins and directories."""
        sick = [found for found in (*self.candidates, *self.plugins) if not found.is_ok]
        return len(sick) + len(self.bad_directories)


def examine(options: PluginOptions) -> Examination:
    """Probe every candidate in a process of its own.

    Raises
    ------
    InvalidArgumentError
        If there is a trust file that cannot be used.
    """
    registry = BackendRegistry.discover(options)
    results = registry.probe(examine=EXAMINATION)
    candidates: tuple[Candidate, ...] = ()
    if registry.has_plugins():
        results += registry.plugins.probe(examine=PLUGIN_EXAMINATION)
        candidates = registry.plugins.candidates
    probed = {id(candidate): result for candidate, result in results}
    named = set(_directories(options))
    skipped = registry.skipped_paths
    return Examination(
        _facts(options),
        tuple(_diagnose(c, probed.get(id(c))) for c in registry.candidates),
        _with_rivals([_diagnose(c, probed.get(id(c))) for c in candidates]),
        tuple(path for path in skipped if path.path not in named),
        tuple(path for path in skipped if path.path in named),
    )


def _with_rivals(diagnoses: Sequence[Diagnosis]) -> tuple[Diagnosis, ...]:
    """Add what plugins that are well by themselves take from each other; the first one has it."""
    owners: dict[str, str] = {}
    checked = []
    for diagnosis in diagnoses:
        rivals = []
        for what in _brought(diagnosis):
            owner = owners.setdefault(what, diagnosis.id)
            if owner != diagnosis.id:
                rivals.append(f"{what} is taken by the plugin '{owner}'")
        if rivals and diagnosis.is_ok:
            checked.append(
                replace(
                    diagnosis,
                    status=PROBLEM,
                    cause="; ".join(rivals),
                    remedy="Remove one of the two",
                )
            )
        else:
            checked.append(diagnosis)
    return tuple(checked)


def _brought(diagnosis: Diagnosis) -> list[str]:
    found = [f"the command {name}" for name in diagnosis.details.get("commands", ())]
    for front_end in diagnosis.details.get("front_ends", ()):
        found += [f"the front-end {front_end['name']}"]
        found += [f"the suffix {suffix}" for suffix in front_end["suffixes"]]
    return found


def _directories(options: PluginOptions) -> Sequence[str]:
    return options.directories or [
        part for part in os.environ.get(PATH_VARIABLE, "").split(os.pathsep) if part
    ]


def _facts(options: PluginOptions) -> dict[str, str]:
    variables = [f"{k}={v}" for k, v in sorted(os.environ.items()) if k.startswith("ARMPY_")]
    trust_file = os.fspath(options.trust_file or os.environ.get(TRUST_VARIABLE, ""))
    return {
        "armpy": armpy.__version__,
        "backend API": BACKEND_API_VERSION,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "machine": platform.platform(),
        "trust file": trust_file or "none",
        "directories": ", ".join(_directories(options)) or "none",
        "environment": ", ".join(variables) or "no ARMPY_ variables",
        "kernel packs": "; ".join(map(_said, found_packs())) or "none",
        "isolated backends": "; ".join(f"{n}: {text}" for n, text in find_in_force().items()),
    }


def _said(found: FoundPack) -> str:
    """A kernel pack in few words; whether a backend takes it, 'armpy kernels list' says."""
    if found.pack is None:
        return f"{found.path} is not used: {found.reason}"
    target = str(found.pack.about.get("target"))[:80]
    return f"{found.path} ({len(found.pack)} kernels of {found.pack.backend_id} for {target})"


def _diagnose(candidate: Candidate, result: ProbeResult | None) -> Diagnosis:
    details: Mapping[str, Any] = result.details if result is not None else {}
    is_found = candidate.status is CandidateStatus.FOUND
    problems = list(details.get("problems", ())) if is_found else []
    cause = "; ".join(problems) or _cause(candidate, result)
    status = candidate.status.value
    if is_found:
        status = PROBLEM if problems else OK
    return Diagnosis(
        id=candidate.backend_id,
        name=candidate.name,
        kind=candidate.kind.value,
        source=candidate.source,
        path=candidate.path,
        status=status,
        loads=result is not None and result.passed,
        cause=cause,
        missing=missing_thing(candidate),
        remedy=remedy(candidate, is_sick=bool(problems)),
        version=str(details.get("version") or candidate.distribution_version),
        api_version=candidate.api_version,
        device_type=candidate.device_type,
        details=details,
        traceback=candidate.traceback,
        output=result.output if result is not None else "",
    )


def _cause(candidate: Candidate, result: ProbeResult | None) -> str:
    """Why a candidate is left out, in a line; where it was when it crashed or hung."""
    text = " ".join(candidate.reason.split())
    if candidate.status not in (CandidateStatus.CRASHED, CandidateStatus.HUNG) or result is None:
        return text
    place = _place(result.output, candidate)
    return f"{text}, at {place}" if place else text


def _place(output: str, candidate: Candidate) -> str:
    """File and line in what Python's fault handler wrote, of the candidate's own code if any."""
    frames = [(match["file"], match["line"]) for match in _FRAME.finditer(output)]
    is_directory = candidate.kind is CandidateKind.DIRECTORY
    own = [frame for frame in frames if is_directory and frame[0].startswith(candidate.path)]
    found = own or frames
    return f"{found[0][0]} line {found[0][1]}" if found else ""
