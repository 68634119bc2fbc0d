# SPDX-License-Identifier: Apache-2.0
"""The script that puts the licence's line into sources."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from armpy_numba_acc import kernels
from armpy_numba_acc.store import keys
from armpy_numba_acc.store.modules import files_behind, modules_in
from armpy_numba_acc.store.packs import own_packs

from armpy.store.archive.container import open_container
from armpy.store.archive.kernel_packs import KernelPack
from scripts import license_lines

LINE = "# SPDX-License-Identifier: Apache-2.0\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with three sources that lack the line, and three that need none."""
    files = {
        "a.py": '"""A module."""\n',
        "run.py": "#!/usr/bin/env python\nprint()\n",
        "stubs/a.pyi": "a: int\n",
        "has.py": f'{LINE}"""A module."""\n',
        "empty.py": "",
        "page.md": "# A page\n",
        "armpy/core/numerics/a.py": '"""What kernels are compiled from."""\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(license_lines, "ROOT", tmp_path)
    monkeypatch.setattr(license_lines, "known_files", lambda: [*files, "deleted.py"])
    return tmp_path


def test_sources_that_lack_the_line_are_named(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert license_lines.main(["--check"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        *("a.py", "run.py", "stubs/a.pyi"),
        "3 files lack the licence's line",
    ]
    assert (tree / "a.py").read_text() == '"""A module."""\n'


def test_they_are_given_it_once(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert license_lines.main([]) == 1  # a hook fails where it has changed a file
    assert (tree / "a.py").read_text() == f'{LINE}"""A module."""\n'
    assert (tree / "run.py").read_text() == f"#!/usr/bin/env python\n{LINE}print()\n"
    assert license_lines.main([]) == 0
    assert license_lines.main(["--check"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "3 files were given the licence's line"


def test_only_the_files_that_are_named_are_changed(tree: Path) -> None:
    assert license_lines.main([str(tree / "stubs" / "a.pyi"), str(tree / "page.md")]) == 1
    assert (tree / "stubs" / "a.pyi").read_text().startswith(LINE)
    assert not (tree / "a.py").read_text().startswith(LINE)


def test_sources_of_the_packed_kernels_are_left_alone() -> None:
    """Their contents are the keys of the packs that come with NumbaAcc."""
    names = set[str]()
    for path in own_packs():
        names |= set(KernelPack(open_container(path)).about["sources"])
    files = set[str]()
    for name in names:
        modules = [f"{kernels.__name__}.{name}"] if name.isidentifier() else modules_in(name)
        files |= {*files_behind([*modules, keys._GENERATOR], keys._SOURCES).values()}
    assert len(files) > 100
    relative = {os.path.relpath(path, license_lines.ROOT) for path in files}
    assert {path for path in relative if not path.startswith(license_lines.KERNEL_SOURCES)} == set()
