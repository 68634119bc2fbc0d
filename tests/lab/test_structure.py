"""Tokens of the tree, and the two rules that no linter has."""

from __future__ import annotations

import re

import pytest

from lab import structure
from lab.structure import ROOT, Source, internal_imports, read_tree, system_questions


def test_an_import_that_is_not_offered_needs_a_reason_and_a_reason_an_import() -> None:
    text = "from armpy.core.odd import X\nimport armpy\nfrom armpy.ops.softmax import Softmax\n"
    sources = [
        Source("extensions/onnx/armpy_onnx/a.py", text),
        Source("extensions/onnx/tests/test_a.py", text),
        Source("armpy/core/odd.py", "from armpy.core.odder import X\n"),
    ]
    settings = {"offered_to_extensions": ["armpy", r"armpy\.ops(\..+)?"], "internal_modules": {}}
    assert internal_imports(sources, settings) == [
        "extensions/onnx/armpy_onnx/a.py:1: armpy.core.odd.X is offered to no third party"
    ]
    settings["internal_modules"] = {"armpy.core.odd": "why", "armpy.core.other": "why"}
    assert internal_imports(sources, settings) == [
        "internal_modules: no extension imports armpy.core.other"
    ]


def test_only_the_module_of_a_concern_knows_systems() -> None:
    text = (
        "import os\nimport fcntl\nfrom sys import platform\nA = os.name\nB = hasattr(os, 'fork')\n"
    )
    sources = [
        Source("armpy/core/odd.py", text),
        Source("armpy/core/locks.py", text),
        Source("tests/core/test_odd.py", text),
    ]
    concerns = {"armpy.core.locks": "locks", "armpy.core.gone": "nothing any more"}
    assert system_questions(sources, {"systems": concerns}) == [
        "armpy/core/odd.py:2: fcntl",
        "armpy/core/odd.py:3: sys.platform",
        "armpy/core/odd.py:4: os.name",
        "systems: armpy.core.gone asks for none",
    ]


@pytest.mark.parametrize(("count", "status"), [(5, 0), (6, 1)])
def test_a_tree_above_its_budget_fails_the_check(
    count: int,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    sources = [Source("armpy/graph/a.py", "x\n" * count)]
    settings = {
        "tokens": 5,
        "offered_to_extensions": [],
        "internal_modules": {},
        "systems": {},
    }
    monkeypatch.setattr(structure, "read_tree", lambda root: sources)
    monkeypatch.setattr(structure, "read_settings", lambda: settings)
    assert structure.main(["--check"]) == status
    captured = capsys.readouterr()
    assert re.search(rf"^armpy/graph +{count} tokens +{count} lines$", captured.out, re.M)
    assert ("the tree has 6 tokens. Expected at most 5." in captured.err) == bool(status)
    assert structure.main([]) == 0


def test_the_reference_names_the_modules_that_plugins_are_offered() -> None:
    page = (ROOT / "docs" / "reference" / "offered_modules.md").read_text("utf-8")
    cells = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    named = {name for cell in cells for name in re.findall(r"`([\w.]+)`", cell)}
    offered = re.compile("|".join(structure.read_settings()["offered_to_extensions"]))
    modules = {source.module for source in read_tree(ROOT) if source.path.startswith("armpy/")}
    assert {name for name in named if not offered.fullmatch(name)} == set()
    assert named <= modules
    # Modules of the packages that the page names as such stand for themselves.
    whole = re.compile(r"armpy(\.(backend|graph|ops|plugins\.hooks|core\.numerics)(\..+)?)?")
    assert {m for m in modules if offered.fullmatch(m) and not whole.fullmatch(m)} <= named
