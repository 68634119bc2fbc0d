"""Plugin manager: loads plugins with hooks, and asks them, each by itself."""

from __future__ import annotations

import importlib
import logging
import re
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import field
from functools import wraps
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pluggy

from armpy import plugins  # rooms that few processes enter
from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError
from armpy.plugins.discovery.candidate import (
    Candidate,
    CandidateKind,
    CandidateRecord,
    CandidateStatus,
    Failure,
    RejectionError,
    reopen_duplicates,
)
from armpy.plugins.hooks.checks import check_plugin
from armpy.plugins.hooks.specifications import PROJECT, HookSpecifications
from armpy.plugins.loading import attempt, open_plugin
from armpy.plugins.options import PluginOptions
from armpy.plugins.proxy.guarded_call import describe
from armpy.plugins.trust.policy import Trust

if TYPE_CHECKING:
    from armpy.plugins.probe import ProbeResult

_log = logging.getLogger("armpy.plugins")

T = TypeVar("T")
R = TypeVar("R")

OWN = ("armpy", "armpy.frontends.own")
"""Name and module of the plugin that brings armpy's own front-ends."""

# Reasons may differ from call to call, so that without a limit they would fill the memory.
_MOST_PROBLEMS = 20
"""How many of a plugin's are kept and logged."""

_ADDRESS = r"\b0x[0-9a-fA-F]+"
"""Differs between objects, but does not make a problem a different one."""

_running: ContextVar[frozenset[tuple[str, str]]] = ContextVar("running", default=frozenset())
"""Plugins and hooks that this thread is in: one that loads a model does not ask itself again."""


@dataclass(frozen=True, slots=True, eq=False)
class Answer(Generic[T]):
    """Answer of one plugin."""

    candidate: Candidate
    """The plugin."""
    value: T


@dataclass(slots=True, eq=False)
class _PluginRecord(CandidateRecord):
    """A candidate for a plugin, and what its hooks have done wrong."""

    plugin: object = None
    problems: dict[tuple[str, str], Failure] = field(default_factory=dict)


