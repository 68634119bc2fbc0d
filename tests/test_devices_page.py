"""docs/how_to/devices.md is followed from top to bottom: what the page shows is what runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from armpy.devices import BackendCosts, FigureSource

PAGE = Path(__file__).parents[1] / "docs" / "how_to" / "devices.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_pages_blocks_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert len(blocks) == 4
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    shown = capsys.readouterr().out
    assert "CpuRef CPU_REFERENCE" in shown
    assert "left out" in shown
    costs = names["costs"]
    assert isinstance(costs, BackendCosts)
    assert costs.source is FigureSource.MEASURED
