"""Discovery of backend modules in directories."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Sequence
from importlib.machinery import EXTENSION_SUFFIXES

from armpy.core.dataclass import dataclass
from armpy.plugins.discovery.candidate import Candidate, CandidateKind

ENVIRONMENT_VARIABLE = "ARMPY_DYNAMIC_BACKENDS_PATH"
"""Directories to look in if the options name none, with ``os.pathsep`` between them."""

MODULE_NAME = re.compile(
    r"(?P<module>(?P<vendor>[a-zA-Z0-9]+)_[a-zA-Z0-9]+_backend)"
    r"(?:\.py|(?P<library>(?:\.(?:abi\d+|[a-z]+\d*-[\w-]+))?\.so)(?:\.\d+)*)?",
    re.ASCII,
)
"""Name of a backend's module in a directory: ``<vendor>_<name>_backend``, ASCII only.

``.py`` for a source, ``.so[.<version>]`` for a library, before which an interpreter may stand that
it is for (``.cpython-311-x86_64-linux-gnu``, ``.abi3``); see Arm NN's "Dynamic backend file naming
convention".
"""

_ENDINGS = (*EXTENSION_SUFFIXES, ".py")
"""What names of modules' files end in, the first to be looked for first, as in Python."""

_COMMON = "_common"
_log = logging.getLogger("armpy.plugins")


@dataclass(frozen=True, slots=True)
class SkippedPath:
    """A directory or an entry of one that was not taken up."""

    path: str
    reason: str


def module_name(name: str) -> str:
    """The module's name in that of a directory's entry; the text itself if it is named otherwise.

    Examples
    --------
    >>> module_name("Arm_Npu_backend.abi3.so.1.2")
    'Arm_Npu_backend'
    """
    match = MODULE_NAME.fullmatch(name)
    return match["module"] if match else name


def is_library(name: str) -> bool:
    """Return whether a directory's entry is named as a module in a shared library."""
    match = MODULE_NAME.fullmatch(name)
    return match is not None and match["library"] is not None


def is_common(name: str) -> bool:
    """Return whether a module is named as the common code of a vendor; no backend's module is."""
    return name.endswith(_COMMON)


def why_invalid(path: str) -> str:
    """Why a directory cannot be looked into; empty if it can."""
    # In Arm NN's order, so that a path with two faults has the same reason there.
    if not path:
        return "the path is empty"
    if not os.path.exists(path):
        return "the path does not exist"
    if not os.path.isdir(path):
        return "the path is not a directory"
    if not os.path.isabs(path):
        return "the path is not absolute"
    return ""


def backend_paths(
    override: Sequence[str] = (), environment: str = ""
) -> tuple[list[str], list[SkippedPath]]:
    """The directories to look into, in order, and those that cannot be used.

    Parameters
    ----------
    override : sequence of str
        If there are any, the environment does not count.
    environment : str
        Paths separated by ``os.pathsep``; empty ones do not count.
    """
    paths = override or [part for part in environment.split(os.pathsep) if part]
    valid, skipped = [], []
    for path in dict.fromkeys(paths):
        if reason := why_invalid(path):
            skipped.append(_skip(path, reason, fix=correction(has_override=bool(override))))
        else:
            valid.append(path)
    return valid, skipped


def correction(*, has_override: bool) -> str:
    """Return the fix for a directory that cannot be used, which names what names the directory."""
    if has_override:
        return "Correct the option dynamic_backends_path, or leave it out"
    return f"Correct {ENVIRONMENT_VARIABLE}, or unset it"


def find_modules(paths: Iterable[str]) -> tuple[list[Candidate], list[SkippedPath]]:
    """Candidates for backends in some directories, in their order and then sorted by name.

    Each canonical path counts once. The name that counts is the directory entry's own, not
    that of what it links to. A library for another Python is skipped silently if there is a
    module of its name beside it that this one takes. Other modules and packages are skipped,
    but for common code; data files do not count.
    """
    modules: dict[str, Candidate] = {}
    skipped: list[SkippedPath] = []
    for directory in paths:
        try:
            # The file system lists in an order of its own, and the first of two equal ids counts.
            names = sorted(os.listdir(directory))
        except OSError as error:
            skipped.append(_skip(directory, f"it cannot be read: {error.strerror}"))
            continue
        importable = set()
        reasons = {name: _why_no_module(os.path.join(directory, name), name) for name in names}
        for name in (name for name in names if not reasons[name]):
            entry = os.path.join(directory, name)
            path = os.path.realpath(entry)
            module = module_name(name)
            importable.add(module)
            candidate = Candidate(
                "",
                path,
                CandidateKind.DIRECTORY,
                name=module,
                path=path,
                directory=directory,
                entry=entry,
                common=_common_beside(entry),
            )
            # The first directory counts: one file must not become two backends.
            modules.setdefault(path, candidate)
        for name in names:
            entry = os.path.join(directory, name)
            is_named = "backend" in name.lower()
            is_package = os.path.isdir(entry) and os.path.isfile(init_file(entry))
            is_module = is_package or entry.endswith(_ENDINGS)
            is_common_code = is_common(name.partition(".")[0])
            is_taken = os.path.realpath(entry) in modules
            is_other = is_named or (is_module and not is_common_code and not is_taken)
            if reasons[name] and is_other:
                # Another module may be a part of one that is taken, and would fill the log.
                is_spare = module_name(name) in importable and is_library(name)
                skipped.append(_skip(entry, reasons[name], is_warning=is_named and not is_spare))
    return list(modules.values()), skipped


def init_file(path: str) -> str:
    """The file that is run first: a package's ``__init__`` or the file itself."""
    if not os.path.isdir(path):
        return path
    inits = [os.path.join(path, f"__init__{ending}") for ending in _ENDINGS]
    return next(filter(os.path.isfile, inits), inits[-1])


def _common_beside(entry: str) -> str:
    match = MODULE_NAME.fullmatch(os.path.basename(entry))
    stem = os.path.join(os.path.dirname(entry), f"{match['vendor'] if match else ''}{_COMMON}")
    if os.path.isfile(init_file(stem)):
        return stem
    return next(filter(os.path.isfile, (stem + ending for ending in _ENDINGS)), "")


def _why_no_module(entry: str, name: str) -> str:
    """Why an entry of a directory is not a backend module; empty if it is one."""
    match = MODULE_NAME.fullmatch(name)
    if match is None:
        return "its name is not <vendor>_<name>_backend, with .py or .so[.<version>] for a file"
    if not os.path.exists(entry):
        return "it is a link to something that does not exist"
    ending = match["library"]
    if ending is not None and ending not in EXTENSION_SUFFIXES:
        return (
            f"it is made for another Python: its name ends in {ending}, "
            f"and this one takes {', '.join(EXTENSION_SUFFIXES)}"
        )
    if ending is not None or name.endswith(".py"):
        return "" if os.path.isfile(entry) else "it is not a file"
    if os.path.isfile(entry):
        return "it is a file without an ending: its name has to end in .py or .so"
    if os.path.isdir(entry) and os.path.isfile(init_file(entry)):
        return ""
    return "it is not a package: it has no __init__.py"


def _skip(
    path: str, reason: str, *, is_warning: bool = True, fix: str = "Correct or remove it"
) -> SkippedPath:
    level = logging.WARNING if is_warning else logging.DEBUG
    _log.log(level, "backends' path '%s' is skipped: %s. %s", path, reason, fix)
    return SkippedPath(path, reason)
