"""Finds backends and loads the ones that are asked for."""

from __future__ import annotations

import enum
import logging
import threading
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

import pluggy
from packaging.version import InvalidVersion, Version

from armpy.backend import BACKEND_API_VERSION, IBackendInternal
from armpy.errors import ArmpyError, BackendUnavailableError, InvalidArgumentError
from armpy.types import BackendId, DeviceType

ENTRY_POINT_GROUP = "armpy.backends"
"""Distributions announce backends here: ``CpuRef = "armpy_reference:ReferenceBackend"``."""

_log = logging.getLogger("armpy.plugins")

BackendFactory = Callable[[], IBackendInternal]


class CandidateStatus(enum.Enum):
    """How far a candidate has come."""

    FOUND = "found"
    REGISTERED = "registered"
    DUPLICATE = "duplicate"
    REJECTED = "rejected"
    FAILED = "failed"


@dataclass(slots=True)
class Candidate:
    """Something that says it is a backend, and what became of it.

    Parameters
    ----------
    backend_id : str
    source : str
        Where it was found: a distribution with its version, or a path.
    status : CandidateStatus
    reason : str
        Why it is not registered.
    traceback : str
        Of the exception that loading it raised.
    """

    backend_id: BackendId
    source: str
    status: CandidateStatus = CandidateStatus.FOUND
    reason: str = ""
    traceback: str = ""


