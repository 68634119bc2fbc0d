"""The extension as armpy finds it: by its entry point, and only for files that it reads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from armpy.errors import ParserError
from armpy.model import ModelOrigin
from armpy.plugins import BackendRegistry, CandidateStatus
from armpy.plugins.front_ends.registry import FrontEnds
from armpy.plugins.hooks import open_model_file
from armpy_testing.digits import MODEL as TFLITE


def imported_by(code: str, cache: Path) -> set[str]:
    """Packages of ONNX that a process has imported at its end."""
    printing = "import sys; print(*({'armpy_onnx', 'onnx'} & sys.modules.keys()))"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{printing}"],
        env={**os.environ, "ARMPY_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


@pytest.mark.slow
def test_a_tflite_file_is_loaded_without_the_extension(tmp_path: Path) -> None:
    code = f"import armpy; armpy.load({str(TFLITE)!r}, backends=['CpuRef']).close()"
    assert imported_by(code, tmp_path) == set()


@pytest.mark.slow
def test_choosing_the_front_end_does_not_import_the_onnx_package(tmp_path: Path) -> None:
    code = (
        "from armpy.plugins import BackendRegistry\n"
        "from armpy.plugins.front_ends.registry import FrontEnds\n"
        "assert 'onnx' in [f.name for f in FrontEnds(BackendRegistry.discover().plugins)]"
    )
    assert imported_by(code, tmp_path) == {"armpy_onnx"}


def test_the_extension_is_found_by_its_entry_point() -> None:
    plugins = BackendRegistry.discover().plugins
    (extension,) = [front_end for front_end in FrontEnds(plugins) if front_end.name == "onnx"]
    assert extension.candidate.distribution == "armpy-onnx"
    assert extension.candidate.status is CandidateStatus.REGISTERED
    assert plugins.problems == ()


def test_the_trust_file_decides_on_the_extension(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trust, model = tmp_path / "trust.toml", tmp_path / "model.onnx"
    model.write_bytes(b"\x08\x07\x12\x00")
    monkeypatch.setenv("ARMPY_TRUST_FILE", str(trust))
    file = open_model_file(model)
    trust.write_text("plugins = []\n")
    origin = ModelOrigin.find(file, model, BackendRegistry.discover())
    with pytest.raises(ParserError, match="the trust file does not allow the plugin 'onnx'"):
        origin.parse(file, None)
    trust.write_text('plugins = ["onnx"]\n')
    assert ModelOrigin.find(file, model, BackendRegistry.discover()).front_end.name == "onnx"
