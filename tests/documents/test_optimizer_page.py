"""docs/how_to/optimizer.md lists passes and options as they are."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from armpy import NetworkProperties, OptimizerOptions
from armpy.compiler import BUILT_IN_PASSES

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "optimizer.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_page_lists_every_pass_as_it_is() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (on|off) \|", TEXT, re.MULTILINE)
    assert {name: state == "on" for name, state in rows} == dict(BUILT_IN_PASSES)


def test_the_page_names_options_that_there_are() -> None:
    known = {field.name for kind in (OptimizerOptions, NetworkProperties) for field in fields(kind)}
    names = set(re.findall(r"(?:OptimizerOptions|NetworkProperties)\((\w+)=", TEXT))
    assert names <= known
    assert names
