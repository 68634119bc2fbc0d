"""What users read of ONNX: the page, and what `armpy inspect` and `armpy run` say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnx")

import onnx
import onnx.parser

from armpy_onnx.operators import converted_kinds
from armpy_onnx.refused import REFUSED
from armpy_testing.command_line import armpy_command

from .onnx_types import cases, facts, refused_versions, types_of

TEXT = """<ir_version: 9, opset_import: ["" : 18], producer_name: "mine">
graph (float[batch, 3] x) => (float[batch, 3] y) { y = Neg (x) }"""


@pytest.mark.slow
@pytest.mark.sampled(20)
@pytest.mark.parametrize("kind", facts())
def test_the_types_of_the_page_run_and_no_others(kind: str) -> None:
    assert types_of(kind) == facts()[kind]


@pytest.mark.slow
@pytest.mark.sampled(20)
@pytest.mark.parametrize("kind", sorted(facts().keys() - {"ImageDecoder", "OptionalHasElement"}))
def test_every_definition_of_an_operator_is_supported(kind: str) -> None:
    assert not cases().get(kind) or refused_versions(kind) == []


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A model with a named dimension."""
    file = tmp_path / "model.onnx"
    file.write_bytes(onnx.parser.parse_model(TEXT).SerializeToString())
    return str(file)


def test_inspect_shows_operator_sets_producer_and_names_of_dimensions(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert armpy_command(["inspect", path]) == 0
    output = capsys.readouterr().out
    for text in ("ai.onnx 18", "mine", "batch", "ONNX"):
        assert text in output


def test_every_operator_has_one_converter() -> None:
    """Of two, one would never be used."""
    kinds = converted_kinds()
    assert [kind for kind in kinds if kinds.count(kind) > 1] == []
    assert REFUSED.keys().isdisjoint(kinds)


@pytest.mark.slow
def test_without_the_package_the_error_says_what_to_install(path: str) -> None:
    program = f"""
import importlib.util, sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "onnx" else found(name, *more)
sys.modules["onnx"] = None
import armpy
try:
    armpy.load({path!r})
except armpy.errors.ParserError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert 'Run: pip install "onnx>=1.17"' in done.stdout, done.stderr
