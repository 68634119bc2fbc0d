"""Tables of results: their columns, which follow from the first answer, and a picture's rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from armpy_tools.cli.pictures.picture_result import PictureResult

_COLUMNS = {
    "detections": ("class", "label", "score", "left", "top", "right", "bottom"),
    "poses": ("person", "score", "point", "point_score", "x", "y"),
    "classes": (),
    "batch": ("row",),
    "regions": ("class", "label", "pixels", "share"),
    "figures": ("output", "shape", "min", "max", "mean"),
}
"""What each kind of answer has columns for, besides those of classes beside each other."""

Layout = tuple[str, int]
"""Kind of the answers, which is a method of `TableRows`, and how many classes have columns."""


def layout_of(result: PictureResult, top: int) -> Layout:
    """Return how a table is laid out whose first picture gets an answer."""
    if result.findings is not None:
        return ("poses" if result.findings.kind == "people" else "detections"), 0
    if len(result.outputs) != 1:
        return "figures", 0
    output = result.outputs[0]
    if output.classes:
        return "classes", min(top, len(output.classes))
    if output.rows:
        return "batch", min(top, len(output.rows[0]))
    return ("regions" if output.regions else "figures"), 0


def columns_of(layout: Layout) -> list[str]:
    """Headings of a table."""
    kind, num_classes = layout
    suffixes = ["" if number == 1 else f"_{number}" for number in range(1, num_classes + 1)]
    classes = [f"{name}{suffix}" for suffix in suffixes for name in ("class", "score", "label")]
    return [*_COLUMNS[kind], *classes]


class TableRows:
    """Makes the rows of a picture; one method for each kind of answer.

    Parameters
    ----------
    top : int
        Classes beside each other.
    """

    def __init__(self, top: int) -> None:
        self.top = top

    def detections(self, picture: PictureResult) -> Iterable[Sequence[object]]:
        """A row for each object."""
        findings = picture.findings
        for detection in findings.detections if findings is not None else ():
            corners = (
                f"{edge:.2f}"
                for edge in (detection.left, detection.top, detection.right, detection.bottom)
            )
            yield [detection.index, detection.label, f"{detection.score:.6g}", *corners]

    def poses(self, picture: PictureResult) -> Iterable[Sequence[object]]:
        """A row for each key point of each person."""
        findings = picture.findings
        for number, pose in enumerate(findings.poses if findings is not None else ()):
            for point in pose.points:
                place = (f"{point.x:.2f}", f"{point.y:.2f}")
                yield [number, f"{pose.score:.6g}", point.name, f"{point.score:.6g}", *place]

    def classes(self, picture: PictureResult) -> Iterable[Sequence[object]]:
        """One row with the best classes beside each other."""
        row: list[object] = []
        for score in picture.outputs[0].classes[: self.top]:
            row += [score.index, f"{score.score:.6g}", score.label]
        yield row

    def batch(self, picture: PictureResult) -> Iterable[Sequence[object]]:
        """A row for each row of a batch."""
        for number, classes in enumerate(picture.outputs[0].rows):
            row: list[object] = [number]
            for score in classes[: self.top]:
                row += [score.index, f"{score.score:.6g}", score.label]
            yield row

    def regions(self, picture: PictureResult) -> Iterable[Sequence[object]]:
        """A row for each region."""
        for region in picture.outputs[0].regions:
            yield [region.index, region.label, region.pixels, f"{region.share:.6g}"]

    def figures(self, picture: PictureResult) -> Iterable[Sequence[object]]:
        """A row for each output."""
        for output in picture.outputs:
            shape = "x".join(map(str, output.shape))
            yield [output.name, shape, *map(_figure, (output.min, output.max, output.mean))]


def _figure(value: float | None) -> str:
    """A number, if there is one."""
    return "" if value is None else f"{value:.6g}"
