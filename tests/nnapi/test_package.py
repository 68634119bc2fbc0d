"""The package as a whole."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import subprocess
import sys

import pytest

from armpy import nnapi


def test_importing_armpy_does_not_import_the_package() -> None:
    code = "import sys, armpy; assert not [m for m in sys.modules if m.startswith('armpy.nnapi')]"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_importing_the_package_imports_only_what_is_used() -> None:
    code = (
        "import sys, armpy.nnapi; assert 'armpy.runtime' not in sys.modules; "
        "armpy.nnapi.Model; assert 'armpy.runtime' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_every_public_name_is_there_and_known_to_type_checkers() -> None:
    for name in nnapi.__all__:
        assert getattr(nnapi, name) is not None
        assert name in dir(nnapi)
    tree = ast.parse(inspect.getsource(nnapi))
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("armpy")
        for alias in node.names
    }
    assert imported == set(nnapi.__all__)


@pytest.mark.parametrize("module", ["armpy.nnapi", "armpy.nnapi.builder"])
def test_the_examples_give_what_they_show(module: str) -> None:
    results = doctest.testmod(importlib.import_module(module))
    assert results.attempted > 0
    assert results.failed == 0


def test_there_is_nothing_else() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Something'"):
        nnapi.Something  # noqa: B018 - asking is the test
