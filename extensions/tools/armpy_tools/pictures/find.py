"""Finds the pictures that a command line names: files, folders, patterns."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from armpy.errors import Argument, InvalidArgumentError, suggest_path

SUFFIXES = frozenset(
    {
        *(".avif", ".bmp", ".gif", ".jfif", ".jpe", ".jpeg", ".jpg", ".pbm", ".pgm"),
        *(".png", ".pnm", ".ppm", ".tga", ".tif", ".tiff", ".webp"),
    }
)
"""Of files in folders that are taken for pictures; a file named by the user may have any."""

_SEPARATORS = re.escape(os.sep + (os.altsep or ""))
_ANY_FOLDERS = re.compile(rf"(?:^|(?<=[{_SEPARATORS}]))\*\*(?:[{_SEPARATORS}]+|$)")
"""The part of a pattern that stands for folders in folders."""


def find_pictures(given: Sequence[str]) -> list[str]:
    """Paths of pictures, each once.

    Parameters
    ----------
    given : sequence of str
        Each a file, a folder (with the folders in it), or a pattern such as ``photos/*.jpg`` or
        ``photos/**/*.jpg``. A file whose name looks like a pattern is that file. Links to folders
        are followed where they are named, not where folders in folders are looked through.

    Raises
    ------
    InvalidArgumentError
        If there is no such file, or no picture in a folder or of a pattern.
    """
    paths = [path for text in given for path in _of(text)]
    return list(dict.fromkeys(paths))


def is_one_file(given: Sequence[str]) -> bool:
    """Return whether one picture is named, and not a place where there may be several."""
    return len(given) == 1 and os.path.isfile(given[0])


def _of(text: str) -> list[str]:
    """The pictures of one argument."""
    if os.path.isdir(text):
        return _required(list(_in_folder(text)), text, "no pictures in the folder")
    if os.path.exists(text):
        return [text]
    if glob.has_magic(text):
        matches = sorted(_matches(os.path.expanduser(text)))
        paths = [
            path
            for match in matches
            for path in (_in_folder(match) if os.path.isdir(match) else (match,))
        ]
        return _required(paths, text, "no file matches the pattern")
    raise InvalidArgumentError(
        f"Path '{text}' does not exist", argument=Argument("image"), fix=suggest_path(text)
    )


def _matches(pattern: str) -> list[str]:
    """Return the matches of a pattern.

    Notes
    -----
    `glob` follows links below ``**``: with two links to a folder above there is no end to it.
    """
    first, *others = _ANY_FOLDERS.split(pattern)
    places = glob.glob(first) if first or not others else [""]
    for rest in others:
        folders = dict.fromkeys(folder for place in places for folder in _folders_in(place))
        matches = (
            match for folder in folders for match in glob.glob(glob.escape(folder) + (rest or "*"))
        )
        places = [path for path in matches if not (os.path.islink(path) and os.path.isdir(path))]
    return list(dict.fromkeys(places))


def _folders_in(place: str) -> Iterator[str]:
    """A folder and those in it, each so that a name can follow; none of links or hidden ones."""
    for path, folders, _ in os.walk(place or os.curdir):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        inner = path if place else os.path.relpath(path)
        yield "" if inner == os.curdir else os.path.join(inner, "")


def _in_folder(folder: str) -> Iterator[str]:
    """The pictures in a folder and in those in it, in order of their paths."""
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith(".") and Path(name).suffix.lower() in SUFFIXES:
                yield os.path.join(place, name)


def _required(paths: list[str], text: str, failed: str) -> list[str]:
    """Paths of which there is at least one."""
    if not paths:
        raise InvalidArgumentError(
            failed,
            argument=Argument("image", text),
            expected="names that end in " + ", ".join(sorted(SUFFIXES)),
        )
    return paths
