"""Arrays of many pictures: appended to a file as they come, then made one ``.npz`` of."""

from __future__ import annotations

import math
import struct
import zipfile
from collections.abc import Iterator, Mapping
from typing import IO, TYPE_CHECKING, BinaryIO

import numpy as np

from armpy.cli.files import file_stems
from armpy.errors import InvalidArgumentError
from armpy_tools.cli.pictures.jobs.encoders import named

if TYPE_CHECKING:
    from armpy_tools.cli.pictures.picture_result import PictureOutcome

_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of each entry: a file is the same whenever it was written."""

_COUNT = struct.Struct("<Q")

Shape = tuple[int, ...]


class SpoolEncoder:
    """Records of a spool: a picture's name, then the shape and elements of each output.

    Notes
    -----
    An archive cannot be appended to picture by picture, as each output is one array in it. What
    the records are of (names and types of outputs) is the same for all pictures of a model.
    """

    def __init__(self) -> None:
        self.types: dict[str, np.dtype[np.generic]] = {}

    def encode(self, outcome: PictureOutcome) -> bytes:
        """The picture's record; none of one that could not be used."""
        if outcome.outputs is None:
            return b""
        self.types = {name: array.dtype for name, array in outcome.outputs.items()}
        for output, dtype in self.types.items():
            if dtype.hasobject:  # whose bytes are addresses
                raise InvalidArgumentError(
                    "strings of several pictures cannot be written to an archive",
                    where=f"output '{output}'",
                    fix="Write a table or a document: --output results.csv or results.json",
                )
        name = named(outcome.result.file).encode()
        pieces = [_COUNT.pack(len(name)), name]
        for array in outcome.outputs.values():
            pieces += [_COUNT.pack(array.ndim), *map(_COUNT.pack, array.shape), array.tobytes()]
        return b"".join(pieces)

    def rest(self) -> bytes:
        """Nothing."""
        return b""


def write_archive(
    spool: BinaryIO, types: Mapping[str, np.dtype[np.generic]], target: IO[bytes]
) -> None:
    """Write each output of all pictures as one array, and ``files`` with their names.

    Parameters
    ----------
    spool : file
        What a `SpoolEncoder` has made; can be sought in.
    types : mapping of str to dtype
        Of the outputs, in their order.
    target : file

    Notes
    -----
    Outputs whose shapes differ from picture to picture are one array each, ``name/number``. Only
    the names of pictures are in memory together.
    """
    outputs = list(types)
    files: list[str] = []
    shapes: dict[str, dict[Shape, None]] = {name: {} for name in outputs}
    for file, places in _records(spool, types):
        files.append(file)
        for name, (shape, _) in zip(outputs, places, strict=True):
            shapes[name][shape] = None
    # Avoids the archive's own entry, and names that some file systems treat as equal.
    stems = [stem if stem != "files" else "files_1" for stem in file_stems(outputs)]
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        with _entry(archive, "files") as entry:
            np.lib.format.write_array(entry, np.array(files, np.str_), allow_pickle=False)
        for place, (name, stem) in enumerate(zip(outputs, stems, strict=True)):
            same = next(iter(shapes[name])) if len(shapes[name]) == 1 else None
            if same is not None:
                # A first dimension of 1 is the picture's own place.
                whole = (len(files), *(same[1:] if same[:1] == (1,) else same))
                with _entry(archive, stem) as entry:
                    _write_heading(entry, types[name], whole)
                    for _, places in _records(spool, types):
                        _copy(spool, places[place], types[name], entry)
                continue
            for number, (_, places) in enumerate(_records(spool, types)):
                with _entry(archive, f"{stem}/{number}") as entry:
                    _write_heading(entry, types[name], places[place][0])
                    _copy(spool, places[place], types[name], entry)


def _records(
    spool: BinaryIO, types: Mapping[str, np.dtype[np.generic]]
) -> Iterator[tuple[str, list[tuple[Shape, int]]]]:
    """Each picture's name, and the shape of each output with its place in the spool."""
    at, end = 0, spool.seek(0, 2)
    while at < end:
        spool.seek(at)
        file = spool.read(_number(spool)).decode()
        places = []
        for dtype in types.values():
            shape = tuple(_number(spool) for _ in range(_number(spool)))
            places.append((shape, spool.tell()))
            at = spool.seek(math.prod(shape) * dtype.itemsize, 1)
        yield file, places


def _number(spool: BinaryIO) -> int:
    """The number that comes next."""
    (number,) = _COUNT.unpack(spool.read(_COUNT.size))
    return int(number)


def _entry(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    """A new array of an archive, to be written."""
    about = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
    about.compress_type = zipfile.ZIP_DEFLATED
    return archive.open(about, "w", force_zip64=True)


def _write_heading(entry: IO[bytes], dtype: np.dtype[np.generic], shape: Shape) -> None:
    """Write what comes before an array's elements."""
    about = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(entry, about)


def _copy(
    spool: BinaryIO, place: tuple[Shape, int], dtype: np.dtype[np.generic], entry: IO[bytes]
) -> None:
    """Copy an array's elements."""
    shape, at = place
    spool.seek(at)
    left = math.prod(shape) * dtype.itemsize
    while left:
        piece = spool.read(min(left, 1 << 20))
        left -= entry.write(piece)
