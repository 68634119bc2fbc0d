"""The pages of the reference that are made when the site is built."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from armpy.model.load_options import OPTIONS

pytest.importorskip("sphinx", reason="in the extra docs")
pytest.importorskip("onnx")
pytest.importorskip("armpy_onnx")

from lab.website import reference


def test_the_pages_are_made_and_have_every_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference.write(tmp_path)
    pages = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}
    assert pages.keys() == reference.PAGES.keys()
    assert {kind.__name__ for kind in reference.operations.operations()} == {
        *re.findall("^## (.*)", pages["operations.md"], re.M)
    }
    assert all(f"| `{name}` |" in pages["load_options.md"] for name in OPTIONS)
    assert "CONV_2D" in pages["tflite_operators.md"]
    assert "Conv (1/11" in pages["onnx.md"]
    monkeypatch.setitem(reference.contract.CHAPTERS, "Devices", "")
    with pytest.raises(ValueError, match=r"no chapter for .*DeviceInfo"):
        reference.contract.page()
