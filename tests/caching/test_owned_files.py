"""A file is replaced in one step, or not at all."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from armpy.store.owned_files import replacing, write_whole


def mode_of(path: Path) -> int:
    """Who can read and write a file."""
    return stat.S_IMODE(path.stat().st_mode)


def test_an_earlier_file_stays_until_the_new_one_is_written(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"earlier")
    with replacing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"earlier"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


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


def test_a_private_file_can_be_read_by_its_owner_alone(tmp_path: Path) -> None:
    public = tmp_path / "public"
    public.touch()
    with replacing(tmp_path / "file"):
        pass
    write_whole(tmp_path / "private", [b"one", b"two"])
    assert mode_of(tmp_path / "file") == mode_of(public)
    assert mode_of(tmp_path / "private") == 0o600
    assert (tmp_path / "private").read_bytes() == b"onetwo"