class BackendRegistry:
    """All backends that can be found, each loaded when first asked for.

    Notes
    -----
    Listing imports no backend. One candidate that cannot be loaded stops no other: its
    reason is kept, logged once, and raised when it is asked for by name.

    References
    ----------
    Arm NN BackendRegistry.
    """

    def __init__(self) -> None:
        self._plugins = pluggy.PluginManager("armpy")
        self._loaders: dict[BackendId, Callable[[], object]] = {}
        self._candidates: list[Candidate] = []
        self._backends: dict[BackendId, IBackendInternal] = {}
        self._lock = threading.RLock()

    @classmethod
    def discover(cls) -> BackendRegistry:
        """A registry of the backends that installed distributions announce."""
        registry = cls()
        for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=_entry_order):
            registry._add(entry.name, " ".join(_distribution(entry)) or entry.value, entry.load)
        return registry

    def register(
        self, backend_id: BackendId, factory: BackendFactory, source: str = "code"
    ) -> None:
        """Add a backend by hand.

        Raises
        ------
        InvalidArgumentError
            If the id is empty, ``"Unknown"`` or taken.
        """
        candidate = self._add(backend_id, source, lambda: factory)
        if candidate.status is not CandidateStatus.FOUND:
            self._candidates.remove(candidate)
            raise InvalidArgumentError(
                f"backend '{backend_id}' cannot be registered", actual=candidate.reason
            )

    def _add(self, backend_id: BackendId, source: str, load: Callable[[], object]) -> Candidate:
        """Take up one candidate."""
        candidate = Candidate(backend_id, source)
        self._candidates.append(candidate)
        if backend_id in ("", "Unknown"):
            candidate.status = CandidateStatus.REJECTED
            candidate.reason = f"'{backend_id}' is not a valid backend id"
        elif backend_id in self._loaders:
            candidate.status = CandidateStatus.DUPLICATE
            candidate.reason = f"another backend has the id '{backend_id}'"
        else:
            self._loaders[backend_id] = load
        return candidate

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Every candidate with its status, in the order in which they were found."""
        return tuple(self._candidates)

    @property
    def backend_ids(self) -> tuple[BackendId, ...]:
        """Ids that can be asked for, sorted; loading one may still fail."""
        return tuple(sorted(self._loaders))

    def get(self, backend_id: BackendId) -> IBackendInternal:
        """The backend of that id, loaded if need be.

        Raises
        ------
        BackendUnavailableError
            If there is none, or it cannot be loaded; the text says why.
        """
        backend = self._backends.get(backend_id)
        if backend is not None:
            return backend
        candidate = next(
            (
                c
                for c in self._candidates
                if c.backend_id == backend_id and c.status is not CandidateStatus.DUPLICATE
            ),
            None,
        )
        if candidate is None:
            raise BackendUnavailableError(
                f"there is no backend '{backend_id}'",
                expected="one of "
                + (", ".join(self.backend_ids) or "none: no backend is installed"),
                fix="Install the package that brings it",
            )
        with self._lock:
            if candidate.status is CandidateStatus.FOUND:
                self._try_to_load(candidate)
        if candidate.status is CandidateStatus.REGISTERED:
            return self._backends[backend_id]
        raise BackendUnavailableError(
            f"backend '{backend_id}' from {candidate.source} cannot be used: {candidate.reason}"
        )

    def _try_to_load(self, candidate: Candidate) -> None:
        """Load one candidate and record the outcome."""
        try:
            factory = self._loaders[candidate.backend_id]()
            backend = factory() if callable(factory) else factory
            candidate.reason = _why_rejected(candidate.backend_id, backend)
            if isinstance(backend, IBackendInternal) and not candidate.reason:
                self._plugins.register(backend, candidate.backend_id)
                self._backends[candidate.backend_id] = backend
        except (Exception, SystemExit) as error:  # noqa: BLE001 - plugin boundary: recorded
            candidate.status = CandidateStatus.FAILED
            candidate.reason = str(error) if isinstance(error, ArmpyError) else repr(error)
            candidate.traceback = traceback.format_exc()
        else:
            rejected = bool(candidate.reason)
            candidate.status = CandidateStatus.REJECTED if rejected else CandidateStatus.REGISTERED
        if candidate.reason:
            _log.warning(
                "backend '%s' from %s is left out: %s",
                candidate.backend_id,
                candidate.source,
                candidate.reason,
            )

    def available(self) -> list[IBackendInternal]:
        """Every backend that can be loaded, in the order in which armpy prefers them."""
        backends = []
        for backend_id in self.backend_ids:
            try:
                backends.append(self.get(backend_id))
            except BackendUnavailableError as error:
                _log.debug("%s", error)  # the reason is on the candidate and was logged once
        return sorted(backends, key=lambda b: (b.device_type, b.backend_id))


def _entry_order(entry: EntryPoint) -> tuple[str, ...]:
    """Sort key of entry points: id, then where it comes from."""
    return entry.name, *_distribution(entry), entry.value


def _distribution(entry: EntryPoint) -> tuple[str, ...]:
    """Name and version of what an entry point comes from; empty if its metadata is damaged."""
    try:
        name = entry.dist.name if entry.dist else None
        return (name, str(entry.dist.version)) if entry.dist and name else ()
    except Exception as error:  # noqa: BLE001 - plugin boundary: one damaged distribution
        _log.debug("the metadata of '%s' cannot be read: %s", entry.name, error)
        return ()


def _why_rejected(backend_id: BackendId, backend: object) -> str:
    """What is wrong with what a factory made; empty if nothing."""
    if not isinstance(backend, IBackendInternal):
        return f"its factory made {type(backend).__name__}, not an IBackendInternal"
    if backend.backend_id != backend_id:
        return f"it calls itself '{backend.backend_id}'"
    if not isinstance(backend.device_type, DeviceType):
        return f"its device type {backend.device_type!r} is not a DeviceType"
    if not isinstance(backend.shares_host_memory, bool):
        return f"its shares_host_memory is {backend.shares_host_memory!r}, not true or false"
    return why_incompatible(backend.api_version)


def why_incompatible(version: str, core: str = BACKEND_API_VERSION) -> str:
    """Why a backend's API version does not fit the core's; empty if it does.

    Notes
    -----
    The major must be equal and the minor at most the core's.
    """
    try:
        wanted, offered = Version(version), Version(core)
    except (InvalidVersion, TypeError):
        return f"its API version {version!r} is not of the form major.minor"
    if wanted.major != offered.major or wanted.minor > offered.minor:
        return f"it is made for API version {version}, which does not fit {core}"
    return ""


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
