"""The wheel holds every package of the tree."""

from __future__ import annotations

from configparser import ConfigParser
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_wheel_holds_every_template_and_every_stub() -> None:
    options = ConfigParser()
    options.read(ROOT / "setup.cfg")
    patterns = options["options.package_data"]["armpy"].split(", ")
    packed = {path for pattern in patterns for path in (ROOT / "armpy").glob(pattern)}
    templates = (ROOT / "armpy" / "cli" / "templates").rglob("*")
    assert packed.issuperset(path for path in templates if path.is_file())
    assert packed.issuperset((ROOT / "armpy").rglob("*.pyi"))


def test_setup_cfg_lists_the_packages_of_the_tree() -> None:
    options = ConfigParser()
    options.read(ROOT / "setup.cfg")
    listed = options["options"]["packages"].split()
    roots = {
        "armpy": ROOT,
        "armpy_numba_acc": ROOT / "backends" / "numba_acc",
        "armpy_reference": ROOT / "backends" / "reference",
    }
    found = [
        ".".join(path.parent.relative_to(root).parts)
        for name, root in roots.items()
        for path in (root / name).rglob("__init__.py")
    ]
    assert sorted(listed) == sorted(found)
