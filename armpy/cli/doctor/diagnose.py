"""Diagnoses faults of backends and plugins, and names remedies."""

from __future__ import annotations

import errno
import glob
import os
import platform
import re
import sys
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import (
    PackageNotFoundError,
    distributions,
    packages_distributions,
    requires,
    version,
)
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

import armpy
from armpy.backend import BACKEND_API_VERSION
from armpy.cli.doctor.diagnose_backend import EXAMINATION
from armpy.cli.doctor.trials import COMMAND
from armpy.cli.doctor.variables import variable_problems, variables_in_force
from armpy.core.dataclass import dataclass
from armpy.core.file_ownership import cache_folder, file_in_place_of, make_own_folder
from armpy.core.machine import describe_machine
from armpy.core.processes.worker import find_in_force
from armpy.core.units import bytes_text, counted, shell_word
from armpy.errors import ends_in_command, nearest_name
from armpy.model.archive import model_cache
from armpy.model.archive.kept_models import ModelCache, exposed_cache
from armpy.plugins import (
    BackendRegistry,
    Candidate,
    CandidateKind,
    CandidateStatus,
    PluginOptions,
    ProbeResult,
    SkippedPath,
)
from armpy.plugins.discovery.candidate import MISSING_DEVICE
from armpy.plugins.discovery.directories import ENVIRONMENT_VARIABLE as PATH_VARIABLE
from armpy.plugins.discovery.directories import correction
from armpy.plugins.extension_tables import BACKEND_FOLDERS, FOLDERS, NEEDED
from armpy.plugins.extensions import install_line
from armpy.plugins.trust.policy import ENVIRONMENT_VARIABLE as TRUST_VARIABLE
from armpy.store.archive.kernel_packs import found_packs
from armpy.store.owned_files import is_switched_off

OK = "ok"
"""Status of a backend that has nothing wrong with it."""

PROBLEM = "problem"
"""Status of one that loads and does not work."""

NO_DEVICE = "no device"
"""Status of one whose hardware, driver or vendor package is missing, as on most machines."""

_LIBRARIES = {
    "numpy": "for everything",
    "numba": "for compiling kernels",
    "llvmlite": "for compiling kernels",
    "pluggy": "for plugins",
    "click": "for the command line",
    "rich": "for the command line",
    "pillow": "optional, for reading pictures",
}
"""Distributions that armpy uses, and for what."""

_OPTIONAL = "pillow"
"""The one of them that nothing requires."""

_COMPILER = ("numba", "llvmlite")
"""Installing the first brings the second in the version that it needs, whichever is missing."""

_LEAST_ROOM = 1 << 20
"""Bytes that the cache's file system must have left; a full one takes an empty file."""

_PLUGIN_EXAMINATION = "armpy.cli.doctor.diagnose_plugin:examine_plugin"
"""Entry point that another process calls; its module needs click."""

_MISSPELT = 0.8
"""Likeness of names of modules from which one is taken for the other misspelt."""

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')

_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_VARIABLE = re.compile(r"\bARMPY_[A-Z_]+\b")

_DISTRIBUTIONS = {
    "PIL": "pillow",
    "cv2": "opencv-python",
    "google": "protobuf",
    "serial": "pyserial",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "usb": "pyusb",
    "yaml": "pyyaml",
}
"""What brings a module whose name is another."""

_REPORT = "Report it to its author"

