"""Finds the pictures that a command line names: files, folders, patterns."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from armpy.errors import InvalidArgumentError

SUFFIXES = frozenset(
    {
        *(".avif", ".bmp", ".gif", ".jfif", ".jpe", ".jpeg", ".jpg", ".pbm", ".pgm"),
        *(".png", ".pnm", ".ppm", ".tga", ".tif", ".tiff", ".webp"),
    }
)
"""Of files in folders that are taken for pictures; what is named itself may have any."""


def find_pictures(given: Sequence[str]) -> list[str]:
    """Paths of pictures, each once.

    Parameters
    ----------
    given : sequence of str
        Each a file, a folder (with the folders in it), or a pattern such as ``photos/*.jpg`` or
        ``photos/**/*.jpg``. A file whose name looks like a pattern is that file.

    Raises
    ------
    InvalidArgumentError
        If there is no such file, or no picture in a folder or of a pattern.
    """
    found = [path for text in given for path in _of(text)]
    return list(dict.fromkeys(found))


def is_one_file(given: Sequence[str]) -> bool:
    """Whether one picture is named, and not a place where there may be several."""
    return len(given) == 1 and os.path.isfile(given[0])


def _of(text: str) -> list[str]:
    """The pictures of one argument."""
    if os.path.isdir(text):
        return _required(list(_in_folder(text)), text, "no pictures in the folder")
    if os.path.exists(text):
        return [text]
    if glob.has_magic(text):
        matches = sorted(glob.glob(os.path.expanduser(text), recursive=True))
        paths = [
            path
            for match in matches
            for path in (_in_folder(match) if os.path.isdir(match) else (match,))
        ]
        return _required(paths, text, "no file matches the pattern")
    raise InvalidArgumentError(f"Path '{text}' does not exist", where="--image")


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
            where=f"--image {text}",
            expected="names that end in " + ", ".join(sorted(SUFFIXES)),
        )
    return paths
