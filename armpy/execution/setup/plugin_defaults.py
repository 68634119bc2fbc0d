"""Defaults that plugins give to a runtime's options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from armpy.core.arguments import check_instance
from armpy.errors import ArmpyError, InvalidArgumentError
from armpy.execution.setup.backends import BackendSetup
from armpy.execution.setup.options import RuntimeOptions, backend_preferences
from armpy.plugins import BackendRegistry
from armpy.plugins.discovery.candidate import Failure

if TYPE_CHECKING:
    from armpy.plugins.hook_plugins import Answer, HookPlugins

CONFIGURABLE = (
    "backends",
    "on_fallback",
    "num_threads",
    "program_cache_size",
    "backend_options",
    "memory_strategies",
    "loop_timeout_s",
    "profiling",
    "preference",
)
"""Options that plugins may answer: the application decides what is loaded, trusted and allowed."""

_HOOK = "armpy_configure_runtime"
_BY_BACKEND = ("backend_options", "memory_strategies")


def configured_setup(
    options: RuntimeOptions, registry: BackendRegistry
) -> tuple[RuntimeOptions, BackendSetup]:
    """The application's options with plugins' defaults, and the backends set up with them.

    Raises BackendUnavailableError or InvalidArgumentError as for `BackendSetup`, for the
    application's own options alone.

    Options with which no setup can be made are the plugin's mistake: they are left out.
    """
    if not registry.has_plugins(_HOOK):
        return options, BackendSetup(options, registry)
    plugins = registry.plugins
    shown = {name: _shown(getattr(options, name)) for name in CONFIGURABLE}
    answers = plugins.ask(_HOOK, Mapping, options=MappingProxyType(shown))
    configured = options
    for answer in answers:
        configured = _completed(plugins, configured, answer)
    if configured is options:
        return options, BackendSetup(options, registry)
    try:
        return configured, BackendSetup(configured, registry)
    except ArmpyError:
        return _one_by_one(options, registry, answers)


def _one_by_one(
    options: RuntimeOptions,
    registry: BackendRegistry,
    answers: Sequence[Answer[Mapping[str, object]]],
) -> tuple[RuntimeOptions, BackendSetup]:
    """Find out whose answers no setup can be made with, and go without them."""
    # Each is closed before the next is made: a device may be there for one at a time.
    BackendSetup(options, registry).contexts.close()  # raises if the application is at fault
    for answer in answers:
        tried = _completed(registry.plugins, options, answer)
        try:
            BackendSetup(tried, registry).contexts.close()
        except ArmpyError as error:
            reason = f"no runtime can be set up with its answer: {error}"
            registry.plugins.complain(answer.candidate, _HOOK, Failure(reason))
        else:
            options = tried
    return options, BackendSetup(options, registry)


def _completed(
    plugins: HookPlugins, options: RuntimeOptions, answer: Answer[Mapping[str, object]]
) -> RuntimeOptions:
    """Options, with a plugin's values for those that are not set."""

    def complete() -> RuntimeOptions:
        by_name: dict[Any, object] = dict(answer.value)  # Any: until names are checked
        for name in by_name:
            if name not in CONFIGURABLE:
                raise InvalidArgumentError(
                    "this option is none that plugins answer",
                    where=str(name),
                    expected="one of " + ", ".join(CONFIGURABLE),
                )
        values = {name: _merged(options, name, value) for name, value in by_name.items()}
        # Unchanged, the options stay the same object, by which `configured_setup` knows it.
        changed = {n: v for n, v in values.items() if v != getattr(options, n)}
        return replace(options, **changed) if changed else options

    return plugins.contained(answer.candidate, _HOOK, complete, default=options)


def _shown(value: object) -> object:
    """An option as plugins see it: their changes do not reach the application's object."""
    if isinstance(value, Mapping):
        return MappingProxyType({name: _shown(item) for name, item in value.items()})
    return list(value) if isinstance(value, list) else value


def _merged(options: RuntimeOptions, name: str, value: Any) -> Any:  # Any: of any option
    """An option's value: set values stay, of mappings each entry by itself."""
    own = getattr(options, name)
    if name not in _BY_BACKEND:
        is_set = own != getattr(RuntimeOptions(), name)
        if name == "backends" and own is None:
            is_set = backend_preferences(None) is not None
        return own if is_set else value
    check_instance(value, name, Mapping)
    merged = {**value, **own}
    if name == "backend_options":
        merged |= {i: {**value[i], **own[i]} for i in own if i in value}
    return merged
