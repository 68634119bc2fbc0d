"""Table that `armpy pictures` prints: a row for each picture, and the placement."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from armpy.cli.printer import Printer
from armpy.cli.run.report import placement_in, print_placement, print_timing
from armpy.core.documents import document_of
from armpy.tensor import format_shape

if TYPE_CHECKING:
    from armpy.cli.run.results import ClassScore, OutputReport
    from armpy_tools.cli.pictures.picture_result import PictureResult, PicturesReport

_SHOWN = 50
"""Pictures at either end of a table; so many twice are shown whole."""

_MOST_REGIONS = 3

_ORDINALS = ("best", "2nd", "3rd")


def print_pictures(report: PicturesReport, *, shown: int = 1) -> None:
    """Print what a run on many pictures has shown: the answers first.

    Parameters
    ----------
    report : PicturesReport
    shown : int
        How many classes to list for each picture.
    """
    printer = Printer()
    folder = _common_folder([picture.file for picture in report.pictures])
    total = len(report.pictures)
    where = f" in {folder}" if folder else ""
    printer.line(f"pictures: {total}{where}, each as {report.input or 'nothing'}")
    columns, rows = _table(report, folder, shown)
    left_out = total - 2 * _SHOWN
    if left_out > 0:
        rows[_SHOWN:-_SHOWN] = [[f"... {left_out} more ...", *[""] * (len(columns) - 1)]]
    printer.table(columns, rows)
    rate = f"{report.pictures_per_s:.1f} pictures/s"
    printer.line(f"time: {report.duration_s:.2f} s with reading them, {rate}")
    if report.failed:
        printer.marked(f"not used: {report.failed} of {total} pictures", is_good=False)
    for picture in report.pictures[_SHOWN:-_SHOWN]:
        if picture.error:
            printer.line(f"not used: {_short(picture.file, folder)}: {picture.error}")
    if report.timing is not None:
        print_timing(printer, report.timing)
    if report.metadata:
        printer.line(f"from the file's metadata: {'; '.join(report.metadata)}")
    print_placement(printer, report.placement, report.placed)
    for path in report.files:
        printer.line(f"written: {path}")


def pictures_document(model: str, report: PicturesReport) -> dict[str, object]:
    """A run on many pictures as a JSON document."""
    document: dict[str, object] = {"model": model, **document_of(replace(report, placed=None))}
    del document["placed"]
    document["placement"] = placement_in(report.placement, report.placed)
    document["layers_by_backend"] = report.placed.layers_by_backend if report.placed else {}
    document["pictures_per_s"] = report.pictures_per_s
    document["failed"] = report.failed
    return document


def _common_folder(files: Sequence[str]) -> str:
    """The folder that all files are in, so that no row repeats it; empty if there is none."""
    folders = {os.path.dirname(file) for file in files}
    try:
        return os.path.commonpath(folders) if folders and "" not in folders else ""
    except ValueError:  # absolute and relative ones, or several drives
        return ""


def _short(file: str, folder: str) -> str:
    """A file's name within a folder."""
    return os.path.relpath(file, folder) if folder else file


def _table(report: PicturesReport, folder: str, shown: int) -> tuple[list[str], list[list[object]]]:
    """Columns, and a row for each picture; without columns that have nothing in them."""
    used = [picture for picture in report.pictures if not picture.error]
    answers, cells = _answer_columns(used, shown)
    columns = ["file", *answers, "problem"]
    by_file = iter(cells)
    rows: list[list[object]] = []
    for picture in report.pictures:
        answer = [""] * len(answers) if picture.error else next(by_file)
        rows.append([_short(picture.file, folder), *answer, picture.error])
    columns_used = [
        place
        for place, name in enumerate(columns)
        if any(row[place] != "" for row in rows) or name == "file"
    ]
    return [columns[i] for i in columns_used], [[row[i] for i in columns_used] for row in rows]


def _answer_columns(
    used: Sequence[PictureResult], shown: int
) -> tuple[list[str], list[list[object]]]:
    """The columns that a model's answers have, and the cells of each picture."""
    if not used:
        return [], []
    first = used[0]
    if first.findings is not None:
        return ["found>", first.findings.kind], [_findings(picture) for picture in used]
    (output, *others) = first.outputs
    if not others and output.classes:
        count = min(shown, len(output.classes))
        columns = ["class>", "score>", "label"]
        columns += [_ordinal(number) for number in range(1, count)]
        return columns, [_classes(picture.outputs[0].classes[:count]) for picture in used]
    if not others and output.regions:
        return ["regions"], [[_regions(picture.outputs[0])] for picture in used]
    return ["outputs"], [["; ".join(map(_figures, picture.outputs))] for picture in used]


def _ordinal(number: int) -> str:
    """Heading of a place among the classes, 0 for the best."""
    return _ORDINALS[number] if number < len(_ORDINALS) else f"{number + 1}th"


def _classes(classes: Sequence[ClassScore]) -> list[object]:
    """Cells of the best class, and of those after it."""
    best, *others = classes
    more = [f"{other.label or other.index} {other.score:.4f}" for other in others]
    return [best.index, f"{best.score:.4f}", best.label, *more]


def _findings(picture: PictureResult) -> list[object]:
    """Cells of a picture in which a model looks for things."""
    findings = picture.findings
    if findings is None:
        return [0, ""]
    if findings.kind == "people":
        texts = [f"{pose.score:.2f}" for pose in findings.poses]
    else:
        texts = [
            f"{detection.label or detection.index} {detection.score:.2f}"
            for detection in findings.detections
        ]
    return [len(texts), ", ".join(texts)]


def _regions(output: OutputReport) -> str:
    """The largest regions of a mask."""
    regions = output.regions[:_MOST_REGIONS]
    return ", ".join(f"{region.label or region.index} {region.share:.1%}" for region in regions)


def _figures(output: OutputReport) -> str:
    """Return the figures of an output of unknown form."""
    text = f"{output.name} {format_shape(output.shape)}"
    if output.min is None:
        return text
    return f"{text} {output.min:.4g} to {output.max:.4g}, mean {output.mean:.4g}"
