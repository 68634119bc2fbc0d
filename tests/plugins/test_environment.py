"""The digest of discovery: another one after any change of its results, the same otherwise."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path

import pytest

from armpy.core.file_ownership import HAS_OWNERS
from armpy.plugins.discovery.environment import environment_digest
from armpy_testing.backends.fake_distributions import FakeSite, fake_site


@pytest.fixture(autouse=True)
def _clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("ARMPY_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "cache"))


def write(path: Path, text: str) -> None:
    """Write a file, at another time than whatever was written before."""
    time.sleep(0.01)  # files' times may go in steps of 4 ms
    path.write_text(text)


CHANGES_OF_SITES: dict[str, Callable[[FakeSite], object]] = {
    "install a backend": lambda site: site.install_backend("New"),
    "install a plugin": lambda site: site.install_plugin("new", ""),
    "install programs": lambda site: site.install("new", {"New": "x:y"}, group="armpy.programs"),
    "install something that a backend may import": lambda site: site.install("numby", {}),
    "remove": lambda site: shutil.rmtree(site.path / "acme-1.0.dist-info"),
    "upgrade": lambda site: (site.path / "acme-1.0.dist-info").rename(
        site.path / "acme-2.0.dist-info"
    ),
    "announce another": lambda site: write(
        site.path / "acme-1.0.dist-info" / "entry_points.txt", "[armpy.backends]\nOther = acme:B\n"
    ),
    "edit the package": lambda site: write(site.path / "acme" / "part.py", "x = 2\n"),
    "edit its first file": lambda site: write(site.path / "acme" / "__init__.py", "x = 2\n"),
    "add to the package": lambda site: write(site.path / "acme" / "more.py", "x = 2\n"),
    "remove from the package": lambda site: (site.path / "acme" / "part.py").unlink(),
    "move on the path": lambda site: sys.path.append(sys.path.pop(sys.path.index(str(site.path)))),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("change", CHANGES_OF_SITES)
def test_changes_of_what_is_installed_change_it(change: str, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    with fake_site(tmp_path / "site") as site:
        site.install("acme", {"Acme": "acme:Backend"}, parts={"part": "x = 1\n"})
        before = environment_digest()
        assert environment_digest() == before
        where = list(sys.path)
        CHANGES_OF_SITES[change](site)
        after = environment_digest()
        assert after != before
        assert environment_digest() == after
        sys.path[:] = where


def test_bytecode_and_unowned_files_do_not_change_it(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    with fake_site(tmp_path / "site") as site:
        site.install("acme", {"Acme": "acme:Backend"}, parts={"part": "x = 1\n"})
        before = environment_digest()
        (site.path / "acme" / "__pycache__").mkdir()
        write(site.path / "acme" / "__pycache__" / "part.pyc", "code")
        write(site.path / "notes.txt", "nothing")
        assert environment_digest() == before


def lead_elsewhere(path: Path) -> None:
    (path / "Acme_Link_backend.py").unlink()
    (path / "Acme_Link_backend.py").symlink_to(path / "Acme_One_backend.py")


CHANGES_OF_DIRECTORIES: dict[str, Callable[[Path], object]] = {
    "add": lambda path: write(path / "Acme_Two_backend.py", "x = 1\n"),
    "edit": lambda path: write(path / "Acme_One_backend.py", "x = 2\n"),
    "remove": lambda path: (path / "Acme_One_backend.py").unlink(),
    "edit a part": lambda path: write(path / "Acme_Pack_backend" / "part.py", "x = 2\n"),
    "edit common code": lambda path: write(path / "Acme_common.py", "x = 2\n"),
    "let others write": lambda path: (path / "Acme_One_backend.py").chmod(0o666),
    "let others write to the directory": lambda path: path.chmod(0o777),
    "lead elsewhere": lead_elsewhere,
    "edit what is linked to": lambda path: write(path / "code.py", "x = 2\n"),
}


@pytest.mark.sampled(2)
@pytest.mark.skipif(os.name == "nt", reason="it takes rights to make links")
@pytest.mark.parametrize("change", CHANGES_OF_DIRECTORIES)
def test_changes_in_directories_of_the_environment_change_it(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "modules"
    (folder / "Acme_Pack_backend").mkdir(parents=True)
    for name in ("Acme_One_backend.py", "Acme_common.py", "code.py"):
        write(folder / name, "x = 1\n")
    for name in ("__init__.py", "part.py"):
        write(folder / "Acme_Pack_backend" / name, "x = 1\n")
    (folder / "Acme_Link_backend.py").symlink_to(folder / "code.py")
    monkeypatch.setenv("ARMPY_DYNAMIC_BACKENDS_PATH", f"/nowhere{os.pathsep}{folder}")
    before = environment_digest()
    (folder / "__pycache__").mkdir()
    (folder / "Acme_Pack_backend" / "__pycache__").mkdir()
    assert environment_digest() == before
    CHANGES_OF_DIRECTORIES[change](folder)
    assert environment_digest() != before


@pytest.mark.parametrize(
    "name", ["ARMPY_BACKENDS", "ARMPY_DYNAMIC_BACKENDS_PATH", "ARMPY_TRUST_FILE", "ARMPY_ACME_X"]
)
def test_variables_change_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = environment_digest()
    monkeypatch.setenv(name, "/x")
    assert environment_digest() != before


@pytest.mark.parametrize("name", ["ARMPY_CACHE_DIR", "ARMPY_COMPILED_CACHE", "ARMPY_VLOG"])
def test_variables_of_caches_and_logging_do_not(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = environment_digest()
    monkeypatch.setenv(name, "off" if name == "ARMPY_COMPILED_CACHE" else str(tmp_path / "x"))
    assert environment_digest() == before


def test_what_the_trust_file_says_changes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "trust.toml"
    monkeypatch.setenv("ARMPY_TRUST_FILE", str(file))
    seen = [environment_digest()]
    for text in ("allow = ['CpuRef']", "allow = ['Other!']"):
        file.write_text(text)
        seen.append(environment_digest())
    assert len(set(seen)) == 3
    if HAS_OWNERS:
        file.chmod(0o666)
        assert environment_digest() not in seen


class OtherFinder(DistributionFinder):
    """Finds distributions that are nowhere on the path."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find_distributions(self, context: object = None) -> list[Distribution]:
        return [Distribution.at(str(path)) for path in self._folder.glob("*.dist-info")]

    def find_spec(self, *_: object) -> None:
        return None


def test_distributions_of_other_finders_change_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, OtherFinder(tmp_path)])
    seen = [environment_digest()]
    site = FakeSite(tmp_path)
    for name in ("first", "second"):
        site.install(name, {})
        seen.append(environment_digest())
    assert len(set(seen)) == 3
    assert environment_digest() == seen[-1]
