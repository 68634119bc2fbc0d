"""The index of installed entry points gives what `importlib.metadata` would."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import random
import shutil
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from importlib.metadata import MetadataPathFinder
from pathlib import Path
from typing import Any

import pytest

from armpy.plugins.discovery import entry_point_cache
from armpy.plugins.discovery.entry_point_cache import installed

Found = set[tuple[str, str, str]]
"""Name, distribution and version of each backend that is not armpy's."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("ARMPY_COMPILED_CACHE", raising=False)
    return tmp_path / "cache" / entry_point_cache.FOLDER


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on ``sys.path``."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a minute have passed since the test has written anything."""
    now_ns = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now_ns() + 60_000_000_000)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One item for each time that all distributions were looked through."""
    looks_taken: list[None] = []
    whole = importlib.metadata.entry_points

    def counted(**params: Any) -> Any:
        looks_taken.append(None)
        return whole(**params)

    monkeypatch.setattr(importlib.metadata, "entry_points", counted)
    return looks_taken


def write_distribution(
    folder: Path,
    name: str,
    backend_id: str | None,
    version: str = "1.0",
    info: str = "",
) -> Path:
    """Metadata as installers write them; without an id, of one that announces nothing."""
    path = folder / (info or f"{name}-1.0.dist-info")
    path.mkdir(exist_ok=True)
    write(path / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    if backend_id is not None:
        write(path / "entry_points.txt", f"[armpy.backends]\n{backend_id} = {name}:Backend\n")
    return path


def write(path: Path, text: str) -> None:
    """Write a file, at another time than whatever was written before."""
    time.sleep(0.01)  # files' times may go in steps of 4 ms
    path.write_text(text)


def found() -> Found:
    return {
        (entry.name, entry.distribution, entry.version)
        for entry in installed().entry_points
        if not entry.distribution.startswith("armpy")
    }


def asked() -> Found:
    """What Python's own library finds."""
    MetadataPathFinder().invalidate_caches()
    entries = importlib.metadata.entry_points(group="armpy.backends")
    return {
        (entry.name, entry.dist.metadata["Name"], entry.dist.version)
        for entry in entries
        if entry.dist is not None and not entry.dist.metadata["Name"].startswith("armpy")
    }


def replace_in_the_same_folder(site: Path) -> None:
    shutil.rmtree(site / "acme-1.0.dist-info")
    write_distribution(site, "acme", "Acme", "2.0")


def replace_by_renaming(site: Path) -> None:
    (site / "acme-1.0.dist-info").rename(site.parent / "old")
    write_distribution(site.parent, "acme", "Acme", "2.0", "new")
    (site.parent / "new").rename(site / "acme-1.0.dist-info")


def upgrade(site: Path) -> None:
    shutil.rmtree(site / "acme-1.0.dist-info")
    write_distribution(site, "acme", "Acme", "2.0", "acme-2.0.dist-info")


def edit(site: Path) -> None:
    write(site / "acme-1.0.dist-info" / "entry_points.txt", "[armpy.backends]\nEmca = acme:Back\n")


def announce(site: Path) -> None:
    write(site / "dull-1.0.dist-info" / "entry_points.txt", "[armpy.backends]\nDull = dull:B\n")


def hide(site: Path) -> None:
    """Put another distribution of the name, which announces nothing, before it."""
    first = site.parent / "first"
    first.mkdir()
    write_distribution(first, "acme", None)
    sys.path.insert(0, str(first))


def hide_by_another_name(site: Path) -> None:
    grey = site.parent / "grey"
    (grey / "grey-1.0.dist-info").rename(grey / "acme-1.0.dist-info")


def fill_empty_path(site: Path) -> None:
    (site.parent / "empty").mkdir()
    write_distribution(site.parent / "empty", "late", "Late")


CHANGES: dict[str, tuple[Callable[[Path], object], Found]] = {
    "install": (
        lambda site: write_distribution(site, "new", "New"),
        {("Acme", "acme", "1.0"), ("New", "new", "1.0")},
    ),
    "install an egg": (
        lambda site: write_distribution(site, "new", "New", info="new.egg-info"),
        {("Acme", "acme", "1.0"), ("New", "new", "1.0")},
    ),
    "remove": (lambda site: shutil.rmtree(site / "acme-1.0.dist-info"), set()),
    "upgrade": (upgrade, {("Acme", "acme", "2.0")}),
    "replace in the same folder": (replace_in_the_same_folder, {("Acme", "acme", "2.0")}),
    "replace by renaming": (replace_by_renaming, {("Acme", "acme", "2.0")}),
    "edit": (edit, {("Emca", "acme", "1.0")}),
    "announce": (announce, {("Acme", "acme", "1.0"), ("Dull", "dull", "1.0")}),
    "announce no more": (
        lambda site: (site / "acme-1.0.dist-info" / "entry_points.txt").unlink(),
        set(),
    ),
    "hide": (hide, set()),
    "hide by another name": (hide_by_another_name, set()),
    "leave the path": (lambda site: sys.path.remove(str(site)), set()),
    "fill a folder that was not there": (
        fill_empty_path,
        {("Acme", "acme", "1.0"), ("Late", "late", "1.0")},
    ),
}


