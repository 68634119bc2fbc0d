"""Groups of commands, imported when they run, plugins' last; and messages of usage errors."""

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
from armpy.errors import (
    InvalidArgumentError,
    argument,
    did_you_mean,
    ends_in_command,
    nearest_name,
)
from armpy.plugins.extension_tables import BACKENDS, COMMANDS, MODEL_SUFFIXES, PROGRAMS

if TYPE_CHECKING:
    from armpy.plugins.discovery.entry_point_cache import InstalledEntryPoint

_PLUGIN_VARIABLES = ("ARMPY_DYNAMIC_BACKENDS_PATH", "ARMPY_TRUST_FILE")
"""Of the environment: plugins, or what finding them complains about, may be there."""


_LISTED = "Choose one that armpy --help lists"

_OPTION_WORDS = {
    "--affinity": ("pin", "place"),
    "--backends": ("accelerator", "delegate", "device", "devices", "provider", "providers"),
    "--data": ("calib", "calibrate", "calibration", "dataset", "representative", "samples"),
    "--json": ("format",),
    "--min-score": ("confidence", "score", "threshold"),
    "--runs": ("iterations", "loops", "rounds"),
    "--side-by-side": ("compare", "versus"),
    "--shape": ("dim", "dimension", "dims"),
    "--size": ("height", "width"),
}
_OPTION_SYNONYMS = {word: option for option, words in _OPTION_WORDS.items() for word in words}
"""Options by first words of names that other tools have for them."""

_COMMAND_SYNONYMS = {
    "classify": "run",
    "compare": "diff",
    "convert": "compile",
    "detect": "run",
    "infer": "run",
    "placement": "inspect",
    "predict": "run",
}
"""Commands by words that other tools have for them."""


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
            refuse_spaced_backends(command, rest)
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
    The command ``run`` is `command` in ``armpy/cli/run/command.py``. Until a command is named, a
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
                module = import_module(f"armpy.cli.{name.replace('-', '_')}.command")
                self.add_command(module.command, name)
        if self.get_command(context, name) is None:
            refuse_missing(name)
        if name in self._of_backends and self.get_command(context, name) is None:
            raise click.UsageError(
                f"the command '{name}' is missing: its backend cannot be loaded, which armpy "
                "doctor explains, or armpy's metadata is older than its code. Install armpy again"
            )
        if name and not name.startswith("-") and self.get_command(context, name) is None:
            fix = plugins.suggest_name(name, self.list_commands(context), COMMANDS, _LISTED)
            if name in _COMMAND_SYNONYMS:
                fix = f"Did you mean '{_COMMAND_SYNONYMS[name]}'?"
            if name in PROGRAMS:
                requirement, line = PROGRAMS[name]
                install = plugins.install_line(requirement)
                fix = f"It is a program of {requirement} ({install}). Run: {line}"
            raise click.UsageError(f"No such command '{name}'. {fix}", context)
        return super().resolve_command(context, arguments)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """One of the group's own commands, or a plugin's."""
        return super().get_command(context, name) or self._plugins(context).get(name)

    def list_commands(self, context: click.Context) -> list[str]:
        """Names of all commands, for help."""
        return sorted({*self.commands, *self._plugins(context)})

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


def refuse_misspelled(group: click.Group, word: str) -> None:
    """Refuse a word that is spelled like a command of a group and is not a backend's id.

    For groups that take either.

    Raises
    ------
    click.UsageError
        If it is; the error names the command, and how to install what adds it if that is missing.
    """
    elsewhere = {
        command: distribution
        for name, distribution in COMMANDS.items()
        for owner, _, command in [name.partition(" ")]
        if owner == group.name and command and command not in group.commands
    }
    is_near = nearest_name(word, [*group.commands, *elsewhere]) is not None
    # Ids of modules in directories are not known without importing them, and begin upper-case.
    if not is_near or word[:1].isupper() or word in (entry.name for entry in _entry_points()):
        return
    fix = plugins.suggest_name(word, group.commands, elsewhere, "")
    raise click.UsageError(f"There is no command and no backend '{word}'. {fix}")


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
        if isinstance(error, click.NoSuchOption):
            _refuse_single_dash(command, error.option_name, arguments)
        return  # the command says it itself
    for option, count in Counter(params).items():
        if not isinstance(option, click.Option) or option.multiple or option.count:
            continue
        if count > 1 and not option.is_flag:
            raise click.UsageError(
                f"{option.opts[-1]} is given {count} times, and takes one value. "
                "Run the command once for each, or leave the others out.",
                context,
            )


def _refuse_single_dash(command: click.Command, unknown: str, arguments: Sequence[str]) -> None:
    """Raise click.UsageError if an unknown option is the beginning of one with a single dash."""
    flags = {flag for param in command.params for flag in param.opts}
    for word in arguments:
        name = word.partition("=")[0]
        if name.startswith(unknown) and f"-{name}" in flags:
            raise click.UsageError(f"'{name}' has a single dash. Write it with two: -{word}")


def refuse_spaced_backends(command: click.Command, arguments: Sequence[str]) -> None:
    """Check that no backend's id follows the ids of ``--backends`` after a space.

    Raises click.UsageError if one does: it would be taken for a file.
    """
    flags = [flag for p in command.params if "--backends" in p.opts for flag in p.opts]
    for place, word in enumerate(arguments):
        flag, is_joined, ids = word.partition("=")
        if flag not in flags:
            continue
        rest = arguments[place + 1 :]
        if not is_joined:
            ids, rest = ",".join(rest[:1]), rest[1:]
        if rest and _is_backend(rest[0]):
            raise click.UsageError(
                f"'{rest[0]}' is a backend. Separate backends by commas: "
                f"{flag} {ids.rstrip(',')},{rest[0]}"
            )


