"""Reads arrays from files, and writes the files of commands, with errors that name them."""

from __future__ import annotations

import os
import re
import tempfile
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from armpy.errors import InvalidArgumentError, suggest_path
from armpy.execution.arrays.conversion import as_stored
from armpy.store.owned_files import replacing

Array = npt.NDArray[np.generic]

_MODEL_SUFFIXES = (".tflite", ".onnx", ".armpy")
_NPY_MAGIC = b"\x93NUMPY"
_LONGEST_NAME = 100

_TRIED_BYTES = 4096
"""Bytes that are written to find out whether there is room: a block of most file systems."""


def model_files(paths: Iterable[str]) -> list[str]:
    """Models by their paths; of a folder, those in it, by name.

    Raises InvalidArgumentError if a folder has no models.
    """
    models: list[str] = []
    for path in paths:
        if not Path(path).is_dir():
            models.append(path)
            continue
        files = sorted(f for f in Path(path).iterdir() if f.suffix.lower() in _MODEL_SUFFIXES)
        if not files:
            expected = f"files ending in {', '.join(_MODEL_SUFFIXES)}"
            raise InvalidArgumentError("the folder has no models", where=path, expected=expected)
        models += map(str, files)
    return models


def read_lines(path: str) -> Array:
    """Read the lines of a file as a vector of strings.

    Raises InvalidArgumentError if there is no such file.
    """
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise _unreadable(path, error, "a text file") from error
    strings = np.empty(len(lines), object)
    strings[:] = lines
    return strings


def read_npy(path: str) -> Array:
    """Read an array; pickled objects are refused.

    Raises InvalidArgumentError if there is no such file or it holds no array of numbers.
    """
    try:
        with Path(path).open("rb") as file:
            start = file.read(len(_NPY_MAGIC))
        if start != _NPY_MAGIC:
            raise InvalidArgumentError(
                "not a .npy file",
                where=path,
                expected="a file that np.save wrote",
                actual="another file format",
                fix="Save each array with np.save, to a file of its own",
            )
        # A mapping checks the shape against the file before memory is taken for it.
        array: Array = np.array(np.load(path, mmap_mode="r", allow_pickle=False))
    except OSError as error:
        raise _unreadable(path, error, "a .npy file") from error
    except InvalidArgumentError:
        raise
    except (
        *(ValueError, EOFError, SyntaxError, TypeError, OverflowError),
        tokenize.TokenError,  # a header that ends early
    ) as error:
        raise InvalidArgumentError(
            f"the array cannot be read: {str(error).rstrip('.')}", where=path
        ) from error
    return array


def _unreadable(path: str, error: OSError, expected: str) -> InvalidArgumentError:
    is_missing = isinstance(error, FileNotFoundError)
    return InvalidArgumentError(
        f"cannot be read: {error.strerror or error}",
        where=path,
        expected=expected,
        fix=suggest_path(path) if is_missing else "Check the file's permissions",
    )


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise InvalidArgumentError, which names the file, if a block cannot write it."""
    try:
        yield
    except BrokenPipeError:
        raise  # its reader has enough
    except OSError as error:
        raise InvalidArgumentError(
            f"it cannot be written: {error.strerror or error}",
            where=os.fspath(path),
            fix="Write to another folder, which exists and has free space",
        ) from error


def check_writable(path: str) -> None:
    """Try whether a file, or a folder that is made, can be written, before anything is computed.

    Raises InvalidArgumentError if it cannot, or its file system is full.
    """
    with writing(path):
        target = os.path.realpath(path)  # there is none if the current folder was removed
        if os.path.exists(target) and not (os.path.isfile(target) or os.path.isdir(target)):
            return  # opening a pipe or a device has effects
        folder = target if os.path.isdir(target) else os.path.dirname(target)
        while not os.path.exists(folder):
            folder = os.path.dirname(folder)
        if os.path.isfile(target) and not os.access(folder, os.W_OK):
            with open(target, "ab"):
                return
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(_TRIED_BYTES))


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file of a command in UTF-8; a regular file appears whole or stays as it was.

    Raises InvalidArgumentError if it cannot be written.
    """
    with writing(path):
        target = os.path.realpath(path)
        # What is no regular file, and what stands in a folder of others, is written in place.
        is_new = not os.path.exists(target)
        is_own = os.path.isfile(target) and os.access(os.path.dirname(target), os.W_OK)
        with replacing(target) if is_new or is_own else open(target, "wb") as file:
            file.write(text.encode())


def file_stems(names: Iterable[str]) -> list[str]:
    """File names without extension for tensors' names: plain, in one folder, all different."""
    stems: list[str] = []
    used: set[str] = set()
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9._-]+", "_", name).lstrip("._-")[:_LONGEST_NAME] or "output"
        stem, number = plain, 1
        # Some file systems ignore the case of letters.
        while stem.lower() in used:
            stem, number = f"{plain}_{number}", number + 1
        used.add(stem.lower())
        stems.append(stem)
    return stems


def write_outputs(folder: str, arrays: Mapping[str, Array]) -> list[str]:
    """Write each output as ``.npy``; paths of the files."""
    target = Path(folder)
    with writing(folder):
        target.mkdir(parents=True, exist_ok=True)
    written: list[str] = []
    for array, stem in zip(arrays.values(), file_stems(arrays), strict=True):
        written.append(str(target / f"{stem}.npy"))
        # Files of NumPy's have no small floats: readers get the same bits with any packages.
        # Strings are of NumPy's own type, as objects would have to be pickled.
        stored = array.astype(np.str_) if array.dtype.hasobject else as_stored(array)
        with writing(written[-1]):
            np.save(written[-1], stored, allow_pickle=False)
    return written
