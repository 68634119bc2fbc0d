"""Checks whether a compiled model fits this machine, without loading it."""

from __future__ import annotations

import enum
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from armpy.core.arguments import check_instance
from armpy.core.dataclass import dataclass
from armpy.core.shell import shell_word
from armpy.core.units import counted
from armpy.errors import ParserError
from armpy.model import archive
from armpy.model.archive.compiled_file import CompiledFile, signature_records
from armpy.model.archive.examined_programs import (
    USED,
    Machine,
    ProgramExamination,
    examine_programs,
    part_of,
)
from armpy.model.archive.light_loading import ASKS_FOR_NETWORKS, open_prepared
from armpy.model.load_options import LoadOptions, differing_options
from armpy.model.load_request import LoadRequest, as_source, begins_prepared
from armpy.store.archive.container import open_container
from armpy.types import REFERENCE_BACKEND_ID, BackendId

if TYPE_CHECKING:
    from armpy.plugins.hooks.model_file import ModelSource
    from armpy.plugins.registry import BackendRegistry
    from armpy.store.archive.signing import KeySource


class FileFit(enum.StrEnum):
    """Fit of a compiled model to this machine."""

    FITS = "fits"
    """All that is compiled in the file is used."""
    SLOWER = "fits slower"
    """The model is loaded, and layers are compiled anew or run on other backends than the file's;
    the first start takes longer, and calls do where a backend is missing.
    """
    UNFIT = "does not fit"
    """Loading raises an error."""


@dataclass(frozen=True, slots=True)
class FileCheck:
    """The answer of `armpy.check`."""

    fit: FileFit
    reason: str
    """Programs that are used, those that are not and why, or the error of loading."""
    fix: str = ""
    """Fix as an imperative; empty if there is none."""
    programs: tuple[ProgramExamination, ...] = ()
    """Each program of the file, in the file's order; empty if the file cannot be read."""


def check(
    source: ModelSource,
    *,
    device: BackendId | None = None,
    trusted_keys: Sequence[KeySource] | None = None,
    code: str | None = None,
    registry: BackendRegistry | None = None,
) -> FileCheck:
    """Check whether a compiled model fits this machine; nothing is loaded or compiled.

    Backends are asked about the descriptions of their programs in the file.

    Parameters
    ----------
    source : path or bytes-like
        A file that ``armpy compile`` or `Model.save` has written, or its contents.
    device : str, optional
        Id of a backend, as ``armpy devices`` lists them: the answer is for loading with
        ``backends=[device, "CpuRef"]``. If left out, it is for `armpy.load` without `backends`.
    trusted_keys, code : optional
        Whose code in the file may be used, as for `armpy.load`.
    registry : BackendRegistry, optional
        Where backends come from; all installed ones if left out.

    Returns
    -------
    FileCheck
        Also for a damaged file, and for a device that is not here: these do not fit.

    Raises
    ------
    ParserError
        If the file cannot be read, or is not a compiled model.
    InvalidArgumentError
        If an argument cannot be used.

    Examples
    --------
    >>> answer = armpy.check("model.armpy")                         # doctest: +SKIP
    >>> answer.fit, answer.reason                                   # doctest: +SKIP
    """
    check_instance(device, "check.device", str, type(None))
    given = as_source(source)
    if not begins_prepared(given):
        open_container(given)  # raises the error that says what it is
    named = None if device is None else list(dict.fromkeys((device, REFERENCE_BACKEND_ID)))
    if device is None and any(os.environ.get(name) for name in ASKS_FOR_NETWORKS):
        named = archive.other_backends.named_by_environment()
    try:
        file = open_prepared(LoadRequest(given, LoadOptions(trusted_keys=trusted_keys, code=code)))
    except ParserError as error:
        return _refused(error)
    options = file.container.manifest.get("options")
    saved = options if isinstance(options, dict) else {}
    places_anew = named is not None and bool(differing_options(LoadOptions(backends=named), saved))
    machine = Machine(registry, named, places_anew=places_anew)
    try:
        return _checked(file, machine, device)
    except ParserError as error:
        return _refused(error)
    finally:
        machine.close()


def _refused(error: ParserError) -> FileCheck:
    """The answer about a file that is not loaded."""
    text = str(ParserError(error.failed, expected=error.expected, actual=error.actual))
    return FileCheck(FileFit.UNFIT, text.rstrip("."), error.fix)


