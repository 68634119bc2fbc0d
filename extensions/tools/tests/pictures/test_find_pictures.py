"""Which pictures a command line names."""

from __future__ import annotations

from pathlib import Path

import pytest

from armpy.errors import InvalidArgumentError
from armpy_tools.pictures.find import find_pictures


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.PNG", "a.jpg", "notes.txt", ".hidden.png", "in/c.bmp", ".git/d.png"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    return tmp_path


def names(folder: Path, given: list[str]) -> list[str]:
    return [str(Path(path).relative_to(folder)) for path in find_pictures(given)]


def test_a_folder_stands_for_the_pictures_in_it_and_below(folder: Path) -> None:
    assert names(folder, [str(folder)]) == ["a.jpg", "b.PNG", "in/c.bmp"]


def test_a_pattern_stands_for_what_it_matches(folder: Path) -> None:
    assert names(folder, [f"{folder}/*.[jt]*"]) == ["a.jpg", "notes.txt"]
    assert names(folder, [f"{folder}/**/*.bmp"]) == ["in/c.bmp"]
    assert names(folder, [f"{folder}/i*"]) == ["in/c.bmp"]


def test_a_file_may_have_any_name_and_comes_once(folder: Path) -> None:
    odd = folder / "x[1].dat"
    odd.touch()
    assert names(folder, [str(odd), str(folder / "a.jpg"), str(odd)]) == ["x[1].dat", "a.jpg"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("nowhere.png", r"Path '.*nowhere\.png' does not exist"),
        ("*.gif", "no file matches the pattern"),
        (".git", None),
        ("empty", "no pictures in the folder. Expected names that end in .*jpg"),
    ],
)
def test_a_place_without_pictures_is_an_error(
    folder: Path, given: str, message: str | None
) -> None:
    (folder / "empty").mkdir()
    if message is None:  # a file named by the user may be hidden
        assert names(folder, [str(folder / given)]) == [".git/d.png"]
        return
    with pytest.raises(InvalidArgumentError, match=message):
        find_pictures([str(folder / given)])


def test_links_to_folders_above_end_and_repeat_nothing(folder: Path) -> None:
    for name in ("up", "again"):
        (folder / "in" / name).symlink_to(folder)
    assert names(folder, [f"{folder}/**/*.bmp"]) == ["in/c.bmp"]
    assert names(folder, [f"{folder}/**"]) == ["a.jpg", "b.PNG", "in/c.bmp", "notes.txt"]
    assert names(folder, [f"{folder}/in/u*/*.jpg"]) == ["in/up/a.jpg"]
