"""Checks that a plugin implements hooks as they are specified."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from armpy.errors import did_you_mean
from armpy.plugins.discovery.candidate import RejectionError
from armpy.plugins.hooks.specifications import PROJECT, HookSpecifications


def check_plugin(plugin: object) -> dict[str, str]:
    """The hooks that a plugin implements, by the names of its attributes.

    Raises
    ------
    RejectionError
        If it implements none, or one that there is not, or in a way that cannot be called.
    BaseException
        Whatever the plugin raises.
    """
    if inspect.isclass(plugin):
        raise RejectionError(f"it is the class {plugin.__name__}. Name a module or an object")
    hooks = {}
    for name in dir(plugin):
        options = _hook_options(plugin, name)
        if options is None:
            continue
        if options["hookwrapper"] or options["wrapper"]:
            raise RejectionError(f"its {name} is a wrapper, which could change others' answers")
        hook = str(options["specname"] or name)
        specification = getattr(HookSpecifications, hook, None)
        if hook.startswith("_") or specification is None:
            if options["optionalhook"]:  # of another version
                continue
            suggestion = did_you_mean(hook, HOOKS)
            raise RejectionError(f"its {name} is not a hook. {suggestion}")
        _check_arguments(name, getattr(plugin, name), specification)
        hooks[name] = hook
    if not hooks:
        raise RejectionError("it implements no hook: nothing in it is marked with hookimpl")
    return hooks


HOOKS = tuple(name for name in vars(HookSpecifications) if name.startswith("armpy_"))
"""The names of all hooks."""


def _hook_options(plugin: object, name: str) -> dict[str, object] | None:
    """Return the options that `hookimpl` has noted on a member; None if it has not marked it."""
    if name.startswith("__"):
        return None
    # Statically: to look at a plugin's properties would run them.
    member = inspect.getattr_static(plugin, name, None)
    member = getattr(member, "__func__", member)  # of a static method
    options = getattr(member, f"{PROJECT}_impl", None) if inspect.isfunction(member) else None
    return options if isinstance(options, dict) else None


def _check_arguments(
    name: str, function: Callable[..., object], specification: Callable[..., object]
) -> None:
    known = [*inspect.signature(specification).parameters][1:]
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name not in known and parameter.default is parameter.empty:
            expected = ", ".join(known) or "no arguments"
            raise RejectionError(f"its {name} takes '{parameter.name}'. Expected {expected}")
