"""Each rule about the tree's structure finds what it is about."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from scripts.structure import (
    CEILINGS,
    FILES_PER_FOLDER,
    REPORTS,
    ROOT,
    RULES,
    PackageCounts,
    Settings,
    Tree,
    against,
    counts_of_tests,
    judge,
    lines_of_code,
    lower,
    main,
    over_budget,
    packages,
)

SETTINGS = Settings.read()


def tree(folder: Path, files: dict[str, str]) -> Tree:
    for name, text in {"armpy/__init__.py": "", **files}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not (path.parent / "__init__.py").exists():
            (path.parent / "__init__.py").touch()
        path.write_text(text, encoding="utf-8")
    return Tree(folder, ["armpy"])


def found(rule: str, folder: Path, files: dict[str, str]) -> list[str]:
    return (RULES | REPORTS)[rule][1](tree(folder, files), SETTINGS)


def test_tests_of_internals_are_listed_by_file(tmp_path: Path) -> None:
    files = {
        "tests/room/test_a.py": "from armpy.backend import Support\nfrom armpy.room.a import f",
        "extensions/x/tests/test_b.py": "from armpy.errors import ArmpyError",
    }
    assert found("internal_imports_in_tests", tmp_path, files) == [
        "tests/room/test_a.py: armpy.room.a.f"
    ]


def test_private_names_of_others_are_listed_by_line(tmp_path: Path) -> None:
    text = "def test_a(x):\n    self._mine\n    x._replace(a=1)\n    x.__dict__\n    x._theirs"
    assert found("private_names_in_tests", tmp_path, {"tests/test_a.py": text}) == [
        "tests/test_a.py:5: x._theirs"
    ]


def test_code_of_tests_is_counted_inside_and_outside_of_them(tmp_path: Path) -> None:
    text = """
        import os

        NUMBER = 1  # outside

        def helper():
            return NUMBER

        def test_a():
            '''A docstring.'''

            assert helper() == 1
    """
    files = {
        "tests/room/test_a.py": textwrap.dedent(text),
        "backends/b/tests/test_b.py": "def test_b(): ...\n",
    }
    counts = counts_of_tests(tree(tmp_path, files))
    assert {folder: row[2:] for folder, row in counts.items()} == {
        "backends/b": (1, 0),
        "tests": (2, 3),
    }
    assert counts["tests"][:2] == (2, 12)


def test_files_that_import_each_other_are_a_circle(tmp_path: Path) -> None:
    files = {
        "armpy/room/a.py": "from armpy.room.b import B",
        "armpy/room/b.py": "from armpy.room import c",
        "armpy/room/c.py": "import armpy.room.a",
        "armpy/room/d.py": "from armpy.room.a import A",
    }
    assert found("circles", tmp_path, files) == ["armpy.room: a, b, c"]


def test_an_import_for_types_alone_closes_a_circle(tmp_path: Path) -> None:
    files = {
        "armpy/a.py": "if TYPE_CHECKING:\n    from .b import B",
        "armpy/b.py": "def f():\n    from armpy.a import A",
    }
    assert found("circles", tmp_path, files) == ["armpy: a, b"]


def test_rooms_that_import_each_other_are_a_circle(tmp_path: Path) -> None:
    files = {
        "armpy/one/a.py": "from armpy.two.b import B",
        "armpy/two/b.py": "",
        "armpy/two/c.py": "from armpy.one.a import A",
    }
    assert found("circles", tmp_path, files) == ["armpy: one, two"]


def test_imports_in_one_direction_are_no_circle(tmp_path: Path) -> None:
    files = {
        "armpy/room/__init__.py": "from armpy.room.a import A",
        "armpy/room/a.py": "from armpy.room.b import B",
        "armpy/room/b.py": "import armpy.room.b",
    }
    assert found("circles", tmp_path, files) == []


def test_rooms_and_modules_on_top_are_counted(tmp_path: Path) -> None:
    files = {"armpy/room/a.py": "", "armpy/errors.py": "", "armpy/__main__.py": ""}
    assert found("entries", tmp_path, files) == ["errors", "room"]


def test_a_folder_of_more_files_than_agreed_is_crowded(tmp_path: Path) -> None:
    files = {f"armpy/room/f{number}.py": "" for number in range(FILES_PER_FOLDER)}
    assert found("crowded_folders", tmp_path, files) == []
    files["armpy/room/one_more.py"] = ""
    assert found("crowded_folders", tmp_path, files) == ["armpy.room: 21 files"]
    operations = {name.replace("room", "ops"): "" for name in files}
    assert found("crowded_folders", tmp_path / "ops", operations) == []


def test_an_import_in_a_function_is_found_but_at_a_gate(tmp_path: Path) -> None:
    text = "import os\nclass A:\n    def f(self):\n        import json, re\n"
    files = {"armpy/a.py": text, "armpy/core/lazy.py": text}
    assert found("late_imports", tmp_path, files) == ["armpy.a:4: re"]


def test_a_class_name_stands_once_but_for_operations(tmp_path: Path) -> None:
    files = {
        "armpy/a.py": "class A: ...",
        "armpy/b.py": "class A: ...",
        "armpy/ops/a.py": "class A: ...",
    }
    assert found("doubled_class_names", tmp_path, files) == ["A: armpy.a, armpy.b"]


def test_a_class_spread_over_its_bases_is_a_chain(tmp_path: Path) -> None:
    files = {
        "armpy/a.py": "class Opened(Protocol): ...\nclass Shaped(Opened): ...",
        "armpy/b.py": "class Model(a.Shaped): ...",
        "armpy/c.py": "class IThing: ...\nclass Base(IThing): ...\nclass Thing(Base): ...",
    }
    assert found("chains", tmp_path, files) == ["Model(Shaped(Opened))"]


def test_protocols_are_counted(tmp_path: Path) -> None:
    text = "class A(Protocol): ...\nclass B(typing.Protocol[T]): ...\nclass C(Base): ..."
    assert found("protocols", tmp_path, {"armpy/a.py": text}) == ["armpy.a: A", "armpy.a: B"]


def test_a_class_of_too_many_methods_is_found(tmp_path: Path) -> None:
    methods = "".join(f"    def m{number}(self): ...\n" for number in range(31))
    files = {
        "armpy/many.py": f"class Many:\n{methods}",
        "armpy/few.py": "class Few:\n    def m(self): ...\n",
        "armpy/long.py": "class Long:\n" + "    x = 1\n" * 401,
    }
    assert found("large_classes", tmp_path, files) == [
        "armpy.long: Long, 402 lines, 0 methods",
        "armpy.many: Many, 32 lines, 31 methods",
    ]


def test_an_extension_that_imports_the_insides_of_the_core_is_found(tmp_path: Path) -> None:
    texts = {
        "armpy/__init__.py": "",
        "armpy_onnx/__init__.py": "from armpy import load\nfrom armpy.backend.memory import Arena\n"
        "from armpy.graph import Graph\nfrom armpy.store.entries import Entries\n",
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    internal = RULES["internal_imports"][1](Tree(tmp_path, ["armpy", "armpy_onnx"]), SETTINGS)
    assert internal == ["armpy_onnx:4: armpy.store.entries.Entries"]


def test_what_is_there_for_older_code_is_found(tmp_path: Path) -> None:
    methods = "    def make(self): ...\n    def make_with_options(self): ..."
    text = f"class A:\n{methods}\ndef warn_deprecated(): ..."
    names = ["armpy.a: warn_deprecated", "armpy.a: make_with_options"]
    assert found("compatibility", tmp_path, {"armpy/a.py": text}) == names


def test_comments_are_counted_without_those_for_tools(tmp_path: Path) -> None:
    text = '"""Text.\n\n# no comment\n"""\nX = "#"  # one\n# two\nY = 1  # noqa: E501\n\n'
    text += "import a\nfrom b import (\n    c,\n)\n"
    source = tree(tmp_path, {"armpy/a.py": text}).sources["armpy.a"]
    assert (source.comments, source.code_lines) == (2, 2)


