"""The page about ONNX files lists each deviation that is tolerated or refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("onnx")

from extensions.onnx.tests.onnx_deviations import deviations, refusals

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "onnx_files.md"


def test_the_page_lists_all_deviations() -> None:
    tables = PAGE.read_text("utf-8").split("\n## ")
    rows = [re.findall(r"^\| ([^|]+?) \|", table, re.MULTILINE)[1:] for table in tables]
    tolerated, refused = (set(found) - {"---"} for found in rows[1:3])
    assert {case.kind for case in deviations()} <= tolerated
    assert set(refusals()) <= refused
