"""Report of an installation: its facts, and the states of its backends and plugins."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import armpy
from armpy.backend import BACKEND_API_VERSION
from armpy.cli.app import app
from armpy.cli.doctor.trial import EXAMINATION
from armpy.cli.plugin_commands import collect_commands
from armpy.cli.printer import stdout_kept
from armpy.cli.settings import wrong_values
from armpy.core.dataclass import dataclass
from armpy.core.file_ownership import cache_folder, make_own_folder
from armpy.core.machine import describe_machine
from armpy.core.processes.worker import find_in_force
from armpy.model.archive.kept_models import exposed_cache
from armpy.plugins import (
    BackendRegistry,
    Candidate,
    CandidateStatus,
    PluginOptions,
    ProbeResult,
)
from armpy.plugins.discovery.candidate import MISSING_DEVICE
from armpy.plugins.discovery.directories import ENVIRONMENT_VARIABLE as PATH_VARIABLE
from armpy.plugins.discovery.directories import correction
from armpy.plugins.extension_tables import NEEDED
from armpy.plugins.front_ends.registry import FrontEnds
from armpy.store.archive.kernel_packs import found_packs
from armpy.store.owned_files import is_switched_off

OK, PROBLEM, NO_DEVICE = "ok", "problem", "no device"
"""States of what loads: sound, not working, and without its hardware, driver or vendor package."""

_LIBRARIES = ("numpy", "numba", "llvmlite", "pluggy", "click", "pillow", *NEEDED)

_LEAST_ROOM = 1 << 20
"""Bytes that the cache's file system must have left; a full one takes an empty file."""


@dataclass(frozen=True, slots=True)
class SubjectReport:
    """Report of one backend, or of one plugin with hooks."""

    name: str
    version: str
    state: str  # `OK`, `NO_DEVICE`, `PROBLEM`, or the status of a candidate that is left out
    api_version: str
    source: str
    path: str
    reason: str = ""
    fix: str = ""
    traceback: str = ""  # of its exception, or what it wrote last
    details: tuple[tuple[str, str], ...] = ()  # properties, each with its kind


@dataclass(frozen=True, slots=True)
class InstallationReport:
    """Report of an installation."""

    facts: Mapping[str, str]
    backends: tuple[SubjectReport, ...]
    plugins: tuple[SubjectReport, ...]
    problems: tuple[str, ...]  # each with the fix


def examine(options: PluginOptions) -> InstallationReport:
    """Load every backend and plugin in a process of its own, and gather the facts."""
    registry = BackendRegistry.discover(options)
    results = {id(c): result for c, result in registry.probe(examine=EXAMINATION)}
    backends = tuple(_report(c, results.get(id(c))) for c in registry.candidates)
    plugins = tuple(_plugin_reports(registry))
    cache, cache_problem = _cache()
    problems = [*_directory_problems(registry, options), *wrong_values(), cache_problem]
    for subject in (*backends, *plugins):
        if subject.state not in (OK, NO_DEVICE):
            text = ". ".join(filter(None, (subject.reason.rstrip("."), subject.fix)))
            problems.append(f"{subject.name}: {text}")
    facts = {**_facts(), "cache": cache}
    return InstallationReport(facts, backends, plugins, tuple(filter(None, problems)))


def _report(candidate: Candidate, result: ProbeResult | None, fault: str = "") -> SubjectReport:
    """The report of a candidate; `fault` is what it does wrong beside others."""
    details: Mapping[str, Any] = {} if result is None else result.details
    is_found = candidate.status in (CandidateStatus.FOUND, CandidateStatus.REGISTERED)
    problem = (details.get("problem", "") or fault) if is_found else ""
    # A library without a device has no backend to be found.
    may_lack_device = is_found or candidate.is_unidentified_library
    missing_device = str(details.get(MISSING_DEVICE, "")) if may_lack_device else ""
    state = OK if is_found else candidate.status.value
    if missing_device or problem:
        state = NO_DEVICE if missing_device else PROBLEM
    return SubjectReport(
        candidate.label or candidate.source,
        str(details.get("version") or candidate.distribution_version),
        state,
        candidate.api_version,
        candidate.source,
        candidate.path,
        problem or missing_device or " ".join(candidate.reason.split()),
        details.get("fix", "") if problem else candidate.fix,
        candidate.traceback or (result.output if result is not None else ""),
        tuple((str(what), str(text)) for what, text in details.get("details", ())),
    )


def _plugin_reports(registry: BackendRegistry) -> Iterator[SubjectReport]:
    """Reports of plugins with hooks; the hooks of those that can be loaded are called here."""
    if not registry.has_plugins():
        return
    plugins = registry.plugins
    plugins.around_calls = stdout_kept
    results = {id(c): result for c, result in plugins.probe()}
    front_ends = [*FrontEnds(plugins)]
    collect_commands(plugins, app.own_names)
    for candidate in plugins.candidates:
        faults = [f"{hook}: {f.reason}" for c, hook, f in plugins.problems if c is candidate]
        report = _report(candidate, results.get(id(candidate)), "; ".join(faults))
        own = [f for f in front_ends if f.candidate is candidate]
        details = tuple(("front-end", f"{f.name}: {f.title}, {', '.join(f.suffixes)}") for f in own)
        yield replace(report, details=details)


def _directory_problems(registry: BackendRegistry, options: PluginOptions) -> Iterator[str]:
    """Paths that were named as directories of backends, or lie in one, and are not used."""
    named = options.directories or os.environ.get(PATH_VARIABLE, "").split(os.pathsep)
    fix = correction(has_override=bool(options.directories))
    for path in registry.skipped_paths:
        if path.path in named:
            yield f"cannot look into {path.path}: {path.reason}. {fix}"


def _facts() -> dict[str, str]:
    variables = [f"{n}={v}" for n, v in sorted(os.environ.items()) if n.startswith("ARMPY_")]
    packs = [f"{pack.path} ({pack.reason or 'used'})" for pack in found_packs()]
    return {
        "armpy": f"{armpy.__version__} in {os.path.dirname(armpy.__file__)}",
        "backend API": BACKEND_API_VERSION,
        "Python": f"{platform.python_version()} ({sys.executable})",
        **{name: _version(name) for name in _LIBRARIES},
        "machine": f"{describe_machine()}, {platform.platform()}",
        "variables": ", ".join(variables) or "none",
        "kernel packs": "; ".join(packs) or "those of backends",
        "isolated backends": "; ".join(f"{n}: {text}" for n, text in find_in_force().items()),
    }


def _version(name: str) -> str:
    """The version of an installed distribution, or that it is missing."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def _cache() -> tuple[str, str]:
    """Where the cache is, and why nothing can be kept there, with the fix."""
    if is_switched_off(os.environ):
        return "switched off", ""
    try:
        folder = cache_folder()
        make_own_folder(folder)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_LEAST_ROOM))
            file.flush()
    except (RuntimeError, OSError) as error:
        fix = "Set ARMPY_CACHE_DIR to a folder that can be written"
        return "none", f"cache: nothing is kept: {error}. {fix}"
    return f"{folder}, writable; armpy cache list shows what is in it", exposed_cache()
