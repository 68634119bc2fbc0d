"""Sets up the backends of a runtime as its options say."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from armpy import plugins  # its suggestions: for errors alone
from armpy.backend import (
    Capability,
    IBackendInternal,
    ICustomAllocator,
    IMemoryOptimizerStrategy,
    MemorySource,
    OptionScope,
    OptionValues,
    PackingType,
    has_matching_capability,
)
from armpy.backend.options import check_options
from armpy.compiler.memory.strategies import StrategyValidator, get_memory_strategy
from armpy.core.arguments import check_several
from armpy.core.system_trace import begin_system_trace
from armpy.core.vlog import begin_vlog, is_on, vlog
from armpy.errors import (
    Argument,
    ArmpyError,
    BackendCapabilityError,
    BackendError,
    BackendUnavailableError,
    DeviceNotFoundError,
    InvalidArgumentError,
)
from armpy.execution.setup.contexts import BackendContexts
from armpy.execution.setup.options import (
    BACKENDS_VARIABLE,
    RuntimeOptions,
    backend_preferences,
)
from armpy.plugins import BackendRegistry, CandidateStatus, preferred_backends
from armpy.plugins.isolation.limits import is_isolated
from armpy.plugins.loading import guard
from armpy.plugins.proxy.facts import DEVICE_OPTION
from armpy.plugins.proxy.guard import BackendProxy
from armpy.plugins.proxy.guarded_call import read_backend
from armpy.types import BackendId, DeviceType, Preference

if TYPE_CHECKING:
    from armpy.plugins.isolation.backend import IsolatedBackend

_log = logging.getLogger("armpy.execution")

_PACKING = {
    PackingType.SINGLE_AXIS: Capability.SINGLE_AXIS_PACKING,
    PackingType.MULTI_AXIS: Capability.MULTI_AXIS_PACKING,
}


class _RefusalError(Exception):
    """A backend cannot be used, for the reason that is its cause."""

    def __init__(self, cause: ArmpyError) -> None:
        super().__init__(str(cause))
        self.cause = cause


@contextmanager
def _refusals() -> Iterator[None]:
    """Calls of a backend, whose errors are its own and not the caller's."""
    try:
        yield
    except ArmpyError as error:
        raise _RefusalError(error) from error


def _with_ids(
    registry: BackendRegistry, backends: Iterable[IBackendInternal]
) -> list[tuple[BackendId, IBackendInternal]]:
    """Each backend with the id it was registered under, without asking the backend itself."""
    registered = [
        c.backend_id for c in registry.candidates if c.status is CandidateStatus.REGISTERED
    ]
    # By identity: a backend's own id is asked later, inside the plugin boundary.
    ids = {id(registry.get(backend_id)): backend_id for backend_id in registered}
    return [(ids[id(backend)], backend) for backend in backends]


