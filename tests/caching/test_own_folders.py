"""Folders of the user's alone, made with the folders above them."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

import armpy
from armpy.core.file_ownership import make_own_folder
from tests.support.example_backends import DIGITS


def test_a_folder_is_made_with_those_that_its_path_goes_through(tmp_path: Path) -> None:
    make_own_folder(f"{tmp_path}/build/../cache/models/")
    assert sorted(os.listdir(tmp_path)) == ["build", "cache"]
    assert os.listdir(tmp_path / "cache") == ["models"]
    assert (tmp_path / "cache").stat().st_mode & 0o077 == 0


def test_a_relative_folder_is_made_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_own_folder("cache/models")
    make_own_folder("cache/models")
    assert (tmp_path / "cache" / "models").is_dir()


def test_a_folder_that_the_system_does_not_make_raises_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File systems such as /proc and automounts answer so for every name."""

    def mkdir(path: str, _mode: int) -> None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    monkeypatch.setattr(os, "mkdir", mkdir)
    with pytest.raises(FileNotFoundError, match="cache"):
        make_own_folder(tmp_path / "cache" / "models")


def test_a_model_loads_where_no_cache_can_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARMPY_MODEL_CACHE", "on")
    (tmp_path / "file").touch()
    for folder in (f"{tmp_path}/build/../cache", f"{tmp_path}/file/cache", "/proc/armpy"):
        monkeypatch.setenv("ARMPY_CACHE_DIR", folder)
        armpy.load(DIGITS, backends=["CpuRef"]).close()
