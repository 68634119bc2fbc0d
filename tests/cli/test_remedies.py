"""Commands that messages name: each exists with its options, and lines that install are right."""

from __future__ import annotations

import ast
import os
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("click")
pytest.importorskip("rich")

import click

from armpy.cli.app import app
from armpy.plugins.extension_tables import BACKEND_FOLDERS, COMMANDS, FOLDERS
from armpy.plugins.extensions import install_line
from armpy_testing.command_line import Cli
from armpy_testing.digits import MODEL

ROOT = Path(__file__).parents[2]

_COMMAND = re.compile(
    r"(?:(?<=['`(])|(?<=Run: )|(?<=run )|(?<=with )|(?<=by )|(?<=again: ))armpy "
    r"(?P<words>[a-z][a-z-]+(?: [a-z][a-z-]+)?)(?P<rest>(?: (?:[A-Z][A-Za-z.]*|--[a-z-]+))*)"
)
"""A command in a message: where a name, an option or the end of a quotation follows."""


def commands_in(text: str) -> list[tuple[str, list[str]]]:
    """Commands that a text names, with their options."""
    return [
        (found["words"], re.findall(r"--[a-z-]+", found["rest"]))
        for found in _COMMAND.finditer(text)
    ]


def messages() -> Iterator[tuple[Path, str]]:
    """Texts of the project's packages that are no docstrings."""
    for place in ("armpy", "extensions/*/armpy_*", "backends/*/armpy_*"):
        for folder in ROOT.glob(place):
            for path in folder.rglob("*.py"):
                tree = ast.parse(path.read_text("utf-8"))
                prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
                for node in ast.walk(tree):
                    if id(node) in prose or not isinstance(node, ast.Constant):
                        continue
                    if isinstance(node.value, str):
                        yield path, node.value


def problem_of(words: str, options: list[str]) -> str:
    """Why a command cannot be run; empty if it can, or if what has it is not installed."""
    name, _, member = words.partition(" ")
    context = click.Context(app)
    command = app.resolve_command(context, [name])[1] if name in known_commands() else None
    if command is None:
        return "" if name in COMMANDS else f"there is no command '{name}'"
    if isinstance(command, click.Group) and member:
        command = command.get_command(context, member) or command
    candidates = [command]
    if isinstance(command, click.Group):  # whose options may be those of its first command
        candidates += command.commands.values()
    options_there = {
        flag for candidate in candidates for param in candidate.params for flag in param.opts
    }
    missing = [option for option in options if option not in options_there]
    return f"'{words}' has no option {missing[0]}" if missing else ""


def known_commands() -> set[str]:
    """Commands that can be run here."""
    return set(app.list_commands(click.Context(app)))


def pip_problem(line: str) -> str:
    """Why a line of pip cannot be run in this checkout; empty if it can."""
    program, action, *places = shlex.split(line.replace(os.sep, "/"))
    assert (program, action) == ("pip", "install")
    for place in places:
        folder, bracket, extras = place.removesuffix("]").partition("[")
        path = (ROOT / folder / "pyproject.toml").resolve()
        if not path.is_file():
            return f"there is no project in {folder}"
        project = tomllib.loads(path.read_text("utf-8"))["project"]
        missing = set(extras.split(",") if bracket else ()) - set(
            project.get("optional-dependencies", {})
        )
        if missing:
            return f"{folder} has no extra {sorted(missing)[0]}"
    return ""


def test_commands_in_messages_exist_with_their_options() -> None:
    count = 0
    for path, text in messages():
        for words, options in commands_in(text):
            count += 1
            assert not problem_of(words, options), f"{path}: {text}"
    assert count > 20


_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")

_COMMAND_LINES = {"cli", "commands", "kserve", "__main__.py", "installation.py"}
"""Folders and files of commands, whose texts only command lines get."""


def options_for_python(path: Path, text: str) -> list[str]:
    """Options in a text that callers in Python get, too, without those of a whole command."""
    is_command_line = not _COMMAND_LINES.isdisjoint(path.parts) or "pytest" in text
    if is_command_line or path.name in ("pytest_plugin.py", "test_conformance.py"):
        return []
    return _OPTION.findall(re.sub(r"(armpy|pip) [a-z][\w -]* --.*", "", text))


def test_messages_for_python_name_no_options_of_commands() -> None:
    wrong = [(path, text) for path, text in messages() if options_for_python(path, text)]
    allowed = {
        "extension_tables.py",  # command lines of programs, which the command line names
        "load_options.py",  # the table of options itself
        "cluster_resources.py",  # a command line of Ray's
        "judging.py",  # the command that tries a model again
    }
    assert not [(path, text) for path, text in wrong if path.name not in allowed]


@pytest.mark.parametrize("distribution", [*FOLDERS, *BACKEND_FOLDERS])
def test_what_installs_a_distribution_is_there(distribution: str) -> None:
    if distribution in ("armpy-numba-acc", "armpy-reference"):
        pytest.skip("it comes with armpy")
    assert not pip_problem(install_line(distribution))


@pytest.mark.parametrize("backend", ["OpenVino", "OrtCudaa", "litert"])
def test_the_line_in_the_error_about_a_backend_installs_it(cli: Cli, backend: str) -> None:
    error = cli.err("run", MODEL, "--backends", backend, code=1)
    found = re.search(r"Run: (pip install .*)$", error)
    if found is None:
        pytest.skip("the backend is installed")
    assert not pip_problem(found[1])


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("runn", "run"), ("quantise", "quantize"), ("reprot", "report"), ("comple", "compile")],
)
def test_the_command_that_an_error_proposes_has_help(cli: Cli, wrong: str, right: str) -> None:
    found = re.search(r"Did you mean '([^']+)'", cli.err(wrong))
    assert found is not None
    assert found[1] == right
    if right in known_commands():
        cli.out(found[1], "--help")


def test_wrong_remedies_are_noticed() -> None:
    assert options_for_python(Path("tools/find.py"), "Name it with --image") == ["--image"]
    assert not options_for_python(Path("tools/find.py"), "Run armpy compile MODEL --sign KEY")
    assert commands_in("List them with 'armpy inspect MODEL --layers'") == [
        ("inspect", ["--layers"])
    ]
    assert problem_of("inspct", []) == "there is no command 'inspct'"
    assert problem_of("inspect", ["--no-such"]) == "'inspect' has no option --no-such"
    assert pip_problem("pip install ./extensions/nothing") == (
        "there is no project in ./extensions/nothing"
    )
    assert pip_problem("pip install './extensions/onnx[nope]'") == (
        "./extensions/onnx has no extra nope"
    )
