"""Names that an engine's modules lack are noted when a program asks for them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from armpy_compat.trial.imports import ImportWatcher, is_importable

LAZY = """
def __getattr__(name):
    if name == "there":
        return 1
    raise AttributeError(name)
"""


@pytest.fixture
def missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Noted names; a package of an engine's name can be imported, with a module of it."""
    package = tmp_path / "tflite_runtime"
    package.mkdir()
    (package / "__init__.py").write_text("class Known:\n    pass\n")
    (package / "interpreter.py").touch()
    (package / "lazy.py").write_text(LAZY)
    noted: list[str] = []
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    watcher = ImportWatcher({}, noted.append)
    monkeypatch.setattr(sys, "meta_path", [watcher, *sys.meta_path])
    return noted


def test_names_modules_and_attributes_are_noted(missing: list[str]) -> None:
    import tflite_runtime  # type: ignore[import-not-found]

    assert not hasattr(tflite_runtime, "absent")
    assert not hasattr(tflite_runtime, "_private")
    assert not hasattr(tflite_runtime.Known(), "method")
    with pytest.raises(ImportError, match="cannot import name 'Other'"):
        from tflite_runtime import Other  # noqa: F401
    with pytest.raises(ModuleNotFoundError, match=r"tflite_runtime\.gpu"):
        import_module("tflite_runtime.gpu")
    assert [*dict.fromkeys(missing)] == [
        "tflite_runtime.absent",
        "Known.method",
        "tflite_runtime.Other",
        "tflite_runtime.gpu",
    ]


def test_a_submodule_that_turns_out_to_be_there_is_not_missing(missing: list[str]) -> None:
    from tflite_runtime import interpreter

    assert interpreter.__name__ == "tflite_runtime.interpreter"
    assert missing == ["tflite_runtime.interpreter"]  # asked of the package before its import
    assert [name for name in missing if not is_importable(name)] == []


def test_a_name_that_a_module_makes_when_asked_is_not_missing(missing: list[str]) -> None:
    lazy = import_module("tflite_runtime.lazy")
    assert lazy.there == 1
    with pytest.raises(AttributeError, match="absent"):
        _ = lazy.absent
    assert missing == ["tflite_runtime.lazy.absent"]


def test_other_modules_are_left_alone(missing: list[str]) -> None:
    with pytest.raises(ModuleNotFoundError):
        import_module("no_engine")
    assert missing == []


def function_of(module: str, *lines: str) -> Callable[..., object]:
    """A function of a module, which may call the one that it is passed."""
    namespace: dict[str, Any] = {"__name__": module}
    body = "\n    ".join(lines)
    exec(f"import importlib\ndef function(called=None):\n    {body}\n", namespace)
    function: Callable[..., object] = namespace["function"]
    return function


def test_what_armpy_and_its_backends_ask_for_is_not_noted(missing: list[str]) -> None:
    imports = "try: importlib.import_module('tflite_runtime.gpu')", "except ImportError: pass"
    looks = "hasattr(importlib.import_module('tflite_runtime'), 'absent')"
    armpy = function_of("armpy.execution.setup.backends", "called()")
    for lines in (imports, (looks,)):
        armpy(function_of("vendor_backend.engine", *lines))
    assert missing == []
    program = function_of("__main__", "called()")
    program(function_of("library_of_the_program", *imports))
    armpy(function_of("__main__", looks))  # a callback of the program's
    function_of("armpy_compat.program", "called()")(function_of("library_thread", looks))
    assert missing == ["tflite_runtime.gpu", "tflite_runtime.absent", "tflite_runtime.absent"]