class BackendSetup:
    """The backends of a runtime with their contexts, and why others are left out.

    Raises BackendUnavailableError if a backend named in the options cannot be used, or none is
    left; InvalidArgumentError if an option is not known or not allowed.
    """

    def __init__(self, options: RuntimeOptions, registry: BackendRegistry) -> None:
        begin_vlog()
        begin_system_trace()
        self._options = options
        self._registry = registry
        self.contexts = BackendContexts()
        self.left_out: dict[BackendId, str] = {}  # reason by backend id
        # Those that have processes of their own.
        self.isolated: dict[BackendId, IsolatedBackend] = {}
        # Checked options of scope MODEL of the backends that were given any.
        self.model_options: dict[BackendId, OptionValues] = {}
        self.memory_strategies: dict[BackendId, IMemoryOptimizerStrategy] = {}
        try:
            self.backends = self._set_up_all()  # most preferred first
            self._check_known(registry)
            self._check_unused()
        except BaseException:
            # They may hold devices and processes, and no caller gets this object to close them.
            self.contexts.close()
            raise

    def backends_for(self, preference: Preference) -> tuple[BackendProxy, ...]:
        """Return the backends in the order of a preference: accelerators first for ``NPU``.

        Raises BackendUnavailableError if an NPU is preferred, and no backend has one.
        """
        if preference is not Preference.NPU:
            return self.backends
        types = {backend: backend.device.device_type for backend in self.backends}
        if DeviceType.ACCELERATOR not in types.values():
            raise BackendUnavailableError(
                "no backend has an NPU",
                where="preference='npu'",
                expected=f"a device of type {DeviceType.ACCELERATOR.name}",
                actual=", ".join(f"{item.get_id()}: {kind.name}" for item, kind in types.items()),
                fix="Install its backend and driver, or leave the preference out; armpy devices "
                "lists devices",
            )
        return tuple(sorted(types, key=lambda item: types[item] is not DeviceType.ACCELERATOR))

    def named(self, ids: Sequence[BackendId]) -> tuple[BackendProxy, ...]:
        """Return backends by id, in order, each once.

        Raises BackendUnavailableError for an id that the runtime does not have.
        """
        check_several(ids, "backends", "a sequence of ids", str)
        by_id = {backend.get_id(): backend for backend in self.backends}
        for name in ids:
            if name not in by_id:
                raise BackendUnavailableError(
                    f"the runtime has no backend '{name}'",
                    expected="one of " + ", ".join(by_id),
                    actual=self.left_out.get(name, ""),
                    fix=plugins.suggest_backend(name, by_id),
                )
        return tuple(by_id[name] for name in dict.fromkeys(ids))

    def _set_up_all(self) -> tuple[BackendProxy, ...]:
        """Set up the backends that can be used."""
        named = backend_preferences(self._options.backends)
        usable: list[BackendProxy] = []
        refused: dict[BackendId, ArmpyError] = {}
        try:
            chosen = self._chosen(named)
        except BackendUnavailableError as error:
            if self._options.backends is None:
                error.where = error.where or f"environment variable {BACKENDS_VARIABLE}"
            raise
        for backend_id, make in chosen:
            try:
                usable.append(self._set_up(backend_id, make))
            except _RefusalError as refusal:
                # A backend that the caller names is wanted; of all installed ones, others will do.
                if named is not None:
                    raise refusal.cause from refusal.cause.__cause__
                vlog("manager", "backend '%s' is left out: %s", backend_id, refusal)
                refused[backend_id] = refusal.cause
                self.left_out[backend_id] = str(refusal)
        _log_refused(refused)
        if not usable:
            raise BackendUnavailableError(
                "no backend can be used", actual="; ".join(self.left_out.values())
            )
        if named is None and self.isolated:  # whose device types are known only now
            usable.sort(key=lambda backend: (backend.device.device_type, backend.get_id()))
        if is_on.manager:
            for backend in usable:
                vlog(
                    "manager",
                    "backend '%s' %s, %s, is set up",
                    backend.get_id(),
                    backend.version,
                    backend.device.device_type.name,
                )
        return tuple(usable)

    def _chosen(
        self, named: Sequence[BackendId] | None
    ) -> list[tuple[BackendId, Callable[[], IBackendInternal]]]:
        """Return the makers of the backends, by the ids that they were registered under."""
        options, registry = self._options, self._registry
        if options.isolation is None:
            backends = _with_ids(registry, preferred_backends(registry, named))
            return [
                (backend_id, lambda own=backend: own)  # type: ignore[misc]
                for backend_id, backend in backends
            ]
        from armpy.plugins.isolation.backend import (  # noqa: PLC0415 - few processes isolate
            check_isolated,
            choose,
        )

        if isinstance(options.isolation, Mapping):
            check_isolated(registry, options.isolation)
        limits, caching = options.isolation_limits, options.caching
        return choose(registry, named, options.isolation, limits, caching)

    def _set_up(self, backend_id: BackendId, make: Callable[[], IBackendInternal]) -> BackendProxy:
        """Give a backend its options and allocator, and take its context.

        Raises _RefusalError if the backend cannot be used; any other error is the caller's mistake.
        """
        with _refusals():
            plugin = make()
            backend = guard(backend_id, plugin)
        values = self._given_options(backend)
        scopes = check_options(backend.options, values, backend_id)
        _check_effect(backend, values)
        strategy = self._strategy_for(backend)
        with _refusals():
            backend = _for_runtime(backend, scopes[OptionScope.RUNTIME])
            self._set_allocator(backend)
            context = backend.create_backend_context(scopes[OptionScope.RUNTIME])
        if context is not None:
            self.contexts.add(backend_id, context)
        if is_isolated(self._options.isolation, backend_id):
            self.isolated[backend_id] = plugin  # type: ignore[assignment]  # as `choose` made it
        if strategy is not None:
            self.memory_strategies[backend_id] = strategy
        if any(o.name in values for o in backend.options if o.scope is OptionScope.MODEL):
            self.model_options[backend_id] = scopes[OptionScope.MODEL]
        return backend

    def _given_options(self, backend: BackendProxy) -> Mapping[str, object]:
        """The caller's options for one backend, with the number of threads and the NPU."""
        values = dict(self._options.backend_options.get(backend.get_id(), {}))
        has_threads = any(option.name == "num_threads" for option in backend.options)
        if self._options.num_threads is not None and has_threads:
            values.setdefault("num_threads", self._options.num_threads)
        devices = backend.get_devices()
        npus = [device.name for device in devices if device.device_type is DeviceType.ACCELERATOR]
        if self._options.preference is Preference.NPU and npus and len(devices) > 1:
            values.setdefault(DEVICE_OPTION, npus[0])
        return values

    def _set_allocator(self, backend: BackendProxy) -> None:
        """Let a backend use the application's allocator; check protected mode's conditions."""
        backend_id = backend.get_id()
        allocator = self._options.custom_allocators.get(backend_id)
        if self._options.protected_mode:
            self._check_protected(backend, allocator)
        if allocator is None:
            return
        if not backend.use_custom_memory_allocator(allocator):
            raise BackendCapabilityError(
                "the backend does not use this custom allocator",
                where=f"{backend_id} / use_custom_memory_allocator",
            )

    def _check_protected(self, backend: BackendProxy, allocator: ICustomAllocator | None) -> None:
        """Check what protected mode asks of a backend."""
        capability = Capability.PROTECTED_CONTENT_ALLOCATION
        problem = ""
        if not has_matching_capability(capability, True, backend.get_capabilities()):
            problem = f"it lacks the capability {capability}"
        elif allocator is None:
            problem = "there is no custom allocator for it"
        else:
            where = f"{backend.get_id()}'s allocator"
            source = read_backend(where, allocator, "memory_source", MemorySource)
            if source is not MemorySource.DMA_BUF_PROTECTED:
                problem = f"its allocator's memory is {source}, not protected"
        if problem:
            raise BackendCapabilityError(
                f"the backend cannot be used in protected mode: {problem}", where=backend.get_id()
            )

    def _strategy_for(self, backend: BackendProxy) -> IMemoryOptimizerStrategy | None:
        """The memory strategy chosen for a backend, if it can do with it."""
        chosen = self._options.memory_strategies.get(backend.get_id())
        if chosen is None:
            return None
        strategy = get_memory_strategy(chosen) if isinstance(chosen, str) else chosen
        strategy = StrategyValidator(strategy)
        capability = _PACKING[strategy.packing_type]
        if has_matching_capability(capability, True, backend.get_capabilities()):
            return strategy
        _log.warning(
            "memory strategy %s is not used for backend '%s', which lacks the capability %s",
            strategy.name,
            backend.get_id(),
            capability,
        )
        return None

    def _check_unused(self) -> None:
        """Check options of backends that are not chosen, as if they were."""
        for chosen in self._options.memory_strategies.values():
            if isinstance(chosen, str):
                get_memory_strategy(chosen)
        used = {backend.get_id() for backend in self.backends} | set(self.left_out)
        for backend_id, values in self._options.backend_options.items():
            if backend_id in used:
                continue
            try:
                backend = BackendProxy(self._registry.get(backend_id))
            except ArmpyError as error:
                # Only logged, so that one set of options serves several machines.
                _log.info("the options of backend '%s' are not checked: %s", backend_id, error)
                continue
            check_options(backend.options, values, backend_id)

    def _check_known(self, registry: BackendRegistry) -> None:
        """Check that options name backends that exist; modules are loaded for their ids."""
        known = {backend.get_id() for backend in self.backends} | set(registry.backend_ids)
        for option in ("backend_options", "custom_allocators", "memory_strategies"):
            for backend_id in getattr(self._options, option):
                if backend_id in known:
                    continue
                try:
                    registry.get(backend_id)
                except BackendUnavailableError as error:
                    raise InvalidArgumentError(
                        f"there is no backend '{backend_id}'",
                        argument=Argument(option),
                        expected=", ".join(registry.backend_ids),
                        fix=error.fix,
                    ) from error


