"""The site's pages of classes against the names that armpy offers."""

from __future__ import annotations

import re
from pathlib import Path

import armpy

ROOT = Path(__file__).parents[2]


def test_the_page_of_classes_has_every_public_name_once_and_load_first() -> None:
    page = (ROOT / "docs" / "reference" / "api" / "armpy.rst").read_text("utf-8")
    names = re.findall(r"^\.\. auto(?:class|function|data):: (\w+)$", page, re.M)
    assert names[:2] == ["load", "Model"]
    assert sorted(names) == sorted(set(armpy.__all__) - {"ops"})
