"""The pages of the reference that are made when the site is built."""

from __future__ import annotations

import re

import pytest

from armpy.model.load_options import OPTIONS
from tests.support.pages import ROOT

pytest.importorskip("sphinx", reason="in the extra docs")
pytest.importorskip("onnx")
pytest.importorskip("armpy_onnx")

from lab.website import reference


def test_the_pages_are_made_and_have_every_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pages = {name.rpartition("/")[2]: reference.page_text(name) for name in reference.PAGES}
    assert all((ROOT / f"{name}.md").is_file() for name in reference.PAGES)
    assert {kind.__name__ for kind in reference.operations.operations()} == {
        *re.findall("^## (.*)", pages["operations"], re.M)
    }
    assert all(f"| `{name}` |" in pages["load_options"] for name in OPTIONS)
    assert "CONV_2D" in pages["tflite_operators"]
    assert "Conv (1/11" in pages["onnx"]
    monkeypatch.setitem(reference.contract.CHAPTERS, "Devices", "")
    with pytest.raises(ValueError, match=r"no chapter for .*DeviceInfo"):
        reference.contract.page()