_warnings: set[str] = set()
"""What this process has been warned of; runtimes that follow have the same backends."""


def _log_refused(refused: Mapping[BackendId, ArmpyError]) -> None:
    """Log why backends are left out, in one line for those with the same reason."""
    same: dict[str, list[BackendId]] = {}
    for backend_id, error in refused.items():
        same.setdefault(str(error).removeprefix(f"{error.location()}: "), []).append(backend_id)
    for reason, backend_ids in same.items():
        error = refused[backend_ids[0]]
        names = ", ".join(f"'{backend_id}'" for backend_id in backend_ids)
        text = f"backends {names} are left out: {reason}"
        if len(backend_ids) == 1:
            text = f"backend {names} is left out: {error}"
        if not error.fix:
            text = f"{text.rstrip('.')}; armpy doctor says what to do"
        is_expected = isinstance(error, DeviceNotFoundError) or text in _warnings
        _log.log(logging.INFO if is_expected else logging.WARNING, "%s", text)
        _warnings.add(text)


def _for_runtime(backend: BackendProxy, options: OptionValues) -> BackendProxy:
    proxy = backend.for_runtime(options)
    if proxy.get_id() != backend.get_id():
        raise BackendError(
            "the backend's id differs in this runtime",
            where=f"{backend.get_id()} / for_runtime",
            expected=repr(backend.get_id()),
            actual=repr(proxy.get_id()),
        )
    return proxy


def _check_effect(backend: BackendProxy, values: Mapping[str, object]) -> None:
    """Check that a backend takes the runtime's options that it is given.

    Raises BackendError if it overrides none of the methods that would be given an option.
    """
    names = "for_runtime", "create_backend_context"
    for option in backend.options:
        is_given = option.scope is OptionScope.RUNTIME and option.name in values
        if is_given and not any(map(backend.overrides, names)):
            raise BackendError(
                f"the option '{option.name}' has no effect: the backend never asks for it",
                where=backend.get_id(),
                expected=f"a backend that overrides {' or '.join(names)}",
                fix="Leave the option out, and report it to the backend's author",
            )