_REMEDIES = {
    CandidateStatus.DUPLICATE: "Remove one of the two",
    CandidateStatus.CRASHED: "Remove it and report it; Runtime(probe=True) leaves it out",
    CandidateStatus.HUNG: "Remove it and report it; Runtime(probe=True) leaves it out",
    CandidateStatus.FAILED: f"{_REPORT}; armpy doctor --debug shows the traceback",
    CandidateStatus.REJECTED: f"{_REPORT}: armpy.backend describes the contract",
}


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Diagnosis of one candidate."""

    id: str
    name: str
    kind: str
    source: str
    path: str
    status: str
    """`OK`, `NO_DEVICE`, `PROBLEM`, or what became of the candidate."""
    loads: bool
    cause: str
    """The fault, in a line; empty if there is none."""
    missing: str
    """A module or library that it lacks."""
    remedy: str
    """What to do."""
    # Of the backend, as far as it could be asked.
    version: str
    api_version: str
    device_type: str
    details: Mapping[str, Any]  # Any: JSON
    """Its properties and the outcome of small networks; see `examine_backend`."""
    # Of the exception that it raised, and the last that it wrote.
    traceback: str = ""
    output: str = ""

    @property
    def is_ok(self) -> bool:
        """Return whether it has no fault."""
        return self.status in (OK, NO_DEVICE)


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
    directories_fix: str
    """The fix for these, which names the option or variable."""

    cache_problem: str
    """Why the cache cannot be written or is not used, and the fix; empty if it is."""
    unmet_requirements: tuple[str, ...]
    """What armpy, its extensions and its compiler need and do not have, with the fix."""
    environment_problems: tuple[str, ...]
    """Variables that are misspelt or wrong, and a second armpy, with the fix."""

    @property
    def sick(self) -> tuple[Diagnosis, ...]:
        """Candidates and plugins with a problem."""
        return tuple(item for item in (*self.candidates, *self.plugins) if not item.is_ok)

    @property
    def num_problems(self) -> int:
        """Number of problems of candidates, plugins, and all else that is listed here."""
        listed = self.bad_directories, self.unmet_requirements, self.environment_problems
        return len(self.sick) + sum(map(len, listed)) + bool(self.cache_problem)


def examine(options: PluginOptions) -> Examination:
    """Probe every candidate in a process of its own."""
    registry = BackendRegistry.discover(options)
    results = registry.probe(examine=EXAMINATION)
    candidates: tuple[Candidate, ...] = ()
    if registry.has_plugins():
        results += registry.plugins.probe(examine=_PLUGIN_EXAMINATION)
        candidates = registry.plugins.candidates
    probed = {id(candidate): result for candidate, result in results}
    named = set(_directories(options))
    skipped = registry.skipped_paths
    unwritable = _cache_problem()
    return Examination(
        _facts(options, is_writable=not unwritable),
        tuple(_diagnose(c, probed.get(id(c))) for c in registry.candidates),
        _beside_each_other([_diagnose(c, probed.get(id(c))) for c in candidates]),
        tuple(path for path in skipped if path.path not in named),
        tuple(path for path in skipped if path.path in named),
        correction(has_override=bool(options.directories)),
        unwritable or exposed_cache(),
        tuple(unmet_requirements(("armpy", *NEEDED))),
        (
            *variable_problems([str(c.backend_id) for c in registry.candidates]),
            *_other_versions(),
        ),
    )


def _other_versions() -> Iterator[str]:
    """That armpy is installed in several versions, and the fix; nothing if it is not."""
    places: dict[str, str] = {}
    for distribution in distributions(name="armpy"):
        places.setdefault(distribution.version, str(distribution.locate_file("")))
    if len(places) > 1:
        copies = " and ".join(f"{number} in {place}" for number, place in places.items())
        used = os.path.dirname(os.path.dirname(armpy.__file__))
        yield (
            f"armpy is installed in several versions: {copies}; the code in {used} is used, with "
            "plugins of all. Run: pip uninstall armpy, until it finds none, and install it again"
        )


def _beside_each_other(diagnoses: Sequence[Diagnosis]) -> tuple[Diagnosis, ...]:
    """Add what only shows where plugins are together: what they lack, and take from each other."""
    return tuple(_with_rivals(_with_missing_groups(diagnoses)))


def _with_missing_groups(diagnoses: Sequence[Diagnosis]) -> Iterator[Diagnosis]:
    """Add commands of plugins that are well by themselves for groups that no plugin has."""
    commands = [name for item in diagnoses for name in item.details.get("commands", ())]
    for diagnosis in diagnoses:
        homeless = [
            f"no plugin has a group '{group}' for its command '{name}'"
            for name in diagnosis.details.get("commands", ())
            if (group := name.partition(" ")[0]) not in commands
        ]
        yield _with_problems(diagnosis, homeless, "Install the plugin that has the group")


def _with_rivals(diagnoses: Iterable[Diagnosis]) -> Iterator[Diagnosis]:
    """Add what plugins that are well by themselves take from each other; the first one has it."""
    owners: dict[str, str] = {}
    for diagnosis in diagnoses:
        brought = [f"the command {name}" for name in diagnosis.details.get("commands", ())]
        for front_end in diagnosis.details.get("front_ends", ()):
            brought += [f"the front-end {front_end['name']}"]
            brought += [f"the suffix {suffix}" for suffix in front_end["suffixes"]]
        rivals = [
            f"{name} is taken by the plugin '{owner}'"
            for name in brought
            if (owner := owners.setdefault(name, diagnosis.id)) != diagnosis.id
        ]
        yield _with_problems(diagnosis, rivals, "Remove one of the two")


def _with_problems(diagnosis: Diagnosis, problems: Sequence[str], fix: str) -> Diagnosis:
    """A diagnosis with problems beside other plugins, if it is well by itself."""
    if not problems or not diagnosis.is_ok:
        return diagnosis
    return replace(diagnosis, status=PROBLEM, cause="; ".join(problems), remedy=fix)


def _directories(options: PluginOptions) -> Sequence[str]:
    return options.directories or [
        part for part in os.environ.get(PATH_VARIABLE, "").split(os.pathsep) if part
    ]


def _facts(options: PluginOptions, *, is_writable: bool) -> dict[str, str]:
    trust_file = os.fspath(options.trust_file or os.environ.get(TRUST_VARIABLE, ""))
    packs = []  # whether a backend takes one, 'armpy kernels list' says
    for pack_file in found_packs():
        pack, text = pack_file.pack, f"{pack_file.path} is not used: {pack_file.reason}"
        if pack is not None:
            target = str(pack.about.get("target"))[:80]
            text = f"{pack_file.path} ({len(pack)} kernels of {pack.backend_id} for {target})"
        packs.append(text)
    return {
        "armpy": f"{armpy.__version__} in {os.path.dirname(armpy.__file__)}",
        "backend API": BACKEND_API_VERSION,
        "Python": platform.python_version(),
        "libraries": ", ".join(map(_library_text, _LIBRARIES)),
        "machine": f"{describe_machine()}, {platform.platform()}",
        "cache": _cache_text(is_writable=is_writable),
        "trust file": trust_file or "none",
        "directories": ", ".join(_directories(options)) or "none",
        "environment": ", ".join(variables_in_force()) or "no ARMPY_ variables",
        "kernel packs": "; ".join(packs) or "none but those that come with backends",
        "extensions": ", ".join(_extensions(installed=True)) or "none",
        "extensions not installed": "; ".join(_extensions(installed=False)) or "none",
        "isolated backends": "; ".join(f"{n}: {text}" for n, text in find_in_force().items()),
    }


def _library_text(name: str) -> str:
    """A library and its version, or that it is missing.

    How to install those that are required, `unmet_requirements` says.
    """
    try:
        return f"{name} {version(name)}"
    except PackageNotFoundError:
        command = f": pip install {name}" if name == _OPTIONAL else ""
        return f"{name} missing ({_LIBRARIES[name]}){command}"


def unmet_requirements(distributions: Iterable[str]) -> Iterator[str]:
    """What installed distributions, and all that they need, lack; each with the fix.

    Parameters
    ----------
    distributions : iterable of str
        Names; those that are not installed need nothing.
    """
    waiting = deque(map(canonicalize_name, distributions))
    seen = set(waiting)
    while waiting:
        name = waiting.popleft()
        for requirement in _requirements(name):
            try:
                found = version(requirement.name)
            except PackageNotFoundError:
                found = ""
            if not found or not requirement.specifier.contains(found, prereleases=True):
                wanted = f"{requirement.name}{requirement.specifier}"
                has = f"{found} is installed" if found else "it is not installed"
                fix = _install_requirement(requirement, is_missing=not found)
                yield f"{name} needs {wanted}, and {has}. Run: {fix}"
            needed = canonicalize_name(requirement.name)
            if found and needed not in seen:
                seen.add(needed)
                waiting.append(needed)


def _requirements(distribution: str) -> Iterator[Requirement]:
    """What an installed distribution needs here, without its extras."""
    try:
        texts = requires(distribution) or ()
    except PackageNotFoundError:
        return
    for text in texts:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:  # of an old distribution: pip cannot check it either
            continue
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement


def _install_requirement(requirement: Requirement, *, is_missing: bool) -> str:
    """The command that installs what is required; armpy's own come from where armpy came from."""
    if requirement.name in FOLDERS or requirement.name in BACKEND_FOLDERS:
        return install_line(requirement.name)
    if is_missing and requirement.name in _COMPILER:
        return f"pip install {_COMPILER[0]}"
    return f"pip install {shell_word(f'{requirement.name}{requirement.specifier}')}"


