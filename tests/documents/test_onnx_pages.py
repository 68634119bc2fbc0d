"""The pages about ONNX are up to date, and list each deviation that is tolerated or refused."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnx")

from extensions.onnx.tests.onnx_deviations import deviations, refusals

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "onnx_files.md"


@pytest.mark.slow
def test_the_page_is_up_to_date() -> None:
    script = ROOT / "scripts" / "document_onnx.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_page_lists_all_deviations() -> None:
    tables = PAGE.read_text("utf-8").split("\n## ")
    rows = [re.findall(r"^\| ([^|]+?) \|", table, re.MULTILINE)[1:] for table in tables]
    tolerated, refused = (set(found) - {"---"} for found in rows[1:3])
    assert {case.kind for case in deviations()} <= tolerated
    assert set(refusals()) <= refused
