"""docs/how_to/executions.md is followed from top to bottom: what the page shows is what runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "how_to" / "executions.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_pages_blocks_run(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert len(blocks) == 9
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert "deadline" in capsys.readouterr().out
    assert names["names"], "the callback was told of no value"
