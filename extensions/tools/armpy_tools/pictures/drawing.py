"""Draws what a model has found onto the picture: regions, boxes, key points, classes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from armpy.cli.pictures.images import open_image
from armpy.cli.pictures.labels import BACKGROUND
from armpy.cli.run.results import Mask, OutputReport, ReadOutputs
from armpy_tools.pictures.detections import Detection, Findings, Frame, Pose
from armpy_tools.pictures.masks import palette

_SMALLEST_SIDE = 400
"""Pixels of a drawn picture's longer side: smaller ones are enlarged, so that text fits."""

_TINT = 0.55
_MOST_LINES = 8
_PAPER = (250, 250, 250)
_INK = (20, 20, 20)
_BAR = (66, 133, 244)
_PEOPLE = (255, 80, 40)
_NUM_COLOURS = 256

_LIMBS = (
    *((0, 1), (0, 2), (1, 3), (2, 4), (5, 6), (5, 7), (7, 9), (6, 8), (8, 10)),
    *((5, 11), (6, 12), (11, 12), (11, 13), (13, 15), (12, 14), (14, 16)),
)
"""Which of `armpy_tools.pictures.detections.KEY_POINTS` lines join."""

Colour = tuple[int, int, int]


def draw_picture(
    path: str,
    read: ReadOutputs,
    findings: Findings | None,
    frame: Frame,
    *,
    min_score: float = 0.3,
) -> Image.Image:
    """A picture with the findings in it.

    Parameters
    ----------
    path : str
    read : ReadOutputs
    findings : Findings, optional
    frame : Frame
        The model's input made from the picture.
    min_score : float
        Least score of a key point that is drawn.

    Returns
    -------
    Image
        Mode RGB, with a legend below where there is something to name.
    """
    picture = open_image(path).convert("RGB")
    factor = max(1, -(-_SMALLEST_SIDE // max(picture.size)))
    mask = next(iter(read.masks.values()), None)
    if mask is not None:
        picture = _tinted(picture, mask, frame, _left_alone(read))
    if factor > 1:
        picture = picture.resize((picture.width * factor, picture.height * factor))
    painter = _Painter(picture, factor)
    if findings is not None:
        for detection in reversed(findings.detections):
            painter.box(detection)
        for pose in findings.poses:
            painter.person(pose, min_score)
        return picture
    lines = _legend(read.reports, None if mask is None else _left_alone(read))
    return painter.with_legend(lines) if lines else picture


def save_drawn(folder: str, name: str, source: str, picture: Image.Image) -> str:
    """Write a drawn picture; the path of the file.

    Parameters
    ----------
    folder, name : str
        The file's folder, which is made, and its name without suffix.
    source : str
        The picture that was drawn on, whose folder keeps all its files.
    picture : Image
    """
    target = Path(folder) / f"{name}.png"
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists() and target.resolve().parent == Path(source).resolve().parent:
        target = target.with_name(f"{name}_result.png")
    picture.save(target)
    return str(target)


def colour_of(index: int) -> Colour:
    """The colour of a class in masks and boxes; black for 0."""
    place = 3 * (index % _NUM_COLOURS)
    red, green, blue = palette()[place : place + 3]
    return red, green, blue


def _left_alone(read: ReadOutputs) -> int | None:
    """The class of the background; None if there is none."""
    for labels in read.labels.values():
        name = labels.name(0).lower()
        return 0 if not name or name == BACKGROUND else None
    return 0


def _tinted(picture: Image.Image, mask: Mask, frame: Frame, left_alone: int | None) -> Image.Image:
    """A picture with the colour of each pixel's class over it."""
    width, height = round(frame.right - frame.left), round(frame.bottom - frame.top)
    shown = Image.fromarray((mask % _NUM_COLOURS).astype(np.uint8))
    shown = shown.resize((max(width, 1), max(height, 1)), Image.Resampling.NEAREST)
    seen = Image.fromarray(np.full((shown.height, shown.width), 255, np.uint8))
    place = (round(frame.left), round(frame.top))
    classes, covered = Image.new("L", picture.size), Image.new("L", picture.size)
    classes.paste(shown, place)
    covered.paste(seen, place)
    indexes = np.asarray(classes)
    share = np.where(np.asarray(covered) > 0, _TINT, 0.0)
    if left_alone is not None:
        share = np.where(indexes == left_alone, 0.0, share)
    colours = np.array(palette(), np.float64).reshape(-1, 3)[indexes]
    mixed = np.asarray(picture) * (1 - share[..., None]) + colours * share[..., None]
    return Image.fromarray(np.rint(mixed).astype(np.uint8))


def _legend(
    reports: Sequence[OutputReport], left_alone: int | None
) -> list[tuple[Colour | None, float, str]]:
    """Colour, share from 0 to 1, and text of each line below a picture."""
    lines: list[tuple[Colour | None, float, str]] = []
    for report in reports:
        for region in report.regions[:_MOST_LINES]:
            name = region.label or f"class {region.index}"
            colour = _PAPER if region.index == left_alone else colour_of(region.index)
            lines.append((colour, region.share, f"{name} {region.share:.1%}"))
        for class_score in report.classes[:_MOST_LINES]:
            share = min(max(class_score.score, 0.0), 1.0)
            lines.append(
                (
                    None,
                    share,
                    f"{class_score.label or f'class {class_score.index}'} {class_score.score:.3f}",
                )
            )
    return lines


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    """Pillow's own font; old ones have it in one size."""
    try:
        return ImageFont.load_default(size)
    except TypeError:
        return ImageFont.load_default()


class _Painter:
    """Paints on a picture in sizes that go with it.

    Parameters
    ----------
    picture : Image
        Mode RGB; painted on in place.
    factor : int
        How much it was enlarged.
    """

    def __init__(self, picture: Image.Image, factor: int) -> None:
        self._picture = picture
        self._factor = factor
        self._pen: ImageDraw.ImageDraw = ImageDraw.Draw(picture)
        self._text_size = max(13, max(picture.size) // 36)
        self._font = _font(self._text_size)
        self._width = max(2, max(picture.size) // 250)

    def box(self, found: Detection) -> None:
        """Paint an object's box, with its name and score at its top."""
        colour = colour_of(found.index + 1)  # the first one is black
        edges = (found.left, found.top, found.right, found.bottom)
        left, top, right, bottom = (self._factor * edge for edge in edges)
        self._pen.rectangle(
            (min(left, right), min(top, bottom), max(left, right), max(top, bottom)),
            outline=colour,
            width=self._width,
        )
        name = found.label or f"class {found.index}"
        self._tag(left, top, f"{name} {found.score:.2f}", colour)

    def _tag(self, left: float, top: float, text: str, colour: Colour) -> None:
        """Paint a text on a coloured ground above a point, or within the picture."""
        _, _, width, height = self._pen.textbbox((0, 0), text, font=self._font)
        x = min(max(left, 0), max(self._picture.width - width - 4, 0))
        y = top - height - 4 if top >= height + 4 else max(top, 0)
        self._pen.rectangle((x, y, x + width + 4, y + height + 4), fill=colour)
        red, green, blue = colour
        is_light = 0.3 * red + 0.6 * green + 0.1 * blue > 128
        self._pen.text((x + 2, y + 1), text, fill=_INK if is_light else _PAPER, font=self._font)

    def person(self, pose: Pose, min_score: float) -> None:
        """Paint a person's key points, and lines between them."""
        places = [
            (self._factor * point.x, self._factor * point.y) if point.score >= min_score else None
            for point in pose.points
        ]
        for first, second in _LIMBS:
            begin, end = places[first], places[second]
            if begin is not None and end is not None:
                self._pen.line((begin, end), fill=_PEOPLE, width=self._width)
        radius = 1.5 * self._width
        for place in filter(None, places):
            x, y = place
            corners = (x - radius, y - radius, x + radius, y + radius)
            self._pen.ellipse(corners, fill=_PAPER, outline=_INK)

    def with_legend(self, lines: Sequence[tuple[Colour | None, float, str]]) -> Image.Image:
        """The picture with lines of text below it, each after its colour or a bar."""
        height = round(1.5 * self._text_size)
        margin = height // 3
        whole = Image.new(
            "RGB",
            (self._picture.width, self._picture.height + height * len(lines) + 2 * margin),
            _PAPER,
        )
        whole.paste(self._picture)
        pen = ImageDraw.Draw(whole)
        swatch = 3 * self._text_size
        for number, (colour, share, text) in enumerate(lines):
            top = self._picture.height + margin + number * height
            length = swatch if colour is not None else max(1, round(swatch * share))
            place = (margin, top + 3, margin + length, top + height - 4)
            pen.rectangle(place, fill=colour or _BAR, outline=None if colour is None else _INK)
            pen.text((2 * margin + swatch, top), text, fill=_INK, font=self._font)
        return whole
