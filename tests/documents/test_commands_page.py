"""The list of commands in docs/reference/commands.md against the commands that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("click")

import click

from armpy.cli.app import app
from armpy.plugins.extension_tables import COMMANDS

_UNNAMED = {"conformance": {"cases"}, "profile": {"model"}}
"""Members whose names are left out: ``armpy conformance A`` and ``armpy profile MODEL``."""

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"


def listed_commands(text: str) -> dict[str, set[str]]:
    """Words that follow ``armpy`` in the table of commands, by command; without MODEL and such.

    A row may name more commands of its group: ``armpy cache list``, ``verify``, ``clear``.
    """
    commands: dict[str, set[str]] = {}
    for row in re.findall(r"^\| (`armpy .*?) \|", text, re.M):
        first, *others = re.findall(r"`([^`]+)`", row)
        _, name, *rest = first.split()
        members = commands.setdefault(name, set())
        members.update(word for word in [*rest[:1], *others] if re.fullmatch("[a-z][a-z-]+", word))
    return commands


def existing_commands() -> dict[str, set[str]]:
    """Commands of armpy, its backends and its extensions, installed or not, with their members."""
    commands: dict[str, set[str]] = {}
    context = click.Context(app)
    for name in app.list_commands(context):
        resolved = app.resolve_command(context, [name])[1]
        members = resolved.list_commands(context) if isinstance(resolved, click.Group) else ()
        commands[name] = set(members)
    for name in COMMANDS:
        group, _, member = name.partition(" ")
        commands.setdefault(group, set()).update([member] if member else [])
    return commands


def test_the_page_lists_every_command_and_no_other() -> None:
    listed, existing = listed_commands(PAGE.read_text("utf-8")), existing_commands()
    assert sorted(listed) == sorted(existing)
    for name, members in listed.items():
        assert members | _UNNAMED.get(name, set()) == existing[name], name
