"""Writes what came of pictures to one file: CSV, JSON lines, or arrays."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armpy.cli.files import file_stems
from armpy.cli.printer import plain

if TYPE_CHECKING:
    from armpy.cli.run.picture_result import PictureResult
    from armpy.cli.run.results import Array, ClassScore, OutputReport


def write_results(
    path: str, pictures: Sequence[PictureResult], arrays: Sequence[Mapping[str, Array]], top: int
) -> None:
    """Write the results of pictures.

    Parameters
    ----------
    path : str
        Its suffix says how.
    pictures : sequence of PictureResult
    arrays : sequence of mapping of str to ndarray
        The outputs of each picture that could be used; read for ``.npz`` alone.
    top : int
        Classes that each picture has columns for.
    """
    suffix = Path(path).suffix.lower()
    if suffix == ".npz":
        _write_arrays(path, pictures, arrays)
    elif suffix == ".jsonl":
        documents = (plain(asdict(picture)) for picture in pictures)
        _write_text(path, "".join(json.dumps(one, allow_nan=False) + "\n" for one in documents))
    else:
        _write_table(path, pictures, top)


def _write_text(path: str, text: str) -> None:
    """Write a text at once: what it lacks is known before a file is there.

    Notes
    -----
    Bytes of a file's name that are no UTF-8 are written as on a terminal: escaped.
    """
    Path(path).write_bytes(_named(text).encode("utf-8"))


def _named(text: str) -> str:
    """A text whose undecodable bytes are escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _write_arrays(
    path: str, pictures: Sequence[PictureResult], arrays: Sequence[Mapping[str, Array]]
) -> None:
    """Write each output of all pictures as one array, and ``files`` with their names.

    Notes
    -----
    Outputs whose shapes differ from picture to picture are one array each, ``name/number``.
    """
    files = [_named(picture.file) for picture in pictures if not picture.error]
    names = list(arrays[0]) if arrays else []
    # A name that the archive's own entry has, or that differs in what no file system tells apart.
    stems = [stem if stem != "files" else "files_1" for stem in file_stems(names)]
    content: dict[str, Array] = {"files": np.array(files, np.str_)}
    for name, stem in zip(names, stems, strict=True):
        each = [outputs[name] for outputs in arrays]
        if len({array.shape for array in each}) == 1 and each[0].ndim:
            # A first dimension of 1 is the picture's own place.
            joined = np.concatenate(each) if len(each[0]) == 1 else np.stack(each)
            content[stem] = joined
        elif len({array.shape for array in each}) == 1:
            content[stem] = np.stack(each)
        else:
            content |= {f"{stem}/{number}": array for number, array in enumerate(each)}
    with Path(path).open("wb") as file:
        np.savez_compressed(file, **content)  # type: ignore[arg-type]  # names are the outputs'


def _write_table(path: str, pictures: Sequence[PictureResult], top: int) -> None:
    """Write a CSV file: rows are pictures, or what was found in them."""
    used = [picture for picture in pictures if not picture.error]
    columns, rows = _columns(used, top)
    has_truth = any(picture.truth for picture in pictures)
    has_error = len(used) < len(pictures)
    heading = [
        "file",
        *columns,
        *(("truth", "right") if has_truth else ()),
        *(("error",) if has_error else ()),
    ]
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(heading)
    for picture in pictures:
        found = list(rows(picture)) if not picture.error else []
        for cells in found or [[""] * len(columns)]:
            row: list[object] = [picture.file, *cells]
            if has_truth:
                right = "" if picture.is_right is None else int(picture.is_right)
                row += [picture.truth, right]
            if has_error:
                row.append(picture.error)
            writer.writerow(row)
    _write_text(path, text.getvalue())


class _Rows:
    """Makes the rows of a picture; one method for each kind of answer."""

    def __init__(self, top: int) -> None:
        self.top = top

    def detections(self, picture: PictureResult) -> Iterable[Sequence[object]]:
        """A row for each object."""
        found = picture.findings
        for one in found.detections if found is not None else ():
            corners = (f"{edge:.2f}" for edge in (one.left, one.top, one.right, one.bottom))
            yield [one.index, one.label, f"{one.score:.6g}", *corners]

    def poses(self, picture: PictureResult) -> Iterable[Sequence[object]]:
        """A row for each key point of each person."""
        found = picture.findings
        for number, pose in enumerate(found.poses if found is not None else ()):
            for point in pose.points:
                place = (f"{point.x:.2f}", f"{point.y:.2f}")
                yield [number, f"{pose.score:.6g}", point.name, f"{point.score:.6g}", *place]

    def classes(self, picture: PictureResult) -> Iterable[Sequence[object]]:
        """One row with the best classes beside each other."""
        row: list[object] = []
        for one in picture.outputs[0].classes[: self.top]:
            row += [one.index, f"{one.score:.6g}", one.label]
        yield row

    def batch(self, picture: PictureResult) -> Iterable[Sequence[object]]:
        """A row for each row of a batch."""
        for number, classes in enumerate(picture.outputs[0].rows):
            row: list[object] = [number]
            for one in classes[: self.top]:
                row += [one.index, f"{one.score:.6g}", one.label]
            yield row

    def regions(self, picture: PictureResult) -> Iterable[Sequence[object]]:
        """A row for each region."""
        for one in picture.outputs[0].regions:
            yield [one.index, one.label, one.pixels, f"{one.share:.6g}"]

    def figures(self, picture: PictureResult) -> Iterable[Sequence[object]]:
        """A row for each output."""
        for output in picture.outputs:
            shape = "x".join(map(str, output.shape))
            yield [output.name, shape, *map(_figure, (output.min, output.max, output.mean))]


def _figure(value: float | None) -> str:
    """A number, if there is one."""
    return "" if value is None else f"{value:.6g}"


def _columns(
    used: Sequence[PictureResult], top: int
) -> tuple[list[str], Callable[[PictureResult], Iterable[Sequence[object]]]]:
    """Headings, and what makes the rows of a picture."""
    rows = _Rows(top)
    if used and used[0].findings is not None:
        if used[0].findings.kind == "people":
            names = ["person", "score", "point", "point_score", "x", "y"]
            return names, rows.poses
        return ["class", "label", "score", "left", "top", "right", "bottom"], rows.detections
    outputs: Sequence[OutputReport] = used[0].outputs if used else ()
    if len(outputs) == 1 and outputs[0].classes:
        return _class_columns(outputs[0].classes, top), rows.classes
    if len(outputs) == 1 and outputs[0].rows:
        return ["row", *_class_columns(outputs[0].rows[0], top)], rows.batch
    if len(outputs) == 1 and outputs[0].regions:
        return ["class", "label", "pixels", "share"], rows.regions
    return ["output", "shape", "min", "max", "mean"], rows.figures


def _class_columns(classes: Sequence[ClassScore], top: int) -> list[str]:
    """Headings of the best classes beside each other."""
    numbers = range(1, min(top, len(classes)) + 1)
    suffixes = ["" if number == 1 else f"_{number}" for number in numbers]
    return [f"{name}{suffix}" for suffix in suffixes for name in ("class", "score", "label")]
