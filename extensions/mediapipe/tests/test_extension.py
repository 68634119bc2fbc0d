"""The extension as armpy finds it: by its entry point, and named where it is missing."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

import armpy
from armpy.errors import UnsupportedOperatorError
from armpy.plugins import install_line

from .custom_files import custom_file


def test_the_operators_are_found_by_the_entry_point() -> None:
    file = custom_file("TransformLandmarks", [(1, 2, 3), (1, 4, 4)], [(1, 2, 3)], b"")
    with armpy.load(file, backends=["CpuRef"]) as model:
        assert model.runtime.registry.plugins.problems == ()


def test_importing_the_plugin_imports_no_conversion() -> None:
    code = "import sys, armpy_mediapipe.plugin; assert 'armpy_mediapipe.images' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_without_the_extension_an_error_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("armpy.model.model_files.custom_operators", lambda plugins: {})
    file = custom_file("TransformLandmarks", [(1, 2, 3), (1, 4, 4)], [(1, 2, 3)], b"")
    with pytest.raises(
        UnsupportedOperatorError,
        match=r"custom 'TransformLandmarks' x1\. Run: "
        + re.escape(install_line("armpy-mediapipe")),
    ):
        armpy.load(file, backends=["CpuRef"])