class HookPlugins:
    """Plugins that implement hooks, loaded when the first hook is called.

    What a plugin raises or answers in error never reaches another one, nor the caller: it is logged
    once, kept in `problems`, and left out. All methods may be called from several threads.
    """

    def __init__(
        self,
        # In the order in which they count. armpy's own plugin comes before them.
        candidates: Iterable[Candidate] = (),
        options: PluginOptions | None = None,
        trust: Trust | None = None,
    ) -> None:
        self._options = options or PluginOptions()
        self._trust = trust or Trust()
        self._manager = pluggy.PluginManager(PROJECT)
        specifications: Any = HookSpecifications()  # Any: not only modules and classes will do
        self._manager.add_hookspecs(specifications)
        # Makes the context around all code of plugins; the command line keeps its stdout there.
        self.around_calls: Callable[[], AbstractContextManager[object]] = nullcontext
        # May be taken again by its own thread: a plugin may use armpy while it is imported.
        self._lock = threading.RLock()
        self._is_loading = False
        name, module = OWN
        own = _PluginRecord(Candidate(name, name, CandidateKind.CODE, name=module, is_plugin=True))
        # First, so that no distribution takes its name.
        self._records = [own]
        for candidate in candidates:
            self._add(candidate)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """Every plugin but armpy's own, with its status, in the order in which they count."""
        return tuple(record.candidate for record in self._records[1:])

    @property
    def problems(self) -> tuple[tuple[Candidate, str, Failure], ...]:
        """Return the faults of loaded plugins' hooks: plugin, hook, and fault."""
        return tuple(
            (record.candidate, hook, failure)
            for record in self._records
            for (hook, _), failure in record.problems.items()
        )

    def is_own(self, candidate: Candidate) -> bool:
        """Return whether a plugin is armpy's own."""
        return candidate is self._records[0].candidate

    def register(self, name: str, plugin: object, source: str = "code") -> None:
        """Add a plugin by hand: a module or object whose methods are marked with `hookimpl`.

        Raises InvalidArgumentError if the name is taken, or the plugin cannot be used; it says why.
        """
        with self._lock:
            record = self._add(Candidate(name, source, is_plugin=True))
            record.plugin = plugin
            if record.is_open_question:
                self._load(record)
            if record.candidate.status is not CandidateStatus.REGISTERED:
                # The caller gets the exception; it is not to be listed as well.
                self._records.remove(record)
                reason = record.candidate.reason
                raise InvalidArgumentError(f"plugin '{name}' cannot be registered: {reason}")

    def ask(
        self,
        hook: str,  # name of a method of `HookSpecifications`
        kind: type[T],  # type of the answer: nothing (None), one, or a list or tuple of them
        *,
        own_alone: bool = False,  # call armpy's own plugin alone, and load no other
        **arguments: object,
    ) -> list[Answer[T]]:
        """Call a hook of every plugin.

        Returns one for each that was given, in the order in which plugins count.
        """
        self.load(hook, own_alone=own_alone)
        others = [plugin for name, plugin in self._manager.list_name_plugin() if name != OWN[0]]
        asked = self._manager.subset_hook_caller(hook, others if own_alone else [])
        answers: list[Answer[object]] = asked(**arguments)
        # pluggy calls the plugin that was registered last first.
        answers.sort(key=lambda answer: self._position(answer.candidate))
        right: list[Answer[T]] = []
        for answer in answers:
            # Any: until it is checked
            items: list[Any] = answer.value if isinstance(answer.value, list) else [answer.value]
            for item in items:
                if isinstance(item, kind):
                    right.append(Answer(answer.candidate, item))
                else:
                    reason = f"it returned {describe(item)}. Expected {kind.__name__}"
                    self.complain(answer.candidate, hook, Failure(reason))
        return right

    def complain(self, candidate: Candidate, hook: str, failure: Failure) -> None:
        """Keep and log what a plugin's hook has done wrong; each thing once."""
        problems = self._records[self._position(candidate)].problems
        # Without addresses: the same mistake would count as another one for every object.
        key = hook, re.sub(_ADDRESS, "0x", failure.reason)
        with self._lock:
            if key in problems or len(problems) >= _MOST_PROBLEMS:
                return
            problems[key] = failure
        _log.warning(
            "%s of plugin '%s' from %s is left out: %s; armpy doctor says what to do",
            hook,
            candidate.label,
            candidate.source,
            failure.reason.rstrip("."),
        )

    def contained(self, candidate: Candidate, hook: str, call: Callable[[], R], *, default: R) -> R:
        """Call a plugin's code; what goes wrong is kept, and `default` returned."""
        result = default

        def step() -> None:
            nonlocal result
            with self.around_calls():
                result = call()

        failed = attempt(step)
        if failed is not None:
            self.complain(candidate, hook, failed[1])
            return default
        return result

    def load(
        self,
        hook: str = "",  # leave out plugins that implement another hook alone
        *,
        own_alone: bool = False,  # leave out all but armpy's own plugin
    ) -> None:
        """Load every plugin that is not yet."""
        with self._lock:
            if self._is_loading:  # a plugin that uses armpy while it is imported
                return
            self._is_loading = True
            try:
                chosen = self._records[:1] if own_alone else self._records
                records = [r for r in chosen if r.candidate.hook in ("", hook) or not hook]
                # Again, as one that is left out leaves its name to the next.
                while open_questions := [r for r in records if r.is_open_question]:
                    if self._options.probe:
                        self._probe(open_questions)
                    for record in open_questions:
                        if record.is_open_question:
                            self._load(record)
            finally:
                self._is_loading = False

    def probe(self, *, examine: str = "") -> list[tuple[Candidate, ProbeResult]]:
        """Load every plugin that is not yet in a process of its own, as for backends."""
        with self._lock:
            return self._probe(self._records, examine)

    def _probe(
        self, records: Iterable[_PluginRecord], examine: str = ""
    ) -> list[tuple[Candidate, ProbeResult]]:
        def note(record: _PluginRecord, result: ProbeResult) -> None:
            if not result.passed:
                self._leave_out(record, result.status, result.failure)

        return plugins.probe.probe_records(records, self._options.probe_timeout_s, examine, note)

    def _add(self, candidate: Candidate) -> _PluginRecord:
        """Take up one candidate, if it may be loaded and its name is free."""
        record = _PluginRecord(candidate)
        self._records.append(record)

        def check() -> None:
            self._trust.check(candidate)
            if not candidate.backend_id:
                raise RejectionError("it has no name")

        failed = attempt(check)
        if failed is None:
            self._claim(record)
        else:
            plugins.failures.leave_out(candidate, *failed)
        return record

    def _claim(self, record: _PluginRecord) -> None:
        """Give a candidate its name, unless an earlier one that may be used has it."""
        name = record.candidate.backend_id
        earlier = (r.candidate for r in self._records[: self._position(record.candidate)])
        usable = (CandidateStatus.FOUND, CandidateStatus.REGISTERED)
        owner = next((c for c in earlier if c.backend_id == name and c.status in usable), None)
        if owner is not None:
            reason = f"another plugin has the name '{name}': {owner.source}"
            failure = Failure(reason, fix="Remove one of the two")
            plugins.failures.leave_out(record.candidate, CandidateStatus.DUPLICATE, failure)

    def _leave_out(self, record: _PluginRecord, status: CandidateStatus, failure: Failure) -> None:
        """Leave out a candidate, whose name is free then."""
        plugins.failures.leave_out(record.candidate, status, failure)
        for other in reopen_duplicates(self._records, record.candidate.backend_id):
            self._claim(other)

    def _position(self, candidate: Candidate) -> int:
        return next(i for i, r in enumerate(self._records) if r.candidate is candidate)

    def _load(self, record: _PluginRecord) -> None:
        candidate = record.candidate

        def step() -> None:
            with self.around_calls():
                if record.plugin is None:
                    record.plugin = (
                        importlib.import_module(candidate.name)
                        if candidate.kind is CandidateKind.CODE
                        # Checked again: the files may have changed since they were found.
                        else open_plugin(candidate, self._trust.check(candidate))
                    )
                hooks = check_plugin(record.plugin)
                others = sorted({*hooks.values()} - {candidate.hook}) if candidate.hook else []
                if others:
                    raise RejectionError(
                        f"it implements {', '.join(others)}, but its entry point is for "
                        f"{candidate.hook} alone. Use the group 'armpy.plugins'"
                    )
                guarded = _GuardedPlugin()
                for name, hook in hooks.items():
                    function = getattr(record.plugin, name)
                    setattr(guarded, name, self._guard(candidate, hook, function))
            # A stand-in, as pluggy ends a hook for all plugins with the first exception of one.
            self._manager.register(guarded, candidate.backend_id)

        failed = attempt(step)
        if failed is None:
            candidate.status = CandidateStatus.REGISTERED
        else:
            record.plugin = None
            self._leave_out(record, *failed)

    def _guard(
        self, candidate: Candidate, hook: str, function: Callable[..., object]
    ) -> Callable[..., Answer[object] | None]:
        key = candidate.backend_id, hook

        # Keeps the marks of `hookimpl`, and the parameters by which pluggy passes arguments.
        @wraps(function)
        def guarded(*arguments: object) -> Answer[object] | None:
            # A hook that loads a model would be asked for that one as well, without end.
            if key in _running.get():
                return None

            def answer() -> object:
                value = function(*arguments)
                # Several as a plain list, so that to go through them runs no code of the plugin.
                return list(value) if isinstance(value, (list, tuple)) else value

            token = _running.set(_running.get() | {key})
            try:
                value = self.contained(candidate, hook, answer, default=None)
            finally:
                _running.reset(token)
            return None if value is None else Answer(candidate, value)

        return guarded


class _GuardedPlugin:
    """Holds a plugin's guarded implementations, as pluggy looks for them."""

    def __dir__(self) -> list[str]:
        # pluggy looks at everything that is listed; members of `object` are none of its business.
        return [*vars(self)]
