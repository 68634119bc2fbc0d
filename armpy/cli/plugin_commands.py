"""Subcommands of plugins, called through the plugin boundary."""

from __future__ import annotations

import re
from collections.abc import Callable, Set
from copy import copy
from functools import partial
from typing import Any, TypeVar

import click

from armpy.cli.printer import stdout_kept
from armpy.errors import ArmpyError, PluginError
from armpy.plugins import BackendRegistry, Candidate
from armpy.plugins.discovery.candidate import RejectionError
from armpy.plugins.extension_tables import FOLDERS
from armpy.plugins.extensions import install_line
from armpy.plugins.hook_plugins import HookPlugins
from armpy.plugins.proxy.guarded_call import describe, let_user_interrupt

T = TypeVar("T")

_HOOK = "armpy_add_cli_commands"
_WORD = r"[a-z][a-z0-9]*(-[a-z0-9]+)*"
_NAME = re.compile(rf"{_WORD}( {_WORD})?")
"""A command's name, after the name of its group if another plugin has that."""


def plugin_commands(taken: Set[str]) -> dict[str, click.Command]:
    """The commands of installed plugins by name, but those whose names are taken."""
    registry = BackendRegistry.discover()
    if not registry.has_plugins(_HOOK):
        return {}
    registry.plugins.around_calls = stdout_kept
    return collect_commands(registry.plugins, taken)


def collect_commands(plugins: HookPlugins, taken: Set[str]) -> dict[str, click.Command]:
    """Ask plugins for commands, whose names may not be taken.

    What cannot be used is left out with its reason.
    """
    commands: dict[str, click.Command] = {}
    of_groups: dict[str, Candidate] = {}

    def add(candidate: Candidate, command: click.Command) -> None:
        name = command.name
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise RejectionError(
                f"its command is called {name!r}. Expected lower case with hyphens, "
                "after the name of its group if another plugin has that"
            )
        if name in taken or name in commands:
            raise RejectionError(f"the command name '{name}' is taken")
        guarded = _guarded(plugins, candidate, command)
        if not isinstance(guarded.hidden, bool):
            raise RejectionError(f"'{name}' does not set `hidden` to true or false")
        commands[name] = guarded
        if " " in name:
            of_groups[name] = candidate

    def add_to_group(name: str) -> None:
        group_name, _, own_name = name.partition(" ")
        group = commands.get(group_name)
        command = commands.pop(name)
        if not isinstance(group, click.Group):
            raise RejectionError(f"no plugin has a group '{group_name}' for its command '{name}'")
        if own_name in group.commands:
            raise RejectionError(f"the command name '{name}' is taken")
        command.name = own_name
        group.add_command(command)

    for answer in plugins.ask(_HOOK, click.Command):
        step = partial(add, answer.candidate, answer.value)
        plugins.contained(answer.candidate, _HOOK, step, default=None)
    for name, candidate in of_groups.items():
        plugins.contained(candidate, _HOOK, partial(add_to_group, name), default=None)
    return commands


def _guarded(plugins: HookPlugins, candidate: Candidate, command: click.Command) -> click.Command:
    """A command whose errors name its plugin."""
    guarded = copy(command)
    if isinstance(guarded, click.Group):
        guarded.commands = dict(guarded.commands)  # other plugins may add theirs
    short_help = command.get_short_help_str

    def get_short_help_str(limit: int = 45) -> str:
        # What raises here would spoil the help of all.
        text = partial(short_help, limit)
        return plugins.contained(candidate, _HOOK, lambda: str(text()), default="")

    guarded.get_short_help_str = get_short_help_str  # type: ignore[method-assign]
    for name in ("make_context", "invoke"):
        setattr(guarded, name, _contained(candidate, getattr(guarded, name)))
    return guarded


def _contained(candidate: Candidate, method: Callable[..., T]) -> Callable[..., T]:
    """A method of a plugin's command that raises what armpy's own commands raise."""

    def contained(*arguments: Any, **named: Any) -> T:  # Any: click's own
        try:
            return method(*arguments, **named)
        except (click.ClickException, click.exceptions.Exit, click.Abort, ArmpyError):
            raise
        except (BrokenPipeError, MemoryError):
            raise  # reported by armpy's own command line
        except SystemExit as stop:
            raise click.exceptions.Exit(_exit_code(stop)) from stop
        except BaseException as error:
            let_user_interrupt(error)
            raise PluginError(
                f"the command raised {describe(error)}",
                where=f"plugin '{candidate.label}' from {candidate.source}",
                fix=_fix(error),
            ) from error

    return contained


def _fix(error: BaseException) -> str:
    """How to install the module of armpy's that a command lacks; empty if it lacks none."""
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    distribution = str(name).partition(".")[0].replace("_", "-")
    return f"Run: {install_line(distribution)}" if distribution in FOLDERS else ""


def _exit_code(stop: SystemExit) -> int:
    """The code with which the interpreter would have exited; other objects count as it does."""
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code
    click.echo(stop.code, err=True)
    return 1
