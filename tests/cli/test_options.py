"""Options of all commands together: one thing is called alike everywhere, and given once."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path

import click
import pytest

from armpy.cli.app import app
from armpy.cli.inputs.request import InputRequest
from armpy.cli.load_request import COMMAND_OPTIONS
from armpy.cli.options import BACKENDS, OUTPUT, RUNS, SECONDS, SHAPES, THREADS

pytest.importorskip("click")

ROOT = Path(__file__).parents[2]
DIGITS = str(ROOT / "examples" / "digits" / "digits_int8.tflite")

_ALIASES = (BACKENDS, OUTPUT, RUNS, SECONDS, SHAPES, THREADS)

_APART = {
    ("diff", "--backend"): "names the backend that may be wrong",
    ("conformance accuracy", "--backend"): "names the backend that is tried out",
    ("conformance crash", "--backend"): "names the backend that is tried out",
    ("conformance fuzz", "--backend"): "names the backend that is tried out",
    ("conformance nnapi-vectors", "--backend"): "names the backend that is tried out",
    ("conformance random-graphs", "--backend"): "names the backend that is tried out",
}
"""Options whose name is another's alias elsewhere, and why."""

_OF_OTHER_TYPES = {
    ("benchmark", "--num-threads"): "several counts are measured beside each other",
    ("benchmark", "--threads"): "several counts are measured beside each other",
    ("benchmark", "--batch"): "several sizes are measured beside each other",
    ("check-server", "--model"): "one model of a server, as 'cache' takes several",
    ("pictures", "--image"): "a pattern too; it may be repeated",
    ("run", "--image"): "as of pictures, which it names for several",
}
"""Options that take more than those of the same name, and why."""


_GATHERED = {
    "load_request": {
        "model",
        "backend_options",
        "dynamic_backends_path",
        *COMMAND_OPTIONS,
    },
    "picture": {"resize", "value_range", "mean", "std"},
}
"""Options that come as one value, by its name."""


_OF_INPUTS = {field.name for field in dataclasses.fields(InputRequest)}
"""Options that come as one value, `inputs`, but for those that a command declares itself."""


@cache
def _options() -> tuple[tuple[str, click.Option], ...]:
    """All options with the command that has them."""
    return tuple(_options_below(app, ()))


def _options_below(
    command: click.Command, path: tuple[str, ...]
) -> Iterator[tuple[str, click.Option]]:
    for option in command.params:
        if isinstance(option, click.Option):
            yield " ".join(path), option
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            _, child, _ = command.resolve_command(context, [name])
            assert child is not None, f"{name} is listed, but cannot be had"
            yield from _options_below(child, (*path, name))


def _commands_below(
    command: click.Command, path: tuple[str, ...]
) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        _, child, _ = command.resolve_command(context, [name])
        assert child is not None, f"{name} is listed, but cannot be had"
        yield from _commands_below(child, (*path, name))


def _gathered(command: click.Command) -> set[str]:
    """What the work is given: some options come as one value."""
    names = {str(param.name) for param in command.params if param.expose_value}
    for whole, parts in _GATHERED.items():
        if parts <= names:
            names = names - parts | {whole}
    return names - _OF_INPUTS


def _parameters(command: click.Command) -> Mapping[str, inspect.Parameter]:
    """Parameters of the function that does a command's work, which may be imported for it."""
    assert command.callback is not None
    if (place := getattr(command.callback, "place", None)) is None:
        return inspect.signature(inspect.unwrap(command.callback)).parameters
    module, _, name = place.partition(":")
    return inspect.signature(getattr(import_module(module), name)).parameters


def _click_type(option: click.Option) -> str:
    """Click's type that an option's type is, or is made of."""
    types = type(option.type).__mro__
    return next(kind.__name__ for kind in types if kind.__module__.startswith("click."))


@pytest.mark.parametrize("aliases", _ALIASES, ids=" ".join)
def test_an_option_is_taken_under_all_its_names(aliases: tuple[str, ...]) -> None:
    commands = 0
    for command, option in _options():
        known = [name for name in aliases if name in option.opts]
        if not known or any((command, name) in _APART for name in known):
            continue
        apart = [name for name in aliases if (command, name) in _APART]
        assert sorted([*known, *apart]) == sorted(aliases), f"armpy {command}"
        commands += 1
    assert commands >= 2


@pytest.mark.parametrize("name", [name for name, _ in _commands_below(app, ())])
def test_the_work_takes_what_the_options_are(name: str) -> None:
    command = dict(_commands_below(app, ()))[name]
    parameters = _parameters(command)
    passed = _gathered(command)
    of_click = {"context", "settings", "inputs", *_OF_INPUTS}
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        assert passed >= {*parameters} - of_click - {"options", "given", "choices"}
    else:
        assert passed == {*parameters} - of_click


def test_options_of_one_name_have_one_type() -> None:
    kinds: dict[str, dict[tuple[str, bool, bool, int], list[str]]] = {}
    for command, option in _options():
        for name in option.opts:
            if (command, name) in _OF_OTHER_TYPES or (command, name) in _APART:
                continue
            kind = (_click_type(option), option.is_flag, option.multiple, option.nargs)
            kinds.setdefault(name, {}).setdefault(kind, []).append(command)
    assert len(kinds) > 50
    assert {name: types for name, types in kinds.items() if len(types) > 1} == {}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--backends", "A,B"],
        ["--backend", "A,B"],
        ["--backend", "A", "--backend", "B"],
        ["--backends=A", "--backend", " B "],
    ],
    ids=" ".join,
)
def test_backends_are_listed_at_once_or_one_by_one(arguments: list[str]) -> None:
    _, command, _ = app.resolve_command(click.Context(app), ["inspect"])
    assert command is not None
    context = command.make_context("inspect", [*arguments, __file__])
    assert context.params["backends"] == ("A", "B")
