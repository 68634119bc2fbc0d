"""The packages of docs/architecture.md are those of the tree, in the order that imports keep."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "armpy"


def listed_rows() -> list[list[str]]:
    """Packages and modules of armpy, row by row of the table."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("\n## Packages\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]+`) \|", table, re.MULTILINE)
    rows = [[name.rstrip("/") for name in re.findall(r"`([^`]+)`", cell)] for cell in cells]
    return [row for row in rows if not row[0].startswith("backends/")]


def room_of(module: str) -> str:
    """The room of a module such as ``armpy.graph.layer``."""
    name = module.split(".")[1]
    return name if (PACKAGE / name).is_dir() else f"{name}.py"


def imports_of(path: Path) -> Iterator[str]:
    """Modules of armpy that a file imports by their names, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("armpy."):
            yield str(node.module)


def test_every_room_is_listed_once() -> None:
    folders = [path.parent.name for path in PACKAGE.glob("*/__init__.py")]
    files = [path.name for path in PACKAGE.glob("*.py") if not path.name.startswith("__")]
    assert sorted(room for row in listed_rows() for room in row) == sorted(folders + files)


def test_every_extension_is_listed_once() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.partition("\n## Extensions\n")[2].partition("\n## ")[0]
    packages = (ROOT / "extensions").glob("*/armpy_*/__init__.py")
    wanted = [str(path.parent.relative_to(ROOT / "extensions")) + "/" for path in packages]
    assert sorted(re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)) == sorted(wanted)


def test_tests_of_the_core_are_in_folders_of_its_packages() -> None:
    of_packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    of_the_tree = {"differential", "documents", "examples", "lab", "support"}
    files = (ROOT / "tests").glob("*/**/*.py")
    folders = {path.relative_to(ROOT / "tests").parts[0] for path in files}
    assert folders == of_packages | of_the_tree


@pytest.mark.slow
def test_a_room_imports_only_rooms_above_it() -> None:
    order = {room: number for number, row in enumerate(listed_rows()) for room in row}
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for room, number in order.items()
        for path in ((PACKAGE / room).rglob("*.py") if "." not in room else [PACKAGE / room])
        for module in imports_of(path)
        if order[room_of(module)] > number
    ]
    assert wrong == []
