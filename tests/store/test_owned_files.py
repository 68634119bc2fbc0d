"""Files and folders of one's own, and their digests."""

from __future__ import annotations

import errno
import os
import stat
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy.core.file_ownership import HAS_OWNERS, make_own_folder
from armpy.store.digests import UnknownContentsError, digest_of
from armpy.store.owned_files import replacing, write_whole
from armpy.types import DataType, Priority
from armpy_testing.digits import MODEL as DIGITS
from armpy_testing.systems import NEEDS_OWNERS


def mode_of(path: Path) -> int:
    """Who can read and write a file."""
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_error_leaves_the_earlier_file_and_no_unfinished_one(
    tmp_path: Path, error: type[BaseException]
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"earlier")

    def write() -> None:
        with replacing(path) as file:
            file.write(b"new")
            raise error

    with pytest.raises(error):
        write()
    assert path.read_bytes() == b"earlier"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_is_replaced_and_its_target_stays(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"earlier")
    link.symlink_to(target)
    with replacing(link) as file:
        file.write(b"new")
    assert not link.is_symlink()
    assert target.read_bytes() == b"earlier"


@NEEDS_OWNERS
def test_a_private_file_can_be_read_by_its_owner_alone(tmp_path: Path) -> None:
    public = tmp_path / "public"
    public.touch()
    with replacing(tmp_path / "file"):
        pass
    write_whole(tmp_path / "private", [b"one", b"two"])
    assert mode_of(tmp_path / "file") == mode_of(public)
    assert mode_of(tmp_path / "private") == 0o600
    assert (tmp_path / "private").read_bytes() == b"onetwo"


# Digests of what compiled code depends on; NumbaAcc's tests of keys hold those of parts


DIFFERENT: list[object] = [
    *(
        None,
        False,
        True,
        0,
        1,
        1.0,
        -0.0,
        "",
        "1",
        b"1",
        (),
        [],
        (1,),
        [1],
        ((1,),),
        (1, 2),
        ("12",),
    ),
    *(("1", "2"), {}, {"a": 1}, {"a": 2}, {"b": 1}, {"a": {"a": 1}}),
    *(DataType.FLOAT32, Priority.LOW, 90),
    *(np.zeros(2, np.float32), np.zeros(2, np.int32), np.zeros((2, 1), np.float32)),
    *(np.array([1, 0], np.float32), np.float32(0), np.array([1.0, float("nan")], np.float32)),
]


def test_different_values_have_different_digests() -> None:
    digests = [digest_of(value) for value in DIFFERENT]
    for (first_value, first), (two, second) in combinations(
        zip(DIFFERENT, digests, strict=True), 2
    ):
        assert first != second, (first_value, two)


def test_equal_values_have_equal_digests() -> None:
    for value in DIFFERENT:
        assert digest_of(value) == digest_of(value)
    assert digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    strided = np.arange(8, dtype=np.int32)[::2]
    assert digest_of(strided) == digest_of(strided.copy())


def test_how_values_are_divided_counts() -> None:
    assert digest_of("ab", "c") != digest_of("a", "bc")
    assert digest_of((1,), (2,)) != digest_of((1, 2))
    assert digest_of("a", origin=b"b") != digest_of("a")


@pytest.mark.parametrize("value", [object(), {1, 2}, np.array([object()]), (lambda: 0,)])
def test_objects_without_contents_have_no_digest(value: object) -> None:
    with pytest.raises(UnknownContentsError):
        digest_of(value)


# Folders of the user's alone, made with the folders above them


def test_a_folder_is_made_with_those_that_its_path_goes_through(tmp_path: Path) -> None:
    make_own_folder(f"{tmp_path}/build/../cache/models/")
    # Windows takes ".." out of the path's text.
    made = ["cache"] if sys.platform == "win32" else ["build", "cache"]
    assert sorted(os.listdir(tmp_path)) == made
    assert os.listdir(tmp_path / "cache") == ["models"]
    assert not HAS_OWNERS or (tmp_path / "cache").stat().st_mode & 0o077 == 0


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
