"""docs/how_to/ahead_of_time.md: what the page shows is what runs."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy.cli.__main__ import main
from tests.support.networks import RELU, f32

for library in ("click", "rich", "PIL", "cryptography"):
    pytest.importorskip(library)

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "how_to" / "ahead_of_time.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(python|console)\n(.*?)```", TEXT, re.DOTALL)
NUM_BLOCKS = 6


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the models that the page names, to be in."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "examples" / "digits" / "digits_int8.tflite", "model.tflite")
    network = armpy.Network("open")
    network.output("y", network.add(RELU, network.input("x", f32(None, 224, 224, 3))))
    with armpy.Model(network) as model:
        model.prepare({"x": (1, 224, 224, 3)})
        model.save("open.onnx")  # contents decide what a file is
    return tmp_path


def test_the_pages_blocks_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(BLOCKS) == NUM_BLOCKS
    names: dict[str, object] = {"image": np.zeros((1, 16, 16, 1), np.int8), "armpy": armpy}
    for kind, text in BLOCKS:
        if kind == "python":
            exec(compile(text, str(PAGE), "exec"), names)
            continue
        for line in text.splitlines():
            program, *arguments = shlex.split(line.removeprefix("$ "))
            assert program == "armpy"
            assert main(arguments) == 0, (line, capsys.readouterr().err)
    with armpy.load("open.armpy") as model:
        assert model.is_quick
        model(np.zeros((1, 224, 224, 3), np.float32))
        assert model.is_quick
    public = str(folder / "vendor.pem.pub")
    with armpy.load("model.armpy", trusted_keys=[public], code="signed") as signed:
        assert signed.is_quick


def test_the_pages_targets_are_targets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "--target", "help"]) == 0
    known = {line.split()[0] for line in capsys.readouterr().out.splitlines()}
    named = set(re.findall(r"--target ([\w-]+)", TEXT)) - {"help"}
    named |= set(re.findall(r'"([\w-]+)"', re.findall(r"targets=\[(.*?)\]", TEXT)[0]))
    assert len(named) == 3
    assert named <= known