def _is_backend(word: str) -> bool:
    """Return whether a word is a known backend's id, and no file."""
    # Ids begin upper-case: for other words, installed packages are not looked through.
    is_possible = word[:1].isupper() and not os.path.exists(word)
    return is_possible and (word in BACKENDS or word in {entry.name for entry in _entry_points()})


def usage_message(error: click.ClickException) -> str:
    """The text of an error of click, which ends with the command whose help to read.

    Or with one that the error proposes.
    """
    text = _with_fix(error)
    if ends_in_command(text):
        return text
    text += "." * (not text.endswith((".", "?", "?)")))
    context = getattr(error, "ctx", None)
    return text if context is None else f"{text} See {context.command_path} --help."


def _with_fix(error: click.ClickException) -> str:
    """The text of an error of click, reworded where click names no fix."""
    if isinstance(error, click.NoSuchOption):
        command = None if error.ctx is None else error.ctx.command
        # Of commands that take options for inputs, and say why they lack others.
        notes = getattr(getattr(command, "callback", None), "input_notes", None)
        reason = "" if notes is None else notes.without.get(error.option_name.strip("-"), "")
        if reason:
            return f"{error.message} The command {reason.replace('`', '')}."
        options = {name for param in getattr(command, "params", ()) for name in param.opts}
        fix = "Check its name, or leave it out."
        if (first := error.option_name.strip("-").partition("-")[0]) in _OPTION_SYNONYMS:
            # What is spelt like it has another purpose.
            synonym = _OPTION_SYNONYMS[first]
            meant = f"Did you mean '{synonym}'?" if synonym in options else fix
            return f"{error.message} {meant}"
        if error.ctx is not None and first.rstrip("s") in _arguments(command):
            return f"{error.message} Write it without one: {usage_line(error.ctx)}"
        return f"{error.message} {did_you_mean(error.option_name, error.possibilities or (), fix)}"
    text = error.format_message()
    if text.startswith("Got unexpected extra argument"):
        return f"{text}. {_fix_of_extra(error, text)}"
    if isinstance(error, click.MissingParameter) and error.ctx is not None:
        needed = ""
        if isinstance(error.param, click.Option):
            needed = f" {error.param.opts[0]} {error.param.make_metavar(error.ctx)}"
        return f"{text} Usage: {usage_line(error.ctx)}{needed}"
    if isinstance(error, click.BadOptionUsage) and "requires" in text:
        params = () if error.ctx is None else error.ctx.command.params
        metavars = {name: param.metavar for param in params for name in param.opts}
        value = metavars.get(error.option_name) or "VALUE"
        return f"{text} Write it after the option: {error.option_name} {value}."
    if isinstance(error, click.BadParameter) and error.param is not None:
        where = error.param.get_error_hint(error.ctx).replace("'", "")
        value, refused, _ = error.message.partition(" is not ")
        value = value.strip("'")
        expected, fix = _allowed(error.param.type, value) if refused else ("", "")
        failed = "the value is not allowed" if expected else error.message
        actual = repr(value) if expected else ""
        return str(
            InvalidArgumentError(failed, where=where, expected=expected, actual=actual, fix=fix)
        )
    return text


def _arguments(command: click.Command | None) -> list[str]:
    """Names of what a command takes without an option, in lower case and the singular."""
    params = getattr(command, "params", ())
    return [
        (param.metavar or param.name or "").strip("[].").lower().rstrip("s")
        for param in params
        if isinstance(param, click.Argument)
    ]


def usage_line(context: click.Context) -> str:
    """A command with its arguments in order, such as ``armpy run [OPTIONS] MODEL``."""
    return " ".join([context.command_path, *context.command.collect_usage_pieces(context)])


def _fix_of_extra(error: click.ClickException, text: str) -> str:
    """The fix of an argument too many: the option that it is for, as far as it shows that."""
    command = getattr(getattr(error, "ctx", None), "command", None)
    flags = {flag for param in getattr(command, "params", ()) for flag in param.opts}
    word = text.partition("(")[2].rstrip(")")
    suffix = os.path.splitext(word)[1]
    is_output = suffix[1:].isalpha() if not os.path.exists(word) else suffix == ".armpy"
    if "-o" in flags and is_output:
        return f"If it is what to write, give it as {argument('output', word)}."
    if "--model" in flags:
        return f"If it is a model's name, give it as {argument('model', word)}."
    if "--data" in flags and os.path.exists(word) and suffix not in MODEL_SUFFIXES:
        return f"If it is the data, give it as {argument('data', word)}."
    if "--side-by-side" in flags and suffix in MODEL_SUFFIXES:
        return f"To compare with it, give it as {argument('side_by_side', word)}."
    return "Leave it out, or check the options before it."


def _allowed(kind: click.ParamType[object], value: str) -> tuple[str, str]:
    """The values that a type allows, in words, and the fix; empty for other types."""
    if isinstance(kind, click.Choice):
        names = [str(choice) for choice in kind.choices]
        return f"one of {', '.join(map(repr, names))}", did_you_mean(
            value, names, "Choose one of these"
        )
    if isinstance(kind, click.IntRange | click.FloatRange):
        noun = "a whole number" if isinstance(kind, click.IntRange) else "a finite number"
        low, high = kind.min, kind.max
        if low is not None and high is not None:
            return f"{noun} from {low:g} to {high:g}", "Pass a number in this range"
        if low is not None:
            bound = f"above {low:g}" if kind.min_open else f"of {low:g} or more"
            return f"{noun} {bound}", "Pass a number in this range"
    nouns = {click.INT: "a whole number", click.FLOAT: "a number"}
    noun = nouns.get(kind, "")
    return noun, f"Pass {noun}" if noun else ""