@pytest.mark.parametrize("count", [2, 3])
def test_a_count_up_to_its_ceiling_passes(count: int) -> None:
    assert judge({"circles": count}, {"circles": 3}) == []


def test_a_count_above_its_ceiling_is_named() -> None:
    (problem,) = judge({"circles": 4}, {"circles": 3})
    assert "Expected at most 3; got 4" in problem


def test_reports_have_no_ceilings() -> None:
    assert REPORTS.keys() == {
        "large_classes",
        "internal_imports_in_tests",
        "private_names_in_tests",
    }
    assert not REPORTS.keys() & (SETTINGS.ceilings.keys() | SETTINGS.aims.keys())


def test_a_package_within_its_budget_passes(tmp_path: Path) -> None:
    counts = lines_of_code(tree(tmp_path, {"armpy/room/a.py": "import os\n\nx = 1\ny = 2\n"}))
    assert counts == {"armpy": 0, "armpy.room": 2}
    assert over_budget(counts, {"armpy.room": 2, "armpy.gone": 5}) == []


@pytest.mark.parametrize("budgets", [{"armpy.room": 1}, {}])
def test_a_package_over_its_budget_or_without_one_is_named(budgets: dict[str, int]) -> None:
    (problem,) = over_budget({"armpy": 0, "armpy.room": 2}, budgets)
    expected = f"armpy.room: expected at most {sum(budgets.values())} lines of code; got 2."
    assert problem.startswith(expected)
    assert "raise its budget in scripts/structure.toml, in a commit that says why" in problem


