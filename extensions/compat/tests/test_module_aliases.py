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


_ENGINES = {"onnxruntime", "tflite_runtime", "ai_edge_litert", "pyarmnn"}


@pytest.mark.parametrize(
    ("installed", "answered", "answered_with_absent"),
    [
        (set(), {*_ENGINES, "tensorflow"}, {*_ENGINES, "tensorflow"}),
        ({"onnxruntime"}, {"onnxruntime"}, _ENGINES),
        ({"ai_edge_litert", "pyarmnn"}, {"ai_edge_litert", "pyarmnn"}, _ENGINES),
        ({"tflite_runtime", "tensorflow"}, {"tflite_runtime"}, _ENGINES),
        ({"tensorflow"}, set(), _ENGINES),
    ],
)
def test_installing_leaves_tensorflow_where_an_engine_is_installed_and_absent_ones_if_asked(
    installed: set[str],
    answered: set[str],
    answered_with_absent: set[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in [name for name in sys.modules if name.partition(".")[0] in _ENGINES]:
        del sys.modules[module]
    monkeypatch.setattr("armpy_compat.find_spec", lambda name: name if name in installed else None)
    armpy_compat.install(with_absent=False)
    assert {name for name in _names() if "." not in name} == answered
    armpy_compat.install()
    assert {name for name in _names() if "." not in name} == answered_with_absent


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
