"""docs/how_to/starts.md names targets that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("click")
from armpy_testing.command_line import armpy_command

TEXT = (Path(__file__).parents[2] / "docs" / "how_to" / "starts.md").read_text("utf-8")


def test_the_pages_targets_are_targets(capsys: pytest.CaptureFixture[str]) -> None:
    assert armpy_command(["compile", "--target", "help"]) == 0
    known = {line.split()[0] for line in capsys.readouterr().out.splitlines()}
    named = set(re.findall(r"--target ([\w-]+)", TEXT)) - {"help"}
    named |= set(re.findall(r'"([\w-]+)"', re.findall(r"targets=\[(.*?)\]", TEXT)[0]))
    assert len(named) == 3
    assert named <= known
