"""Where two files of one network part."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("onnx")

import onnx
import onnx.parser

from armpy.cli.__main__ import main

TEXT = """<ir_version: 9, opset_import: ["" : 18]>
graph (float[1, 3, 5, 4] x) => (float[1, 2, 5, 4] y)
<float[2, 3, 1, 1] w = {1.0, -2.0, 0.5, 0.25, 3.0, 1.5}> {
  [first] a = Conv (x, w)
  [second] b = Relu (a)
  [third] y = Add (b, b)
}"""
LAST = """<ir_version: 9, opset_import: ["" : 18]>
graph (float[1, 5, 4, 3] x) => (float[1, 5, 4, 2] y)
<float[3, 2] w = {1.0, 0.25, -2.0, 3.0, 0.5, 1.5}> {
  [product] a = MatMul (x, w)
  [relu] b = Relu (a)
  [sum] y = Add (b, b)
}"""


def _saved(path: Path, text: str) -> str:
    """A file of a model."""
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    return str(path)


def test_files_with_other_layouts_and_layers_are_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", _saved(tmp_path / "a.onnx", TEXT), _saved(tmp_path / "b.onnx", LAST)]) == 0
    assert "no difference" in capsys.readouterr().out


def test_the_layer_is_named_behind_which_files_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = LAST.replace("Relu (a)", "Neg (a)")
    assert (
        main(["diff", _saved(tmp_path / "a.onnx", TEXT), _saved(tmp_path / "b.onnx", other)]) == 1
    )
    output = capsys.readouterr().out
    assert "difference: layer 'second" in output
    assert "the same: layer 'first" in output
    assert "'product" in output


def test_a_backend_or_another_file_is_needed(tmp_path: Path) -> None:
    path = _saved(tmp_path / "a.onnx", TEXT)
    assert main(["diff", path]) == 2
    assert main(["diff", path, path, "--backend", "CpuRef"]) == 2