def test_a_package_that_outgrows_its_budget_fails_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = SETTINGS.budgets["armpy.graph"]
    monkeypatch.setattr("scripts.structure.ROOT", tmp_path)
    tree(tmp_path, {"armpy/graph/a.py": "x = 1\n" * budget})
    assert main(["--check"]) == 0
    tree(tmp_path, {"armpy/graph/b.py": "x = 1\n"})
    assert main(["--check"]) == 1
    expected = f"armpy.graph: expected at most {budget} lines of code; got {budget + 1}."
    assert capsys.readouterr().err.startswith(expected)


def test_lines_of_code_are_compared_with_where_a_branch_began(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *arguments], cwd=tmp_path, check=True, capture_output=True)

    def commit(files: dict[str, str]) -> None:
        tree(tmp_path, files)
        git("add", "--all")
        git("commit", "--message", "A change")

    git("init", "--initial-branch", "trunk")
    commit({"armpy/old/a.py": "x = 1\n", "armpy/room/a.py": "x = 1\ny = 2\n"})
    git("checkout", "-b", "branch")
    commit({"armpy/room/a.py": "x = 1\ny = 2\n# z\nz = 3\n", "armpy/new/a.py": "x = 1\ny = 2\n"})
    git("rm", "-r", "armpy/old")
    rows = [row.split() for row in against(tmp_path, "trunk").splitlines()]
    assert rows[1:] == [
        ["armpy", "0", "+0"],
        ["armpy.new", "2", "+2"],
        ["armpy.old", "0", "-1"],
        ["armpy.room", "3", "+1"],
        ["all", "5", "+2"],
    ]


def test_without_history_a_line_says_that_nothing_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tree(tmp_path, {})
    monkeypatch.setattr("scripts.structure.ROOT", tmp_path)
    assert main(["--against", "origin/main"]) == 0
    expected = "no comparison: no common commit of origin/main and HEAD is here\n"
    assert capsys.readouterr().out == expected


def test_lowering_leaves_ceilings_that_are_exceeded() -> None:
    text = "[ceilings]\ncircles = 3\nentries = 5\n\n[aims]\ncircles = 0\nentries = 1\n"
    expected = text.replace("circles = 3", "circles = 2")
    assert lower({"circles": 2, "entries": 6}, text) == expected


def test_a_ceiling_without_a_rule_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "structure.toml"
    path.write_text(CEILINGS.read_text().replace("circles = ", "circle = "))
    with pytest.raises(KeyError, match="ceilings and aims have to be those of"):
        Settings.read(path)


@pytest.mark.slow
def test_this_tree_is_within_its_ceilings() -> None:
    command = [sys.executable, "scripts/structure.py", "--check"]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=CEILINGS.parents[1], check=False
    )
    assert done.returncode == 0, done.stderr


