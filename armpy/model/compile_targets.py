"""Targets: machines that backends can make programs for, by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from armpy.backend.programs import HOST_TARGET
from armpy.core.arguments import check_several
from armpy.errors import Argument, BackendError, InvalidArgumentError, did_you_mean
from armpy.plugins.proxy.guard import BackendProxy
from armpy.plugins.proxy.guarded_call import describe, read_backend
from armpy.types import BackendId


def targets_of(backend: BackendProxy) -> tuple[str, ...]:
    """The targets of a backend; none if it saves no programs.

    Raises BackendError if it says something else.
    """
    programs = backend.get_programs()
    if programs is None:
        return ()
    kinds = (tuple, list)
    targets: Sequence[object] = read_backend(backend.get_id(), programs, "targets", kinds)
    if not all(isinstance(name, str) for name in targets):
        raise BackendError(
            "an entry has the wrong type",
            where=f"{backend.get_id()} / targets",
            expected="str",
            actual=describe(targets),
        )
    return tuple(map(str, targets))


def known_targets(backends: Iterable[BackendProxy]) -> dict[str, list[BackendId]]:
    """The backends that make programs for each target; `HOST_TARGET` is always there."""
    known: dict[str, list[BackendId]] = {HOST_TARGET: []}
    for backend in backends:
        for name in targets_of(backend):
            known.setdefault(name, []).append(backend.get_id())
    return known


def check_targets(names: Sequence[str], backends: Iterable[BackendProxy]) -> None:
    """Check that there is each of some targets.

    Raises InvalidArgumentError if there is not; it names the nearest one.
    """
    check_several(names, "targets", "a sequence of targets", str)
    known = known_targets(backends)
    for name in names:
        if name not in known:
            raise InvalidArgumentError(
                "there is no such target",
                argument=Argument("target"),
                expected=f"one of {', '.join(known)}, as the backends in use have",
                actual=repr(name),
                fix=did_you_mean(name, known, "Choose one of these"),
            )
