"""The page of Arm NN's features names what there is."""

from __future__ import annotations

import importlib
import inspect
import re
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

import armpy
import armpy.backend
from armpy.plugins.extension_tables import COMMANDS
from armpy_testing.command_line import armpy_output

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "arm_nn_features.md"
CELLS = re.findall(r"^\| (.+?) \| (\w+) \| ?(.*?) ?\|$", PAGE.read_text("utf-8"), re.MULTILINE)
ROWS = [row for row in CELLS if row[1] != "armpy"]  # which heads the column
NAME = re.compile(r"`(\w+(?:\.\w+)+|armpy \w+)`")


@cache
def listed_commands() -> frozenset[str]:
    """Names of the commands that are installed, and of extensions'."""
    return frozenset(
        {*COMMANDS, *re.findall(r"^  (\w+) ", armpy_output(["--help"])[1], re.MULTILINE)}
    )


def found(name: str) -> object:
    """The thing that a name on the page stands for, or None."""
    if command := re.fullmatch(r"armpy (\w+)", name):
        return command[1] if command[1] in listed_commands() else None
    first, *rest = name.split(".")
    places = (armpy, armpy.backend)
    thing: object = next((getattr(place, first) for place in places if hasattr(place, first)), None)
    if first.startswith("armpy"):
        thing = importlib.import_module(first)
    for part in rest:
        if inspect.ismodule(thing):
            with suppress(ModuleNotFoundError):
                importlib.import_module(f"{thing.__name__}.{part}")
        is_field = part in getattr(thing, "__dataclass_fields__", ())
        thing = part if is_field else getattr(thing, part, None)
    return thing


@pytest.mark.parametrize(("feature", "answer", "text"), ROWS, ids=lambda text: text[:30])
def test_each_name_is_there_and_what_there_is_has_one(feature: str, answer: str, text: str) -> None:
    names = NAME.findall(text)
    for name in names:
        assert found(name) is not None, name
    if answer == "yes":
        assert names, feature
    if answer == "differs":
        assert text, feature