def test_rooms_of_the_core_and_other_packages_are_counted(tmp_path: Path) -> None:
    text = '"""Text."""\nclass A:\n    """More.\n\n    Text.\n    """\n\n    x = 1  # one\n'
    found_packages = packages(tree(tmp_path, {"armpy/a.py": text, "armpy/b/c.py": "x = 1\n"}))
    assert found_packages["armpy.a"] == PackageCounts(1, 8, 2, 5, 1, 1)
    assert found_packages["armpy.b"] == PackageCounts(2, 1, 1)


def test_an_argument_unpacked_from_what_the_call_writes_is_found(tmp_path: Path) -> None:
    text = "f(*(1, 2), *rest)\ng(x, **{'a': 1}, **options)\nh((1, 2), {}, a={})\n"
    assert found("splats", tmp_path, {"armpy/a.py": text}) == [
        "armpy.a:1: (1, 2)",
        "armpy.a:2: {'a': 1}",
    ]


def test_a_long_line_of_prose_is_found_but_not_one_of_code_or_a_table(tmp_path: Path) -> None:
    line = "word " * 21
    files = {
        "docs/a/page.md": f"{line}\n# {line}\n| {line} |\n```text\n{line}\n```\nshort\n- {line}\n",
        "README.md": f"{line[:100]}\n",
    }
    assert found("long_prose", tmp_path, files) == ["docs/a/page.md:1", "docs/a/page.md:8"]


def test_the_reference_names_the_modules_that_plugins_are_offered() -> None:
    page = (ROOT / "docs" / "reference" / "offered_modules.md").read_text("utf-8")
    cells = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    named = {name for cell in cells for name in re.findall(r"`([\w.]+)`", cell)}
    offered = re.compile("|".join(SETTINGS.offered_to_extensions))
    modules = {source.name for source in Tree(ROOT).sources.values()}
    assert {name for name in named if not offered.fullmatch(name)} == set()
    assert named <= modules
    # Modules of the packages that the page names as such stand for themselves.
    whole = re.compile(r"armpy(\.(backend|graph|ops|plugins\.hooks|core\.numerics)(\..+)?)?")
    assert {m for m in modules if offered.fullmatch(m) and not whole.fullmatch(m)} <= named


def test_an_import_that_is_not_offered_needs_a_reason(tmp_path: Path) -> None:
    files = {
        "armpy/core/odd.py": "X = 1",
        "armpy_onnx/__init__.py": "",
        "armpy_onnx/a.py": "from armpy.core.odd import X",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    planted = Tree(tmp_path, ["armpy", "armpy_onnx"])
    rule = RULES["unexplained_imports"][1]
    settings = replace(SETTINGS, internal_modules={"armpy.other": "none"})
    assert rule(planted, settings) == ["armpy_onnx.a:1: armpy.core.odd.X", "armpy.other"]
    assert rule(planted, replace(SETTINGS, internal_modules={"armpy.core.odd": "why"})) == []


def test_only_the_module_of_a_concern_knows_systems(tmp_path: Path) -> None:
    files = {
        "armpy/core/locks.py": "import sys\nIS_WINDOWS = sys.platform == 'win32'\n",
        "armpy/core/odd.py": "import os\nimport sys\nA = os.name\nB = sys.platform\nimport fcntl\n",
        "armpy/core/other.py": "import os\nfrom sys import platform\nA = hasattr(os, 'fork')\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    planted = Tree(tmp_path, ["armpy"])
    rule = RULES["systems"][1]
    outside = [
        "armpy.core.odd:3: os.name",
        "armpy.core.odd:4: sys.platform",
        "armpy.core.odd:5: fcntl",
        "armpy.core.other:2: sys.platform",
    ]
    settings = replace(SETTINGS, systems={"armpy.core.locks": "locks"})
    assert rule(planted, settings) == outside
    idle = {"armpy.core.locks": "locks", "armpy.core.gone": "nothing any more"}
    assert rule(planted, replace(SETTINGS, systems=idle)) == [*outside, "armpy.core.gone"]
