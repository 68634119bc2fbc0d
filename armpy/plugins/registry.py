"""Backend registry: keeps what was found, and loads the ones that are asked for."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from armpy.backend import IBackendInternal
from armpy.errors import BackendUnavailableError, InvalidArgumentError, did_you_mean
from armpy.plugins.checks import CheckedBackend
from armpy.plugins.discovery import directories
from armpy.plugins.discovery.candidate import (
    Candidate,
    CandidateKind,
    CandidateStatus,
    RejectionError,
)
from armpy.plugins.discovery.directories import SkippedPath, backend_paths, find_modules
from armpy.plugins.discovery.entry_points import find_entry_points, is_own
from armpy.plugins.loading import (
    Failure,
    OpenedCandidate,
    attempt,
    check_invalid_id,
    leave_out,
    open_candidate,
)
from armpy.plugins.modules import forget_module, group_name, private_name
from armpy.plugins.options import PluginOptions
from armpy.plugins.probing.result import ProbeResult
from armpy.plugins.proxy.guarded_call import ask_backend
from armpy.plugins.trust.policy import read_trust
from armpy.types import BackendId

if TYPE_CHECKING:
    from armpy.plugins.hook_plugins import HookPlugins

BackendFactory = Callable[[], IBackendInternal]


@dataclass(slots=True, eq=False)
class _CandidateRecord:
    """A candidate, and how far the registry has come with it.

    `opened` is there once its code is imported, `checked` once its backend is made.
    """

    candidate: Candidate
    private_name: str = ""
    opened: OpenedCandidate | None = None
    checked: CheckedBackend | None = None
    has_passed_probe: bool = False

    @property
    def is_open_question(self) -> bool:
        return self.candidate.status is CandidateStatus.FOUND

    @property
    def is_from_directory(self) -> bool:
        return self.candidate.kind is CandidateKind.DIRECTORY

    @property
    def can_be_probed(self) -> bool:
        found = self.candidate.kind is not CandidateKind.CODE and self.is_open_question
        return found and self.opened is None and not self.has_passed_probe


class BackendRegistry:
    """All backends that can be found, each loaded when first asked for.

    Raises
    ------
    InvalidArgumentError
        If there is a trust file that cannot be used.

    Notes
    -----
    Listing imports no backend. One candidate that cannot be loaded stops no other: its
    reason is kept, logged once, and raised when it is asked for by name.

    A module from a directory tells its id when it is imported, so these are imported as soon
    as all backends are wanted, or an id that no other candidate has. It leaves ``sys.modules``
    when the registry is closed, or is dropped: keep the registry as long as its backends.

    References
    ----------
    Arm NN BackendRegistry, DynamicBackendUtils.
    """

    def __init__(self, options: PluginOptions | None = None) -> None:
        self._options = options or PluginOptions()
        self._trust = read_trust(self._options)
        self._hooks: HookPlugins | None = None
        self._plugins: list[Candidate] = []
        self._records: list[_CandidateRecord] = []
        self._owners: dict[BackendId, _CandidateRecord] = {}
        self._skipped: list[SkippedPath] = []
        # May be taken again by its own thread: a backend may use armpy while it is imported.
        self._lock = threading.RLock()
        self._is_closed = False
        self._is_discovered = False
        self._groups: dict[tuple[str, bool], str] = {}
        self._modules: set[str] = set()
        # Holds the names and not the registry, which would then never be collected. Not at exit,
        # when finalisers of runtimes may still need the modules.
        weakref.finalize(self, _forget_modules, self._modules).atexit = False

    @classmethod
    def discover(cls, options: PluginOptions | None = None) -> BackendRegistry:
        """A registry of the backends in installed distributions and in directories.

        Raises
        ------
        InvalidArgumentError
            If the trust file cannot be used.
        """
        registry = cls(options)
        backends, registry._plugins = find_entry_points()
        for candidate in backends:
            registry._add(candidate, candidate.backend_id)
        environment = os.environ.get(directories.ENVIRONMENT_VARIABLE, "")
        paths, skipped = backend_paths(registry._options.directories, environment)
        found = find_modules(paths)
        registry._skipped += [*skipped, *found.skipped]
        for module in found.modules:
            registry._add(
                Candidate(
                    "",
                    module.path,
                    CandidateKind.DIRECTORY,
                    name=module.name,
                    path=module.path,
                    directory=module.directory,
                    entry=module.entry,
                    common=module.common,
                )
            )
        registry._is_discovered = True
        return registry

    def finds(self, options: PluginOptions) -> bool:
        """Whether it has what `discover` finds with some options, and nothing added by hand."""
        return self._is_discovered and self._options == options

    def register(
        self, backend_id: BackendId, factory: BackendFactory, source: str = "code"
    ) -> None:
        """Add a backend by hand.

        Raises
        ------
        InvalidArgumentError
            If the id is taken, or none that a backend can have.
        """
        with self._lock:
            self._check_open()
            self._is_discovered = False
            record = self._add(Candidate(backend_id, source), backend_id)
            if not record.is_open_question:
                # The exception tells the caller; it is not to be listed as well.
                self._records.remove(record)
                raise InvalidArgumentError(
                    f"backend '{backend_id}' cannot be registered", actual=record.candidate.reason
                )
            record.opened = OpenedCandidate(backend_id, "", factory)

    def deregister(self, backend_id: BackendId) -> None:
        """Take a backend out, with what a directory's module left in ``sys.modules``.

        Notes
        -----
        An id that is not known does no harm. Afterwards the id is free. Objects that the backend
        has made go on working, but its module can import no more of its submodules.
        """
        with self._lock:
            record = self._owners.pop(backend_id, None)
            if record is None:
                return
            self._forget(record)
            record.candidate.status = CandidateStatus.REJECTED
            record.candidate.reason = "it was deregistered"

    def close(self) -> None:
        """Deregister every backend; nothing can be asked for afterwards."""
        with self._lock:
            for backend_id in list(self._owners):
                self.deregister(backend_id)
            self._is_closed = True

    @property
    def options(self) -> PluginOptions:
        """How backends are found and loaded."""
        return self._options

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Every candidate with its status, in the order in which they were found."""
        return tuple(record.candidate for record in self._records)

    def has_plugins(self, hook: str = "") -> bool:
        """Whether there are plugins besides armpy's own; of a hook, those that may implement it."""
        return self._hooks is not None or any(
            not hook or plugin.hook in ("", hook) for plugin in self._plugins
        )

    @property
    def plugins(self) -> HookPlugins:
        """The plugins with hooks that were found; those of a registry made by hand are armpy's."""
        with self._lock:
            if self._hooks is None:
                from armpy.plugins.hook_plugins import HookPlugins  # noqa: PLC0415 - not all need pluggy

                self._hooks = HookPlugins(self._plugins, self._options, self._trust)
            return self._hooks

    @property
    def skipped_paths(self) -> tuple[SkippedPath, ...]:
        """Directories that cannot be looked into, and what in them is nearly a module."""
        return tuple(self._skipped)

    @property
    def backend_ids(self) -> tuple[BackendId, ...]:
        """Ids that are known and can be asked for, sorted; loading one may still fail."""
        return tuple(sorted(self._owners))

    def is_registered(self, backend_id: BackendId) -> bool:
        """Whether an id is known and can be asked for; loading the backend may still fail."""
        return backend_id in self._owners

    def get(self, backend_id: BackendId) -> IBackendInternal:
        """The backend of that id, loaded if need be.

        Raises
        ------
        BackendUnavailableError
            If there is none, or it cannot be loaded; the text says why.
        """
        owner = self._owners.get(backend_id)
        # Without the lock, which is held for long while another backend is loaded. `checked` is
        # read once, as another thread may clear it.
        if owner is not None and (checked := owner.checked) is not None:
            return checked.backend
        with self._lock:
            self._check_open()
            record = self._owners.get(backend_id) or self._look_into_directories(backend_id)
            if record is not None:
                self._probe_if_asked([record])
                if checked := self._load(record):
                    return checked.backend
            raise self._why_unavailable(backend_id, record)

    def factory_by_hand(self, backend_id: BackendId) -> BackendFactory | None:
        """What a backend was registered with that was not discovered; None for all others."""
        owner = self._owners.get(backend_id)
        if owner is None or owner.candidate.kind is not CandidateKind.CODE:
            return None
        return None if owner.opened is None else owner.opened.factory  # type: ignore[return-value]

    def identify(self) -> None:
        """Let processes of their own tell the ids of modules in directories, importing none here.

        Notes
        -----
        What does not pass there is left out, as with `PluginOptions.probe`.
        """
        with self._lock:
            self._check_open()
            self._probe([r for r in self._records if r.is_from_directory and r.can_be_probed])

    def create(self, backend_id: BackendId) -> IBackendInternal:
        """Another backend of that id, for somebody who is to change it alone.

        Returns
        -------
        IBackendInternal
            The one that `get` returns if the plugin has no other.

        Raises
        ------
        BackendUnavailableError
            As for `get`.
        BackendError
            If the plugin does not make another one.
        """
        shared = self.get(backend_id)
        opened = self._owners[backend_id].opened
        if opened is None:
            return shared
        return ask_backend(backend_id, IBackendInternal, opened.factory)

    def available(self, *, without: Container[BackendId] = ()) -> list[IBackendInternal]:
        """Every backend that can be loaded, in the order in which armpy prefers them.

        Parameters
        ----------
        without : container of str
            Ids of those that are not to be loaded, as far as ids are known before.
        """
        with self._lock:
            self._check_open()
            records = [r for r in self._records if r.candidate.backend_id not in without]
            self._probe_if_asked(records)
            self._look_into_directories(without=without)
            # Ids are compared again: modules of directories have told theirs only now.
            found = [
                self._load(record)
                for record in self._records
                if record.candidate.backend_id not in without
            ]
        made = [checked for checked in found if checked is not None]
        # The order of discovery would change with what else is installed.
        made.sort(key=lambda checked: (checked.device_type, checked.backend_id))
        return [checked.backend for checked in made]

    def probe(self, *, examine: str = "") -> list[tuple[Candidate, ProbeResult]]:
        """Load every candidate that is still an open question in a process of its own.

        Parameters
        ----------
        examine : str
            ``"module:function"`` to call with each backend there; see `probe_candidates`.

        Returns
        -------
        list of (Candidate, ProbeResult)
            Those that were probed. One that did not pass is not loaded any more.
        """
        with self._lock:
            self._check_open()
            records = [record for record in self._records if record.can_be_probed]
            return self._probe(records, examine)

    def _add(self, candidate: Candidate, backend_id: BackendId | None = None) -> _CandidateRecord:
        """Take up one candidate, with its id if that is known."""
        record = _CandidateRecord(candidate)
        self._records.append(record)

        def check() -> None:
            self._trust.check(candidate)
            if backend_id is not None:
                self._claim(record, backend_id)

        self._attempt(record, check)
        return record

    def _claim(self, record: _CandidateRecord, backend_id: BackendId) -> None:
        candidate = record.candidate
        # Before the checks, so that messages about a refused one can name it.
        candidate.backend_id = backend_id
        check_invalid_id(backend_id)
        # The application's own code decides for itself; the trust file is about what is found.
        if candidate.kind is not CandidateKind.CODE:
            self._trust.check_id(backend_id)
        owner = self._owners.setdefault(backend_id, record)
        if owner is not record:
            reason = f"another backend has the id '{backend_id}': {owner.candidate.source}"
            self._leave_out(record, CandidateStatus.DUPLICATE, Failure(reason, ""))

    def _look_into_directories(
        self, wanted: BackendId | None = None, without: Container[BackendId] = ()
    ) -> _CandidateRecord | None:
        records = [
            record
            for record in self._records
            if record.is_from_directory and record.candidate.backend_id not in without
        ]
        self._probe_if_asked(records)
        for record in records:
            # Importing runs code, so no more modules are imported than the search takes.
            if wanted is not None and wanted in self._owners:
                break
            if record.is_open_question:
                self._open(record)
        return None if wanted is None else self._owners.get(wanted)

    def _open(self, record: _CandidateRecord) -> bool:
        """Import a candidate's code, if that is not done yet; false if it is left out."""
        if record.opened is not None:
            return True
        record.private_name = self._private_name(record.candidate)

        def step() -> None:
            candidate = record.candidate
            # The files may have changed since they were found.
            pinned = self._trust.check(candidate)
            self._modules.add(record.private_name)
            record.opened = opened = open_candidate(candidate, record.private_name, pinned)
            # The probe has judged another backend, then: what runs here was never tried.
            if candidate.backend_id not in ("", opened.backend_id):
                raise RejectionError(
                    f"its get_backend_id returned '{opened.backend_id}', "
                    f"and '{candidate.backend_id}' when it was probed"
                )
            candidate.api_version = opened.api_version
            self._claim(record, opened.backend_id)

        return self._attempt(record, step)

    def _private_name(self, candidate: Candidate) -> str:
        """A name for a directory's module; those that share common code are in one group."""
        if candidate.kind is not CandidateKind.DIRECTORY:
            return ""
        # What has a pin does not see what has none, though it is of the same vendor.
        shared = candidate.common, bool(candidate.pin)
        if candidate.common and shared not in self._groups:
            self._groups[shared] = group_name(candidate.directory)
        return private_name(candidate.path, candidate.entry, self._groups.get(shared, ""))

    def _load(self, record: _CandidateRecord) -> CheckedBackend | None:
        """Make a candidate's backend, if that is not done yet; None if it is left out."""
        if record.is_open_question and self._open(record):
            self._attempt(record, lambda: self._create(record))
        return record.checked

    def _create(self, record: _CandidateRecord) -> None:
        candidate, opened = record.candidate, record.opened
        assert opened is not None  # `_open` came before
        checked = opened.create()
        candidate.api_version = checked.api_version
        candidate.device_type = checked.device_type.name
        candidate.status = CandidateStatus.REGISTERED
        record.checked = checked  # last: `get` looks at it without the lock

    def _attempt(self, record: _CandidateRecord, step: Callable[[], None]) -> bool:
        """Do something with a candidate; false, and its reason kept, if that went wrong."""
        failed = attempt(step, record.private_name, record.candidate.name)
        if failed is not None:
            self._leave_out(record, *failed)
        return record.is_open_question

    def _leave_out(
        self, record: _CandidateRecord, status: CandidateStatus, failure: Failure
    ) -> None:
        self._forget(record)
        leave_out(record.candidate, status, failure)

    def _forget(self, record: _CandidateRecord) -> None:
        record.opened = record.checked = None
        if record.private_name:
            forget_module(record.private_name)
            self._modules.discard(record.private_name)

    def _probe_if_asked(self, records: Iterable[_CandidateRecord]) -> None:
        """Probe what is about to be loaded, if the options say so."""
        if self._options.probe:
            # armpy's own are as trusted as the core, and a process for each would slow every start.
            self._probe([r for r in records if r.can_be_probed and not is_own(r.candidate)])

    def _probe(
        self, records: Sequence[_CandidateRecord], examine: str = ""
    ) -> list[tuple[Candidate, ProbeResult]]:
        # Few processes probe, and it takes much of the standard library.
        from armpy.plugins.probing.probe import probe_candidates  # noqa: PLC0415

        candidates = [record.candidate for record in records]
        timeout_s = self._options.probe_timeout_s
        results = probe_candidates(candidates, timeout_s=timeout_s, examine=examine)
        for record, result in zip(records, results, strict=True):
            self._note(record, result)
        return list(zip(candidates, results, strict=True))

    def _note(self, record: _CandidateRecord, result: ProbeResult) -> None:
        record.has_passed_probe = result.passed
        candidate = record.candidate
        candidate.api_version = result.api_version
        candidate.device_type = result.device_type
        if result.passed:
            # The id comes from the candidate's own code, and may be refused or taken.
            self._attempt(record, lambda: self._claim(record, result.backend_id))
            return
        candidate.backend_id = candidate.backend_id or result.backend_id
        failure = Failure(
            result.reason,
            result.traceback or result.output,
            result.missing_module,
            result.missing_library,
        )
        self._leave_out(record, result.status, failure)

    def _check_open(self) -> None:
        if self._is_closed:
            raise BackendUnavailableError("the registry of backends is closed")

    def _why_unavailable(
        self, backend_id: BackendId, record: _CandidateRecord | None
    ) -> BackendUnavailableError:
        # A duplicate's reason names the owner of the id, and without a record there is none now.
        lost = [
            c
            for c in self.candidates
            if c.backend_id == backend_id and c.status is not CandidateStatus.DUPLICATE
        ]
        if record is not None or lost:
            candidate = record.candidate if record is not None else lost[0]
            return BackendUnavailableError(
                f"backend '{backend_id}' from {candidate.source} cannot be used: {candidate.reason}"
            )
        # The id of one that could not be imported is not known: it may be the one that is wanted.
        unknown = [f"{c.source}: {c.reason}" for c in self.candidates if not c.backend_id]
        return BackendUnavailableError(
            f"there is no backend '{backend_id}'",
            expected="one of " + (", ".join(self.backend_ids) or "none: no backend is installed"),
            fix=did_you_mean(backend_id, self.backend_ids, "Install the package that brings it")
            + ("".join(f"; left out is {reason}" for reason in unknown)),
        )


def preferred_backends(
    registry: BackendRegistry, preferences: Iterable[BackendId] | None
) -> list[IBackendInternal]:
    """The backends to use, most preferred first.

    Parameters
    ----------
    preferences : iterable of str, or None
        Ids in order; None for every available backend in armpy's own order.

    Raises
    ------
    BackendUnavailableError
        If a named backend cannot be used, or there is none at all.
    InvalidArgumentError
        If the list of names is empty.
    """
    if preferences is None:
        backends = registry.available()
        if not backends:
            raise BackendUnavailableError(
                "no backend can be used", actual="; ".join(c.reason for c in registry.candidates)
            )
        return backends
    names = list(dict.fromkeys(preferences))
    if not names:
        raise InvalidArgumentError(
            "the list of backends is empty",
            expected="ids such as " + ", ".join(registry.backend_ids),
            fix="Leave it out to use every installed backend",
        )
    return [registry.get(name) for name in names]


def _forget_modules(names: set[str]) -> None:
    for name in filter(None, names):
        forget_module(name)