@pytest.mark.sampled(5)
@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_noticed(change: str, site: Path, looks: list[None]) -> None:
    make, expected = CHANGES[change]
    write_distribution(site, "acme", "Acme")
    write_distribution(site, "dull", None)
    (site.parent / "grey").mkdir()
    write_distribution(site.parent / "grey", "grey", None)
    sys.path.insert(0, str(site.parent / "grey"))
    sys.path.append(str(site.parent / "empty"))
    assert found() == found() == {("Acme", "acme", "1.0")}
    assert len(looks) == 1
    make(site)
    assert found() == expected == asked()
    count = len(looks)
    assert found() == expected
    assert len(looks) == count


def write_archive(path: Path, backend_id: str) -> None:
    time.sleep(0.01)
    with zipfile.ZipFile(path, "w") as archive:
        inner = "EGG-INFO" if path.suffix == ".egg" else "packed-1.0.dist-info"
        file = "PKG-INFO" if path.suffix == ".egg" else "METADATA"
        archive.writestr(f"{inner}/{file}", "Metadata-Version: 2.1\nName: packed\nVersion: 3.0\n")
        entries = f"[armpy.backends]\n{backend_id} = packed:Backend\n"
        archive.writestr(f"{inner}/entry_points.txt", entries)


@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("name", ["packed.zip", "packed-3.0-py3.egg"])
def test_archives_are_places_of_distributions_too(name: str, site: Path, looks: list[None]) -> None:
    archive = site / name
    sys.path.insert(0, str(archive))
    assert found() == found() == set()
    assert len(looks) == 1
    write_archive(archive, "First")
    assert found() == found() == {("First", "packed", "3.0")} == asked()
    write_archive(archive, "Other")
    assert found() == found() == {("Other", "packed", "3.0")} == asked()


