"""Placers that plugins have registered, and calls to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeVar

from armpy import plugins  # its install lines: for errors alone
from armpy.backend import DeviceFigures, IBackendCache
from armpy.errors import InvalidArgumentError
from armpy.plugins.discovery.candidate import RejectionError
from armpy.plugins.extension_tables import PLACERS
from armpy.plugins.placement import Alternative, PlacementDecision, PlacementQuestion, Placer
from armpy.plugins.proxy.figures import check_figures
from armpy.plugins.proxy.guarded_call import describe
from armpy.plugins.registry import BackendRegistry
from armpy.types import BackendId, Preference

if TYPE_CHECKING:
    from armpy.plugins.hook_plugins import Answer

T = TypeVar("T")

_HOOK = "armpy_register_placer"


class Placers:
    """The placers of a registry's plugins, in the order in which they are asked: armpy's last.

    A registry without placers, such as one that is made by hand, has those of the distributions
    that are installed.
    """

    def __init__(self, registry: BackendRegistry) -> None:
        self._registry = registry
        self._found = _registered(registry)
        if not self._found:
            self._registry = BackendRegistry.discover(registry.options)
            self._found = _registered(self._registry)

    def __bool__(self) -> bool:
        return bool(self._found)

    def check(self, preference: Preference) -> None:
        """Check that there is a placer, for a preference that needs one.

        Raises InvalidArgumentError if there is none.
        """
        if not self._found:
            raise InvalidArgumentError(
                f"placement by cost needs {' or '.join(PLACERS)}, which is not installed or cannot "
                "be loaded",
                where="preference",
                expected=f"'{Preference.ORDER.value}', the order of the backends",
                actual=f"'{preference.value}'",
                fix=f"Run: {plugins.install_line(PLACERS[0])}; armpy doctor says what cannot be "
                "loaded",
            )

    def decide(self, question: PlacementQuestion) -> PlacementDecision | None:
        """The first placer's decision; None if all leave it to the order of the backends."""
        return next(self._answers(lambda p: _checked(p.decide(question), question)), None)

    def measured_figures(self, backend_id: BackendId, version: str) -> DeviceFigures | None:
        """The figures of a backend's device that were measured on this machine, if any."""

        def ask(placer: Placer) -> DeviceFigures | None:
            figures = placer.measured_figures and placer.measured_figures(backend_id, version)
            return figures and check_figures(figures, backend_id)

        return next(self._answers(ask), None)

    def caches(self) -> list[IBackendCache]:
        """Return the caches that placers keep on disk."""
        caches = self._answers(lambda placer: placer.cache and placer.cache())
        return [cache for cache in caches if isinstance(cache, IBackendCache)]

    def _answers(self, ask: Callable[[Placer], T | None]) -> Iterator[T]:
        for answer in self._found:
            placer, contained = answer.value, self._registry.plugins.contained
            result = contained(
                answer.candidate,
                _HOOK,
                lambda: ask(placer),  # noqa: B023 - called at once
                default=None,
            )
            if result is not None:
                yield result


def _registered(registry: BackendRegistry) -> list[Answer[Placer]]:
    if not registry.has_plugins(_HOOK):
        return []
    answers = registry.plugins.ask(_HOOK, Placer)
    return sorted(answers, key=lambda answer: answer.candidate.distribution in PLACERS)


def _checked(decision: object, question: PlacementQuestion) -> PlacementDecision | None:
    """A decision that names a possible backend for every layer, copied into plain objects."""
    if decision is None:
        return None
    if not isinstance(decision, PlacementDecision):
        raise RejectionError(f"it decided {describe(decision)}. Expected PlacementDecision or None")
    backends = dict(decision.backends)
    for layer in question.graph.layers:
        if (chosen := backends.get(layer.id)) not in question.choices[layer.id]:
            possible = " or ".join(question.choices[layer.id])
            raise RejectionError(f"{layer.where} is placed on {chosen!r}. Expected {possible}")
    if not all(isinstance(option, Alternative) for option in decision.alternatives):
        raise RejectionError(f"its alternatives are {describe(decision.alternatives)}")
    return PlacementDecision(backends, str(decision.basis), tuple(decision.alternatives))
