"""docs/how_to/preparation.md: what the page shows is what runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "how_to" / "preparation.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_pages_blocks_run(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert len(blocks) == 2
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert capsys.readouterr().out.startswith("1 layers: ")
