"""Pages for those who come from another runtime name what there is, here and there."""

from __future__ import annotations

import re

import pytest

import armpy
from armpy import ops
from tests.support.pages import ROOT

TEXTS = {
    name: (ROOT / "docs" / "how_to" / f"from_{name}.md").read_text("utf-8")
    for name in ("litert", "onnxruntime", "pyarmnn")
}
HERE = {
    "armpy": armpy,
    "model": armpy.Model,
    "runtime": armpy.Runtime,
    "execution": armpy.Execution,
    "optimized": armpy.OptimizedNetwork,
    "net": armpy.Network,
    "ops": ops,
    "DataType": armpy.DataType,
}


def second_cells(text: str) -> str:
    """What stands in a table's second column, as one text."""
    return "\n".join(re.findall(r"^\| [^|]* \| (.*) \|$", text, re.M))


@pytest.mark.parametrize("page", ["litert", "onnxruntime", "pyarmnn"])
def test_what_stands_on_the_right_is_there(page: str) -> None:
    names = re.findall(r"\b(\w+)\.(\w+)", second_cells(TEXTS[page]))
    known = [(owner, name) for owner, name in names if owner in HERE]
    assert len(known) > 10
    missing = [f"{owner}.{name}" for owner, name in known if not hasattr(HERE[owner], name)]
    assert missing == []


def test_what_stands_on_the_left_is_in_onnx_runtime() -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    text = TEXTS["onnxruntime"]
    names = re.findall(r"`session\.(\w+)", text)
    assert names
    for name in names:
        assert hasattr(onnxruntime.InferenceSession, name), name
    for name in re.findall(r"`SessionOptions\.(\w+)`", text):
        assert hasattr(onnxruntime.SessionOptions, name), name


def test_what_stands_on_the_left_is_in_litert() -> None:
    interpreter = pytest.importorskip("ai_edge_litert.interpreter").Interpreter
    text = TEXTS["litert"]
    names = re.findall(r"`((?:get|set|resize|reset|allocate)_\w+)\(", text)
    assert len(names) > 5
    for name in names:
        assert hasattr(interpreter, name), name
