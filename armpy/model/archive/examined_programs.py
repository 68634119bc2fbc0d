"""Finds out which programs of a compiled model can be used here, without loading them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING

from armpy.backend.options import NO_OPTIONS, OptionScope, OptionValues, default_options
from armpy.backend.programs import IPrograms, ProgramCheck, ProgramFit
from armpy.core.dataclass import dataclass
from armpy.errors import ArmpyError
from armpy.model import archive
from armpy.plugins.program_loaders import announced_programs
from armpy.plugins.proxy.guarded_call import ask_method, describe
from armpy.types import BackendId

if TYPE_CHECKING:
    from armpy.model.archive.installed_backends import InstalledBackends
    from armpy.plugins.registry import BackendRegistry
    from armpy.store.archive.container import Container

USED = "used"
"""A program that is loaded here."""

NOT_USED = "not used"
"""A program that is not, as another of the same layers is, or its code may not be used."""

LONGEST = 80
"""Of the shown part of a text in a file."""


@dataclass(frozen=True, slots=True)
class ProgramExamination:
    """Examination of a saved program: used, or the reason why not."""

    backend_id: str
    target: str
    status: str
    """`USED`, `NOT_USED`, or the value of a `ProgramFit` that is not an acceptance."""
    reason: str
    """Why it is not used; empty if it is."""
    size_bytes: int
    """Bytes of all parts of the program."""


class Machine:
    """The backends of this machine, as loading a compiled model uses them.

    Parameters
    ----------
    registry : BackendRegistry, optional
        Where backends come from. If left out, what distributions announce in ``armpy.programs``
        answers for its backend, as in a start, and other backends are looked for.
    named : sequence of str, optional
        Ids of the only backends that are wanted; all if left out.
    places_anew : bool
        Whether they are other ones than the file was made with, so that layers are placed anew.
    """

    def __init__(
        self,
        registry: BackendRegistry | None = None,
        named: Sequence[BackendId] | None = None,
        *,
        places_anew: bool = False,
    ) -> None:
        self.named = named
        self.places_anew = places_anew
        self._registry = registry

    @cached_property
    def backends(self) -> InstalledBackends:
        """The backends themselves, which few files need besides what reads their programs."""
        return archive.installed_backends.InstalledBackends(self._registry, self.named)

    def why_unloadable(self) -> str:
        """Why no file is loaded here; a runtime needs every backend that is named."""
        reasons = map(self.backends.why_unusable, self.named or ())
        return next(filter(None, reasons), "")

    def close(self) -> None:
        """Close what was opened."""
        if "backends" in vars(self):
            self.backends.close()

    def check(
        self,
        backend_id: BackendId,
        about: object,  # the file's description of the program
        # Returns the options that the file was made with, by backend id.
        saved: Callable[[], Mapping[BackendId, OptionValues]],
    ) -> ProgramCheck:
        """The backend's answer about a program; its errors become refusals."""
        if not isinstance(about, dict):
            text = "the file's description of it cannot be understood"
            return ProgramCheck(ProgramFit.FOREIGN, text)
        try:
            if self.places_anew and (reason := self.backends.why_unusable(backend_id)):
                return ProgramCheck(ProgramFit.FOREIGN, reason)
            programs, options = self._programs(backend_id)
            if programs is None:
                return ProgramCheck(ProgramFit.REBUILD, "the backend takes no programs from files")
            answer = _ask(backend_id, programs, about, options)
            # A start gives no options; an ordinary load gives those that the file was made with.
            if answer.fit is not ProgramFit.ACCEPTED and not self.places_anew:
                own = saved().get(backend_id, NO_OPTIONS)
                answer = _ask(backend_id, programs, about, own) if own else answer
        except ArmpyError as error:
            return ProgramCheck(ProgramFit.FOREIGN, str(error))
        return answer

    def _programs(self, backend_id: BackendId) -> tuple[IPrograms | None, OptionValues]:
        """What reads a backend's programs, and the options that it is asked with."""
        if self._registry is None and not self.places_anew:
            announced = announced_programs(backend_id)
            if announced is not None:
                return announced, NO_OPTIONS
        backend = self.backends.get(backend_id)
        options: OptionValues = NO_OPTIONS
        if self.places_anew:  # as a new network's
            options = default_options(backend.options, OptionScope.MODEL)
        return backend.get_programs(), options


def _ask(
    backend_id: BackendId,
    programs: IPrograms,
    about: Mapping[str, object],
    options: OptionValues,
) -> ProgramCheck:
    check: ProgramCheck = ask_method(backend_id, ProgramCheck, programs, "check", about, options)
    if not isinstance(check.fit, ProgramFit):  # only the type of the whole was checked
        return ProgramCheck(ProgramFit.FOREIGN, f"{describe(check.fit)}: {check.reason}")
    return check


def examine_programs(
    container: Container,
    machine: Machine,
    withheld: str = "",  # why no code of the file is used
) -> tuple[tuple[ProgramExamination, ...], int]:
    """Ask the backends about all programs of a file.

    Returns
    -------
    tuple of ProgramExamination
        In the order of the file.
    int
        How many parts of the network no program here can be used for.
    """
    reports = []
    served: dict[tuple[str, str], bool] = {}
    saved = cache(partial(_saved_options, container))  # read only where a program is refused
    for record in program_records(container):
        part = part_of(record)
        check = machine.check(part[0], record.get("about"), saved)
        status, reason = check.fit.value, str(check.reason)
        if check.fit is ProgramFit.ACCEPTED:
            status, reason = (NOT_USED, withheld) if withheld else (USED, "")
            if not withheld and served.get(part):
                status, reason = NOT_USED, "another one of the same layers comes before it"
        served[part] = served.get(part, False) or status == USED
        parts = record.get("parts")
        names = map(str, parts.values()) if isinstance(parts, dict) else ()
        sizes = container.sections
        size = sum(sizes[name].size for name in names if name in sizes)
        target = str(record.get("target", ""))[:LONGEST]
        reports.append(ProgramExamination(part[0][:LONGEST], target, status, reason, size))
    return tuple(reports), sum(not is_served for is_served in served.values())


def program_records(container: Container) -> list[Mapping[str, object]]:
    """The records of a file's programs; what cannot be one is left out."""
    records = container.manifest.get("programs")
    return [r for r in records if isinstance(r, dict)] if isinstance(records, list) else []


def part_of(record: Mapping[str, object]) -> tuple[str, str]:
    """Backend and digest, which programs of the same layers share."""
    return str(record.get("backend", "")), str(record.get("digest", ""))


def _saved_options(container: Container) -> dict[BackendId, OptionValues]:
    """Backend options that a file's networks were made with, by backend id."""
    records = container.manifest.get("signatures")
    networks = records if isinstance(records, list) else []
    sections = {str(record.get("section")) for record in networks if isinstance(record, dict)}
    options: dict[BackendId, OptionValues] = {}
    for section in sections & container.sections.keys():
        document = container.document(section)
        plan = document.get("plan") if isinstance(document, dict) else None
        listed = plan.get("model_options") if isinstance(plan, dict) else None
        if isinstance(listed, dict):
            options |= {name: own for name, own in listed.items() if isinstance(own, dict)}
    return options
