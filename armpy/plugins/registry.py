"""Backend registry: keeps discovered backends, and loads the requested ones."""

from __future__ import annotations

import threading
from collections.abc import Container, Iterable, Sequence
from typing import TYPE_CHECKING

from armpy import plugins  # its install lines: for errors alone
from armpy.backend import IBackendInternal
from armpy.errors import BackendUnavailableError, InvalidArgumentError
from armpy.plugins.checks import OpenedCandidate
from armpy.plugins.discovery.candidate import Candidate, CandidateKind, CandidateStatus
from armpy.plugins.discovery.discover import Discovery
from armpy.plugins.loader import BackendLoader
from armpy.plugins.loading import discover
from armpy.plugins.options import PathText, PluginOptions
from armpy.plugins.proxy.guarded_call import ask_backend, describe
from armpy.plugins.trust.policy import read_trust
from armpy.types import BackendId

if TYPE_CHECKING:
    from armpy.plugins.discovery.directories import SkippedPath
    from armpy.plugins.hook_plugins import HookPlugins
    from armpy.plugins.libraries import BackendFactory
    from armpy.plugins.probe import ProbeResult


class BackendRegistry:
    """All backends that can be found, each loaded when first asked for.

    Raises
    ------
    InvalidArgumentError
        If there is a trust file that cannot be used.

    Notes
    -----
    Listing imports no backend. One candidate that cannot be loaded stops no other: its
    reason is kept and logged once, and its id is that of the next candidate that has it, except for
    ids of armpy's own backends. Without one the reason is raised when the id is asked for.

    The id of a module from a directory is known once it is imported, so these are imported as soon
    as all backends are wanted, or an id that no other candidate has. It leaves ``sys.modules``
    when the registry is closed, or is dropped: keep the registry as long as its backends.

    References
    ----------
    Arm NN BackendRegistry, DynamicBackendUtils.
    """

    def __init__(self, options: PluginOptions | None = None) -> None:
        self._options = options or PluginOptions()
        self._trust = read_trust(self._options)
        self._found = Discovery()
        self._loader = BackendLoader(self._options, self._trust)
        self._hooks: HookPlugins | None = None
        # May be taken again by its own thread: a backend may use armpy while it is imported.
        self._lock = threading.RLock()
        self._is_closed = False
        self._is_discovered = False

    @classmethod
    def discover(cls, options: PluginOptions | None = None) -> BackendRegistry:
        """A registry of the backends in installed distributions and in directories.

        Raises
        ------
        InvalidArgumentError
            If the trust file cannot be used.
        """
        registry = cls(options)
        registry._found = discover(registry._options)
        for candidate in registry._found.backends:
            registry._loader.add(candidate)
        registry._is_discovered = True
        return registry

    def finds(self, options: PluginOptions) -> bool:
        """Return whether it is the result of `discover` with some options, without additions."""
        return self._is_discovered and self._options == options

    def register(
        self, backend_id: BackendId, factory: BackendFactory, source: str = "code"
    ) -> None:
        """Add a backend by hand.

        Raises
        ------
        InvalidArgumentError
            If the id is taken, or none that a backend can have; if the factory cannot be called.
        """
        _check_id(backend_id)
        if not callable(factory):
            text = f"the factory of backend '{backend_id}' cannot be called"
            raise InvalidArgumentError(text, fix="Give the backend's class, not an object of it")
        with self._lock:
            self._check_open()
            self._is_discovered = False
            record = self._loader.add(Candidate(backend_id, source))
            if not record.is_open_question:
                # The caller gets the exception; it is not to be listed as well.
                self._loader.records.remove(record)
                failed = f"backend '{backend_id}' cannot be registered: {record.candidate.reason}"
                raise InvalidArgumentError(
                    failed, fix="Use another id, or deregister a backend that has it"
                )
            record.opened = OpenedCandidate(backend_id, "", factory)

    def deregister(self, backend_id: BackendId) -> None:
        """Take a backend out, with what a directory's module left in ``sys.modules``.

        Afterwards the id is free for `register`, and no backend of a distribution or directory gets
        it any more: the id of a directory's module may be known only later. Any other id does no
        harm. Objects that the backend has made go on working, but its module can import no more of
        its submodules.

        Raises
        ------
        InvalidArgumentError
            If the id is not text.
        """
        _check_id(backend_id)
        with self._lock:
            self._loader.deregister(backend_id)

    def close(self) -> None:
        """Deregister every backend; nothing can be asked for afterwards."""
        with self._lock:
            for backend_id in list(self._loader.owners):
                self.deregister(backend_id)
            self._is_closed = True

    @property
    def options(self) -> PluginOptions:
        """Return how backends are found and loaded."""
        return self._options

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Every candidate with its status, in the order in which they were found."""
        return tuple(record.candidate for record in self._loader.records)

    def has_plugins(self, hook: str = "") -> bool:
        """Return whether foreign plugins exist; with a hook, any that may implement it."""
        return self._hooks is not None or any(
            not hook or plugin.hook in ("", hook) for plugin in self._found.plugins
        )

    @property
    def plugins(self) -> HookPlugins:
        """The plugins with hooks that were found; those of a registry made by hand are armpy's."""
        with self._lock:
            if self._hooks is None:
                # Not all programs need pluggy.
                from armpy.plugins.hook_plugins import HookPlugins  # noqa: PLC0415

                self._hooks = HookPlugins(self._found.plugins, self._options, self._trust)
            return self._hooks

    @property
    def skipped_paths(self) -> tuple[SkippedPath, ...]:
        """Directories that cannot be looked into, and what in them is nearly a module."""
        return self._found.skipped

    @property
    def backend_ids(self) -> tuple[BackendId, ...]:
        """Ids that are known and can be asked for, sorted; loading one may still fail."""
        return tuple(sorted(self._loader.owners))

    def is_registered(self, backend_id: BackendId) -> bool:
        """Return whether a backend has an id; loading the backend may still fail.

        As in `get`, libraries of distributions are probed and modules of directories imported until
        one has the id, unless another candidate has it.

        Raises
        ------
        InvalidArgumentError
            If the id is not text.
        """
        _check_id(backend_id)
        if backend_id in self._loader.owners:
            return True
        with self._lock:
            # A closed registry has no backends, and imports none.
            return not self._is_closed and self._loader.find(backend_id) is not None

    def get(self, backend_id: BackendId) -> IBackendInternal:
        """The backend of that id, loaded if need be.

        Raises
        ------
        BackendUnavailableError
            If there is none, or it cannot be loaded; the text says why.
        InvalidArgumentError
            If the id is not text.
        """
        _check_id(backend_id)
        owner = self._loader.owners.get(backend_id)
        # Without the lock, which is held for long while another backend is loaded. `checked` is
        # read once, as another thread may clear it.
        if owner is not None and (checked := owner.checked) is not None:
            return checked.backend
        with self._lock:
            self._check_open()
            loader = self._loader
            tried = None
            # Again, as one that is left out leaves its id to the next.
            while (record := loader.find(backend_id)) is not tried:
                if record is not None and (checked := loader.load(record)):
                    return checked.backend
                tried = record
            raise self._why_unavailable(backend_id)

    def factory_by_hand(self, backend_id: BackendId) -> BackendFactory | None:
        """Return the maker of a backend that was registered by hand; None for all others."""
        owner = self._loader.owners.get(backend_id)
        if owner is None or owner.candidate.kind is not CandidateKind.CODE:
            return None
        return None if owner.opened is None else owner.opened.factory  # type: ignore[return-value]

    def identify(self) -> None:
        """Find the ids of modules in directories in processes of their own, importing none here.

        What does not pass there is left out, as with `PluginOptions.probe`.
        """
        with self._lock:
            self._check_open()
            self._loader.probe([r for r in self._loader.records if r.is_from_directory])

    def create(self, backend_id: BackendId) -> IBackendInternal:
        """Another backend of that id, for a caller that is to change it alone.

        Returns the one that `get` returns if the plugin has no other.

        Raises
        ------
        BackendUnavailableError
            As for `get`.
        BackendError
            If the plugin does not make another one.
        """
        shared = self.get(backend_id)
        opened = self._loader.owners[backend_id].opened
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
            backends = self._loader.load_all(without)
        # The order of discovery would change with what else is installed.
        backends.sort(key=lambda checked: (checked.device_type, checked.backend_id))
        return [checked.backend for checked in backends]

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
            without = self._loader.look_into_libraries()
            return [*without, *self._loader.probe(self._loader.records, examine)]

    def _check_open(self) -> None:
        if self._is_closed:
            raise BackendUnavailableError("the registry of backends is closed")

    def _why_unavailable(self, backend_id: BackendId) -> BackendUnavailableError:
        # A duplicate's reason names what had the id.
        lost = [
            c
            for c in self.candidates
            if c.backend_id == backend_id and c.status is not CandidateStatus.DUPLICATE
        ]
        if lost:
            source = f" from {lost[0].source}" if lost[0].source != "code" else ""
            return BackendUnavailableError(
                f"backend '{backend_id}'{source} cannot be used: {lost[0].reason}",
                fix=f"Leave '{backend_id}' out of the backends, or run 'armpy doctor' for the "
                "remedy",
            )
        # The id of one that could not be imported is not known: it may be the one that is wanted.
        unknown = [f"{c.source}: {c.reason}" for c in self.candidates if not c.backend_id]
        return BackendUnavailableError(
            f"there is no backend '{backend_id}'",
            expected="one of " + (", ".join(self.backend_ids) or "none: no backend is installed"),
            fix=plugins.suggest_backend(backend_id, self.backend_ids)
            + ("".join(f"; left out is {reason}" for reason in unknown)),
        )


