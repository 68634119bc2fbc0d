"""Groups of commands, imported when they run, plugins' last."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from armpy import plugins  # its install lines: for errors alone
from armpy.plugins.extension_tables import COMMANDS

if TYPE_CHECKING:
    from armpy.plugins.discovery.entry_point_cache import InstalledEntryPoint

_PLUGIN_VARIABLES = ("ARMPY_DYNAMIC_BACKENDS_PATH", "ARMPY_TRUST_FILE")
"""Of the environment: plugins, or what finding them complains about, may be there."""


class OnceGroup(click.Group):
    """A group whose commands refuse an option that is given twice and takes one value.

    Notes
    -----
    Click lets the last one count: of two pictures, the first would silently not be run.
    """

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is meant, its name, and its arguments, which are checked."""
        name, command, rest = super().resolve_command(context, arguments)
        if command is not None:
            refuse_repeated(command, context, rest)
        return name, command, rest


class CommandGroup(OnceGroup):
    """A group that imports a command when it is named and lists plugins' commands last.

    Parameters
    ----------
    short_helps : mapping of str to str
        A line about each of its own commands, by name.
    of_backends : mapping of str to str
        Likewise of the commands that armpy's own backends add, as plugins do.

    Notes
    -----
    The command ``run`` is `command` in ``armpy/cli/commands/run.py``. Until a command is named, a
    line stands for it: lists of commands, in helps and completions, need no more.
    """

    def __init__(
        self,
        *arguments: Any,  # Any: click's own
        short_helps: Mapping[str, str],
        of_backends: Mapping[str, str] = MappingProxyType({}),
        **named: Any,  # Any: click's own
    ) -> None:
        super().__init__(*arguments, **named)
        self.own_names = frozenset(short_helps)
        self._of_backends = of_backends.keys()
        self._lines = {**short_helps, **of_backends}
        for name, text in self._lines.items():
            self.add_command(click.Command(name, short_help=text))

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is meant, imported; its name; and its arguments, which are checked."""
        name = arguments[0] if arguments else ""
        if self._lines.pop(name, ""):
            del self.commands[name]
            if name in self.own_names:
                module = import_module(f"armpy.cli.commands.{name}")
                self.add_command(module.command, name)
        if self.get_command(context, name) is None and name[:1] not in ("", "-"):
            self._refuse_unknown(context, name)
        return super().resolve_command(context, arguments)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """One of the group's own commands, or a plugin's."""
        return super().get_command(context, name) or self._plugins(context).get(name)

    def list_commands(self, context: click.Context) -> list[str]:
        """Names of all commands, for help."""
        return sorted({*self.commands, *self._plugins(context)})

    def _refuse_unknown(self, context: click.Context, name: str) -> None:
        """Raise click.UsageError for a command that neither armpy nor an installed plugin has."""
        refuse_missing(name)
        if name in self._of_backends:
            raise click.UsageError(
                f"the command '{name}' is missing: its backend cannot be loaded, which armpy "
                "doctor explains, or armpy's metadata is older than its code. Install armpy again"
            )
        fix = plugins.suggest_name(name, self.list_commands(context), COMMANDS, "")
        raise click.UsageError(f"No such command '{name}'. {fix}".rstrip(), context)

    def _plugins(self, context: click.Context) -> dict[str, click.Command]:
        """The commands of plugins by name; they are asked once for a command line."""
        plugins: dict[str, click.Command] | None = context.meta.get(__name__)
        if plugins is None:
            with_own = not self._of_backends <= self._lines.keys()
            plugins = context.meta[__name__] = _plugin_commands(self.own_names, with_own=with_own)
        return plugins


def _plugin_commands(own_names: frozenset[str], *, with_own: bool) -> dict[str, click.Command]:
    """The commands of plugins by name.

    Where none is installed but armpy's own backends, for whose commands lines stand unless
    `with_own`, and there is nothing to complain about either, what finds them is not imported:
    armpy's help is as quick as its own commands.
    """
    is_asked_for = any(os.environ.get(name) for name in _PLUGIN_VARIABLES)
    hooks = {
        entry.hook
        for entry in (() if is_asked_for else _entry_points())
        if with_own or entry.distribution != "armpy"
    }
    if not is_asked_for and not hooks & {"", "armpy_add_cli_commands"}:
        return {}
    from armpy.cli.plugin_commands import plugin_commands  # noqa: PLC0415

    return plugin_commands(own_names)


def _entry_points() -> Sequence[InstalledEntryPoint]:
    from armpy.plugins.discovery import entry_point_cache  # not for own commands  # noqa: PLC0415

    return entry_point_cache.installed().entry_points


def refuse_missing(name: str) -> None:
    """Refuse a command that an extension adds: call it if there is no such command.

    Parameters
    ----------
    name : str
        The command, after the name of its group if it is in one.

    Raises
    ------
    click.UsageError
        If an extension of armpy has this command; the error names it.
    """
    distribution = COMMANDS.get(name)
    if distribution is not None:
        raise click.UsageError(
            f"the command '{name}' is missing: {distribution} is not installed, or cannot be "
            f"loaded, which armpy doctor explains. Run: {plugins.install_line(distribution)}"
        )


def imported_when_run(place: str) -> Callable[[Callable[[], None]], Callable[..., object]]:
    """Make a command of a function without body: another one does the work.

    Its module is imported when the command runs, so that help and usage errors are quick.

    Parameters
    ----------
    place : str
        Module and function, ``armpy.cli.run.work:run``. It receives the options.
    """

    def decorated(described: Callable[[], None]) -> Callable[..., object]:
        def work(*arguments: Any, **named: Any) -> object:  # Any: as click has them
            module, _, name = place.partition(":")
            return getattr(import_module(module), name)(*arguments, **named)

        work.place = place  # type: ignore[attr-defined]  # for tests, which find the function
        return update_wrapper(work, described)

    return decorated


def refuse_repeated(command: click.Command, parent: click.Context, arguments: list[str]) -> None:
    """Check that no option that takes one value is given twice.

    Raises click.UsageError if one is.
    """
    settings: dict[str, Any] = {**command.context_settings}
    context = command.context_class(command, info_name=command.name, parent=parent, **settings)
    try:
        _, _, params = command.make_parser(context).parse_args([*arguments])
    except click.UsageError as error:
        if isinstance(error, click.BadOptionUsage) and not parent.resilient_parsing:
            error.ctx = context  # which the command leaves out
            raise
        return  # the command raises it itself
    for option, count in Counter(params).items():
        if not isinstance(option, click.Option) or option.multiple or option.count:
            continue
        if count > 1 and not option.is_flag:
            raise click.UsageError(
                f"{option.opts[-1]} is given {count} times, and takes one value.", context
            )
