"""Engines' modules are importable from armpy for one process."""

from __future__ import annotations

import subprocess
import sys
import sysconfig

import pytest

import armpy_compat
from armpy_compat.module_aliases import AliasFinder, install_aliases


@pytest.fixture(autouse=True)
def _undo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))


def test_an_alias_is_the_module_itself_and_leaves_its_own_names() -> None:
    install_aliases({"other_engine": "json", "other_engine.decoder": "json.decoder"})
    import json

    import other_engine  # type: ignore[import-not-found]
    import other_engine.decoder  # type: ignore[import-not-found]

    assert other_engine is json
    assert other_engine.decoder is json.decoder
    assert json.__spec__ is not None
    assert json.__spec__.name == json.__package__ == "json"


def test_an_alias_is_installed_once() -> None:
    install_aliases({"other_engine": "json"})
    install_aliases({"other_engine": "json"})
    assert sum(isinstance(finder, AliasFinder) for finder in sys.meta_path) == 1


def test_a_module_that_is_already_imported_is_refused() -> None:
    with pytest.raises(ImportError, match=r"sysconfig is already imported from .*sysconfig"):
        install_aliases({"sysconfig": "json"})
    assert sys.modules["sysconfig"] is sysconfig


def test_installing_everything_leaves_an_installed_tensorflow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("onnxruntime", "ai_edge_litert", "tflite_runtime", "pyarmnn"):
        for module in [module for module in sys.modules if module.partition(".")[0] == name]:
            del sys.modules[module]
    monkeypatch.setattr("armpy_compat.find_spec", lambda name: name)
    armpy_compat.install()
    assert _names() >= {"onnxruntime", "pyarmnn", "ai_edge_litert"}
    assert "tensorflow" not in _names()
    monkeypatch.setattr("armpy_compat.find_spec", lambda name: None)
    armpy_compat.install()
    assert "tensorflow" in _names()


def _names() -> set[str]:
    """Names that are answered with other modules."""
    finders = [finder for finder in sys.meta_path if isinstance(finder, AliasFinder)]
    return {name for finder in finders for name in finder.targets}


def test_installing_imports_neither_armpy_nor_numpy() -> None:
    program = (
        "import sys, armpy_compat as compat\n"
        "compat.install_as_pyarmnn()\n"
        "compat.install_as_onnxruntime()\n"
        "compat.install_as_tflite_runtime()\n"
        "print(sorted({'numpy', 'armpy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
