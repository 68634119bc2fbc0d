"""Looks closely at one plugin with hooks; `armpy doctor` has it done in a process of its own."""

from __future__ import annotations

from armpy.cli.app import app
from armpy.cli.plugin_commands import collect_commands
from armpy.plugins.front_ends.registry import FrontEnds
from armpy.plugins.hook_plugins import HookPlugins
from armpy.plugins.hooks.checks import check_plugin
from armpy.plugins.hooks.specifications import HookSpecifications

_NAME = "plugin"


def examine_plugin(plugin: object) -> dict[str, object]:
    """Register a plugin and ask the hooks that need no model.

    The answer is of the form of JSON; ``problems`` is empty if all is well.
    """
    hooks = check_plugin(plugin)
    plugins = HookPlugins()
    plugins.register(_NAME, plugin)
    return {
        "hooks": [name for name in hooks if hasattr(HookSpecifications, name)],
        "front_ends": [
            {
                "name": front_end.name,
                "title": front_end.title,
                "suffixes": list(front_end.suffixes),
                "missing": front_end.missing_modules,
                "install": front_end.front_end.install,
            }
            for front_end in FrontEnds(plugins)
            if not front_end.is_own
        ],
        "commands": sorted(collect_commands(plugins, app.own_names, has_all_plugins=False)),
        "problems": [f"{hook}: {failure.reason}" for _, hook, failure in plugins.problems],
    }
