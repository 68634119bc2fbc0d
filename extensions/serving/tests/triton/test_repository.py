"""Repositories: models appear whole, and exports side by side lose nothing."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from armpy import InvalidArgumentError
from armpy_serving.triton.config import TritonOptions
from armpy_serving.triton.export import TritonExport, export_model
from armpy_serving.triton.repository import check_free, put_model

from .exports import REAL, network


@pytest.mark.parametrize("name", ["", ".", "../m", "a/b", ".hidden", "ä", "-x"])
def test_names_that_are_no_folders_are_refused(tmp_path: Path, name: str) -> None:
    with network(REAL) as model, pytest.raises(InvalidArgumentError, match="cannot be called so"):
        export_model(model, tmp_path, TritonExport(TritonOptions(name)))


@pytest.mark.skipif(not os.path.ismount("/dev/shm"), reason="no folder is known to be a mount")
def test_repository_that_is_a_mount_is_refused_before_anything_is_compiled() -> None:
    with pytest.raises(InvalidArgumentError, match="another file system") as error:
        check_free(Path("/dev/shm"), "armpy_m", 1, force=True)
    assert "folder in it" in error.value.fix


def test_version_that_another_export_has_put_meanwhile_stays(tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        (folder / "1").mkdir()
        if not (tmp_path / "m").exists():
            put_model(tmp_path, "m", 1, write_kept, force=False)

    def write_kept(folder: Path) -> None:
        (folder / "1").mkdir()
        (folder / "1" / "kept").touch()

    with pytest.raises(InvalidArgumentError, match="already"):
        put_model(tmp_path, "m", 1, write, force=False)
    assert os.listdir(tmp_path / "m" / "1") == ["kept"]


def test_failed_export_leaves_nothing_and_changes_nothing(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    put_model(repository, "m", 1, lambda folder: (folder / "1").mkdir(), force=False)

    def fail(folder: Path) -> None:
        (folder / "1").mkdir()
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        put_model(repository, "m", 1, fail, force=True)
    assert os.listdir(tmp_path) == ["repository"]
    assert os.listdir(repository) == ["m"]
    assert os.listdir(repository / "m") == ["1"]


@pytest.mark.slow
def test_who_looks_at_any_time_sees_a_whole_model(tmp_path: Path) -> None:
    repository = tmp_path / "repository"

    def write(number: int) -> Any:
        def written(folder: Path) -> None:
            (folder / "1").mkdir()
            (folder / "1" / "number").write_text(str(number))
            (folder / "config.pbtxt").write_text(str(number))

        return written

    put_model(repository, "m", 1, write(0), force=True)
    seen: list[str] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            assert os.listdir(repository) == ["m"]
            seen.append((repository / "m" / "config.pbtxt").read_text())
            seen.append((repository / "m" / "1" / "number").read_text())

    watcher = threading.Thread(target=look)
    watcher.start()
    for number in range(30):
        put_model(repository, "m", 1, write(number), force=True)
    done.set()
    watcher.join()
    # In this order: never a number that was there before another one that has been seen.
    assert len(seen) > 10
    assert list(map(int, seen)) == sorted(map(int, seen))
    assert seen[0] != seen[-1]
