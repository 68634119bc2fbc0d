"""Choice of a runtime's backends that get processes of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from armpy.backend import IBackendInternal
from armpy.errors import InvalidArgumentError, did_you_mean
from armpy.execution.isolation.backend import IsolatedBackend
from armpy.execution.isolation.limits import Isolation, IsolationLimits, is_isolated
from armpy.execution.isolation.source import BackendSource
from armpy.plugins import BackendRegistry
from armpy.store.settings import CompilationCaching
from armpy.types import BackendId

Maker = Callable[[], IBackendInternal]


def choose(
    registry: BackendRegistry,
    named: Sequence[BackendId] | None,
    isolation: Isolation,
    limits: IsolationLimits,
    caching: CompilationCaching,
) -> list[tuple[BackendId, Maker]]:
    """What makes the backends of a runtime, by their ids.

    Parameters
    ----------
    named : sequence of str, optional
        Ids in order; None for all there are, in any order.

    Raises
    ------
    BackendUnavailableError
        If a named backend without a process of its own cannot be used.
    InvalidArgumentError
        If the list of names is empty.

    Notes
    -----
    None of the code of isolated backends is run here. Modules in directories, which tell their
    ids when they are loaded, tell them in processes of their own, unless they are named.
    """
    if named is None:
        registry.identify()
        ids = [name for name in registry.backend_ids if is_isolated(isolation, name)]
        makers: list[tuple[BackendId, Maker]] = [
            (backend.get_id(), partial(_same, backend))
            for backend in registry.available(without=ids)
        ]
        return makers + [
            (name, partial(_isolated, registry, name, limits, caching)) for name in ids
        ]
    if not named:
        raise InvalidArgumentError("the list of backends is empty")
    return [
        (
            name,
            partial(_isolated, registry, name, limits, caching)
            if is_isolated(isolation, name)
            else partial(_same, registry.get(name)),
        )
        # Each once: a name given twice would start two processes.
        for name in dict.fromkeys(named)
    ]


def check_isolated(registry: BackendRegistry, names: Iterable[BackendId]) -> None:
    """Check that backends which are to have processes of their own exist; none is loaded for it.

    Raises
    ------
    InvalidArgumentError
        If one does not: another spelling would run in the application's process without a word.
    """
    unknown = [name for name in names if not registry.is_registered(name)]
    if not unknown:
        return
    registry.identify()  # modules in directories have not told theirs yet
    for name in unknown:
        if not registry.is_registered(name):
            raise InvalidArgumentError(
                f"there is no backend '{name}'",
                where="isolation",
                expected=", ".join(registry.backend_ids),
                fix=did_you_mean(name, registry.backend_ids, "Install the package that brings it"),
            )


def _same(backend: IBackendInternal) -> IBackendInternal:
    return backend


def _isolated(
    registry: BackendRegistry,
    backend_id: BackendId,
    limits: IsolationLimits,
    caching: CompilationCaching,
) -> IsolatedBackend:
    """A backend in a process of its own."""
    if caching.token is not None:  # which names one model, and not the parts that go there
        caching = CompilationCaching()
    return IsolatedBackend(BackendSource.of(registry, backend_id, caching), limits)
