"""The page of Arm NN's names says what there is, and leaves out nothing of the contract."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import armpy
import armpy.backend
import armpy.graph
from armpy.plugins import BackendRegistry

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "arm_nn_names.md"
TEXT = PAGE.read_text(encoding="utf-8")
WHOLE = (
    "IBackendInternal",
    "IBackendContext",
    "ILayerSupport",
    "IWorkloadFactory",
    "IMemoryManager",
)
"""Classes all of whose members are on the page."""


def class_of(name: str) -> type:
    """A class that the page names."""
    places = (armpy.backend, armpy.graph, armpy, armpy.ops)
    kind = {"BackendRegistry": BackendRegistry}.get(name)
    kind = kind or next(filter(None, (getattr(place, name, None) for place in places)), None)
    assert inspect.isclass(kind), name
    return kind


def named() -> Iterator[tuple[str, str, str]]:
    """Class, member and parameters (or "") of what follows Arm NN's names."""
    for kind, text in re.findall(r"^`(\w+)`, in snake case:(.*?)[.]$", TEXT, re.M | re.S):
        for code in re.findall(r"`(\w+)\(([^`]*)\)`", text):
            yield kind, *code
    kind = ""
    for paragraph in re.split(r"\n(?=- |\n)", TEXT):
        text = " ".join(paragraph.split())
        if heading := re.fullmatch(r"(?:Other members of `(\w+)`|Members):", text):
            kind = heading[1] or ""
        elif entry := re.fullmatch(r"- `.*?: (`[^;]*)(?:; .*)?", text):
            for code in re.findall(r"`([^`]+)`", entry[1]):
                match = re.fullmatch(r"(?:(\w+)\.)?(\w+)(?:\((.*)\))?", code)
                assert match, code
                if match[1] or kind:
                    yield match[1] or kind, match[2], match[3] or ""


NAMED = sorted(set(named()))


@pytest.mark.parametrize(("kind", "member", "parameters"), NAMED)
def test_what_is_named_is_there_with_its_parameters(
    kind: str, member: str, parameters: str
) -> None:
    if hasattr(armpy.backend, member):  # a function or class in the place of a method
        return
    owner = class_of(kind)
    fields = {f.name for f in dataclasses.fields(owner)} if dataclasses.is_dataclass(owner) else ()
    assert hasattr(owner, member) or member in fields
    if parameters:
        signature = inspect.signature(getattr(owner, member)).parameters.values()
        known = [parameter for parameter in signature if parameter.name != "self"]
        shown = parameters.split(", ")
        assert [parameter.name for parameter in known[: len(shown)]] == shown
        assert all(parameter.default is not parameter.empty for parameter in known[len(shown) :])


@pytest.mark.parametrize("name", WHOLE)
def test_every_member_is_on_the_page(name: str) -> None:
    members = [member for member in vars(class_of(name)) if not member.startswith("_")]
    assert [member for member in members if f"`{member}" not in TEXT] == []