@pytest.mark.usefixtures("later")
def test_a_folder_whose_time_was_set_back_is_looked_at_again(site: Path) -> None:
    write_distribution(site, "acme", "Acme")
    before = site.stat()
    assert found() == {("Acme", "acme", "1.0")}
    write_distribution(site, "new", "New")
    os.utime(site, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert found() == {("Acme", "acme", "1.0"), ("New", "new", "1.0")}


@pytest.mark.slow
@pytest.mark.usefixtures("later")
@pytest.mark.parametrize("seed", range(2))
def test_whatever_changes_the_answer_is_that_of_the_library(seed: int, site: Path) -> None:
    generator = random.Random(seed)
    second = site.parent / "second"
    second.mkdir()
    sys.path.append(str(second))
    for step in range(30):
        folder = generator.choice([site, second])
        infos = sorted(folder.iterdir())
        action = generator.randrange(5)
        if action < 2 or not infos:
            name = generator.choice(["alpha", "beta", "Gamma", "gamma"])
            backend_id = generator.choice(["One", "Two", None])
            number = generator.randrange(3)
            ending = generator.choice([".dist-info", ".egg-info", ".DIST-INFO"])
            info = f"{name}-{number}{ending}"
            shutil.rmtree(folder / info, ignore_errors=True)  # as installers do
            write_distribution(folder, name, backend_id, f"{number}.{step}", info)
        elif action == 2:
            shutil.rmtree(generator.choice(infos))
        elif action == 3:
            (generator.choice(infos) / "entry_points.txt").unlink(missing_ok=True)
        else:
            sys.path.append(sys.path.pop(sys.path.index(str(folder))))
        expected = asked()
        assert found() == expected
        assert found() == expected


def test_what_has_just_changed_is_not_kept(
    site: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, looks: list[None]
) -> None:
    write_distribution(site, "acme", "Acme")
    changed_ns = max(path.stat().st_ctime_ns for path in site.rglob("*"))
    for after_s, is_kept in ((1.9, False), (2.1, True)):
        now_ns = changed_ns + int(after_s * 1e9)
        monkeypatch.setattr(time, "time_ns", lambda now_ns=now_ns: now_ns)
        assert found() == {("Acme", "acme", "1.0")}
        assert cache.exists() is is_kept
    assert found() == {("Acme", "acme", "1.0")}
    assert len(looks) == 2


@pytest.mark.usefixtures("later")
def test_what_changes_while_it_is_looked_through_is_not_kept(
    site: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = importlib.metadata.entry_points

    def slow(**params: Any) -> Any:
        before = whole(**params)
        write_distribution(site, "acme", "Acme")
        return before

    with monkeypatch.context() as patch:
        patch.setattr(importlib.metadata, "entry_points", slow)
        assert found() == set()
    assert not cache.exists()
    assert found() == {("Acme", "acme", "1.0")}


@pytest.mark.usefixtures("later")
def test_without_pythons_own_finder_nothing_is_on_the_path(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_distribution(site, "acme", "Acme")
    assert found() == {("Acme", "acme", "1.0")}
    own = [finder for finder in sys.meta_path if not hasattr(finder, "find_distributions")]
    monkeypatch.setattr(sys, "meta_path", own)
    assert found() == set()


def damage(data: bytes) -> Iterator[bytes]:
    yield from (data[:size] for size in range(0, len(data), 97))
    for index in range(0, len(data), 41):
        yield data[:index] + bytes([data[index] ^ 1]) + data[index + 1 :]
    yield data + b"x"
    yield b"[" * 100_000


@pytest.mark.slow
@pytest.mark.usefixtures("later")
def test_a_damaged_file_costs_time_only(site: Path, cache: Path, looks: list[None]) -> None:
    write_distribution(site, "acme", "Acme")
    assert found() == {("Acme", "acme", "1.0")}
    (path,) = cache.iterdir()
    sound = path.read_bytes()
    for number, data in enumerate(damage(sound)):
        path.write_bytes(data)
        path.chmod(0o600)
        assert found() == {("Acme", "acme", "1.0")}
        assert len(looks) == number + 2
        assert path.read_bytes() == sound


@pytest.mark.usefixtures("later")
@pytest.mark.skipif(os.name == "nt", reason="files have no such bits")
def test_a_file_that_others_can_write_is_not_believed(
    site: Path, cache: Path, looks: list[None]
) -> None:
    write_distribution(site, "acme", "Acme")
    assert found()
    (path,) = cache.iterdir()
    for mode in (0o620, 0o602):
        path.chmod(mode)
        count = len(looks)
        assert found() == {("Acme", "acme", "1.0")}
        assert len(looks) == count + 1
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))
    count = len(looks)
    assert found() == {("Acme", "acme", "1.0")}
    assert len(looks) == count + 1


@pytest.mark.usefixtures("later")
@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="only root gives files away")
def test_a_file_of_another_user_is_not_trusted(site: Path, cache: Path, looks: list[None]) -> None:
    write_distribution(site, "acme", "Acme")
    assert found()
    (path,) = cache.iterdir()
    os.chown(path, 12345, -1)
    assert found() == {("Acme", "acme", "1.0")}
    assert len(looks) == 2


@pytest.mark.usefixtures("later")
def test_switched_off_it_is_neither_read_nor_written(
    site: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, looks: list[None]
) -> None:
    write_distribution(site, "acme", "Acme")
    assert found()
    monkeypatch.setenv("ARMPY_COMPILED_CACHE", "off")
    assert found() == {("Acme", "acme", "1.0")}
    assert len(looks) == 2
    shutil.rmtree(cache)
    assert found() == {("Acme", "acme", "1.0")}
    assert not cache.exists()


@pytest.mark.usefixtures("later")
def test_without_a_place_to_keep_it_everything_is_found(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_distribution(site, "acme", "Acme")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path / "file"))
    assert found() == found() == {("Acme", "acme", "1.0")}
    monkeypatch.delenv("ARMPY_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def fail(_: Path) -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "expanduser", fail)
    assert found() == found() == {("Acme", "acme", "1.0")}


@pytest.mark.slow
@pytest.mark.usefixtures("later")
def test_few_files_are_kept(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = list(sys.path)
    for number in range(40):
        folder = tmp_path / f"site{number}"
        folder.mkdir()
        write_distribution(folder, "acme", f"Acme{number}")
        monkeypatch.setattr(sys, "path", [str(folder), *before])
        assert found() == {(f"Acme{number}", "acme", "1.0")}
    assert len([*cache.iterdir()]) == 32