def _checked(file: CompiledFile, machine: Machine, device: BackendId | None) -> FileCheck:
    """The answer about a file that was opened and may be loaded."""
    signature_records(file.container)  # every load reads them, and raises what is wrong with them
    if machine.places_anew and (unusable := machine.why_unloadable()):
        return FileCheck(FileFit.UNFIT, unusable)
    withheld = "" if file.verdict.uses_code else file.verdict.reason
    programs, _ = examine_programs(file.container, machine, withheld)
    used, unused = _parts(file, programs)
    slower = [*unused, *_left_out(file), *_moved(file, machine, used)]
    of_file = {*_kept(file), *(program.backend_id for program in programs)}
    if machine.places_anew and device is not None and device not in of_file:
        slower.append(f"the file has nothing for {device}, which prepares the layers that it takes")
    if not slower and machine.places_anew:
        slower.extend(archive.other_backends.moved(file, machine))
    if not slower:
        return FileCheck(FileFit.FITS, _sum_up(file, programs), programs=programs)
    reason = "; ".join(dict.fromkeys(slower))
    untaken = machine.why_unloadable()
    if untaken := untaken or archive.other_backends.why_untaken(file, machine, used):
        return FileCheck(FileFit.UNFIT, f"{untaken}; {reason}", programs=programs)
    return FileCheck(FileFit.SLOWER, reason, "" if withheld else _fix(file, machine), programs)


def _fix(file: CompiledFile, machine: Machine) -> str:
    """The command that compiles a file for the machine."""
    files = f"{shell_word(file.container.path or 'FILE')} -o OTHER.armpy"
    if machine.named is None:
        return f"Compile it for this machine. Run: armpy compile {files}"
    names = ",".join(machine.named)
    return f"Compile it for this machine. Run: armpy compile --backends {names} {files}"


def _layers(record: Mapping[str, Any]) -> str:
    """What a record of a part is about: ``2 layers of NumbaAcc``."""
    number = record.get("layers")
    layers = counted(number, "layer") if isinstance(number, int) else "layers"
    return f"{layers} of {record.get('backend')}"


def _parts(
    file: CompiledFile, programs: Sequence[ProgramExamination]
) -> tuple[list[Mapping[str, Any]], list[str]]:
    """The records of programs that are used, and a line about each part without one."""
    used: dict[tuple[str, str], Mapping[str, Any]] = {}
    reasons: dict[tuple[str, str], list[str]] = {}
    for record, program in zip(file.programs, programs, strict=True):
        if program.status == USED:
            used[part_of(record)] = record
        why = f"for {program.target}: {program.reason}"
        reasons.setdefault(part_of(record), [_layers(record)]).append(why)
    texts = [
        f"{layers}: {', '.join(why)}"
        for part, (layers, *why) in reasons.items()
        if part not in used
    ]
    return list(used.values()), texts


def _left_out(file: CompiledFile) -> Iterator[str]:
    """A line about each part that the file has no program of at all."""
    names = ("backend", "layers", "first")
    compiled = {tuple(str(record.get(name)) for name in names) for record in file.programs}
    left_out = file.container.manifest.get("left_out")
    for record in left_out if isinstance(left_out, list) else ():
        if (
            isinstance(record, dict)
            and tuple(str(record.get(name)) for name in names) not in compiled
        ):
            yield f"{_layers(record)}: nothing is compiled for them: {record.get('reason')}"


def _moved(
    file: CompiledFile, machine: Machine, used: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """A line about each backend that has uncompiled layers in the file and cannot be used here."""
    here = {str(record.get("backend")) for record in used}
    for backend_id, number in _kept(file).items():
        if backend_id not in here and (reason := machine.backends.why_unusable(backend_id)):
            yield f"{counted(number, 'layer')} of {backend_id}: {reason}"


def _sum_up(file: CompiledFile, programs: Sequence[ProgramExamination]) -> str:
    """What is used of a file that fits."""
    pairs = zip(file.programs, programs, strict=True)
    texts = [f"{_layers(r)} for {p.target}" for r, p in pairs if p.status == USED]
    for backend_id, number in _kept(file).items():
        texts.append(f"{counted(number, 'layer')} of {backend_id}, not compiled")
    return "; ".join(dict.fromkeys(texts)) or "nothing is compiled in it"


def _kept(file: CompiledFile) -> dict[BackendId, int]:
    """How many layers each backend has left uncompiled."""
    kept = file.container.manifest.get("kept")
    listed = kept.items() if isinstance(kept, dict) else ()
    return {name: len(set(map(str, ids))) for name, ids in listed if isinstance(ids, list)}
