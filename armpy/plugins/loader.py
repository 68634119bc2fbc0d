"""Loader of a registry's backends: how far each candidate has come, and the steps to the next."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from armpy import plugins  # rooms that few processes enter
from armpy.core.dataclass import dataclass
from armpy.plugins.checks import CheckedBackend, OpenedCandidate, check_invalid_id
from armpy.plugins.discovery.candidate import (
    BACKENDS,
    MISSING_DEVICE,
    Candidate,
    CandidateKind,
    CandidateRecord,
    CandidateStatus,
    Failure,
    RejectionError,
    reopen_duplicates,
)
from armpy.plugins.discovery.discover import is_own
from armpy.plugins.loading import attempt, create, open_trusted
from armpy.plugins.options import PluginOptions
from armpy.plugins.trust.policy import Trust
from armpy.types import BackendId

if TYPE_CHECKING:
    from armpy.plugins.probe import ProbeResult

_DEREGISTERED = "it was deregistered"


@dataclass(slots=True, eq=False)
class BackendRecord(CandidateRecord):
    """A candidate, and how far the registry has come with it."""

    private_name: str = ""
    opened: OpenedCandidate | None = None
    """There once its code is imported."""
    checked: CheckedBackend | None = None
    """There once its backend is made."""

    @property
    def is_from_directory(self) -> bool:
        """Return whether it is a module from a directory."""
        return self.candidate.kind is CandidateKind.DIRECTORY


class BackendLoader:
    """Candidates of a registry, under whose lock all methods are called."""

    def __init__(self, options: PluginOptions, trust: Trust) -> None:
        self._options = options
        self._trust = trust
        self.records: list[BackendRecord] = []  # in the order in which they were added
        # By the backend id that they have, and no other can take while they may be used.
        self.owners: dict[BackendId, BackendRecord] = {}
        # Ids that only code may register again.
        self._deregistered: set[BackendId] = set()
        self._groups: dict[tuple[str, bool], str] = {}
        self._modules: set[str] = set()
        # Holds the names and not the loader, which would then never be collected. Not at exit,
        # when finalisers of runtimes may still need the modules.
        weakref.finalize(self, _forget_modules, self._modules).atexit = False

    def add(self, candidate: Candidate) -> BackendRecord:
        """Add one candidate, with its id unless only its module or library contains it."""
        record = BackendRecord(candidate)
        self.records.append(record)

        def check() -> None:
            self._trust.check(candidate)
            if not (record.is_from_directory or candidate.is_unidentified_library):
                self._claim(record, candidate.backend_id)

        self._attempt(record, check)
        return record

    def load(self, record: BackendRecord) -> CheckedBackend | None:
        """Make a candidate's backend, if that is not done yet; None if it is left out."""
        if record.is_open_question and self._open(record):
            self._attempt(record, lambda: self._create(record))
        return record.checked

    def load_all(self, without: Container[BackendId]) -> list[CheckedBackend]:
        """Every backend that can be made, but those of some ids."""
        self.look_into_libraries()
        self.probe_if_asked([r for r in self.records if r.candidate.backend_id not in without])
        loaded = []
        # In order: one that cannot be made leaves its id to those after it.
        for record in self.records:
            if record.candidate.backend_id not in without and record.is_open_question:
                self._open(record)
            # Compared again: the id of a directory's module is known only now.
            if record.candidate.backend_id not in without and (checked := self.load(record)):
                loaded.append(checked)
        return loaded

    def find(self, backend_id: BackendId) -> BackendRecord | None:
        """Find the candidate with an id, in libraries and directories' modules if need be.

        It may turn out to be left out when it is loaded, and the id to be that of the next one.
        """
        if backend_id not in self.owners:
            self.look_into_libraries()
        return self.owners.get(backend_id) or self.look_into_directories(backend_id)

    def deregister(self, backend_id: BackendId) -> None:
        """Leave out the candidate with an id, now or as soon as its id is known."""
        self._deregistered.add(backend_id)
        record = self.owners.pop(backend_id, None)
        if record is not None:
            self.forget(record)
            record.candidate.status = CandidateStatus.REJECTED
            record.candidate.reason = _DEREGISTERED

    def look_into_libraries(self) -> list[tuple[Candidate, ProbeResult]]:
        """Replace each library of a distribution by its backends, which a probe finds out.

        Always in a process of its own: a library is here because it was found, and its author need
        not know of armpy. Returns those that have no backend, with the results.
        """
        libraries = [r for r in self.records if r.candidate.is_unidentified_library]
        if not libraries:
            return []  # without what a probe imports
        records = {id(record.candidate): record for record in libraries}
        without = []
        for candidate, result in self.probe(libraries):
            if result.passed:
                self._replace(records[id(candidate)], result.details)
            if candidate.reason:
                without.append((candidate, result))
        return without

    def _replace(self, library: BackendRecord, details: Mapping[str, object]) -> None:
        """Put a record for each of a library's backends in the place of the library's own."""
        reasons = details.get(BACKENDS)
        if not isinstance(reasons, dict) or not reasons:
            reason = str(details.get(MISSING_DEVICE) or "it has no backend")
            # Not a warning: an engine for a device that is not on this machine harms nothing.
            plugins.failures.leave_out(
                library.candidate, CandidateStatus.FAILED, Failure(reason), logging.INFO
            )
            return
        place = self.records.index(library)
        found = [BackendRecord(replace(library.candidate)) for _ in reasons]
        self.records[place : place + 1] = found
        for record, (backend_id, reason) in zip(found, reasons.items(), strict=True):
            if reason:
                record.candidate.backend_id = str(backend_id)
                self._leave_out(record, CandidateStatus.FAILED, Failure(str(reason)))
            else:
                self._attempt(record, partial(self._claim, record, str(backend_id)))

    def look_into_directories(self, wanted: BackendId) -> BackendRecord | None:
        """Import directories' modules in order, until one has the wanted id."""
        records = [record for record in self.records if record.is_from_directory]
        self.probe_if_asked(records)
        for record in records:
            # Importing runs code, so no more modules are imported than the search takes.
            if wanted in self.owners:
                break
            if record.is_open_question:
                self._open(record)
        return self.owners.get(wanted)

    def forget(self, record: BackendRecord) -> None:
        """Drop what a candidate brought into the process."""
        record.opened = record.checked = None
        if record.private_name:
            plugins.modules.forget_module(record.private_name)
            self._modules.discard(record.private_name)

    def probe_if_asked(self, records: Iterable[BackendRecord]) -> None:
        """Probe a plugin before it is loaded, if the options say so."""
        if self._options.probe:
            # armpy's own are as trusted as the core, and a process for each would slow every start.
            self.probe([r for r in records if not is_own(r.candidate)])

    def probe(
        self, records: Iterable[BackendRecord], examine: str = ""
    ) -> list[tuple[Candidate, ProbeResult]]:
        """Probe the candidates whose outcome is unknown, and record it."""
        chosen = [r for r in records if r.opened is None]
        return plugins.probe.probe_records(
            chosen, self._options.probe_timeout_s, examine, self._note
        )

    def _note(self, record: BackendRecord, result: ProbeResult) -> None:
        candidate = record.candidate
        candidate.api_version = result.api_version
        candidate.device_type = result.device_type
        if result.passed and candidate.is_unidentified_library:
            pass  # `look_into_libraries` takes its backends
        elif result.passed:
            # The id comes from the candidate's own code, and may be refused or taken.
            self._attempt(record, lambda: self._claim(record, result.backend_id))
        else:
            candidate.backend_id = candidate.backend_id or result.backend_id
            self._leave_out(record, result.status, result.failure)

    def _claim(self, record: BackendRecord, backend_id: BackendId) -> None:
        """Give a candidate its id, unless another has it."""
        candidate = record.candidate
        # Before the checks, so that messages about a refused one can name it.
        candidate.backend_id = backend_id
        check_invalid_id(backend_id)
        # The application's own code decides for itself; the trust file is about discovered code.
        if candidate.kind is not CandidateKind.CODE:
            if backend_id in self._deregistered:
                raise RejectionError(_DEREGISTERED)
            self._trust.check_id(backend_id)
        owner = self.owners.setdefault(backend_id, record)
        if owner is not record:
            reason = f"another backend has the id '{backend_id}': {owner.candidate.source}"
            failure = Failure(reason, fix="Remove one of the two")
            self._leave_out(record, CandidateStatus.DUPLICATE, failure)

    def _open(self, record: BackendRecord) -> bool:
        """Import a candidate's code, if that is not done yet; false if it is left out."""
        if record.opened is not None:
            return True
        self.probe_if_asked([record])
        if not record.is_open_question:
            return False
        record.private_name = self._private_name(record.candidate)

        def step() -> None:
            self._modules.add(record.private_name)
            record.opened = open_trusted(record.candidate, self._trust, record.private_name)
            self._claim(record, record.opened.backend_id)

        return self._attempt(record, step)

    def _private_name(self, candidate: Candidate) -> str:
        """A name for a directory's module; those that share common code are in one group."""
        if candidate.kind is not CandidateKind.DIRECTORY:
            return ""
        # A pinned module does not see modules without a pin, though they are of the same vendor.
        shared = candidate.common, bool(candidate.pin)
        if candidate.common and shared not in self._groups:
            self._groups[shared] = plugins.modules.group_name(candidate.directory)
        return plugins.modules.private_name(candidate, self._groups.get(shared, ""))

    def _create(self, record: BackendRecord) -> None:
        assert record.opened is not None  # `_open` came before
        # Last: the registry's `get` looks at it without the lock.
        record.checked = create(record.candidate, record.opened)

    def _attempt(self, record: BackendRecord, step: Callable[[], None]) -> bool:
        """Do something with a candidate; false, and its reason kept, if that went wrong."""
        failed = attempt(step, record.private_name, record.candidate.name)
        if failed is not None:
            self._leave_out(record, *failed)
        return record.is_open_question

    def _leave_out(self, record: BackendRecord, status: CandidateStatus, failure: Failure) -> None:
        """Leave out a candidate, whose id is free then."""
        self.forget(record)
        candidate = record.candidate
        plugins.failures.leave_out(candidate, status, failure)
        backend_id = candidate.backend_id
        # Ids of armpy's own backends never become those of others.
        if self.owners.get(backend_id) is not record or is_own(candidate):
            return
        del self.owners[backend_id]
        for other in reopen_duplicates(self.records, backend_id):
            self._attempt(other, partial(self._claim, other, backend_id))


def _forget_modules(names: set[str]) -> None:
    for name in filter(None, names):
        plugins.modules.forget_module(name)
