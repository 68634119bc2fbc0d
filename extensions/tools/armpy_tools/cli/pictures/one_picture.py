"""One picture as the input of a model, and the findings in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armpy.cli.files import file_stems, writing
from armpy.cli.pictures.images import open_image
from armpy.cli.printer import Printer, print_json
from armpy.cli.run.report import print_run, run_document, show_hints, without_empty_last
from armpy.cli.run.run_model import (
    RunOutputs,
    RunReport,
    RunRequest,
    run_model,
)
from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError
from armpy.execution import dequantize_array
from armpy_tools.cli.pictures.output_files import write_run
from armpy_tools.pictures.detections import Findings, Frame, find
from armpy_tools.pictures.drawing import draw_picture, save_drawn
from armpy_tools.pictures.picture_reader import shown_size

if TYPE_CHECKING:
    from armpy.cli.run.results import OutputReader
    from armpy.model import Model
    from armpy.ops.operation import Array


_LEAST_NDIM = 3
"""Least rank that some output has in every format with places: most models are recognised without
reading their elements."""


@dataclass(frozen=True, slots=True)
class PictureRequest(RunRequest):
    """Request to run a model and to look for objects and people in its outputs."""

    min_score: float = 0.3
    """Least score of an object or a person that counts."""

    save_pictures: str | None = None
    """Folder for the picture with the findings drawn on it."""

    def __post_init__(self) -> None:
        RunRequest.__post_init__(self)  # a class with slots is made anew: super() has the old one
        if self.image is None and self.save_pictures is not None:
            raise InvalidArgumentError("--save-pictures needs pictures to draw on")


def run_one(model: Model, request: PictureRequest) -> tuple[RunReport, Findings | None]:
    """Run a model once; return the report and the findings in the picture.

    Raises
    ------
    InvalidArgumentError
        If the request does not fit the model.
    """
    findings: Findings | None = None

    def write(outputs: RunOutputs) -> list[str]:
        nonlocal findings
        files: list[str] = []
        if request.output is not None:
            files += write_run(request.output, outputs, request.top)
        if request.image is not None:
            findings, drawn = _find_and_draw(request.image, request, outputs)
            files += drawn
        return files

    report = run_model(model, request, write)
    return report, findings


def show_one(path: str, model: Model, request: PictureRequest, *, as_json: bool) -> None:
    """Run a model once and print the report."""
    report, findings = run_one(model, request)
    show_hints(report.hints)
    if as_json:
        document = None if findings is None else asdict(findings)
        print_json({**run_document(path, report), "findings": document})
    else:
        print_run(report, None if findings is None else lambda p: _print_findings(p, findings))


def findings_of(
    reader: OutputReader,
    results: Mapping[str, Array],
    shown: tuple[int, int],
    frame: Frame,
    min_score: float,
) -> Findings | None:
    """Return the outputs' places in a picture; see `armpy_tools.pictures.detections.find`.

    Labels are the user's, or those of any output of the file.
    """
    outputs = reader.model.outputs
    if all(results[spec.name].ndim < _LEAST_NDIM for spec in outputs):
        return None
    real = [dequantize_array(results[spec.name], spec.info).astype(np.float64) for spec in outputs]
    labels = reader.labels
    if labels is None and reader.metadata is not None:
        labels = reader.metadata.any_labels(outputs)
    return find(real, shown, frame, labels, min_score)


def _find_and_draw(
    path: str, request: PictureRequest, outputs: RunOutputs
) -> tuple[Findings | None, list[str]]:
    """Return the findings in a picture; paths of drawings, if there is a folder for them."""
    given = request.inputs.values([spec.name for spec in outputs.reader.model.inputs])
    (elements,) = (array for name, array in outputs.inputs.items() if name not in given)
    shown, min_score = shown_size(elements), request.min_score
    findings = findings_of(outputs.reader, outputs.results, shown, Frame(), min_score)
    if findings is None and request.save_pictures is None:
        return None, []
    frame = Frame.of(open_image(path).size, shown, request.picture.resize)
    findings = findings_of(outputs.reader, outputs.results, shown, frame, min_score)
    if request.save_pictures is None:
        return findings, []
    drawn = draw_picture(path, outputs.read, findings, frame, min_score=min_score)
    (stem,) = file_stems([Path(path).stem])
    with writing(request.save_pictures):
        return findings, [save_drawn(request.save_pictures, stem, path, drawn)]


def _print_findings(printer: Printer, findings: Findings) -> None:
    """Print the objects or people that were found, each with its place in pixels."""
    number = len(findings.poses) if findings.kind == "people" else len(findings.detections)
    printer.heading(f"Found: {number} {findings.kind}")
    if findings.detections:
        columns = ["class>", "score>", "left>", "top>", "right>", "bottom>", "label"]
        rows = [
            (
                detection.index,
                f"{detection.score:.4f}",
                *(
                    f"{edge:.0f}"
                    for edge in (detection.left, detection.top, detection.right, detection.bottom)
                ),
                detection.label,
            )
            for detection in findings.detections
        ]
        printer.table(*without_empty_last(columns, rows))
    for person, pose in enumerate(findings.poses):
        printer.line(f"person {person}: score {pose.score:.4f}")
        points = [(f"{p.score:.4f}", f"{p.x:.0f}", f"{p.y:.0f}", p.name) for p in pose.points]
        printer.table(["score>", "x>", "y>", "point"], points)
