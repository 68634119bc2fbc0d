"""The packages of docs/architecture.md are those of the tree, in the order that imports keep."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "armpy"


def listed_rows() -> list[list[str]]:
    """Packages and modules of armpy, row by row of the table."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("\n## Packages\n")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]+`) \|", table, re.MULTILINE)
    rows = [[name.rstrip("/") for name in re.findall(r"`([^`]+)`", cell)] for cell in cells]
    return [row for row in rows if not row[0].startswith("backends/")]


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
