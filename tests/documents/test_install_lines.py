"""Lines of pages that install extensions: one form for each, and one name of each option."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from tests.support.pages import ROOT, blocks, pages

FORMS = {
    # Plain where a page needs the modules alone; with what the programs that it shows need.
    "compat": {"", "cli,onnx"},
    # Plain as what tools depend on, whose extra has the rest.
    "conformance": {"", "cli,pytest"},
    "mediapipe": {""},
    "nnapi": {"", "conformance"},
    "onnx": {""},
    # A server or cluster each.
    "serving": {"", "grpc", "kserve", "ray", "spark"},
    "tools": {"cli"},
    "torch": {""},
}
"""Extras that pages install each extension with."""

_PLACE = re.compile(
    r"(?<=[\s`])(['\"]?)\./extensions/(\w+)(?:\[([\w,]+)\])?(['\"]?)(?=[\s`]|$)", re.M
)


def wrong_places(text: str) -> list[str]:
    """Extensions that a text installs in another form, or with quotes that are not needed."""
    return [
        found[0].strip()
        for found in _PLACE.finditer(text)
        if (found[3] or "") not in FORMS[found[2]]
        or {found[1], found[4]} != {"'" if found[3] else ""}
    ]


@pytest.mark.parametrize("name", [page.relative_to(ROOT).as_posix() for page in pages()])
def test_extensions_are_installed_in_one_form(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    assert wrong_places(text) == []
    assert not re.search(r"--shapes\b", text)


def test_extras_of_the_forms_exist() -> None:
    for name, forms in FORMS.items():
        path = ROOT / "extensions" / name / "pyproject.toml"
        extras = tomllib.loads(path.read_text("utf-8"))["project"]["optional-dependencies"]
        assert {extra for form in forms for extra in form.split(",") if extra} <= extras.keys()


_INSTALLED = re.compile(
    r"(?<=[\s'\"])\.\[([\w,]+)\]|(?:\.|CHECKOUT|\$ARMPY)/extensions/(\w+)(?:\[([\w,]+)\])?(?=[\s'\"`])"
)
"""The core with extras, or an extension with or without, in a line that installs them."""

_COMMAND = re.compile(r"^(?:\$ )?armpy ([a-z][\w-]+)|\$\(armpy ([a-z][\w-]+)", re.M)


@cache
def brought(project: str, extra: str) -> frozenset[str]:
    """Projects and extras, as ``armpy[cli]``, that come with an extra of armpy or an extension."""
    folder = ROOT if project == "armpy" else ROOT / "extensions" / project.removeprefix("armpy-")
    extras = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    names = {project, f"{project}[{extra}]"}
    for text in extras["optional-dependencies"].get(extra, ()):
        if found := re.match(r"(armpy[\w-]*)\[([\w,]+)\]", text):
            names.update(*(brought(found[1], name) for name in found[2].split(",")))
    return frozenset(names)


def extension_commands() -> dict[str, str]:
    """Each command that an extension brings, and the extension."""
    commands: dict[str, str] = {}
    for name in ("compat", "conformance", "serving", "tools"):
        plugin = import_module(f"armpy_{name}.plugin")
        for command in plugin.armpy_add_cli_commands():
            commands[command.name] = f"armpy-{name}"
    return commands


def lacking(page: Path) -> set[str]:
    """What the commands that a page runs need, and none of the lines that it installs with has."""
    text = page.read_text("utf-8")
    installed = set[str]()
    for core, extension, extras in _INSTALLED.findall(text):
        project = f"armpy-{extension}" if extension else "armpy"
        installed.update(*(brought(project, extra) for extra in (core or extras).split(",")))
    if not any("-" in name for name in installed):  # no extension: a page after the first one
        return set()
    shown = "\n".join(block.text for block in blocks(page) if block.kind in ("sh", "console"))
    commands = {first or second for first, second in _COMMAND.findall(shown)}
    of_extensions = extension_commands()
    needed = {of_extensions[name] for name in commands if name in of_extensions}
    return (needed | {"armpy[cli]"} if commands else needed) - installed


@pytest.mark.parametrize("name", [page.relative_to(ROOT).as_posix() for page in pages()])
def test_commands_of_a_page_come_with_what_it_installs(name: str) -> None:
    pytest.importorskip("click", reason="click is not installed")
    assert lacking(ROOT / name) == set()
