"""Commands that the project's code names: each exists with its options, and can be installed."""

from __future__ import annotations

import os
import re
import shlex
import tomllib

import pytest

pytest.importorskip("click")

import click

from armpy.cli.app import app
from armpy.plugins.extension_tables import BACKEND_FOLDERS, COMMANDS, FOLDERS
from armpy.plugins.extensions import install_line
from tests.support.pages import ROOT

_COMMAND = re.compile(
    r"(?:(?<=['`])|(?<=Run: ))armpy "
    r"(?P<words>[a-z][a-z-]+(?: [a-z][a-z-]+)?)(?P<rest>(?: (?:[A-Z][A-Za-z.]*|--[a-z-]+))*)"
)
"""A quoted command, or one that a text ends in."""


def problem_of(words: str, options: list[str]) -> str:
    """Why a command cannot be run; empty if it can, or if what has it is not installed."""
    name, _, member = words.partition(" ")
    context = click.Context(app)
    is_known = name in app.list_commands(context)
    command = app.resolve_command(context, [name])[1] if is_known else None
    if command is None:
        return "" if name in COMMANDS else f"there is no command '{name}'"
    if isinstance(command, click.Group) and member:
        command = command.get_command(context, member) or command
    candidates = [command]
    if isinstance(command, click.Group):  # whose options may be those of its first command
        candidates += command.commands.values()
    flags = {flag for c in candidates for param in c.params for flag in param.opts}
    missing = [option for option in options if option not in flags]
    return f"'{words}' has no option {missing[0]}" if missing else ""


def test_commands_in_the_code_exist_with_their_options() -> None:
    count = 0
    for place in ("armpy", "extensions/*/armpy_*", "backends/*/armpy_*"):
        for path in (path for folder in ROOT.glob(place) for path in folder.rglob("*.py")):
            for found in _COMMAND.finditer(path.read_text("utf-8")):
                count += 1
                options = [o for o in re.findall(r"--[a-z-]+", found["rest"]) if o != "--help"]
                assert not problem_of(found["words"], options), f"{path}: {found[0]}"
    assert count > 20
    assert problem_of("inspct", []) == "there is no command 'inspct'"
    assert problem_of("inspect", ["--no-such"]) == "'inspect' has no option --no-such"


@pytest.mark.parametrize("distribution", [*FOLDERS, *BACKEND_FOLDERS])
def test_what_installs_a_distribution_is_there(distribution: str) -> None:
    program, action, *places = shlex.split(install_line(distribution).replace(os.sep, "/"))
    assert (program, action) == ("pip", "install")
    for place in places:
        folder, _, extras = place.removesuffix("]").partition("[")
        project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text("utf-8"))["project"]
        known = {*project.get("optional-dependencies", {})}
        assert {*filter(None, extras.split(","))} <= known