def _extensions(*, installed: bool) -> Iterator[str]:
    """The extensions that are installed with their versions, or the others with their commands."""
    for name in NEEDED:
        try:
            found = version(name)
        except PackageNotFoundError:
            if not installed:
                yield f"{name}: {install_line(name)}"
        else:
            if installed:
                yield f"{name} {found}"


def _cache_text(*, is_writable: bool) -> str:
    """Where the cache is, whether it can be written, its size and its models."""
    if is_switched_off(os.environ):
        return "switched off"
    try:
        folder = cache_folder()
    except RuntimeError:
        return "none"
    paths = (os.path.join(place, name) for place, _, names in os.walk(folder) for name in names)
    sizes = list(sizes_of(paths))
    entries = ModelCache().list_entries()
    models = counted(len({entry.group for entry in entries if not entry.problem}), "model")
    size = f"{bytes_text(sum(sizes))} in {counted(len(sizes), 'file')}"
    start = f"{folder}, writable, {size}" if is_writable else f"{folder}, not writable, {size}"
    kept = f"{models} that start without preparing"
    if not model_cache.is_on():
        switch = os.environ.get(model_cache.VARIABLE)
        why = f"with {model_cache.VARIABLE}={switch}" if switch else "from armpy's sources"
        kept = f"{models}; {why}, whole models are not kept ({model_cache.VARIABLE}=on keeps them)"
    if num_damaged := len([entry for entry in entries if entry.problem]):
        kept += f"; {counted(num_damaged, 'damaged file')}, to be made again when needed"
    return f"{start}, {kept}; armpy cache list shows more, armpy cache verify checks all of it"


