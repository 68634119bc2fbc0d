"""Settings that hold for all tests of a checkout: which of them the installed extensions allow."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from importlib.util import find_spec
from pathlib import Path

pytest_plugins = ["armpy_testing.pytest_plugin"]

_ROOT = Path(__file__).parent
_MISSING = {
    module.parent.name: module.parents[1]
    for module in sorted(_ROOT.glob("extensions/*/armpy_*/__init__.py"))
    if find_spec(module.parent.name) is None
}
"""Extensions that are not installed, with their folders."""

_IMPORT = re.compile(r"^([ ]*)(?:from|import) ([\w.]+)", re.MULTILINE)
_FOR_TYPES = re.compile(r"^if TYPE_CHECKING:\n(?:    .*\n|\n)+", re.MULTILINE)
_LEFT_OUT: Counter[str] = Counter()


@cache
def _imported(path: Path) -> tuple[str, ...]:
    """The modules that a module of tests imports when it is imported; when it runs, if it helps."""
    is_test = path.name.startswith("test_")  # whose functions may skip before they import
    text = _FOR_TYPES.sub("", path.read_text(encoding="utf-8"))
    return tuple(name for indent, name in _IMPORT.findall(text) if not (is_test and indent))


def _lacks(path: Path) -> str:
    """The missing extension that a module of tests needs, itself or by another; empty if none."""
    modules, seen = [path], {path}
    for module in modules:  # which grows
        for name in _imported(module):
            if name.partition(".")[0] in _MISSING:
                return name.partition(".")[0]
            other = _file_of(name, module)
            if "tests" in other.parts and other not in seen and other.is_file():
                modules.append(other)
                seen.add(other)
    return ""


def _file_of(name: str, importer: Path) -> Path:
    """Where a module would be that a module of tests imports, perhaps by a relative name."""
    absolute = name.lstrip(".")
    level = len(name) - len(absolute)
    folder = importer.parents[level - 1] if level else _ROOT
    return folder / f"{absolute.replace('.', '/')}.py"


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out what needs an extension that is missing.

    A file needs what it imports itself, or what its folder's conftest imports.
    """
    if collection_path.suffix != ".py" or not _MISSING:
        return None
    parents = collection_path.parents
    lacked = next((name for name, folder in _MISSING.items() if folder in parents), "")
    conftest = collection_path.parent / "conftest.py"
    lacked = lacked or _lacks(collection_path)
    if not lacked and conftest.is_file():
        lacked = _lacks(conftest)
    if lacked:
        _LEFT_OUT[lacked] += 1
    return bool(lacked) or None


def pytest_report_collectionfinish() -> list[str]:
    """Say how many files were left out, and why."""
    return [
        f"not collected: {count} files of tests, as {name} is not installed"
        for name, count in sorted(_LEFT_OUT.items())
    ]