def _check_id(backend_id: object) -> None:
    """Raise InvalidArgumentError for an id that is not text."""
    if not isinstance(backend_id, str):
        raise InvalidArgumentError(
            "the id of a backend is not text",
            expected="a str, such as 'CpuRef'",
            actual=describe(backend_id),
            fix="Pass the text that the backend's get_id returns",
        )


def backend_registry(
    *,
    dynamic_backends_path: PathText | Sequence[PathText] = (),
    trust_insecure_paths: bool = False,
    trust_file: PathText | None = None,
    probe: bool = False,
    probe_timeout_s: float = 10.0,
) -> BackendRegistry:
    """Registry of the backends that can be found, for an application to hold.

    Parameters
    ----------
    dynamic_backends_path, trust_insecure_paths, trust_file, probe, probe_timeout_s
        As for `RuntimeOptions`, whose own are ignored when a registry is passed.

    Returns
    -------
    BackendRegistry
        A new one. ``RuntimeOptions(registry=...)`` gives it to any number of runtimes, which
        share its backends. It lives until `BackendRegistry.close`, or as long as it is held.

    Raises
    ------
    InvalidArgumentError
        If an option or the trust file cannot be used.

    Notes
    -----
    Arm NN has one global registry that any code can modify. armpy has none: registered objects,
    the places of backends and trust belong to those who hold the registry, so that
    two libraries in one process do not get into each other's way. A runtime without a registry
    makes its own.

    References
    ----------
    Arm NN BackendRegistryInstance.

    Examples
    --------
    >>> registry = backend_registry()
    >>> registry.deregister("NumbaAcc")
    >>> registry.is_registered("CpuRef"), registry.is_registered("NumbaAcc")
    (True, False)
    """
    return BackendRegistry.discover(
        PluginOptions(
            dynamic_backends_path, trust_insecure_paths, trust_file, probe, probe_timeout_s
        )
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
            where="backends",
            expected="one or more of " + ", ".join(registry.backend_ids),
            fix="Leave the argument out to use every installed backend",
        )
    return [registry.get(name) for name in names]