def sizes_of(paths: Iterable[str]) -> Iterator[int]:
    """Bytes of files; other processes may delete some meanwhile."""
    for path in paths:
        with suppress(FileNotFoundError):
            yield os.lstat(path).st_size


def _diagnose(candidate: Candidate, result: ProbeResult | None) -> Diagnosis:
    details: Mapping[str, Any] = result.details if result is not None else {}
    is_found = candidate.status is CandidateStatus.FOUND
    problems = list(details.get("problems", ())) if is_found else []
    # A library without a device has no backend to be found.
    may_lack_device = is_found or candidate.is_unidentified_library
    missing_device = str(details.get(MISSING_DEVICE, "")) if may_lack_device else ""
    cause = "; ".join(problems) or missing_device or _cause(candidate, result)
    if problems:
        status = PROBLEM
    elif missing_device:
        status = NO_DEVICE
    elif not is_found:
        status = candidate.status.value
    else:
        status = OK
    missing = f"module {candidate.missing_module}" if candidate.missing_module else ""
    if candidate.missing_library:
        missing = f"library {candidate.missing_library}"
    return Diagnosis(
        id=candidate.backend_id,
        name=candidate.name,
        kind=candidate.kind.value,
        source=candidate.source,
        path=candidate.path,
        status=status,
        loads=result is not None and result.passed,
        cause=cause,
        missing=missing,
        remedy=remedy(candidate, is_sick=bool(problems), cause=cause),
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
    # What Python's fault handler wrote; of the candidate's own code if any.
    frames = [(match["file"], match["line"]) for match in _FRAME.finditer(result.output)]
    is_directory = candidate.kind is CandidateKind.DIRECTORY
    own = [frame for frame in frames if is_directory and frame[0].startswith(candidate.path)]
    place = next((f", at {file} line {line}" for file, line in own or frames), "")
    return f"{text}{place}"


def remedy(candidate: Candidate, *, is_sick: bool, cause: str = "") -> str:
    """Return the fix for a candidate, which may load and not work; empty if there is none.

    A `cause` that names a command to run is the best fix. Where only the author can mend it, the
    way to go on without it is named.
    """
    fix = _fix(candidate, is_sick=is_sick, cause=cause)
    return f"{fix}. {_way_on(candidate, is_sick=is_sick)}" if fix.startswith(_REPORT) else fix


def _way_on(candidate: Candidate, *, is_sick: bool) -> str:
    """Say how to go on without a candidate; one that loads is used until it is left out."""
    if candidate.directory:
        options = f"--dynamic-backends-path and {PATH_VARIABLE}"
        removal = f"remove {candidate.path}, or leave {candidate.directory} out of {options}"
    elif candidate.distribution:
        removal = f"run pip uninstall {candidate.distribution}"
    else:
        removal = "register it no more"
    if is_sick and not candidate.is_plugin:
        return f"To go on without it, name others with --backends, or {removal}"
    if is_sick:
        return f"To go on without it, {removal}"
    return f"armpy goes on without it; to have it looked for no more, {removal}"


def _fix(candidate: Candidate, *, is_sick: bool, cause: str) -> str:
    """Return the fix for a candidate, without the way to go on; empty if there is none."""
    if is_sick and candidate.is_plugin:
        return f"{_REPORT}: armpy.plugins.hooks.specifications describes the hooks"
    if is_sick and ends_in_command(cause):
        return ""  # the cause says it
    if is_sick and (command := COMMAND.search(cause)):
        return f"Run: {command[0]}"
    variables = [name for name in _VARIABLE.findall(cause) if name in os.environ]
    if variables:
        return f"Correct the environment variable {variables[0]}, or unset it"
    if is_sick:
        return f"{_REPORT}; 'armpy conformance {candidate.backend_id}' shows more"
    if candidate.missing_library:
        return _install_library(candidate.missing_library)
    if candidate.missing_module:
        return _install(candidate)
    if "a later API version" in candidate.reason:
        return ""  # the reason says it
    if "API version" in candidate.reason:
        fitting = f"a version of it that is made for {BACKEND_API_VERSION}"
        return f"Install {fitting}, or another version of armpy"
    if "trust file" in candidate.reason:
        return "Change the trust file if you trust it"
    if "chmod" in candidate.reason:
        return ""  # the reason says it
    if candidate.is_plugin and candidate.status is CandidateStatus.REJECTED:
        return f"{_REPORT}: armpy.plugins.hooks.specifications describes the hooks"
    return _REMEDIES.get(candidate.status, "")


def _install(candidate: Candidate) -> str:
    """Return the fix for a module that a candidate lacks.

    A name to install is printed only where something vouches for it: anybody can register the name
    of a module on a package index.
    """
    module = candidate.missing_module
    top = module.partition(".")[0]
    own, is_reference, _ = candidate.name.partition(":")
    if is_reference and top == own.partition(".")[0]:
        where = candidate.distribution or candidate.source
        again = f"Install the distribution {where} again from where you have it"
        if built := _built_for_another(module):
            return f"{again}, for this Python: {built} was built for another"
        return f"{again}: its own module {module} is missing. If it stays so, report it"
    installed = packages_distributions().get(top)
    if installed and module != top:
        names = " ".join(sorted(set(installed)))
        return f"Run: pip install --upgrade {names} (it is installed, but has no {module})"
    name = installed[0] if installed else _DISTRIBUTIONS.get(top) or _required(candidate, top)
    if not name and top in _LIBRARIES:
        name = top
    if name:
        return f"Run: pip install {name}"
    fix = f"Install the package that brings the module {top}: its documentation names it"
    near = nearest_name(top, ["armpy", *packages_distributions()], _MISSPELT)
    return fix if near is None else f"Did you mean {near}? If not, {fix[0].lower()}{fix[1:]}"


def _built_for_another(module: str) -> str:
    """The file of an extension module that another version of Python can load; empty if none."""
    folders, name = module.split(".")[:-1], module.rpartition(".")[2]
    for place in sys.path:
        pattern = os.path.join(glob.escape(os.path.join(place, *folders)), f"{name}.c*-*")
        for path in sorted(glob.glob(pattern)):
            if path.endswith((".so", ".pyd")):
                return path
    return ""


def _install_library(library: str) -> str:
    """Return the fix for a missing library, which may be one of an installed package."""
    packages = packages_distributions()
    owners = [name for part in library.split(os.sep)[:-1] for name in packages.get(part, ())]
    if owners:
        return f"Run: pip install --force-reinstall {owners[-1]}"
    return (
        f"Install the package or driver that has the file {library}, or add its folder to "
        "LD_LIBRARY_PATH"
    )


def _required(candidate: Candidate, module: str) -> str:
    """The requirement of a candidate's distribution that has a module's name; empty if none has."""
    try:
        requirements = requires(candidate.distribution) if candidate.distribution else ()
    except PackageNotFoundError:
        return ""
    names = [match[0] for text in requirements or () if (match := _REQUIREMENT.match(text))]
    return next((name for name in names if _plain(name) == _plain(module)), "")


def _plain(name: str) -> str:
    """A name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _cache_problem() -> str:
    """Why nothing can be kept in the cache, with the fix; empty if it can, or is switched off."""
    if is_switched_off(os.environ):
        return ""
    try:
        folder = cache_folder()
    except RuntimeError as error:
        return f"nothing is kept: {error}. Set ARMPY_CACHE_DIR to a folder that can be written"
    try:
        make_own_folder(folder)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_LEAST_ROOM))
            file.flush()
    except OSError as error:
        if in_place := file_in_place_of(folder):
            return (
                f"{in_place} is a file and not a folder: each start compiles anew. Remove the "
                "file, or set ARMPY_CACHE_DIR to a folder"
            )
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        fix = "Delete something ('armpy cache clear')" if is_full else "Make it writable"
        fix += ", or set ARMPY_CACHE_DIR to another folder"
        return f"{folder} cannot be written: {error.strerror}: each start compiles anew. {fix}"
    return ""
