"""Draw pictures of the ten digits, white on black, from the strokes written down in this file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from PIL import Image, ImageDraw

Point: TypeAlias = tuple[float, float]
"""A place in the unit square: x to the right, y downwards."""

LABELS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
PICTURE_SIZE = 128
PEN_WIDTH = 0.11
OVERSAMPLING = 4
ARC_STEP_DEGREES = 3.0


@dataclass(frozen=True, slots=True)
class Arc:
    """A piece of an ellipse whose axes are horizontal and vertical.

    Parameters
    ----------
    centre : Point
    radii : tuple of float
        Horizontal and vertical radius.
    start, end : float
        Angles in degrees, 0 to the right and 90 downwards. The pen goes from `start` to `end`,
        clockwise if `end` is the larger one.
    """

    centre: Point
    radii: tuple[float, float]
    start: float
    end: float

    def points(self) -> list[Point]:
        """Return the points of the polyline that stands for the arc, both ends included."""
        num_steps = max(1, math.ceil(abs(self.end - self.start) / ARC_STEP_DEGREES))
        angles = (
            math.radians(self.start + (self.end - self.start) * idx / num_steps)
            for idx in range(num_steps + 1)
        )
        (x, y), (x_radius, y_radius) = self.centre, self.radii
        return [
            (x + x_radius * math.cos(angle), y + y_radius * math.sin(angle)) for angle in angles
        ]


Stroke: TypeAlias = tuple[Point | Arc, ...]
"""What the pen draws without being lifted: places and arcs, joined by straight lines."""

Drawing: TypeAlias = tuple[Stroke, ...]
"""The strokes of one digit."""

# The first drawing of a digit is the one that is shown; the others are further ways to write it,
# for training.
DRAWINGS: dict[str, tuple[Drawing, ...]] = {
    "zero": (((Arc((0.50, 0.50), (0.23, 0.35), -90, 270),),),),
    "one": (
        (((0.34, 0.32), (0.54, 0.15), (0.54, 0.85)),),
        (((0.50, 0.15), (0.50, 0.85)),),
        (((0.34, 0.30), (0.51, 0.15), (0.51, 0.85)), ((0.33, 0.85), (0.69, 0.85))),
    ),
    "two": (
        ((Arc((0.50, 0.36), (0.23, 0.21), 190, 395), (0.27, 0.85), (0.75, 0.85)),),
        (
            (
                Arc((0.47, 0.35), (0.23, 0.20), 200, 410),
                Arc((0.36, 0.77), (0.09, 0.08), 90, 360),
                (0.77, 0.85),
            ),
        ),
    ),
    "three": (
        ((Arc((0.48, 0.32), (0.21, 0.17), 200, 450), Arc((0.48, 0.67), (0.24, 0.18), 270, 520)),),
        (((0.27, 0.15), (0.71, 0.15), (0.47, 0.43), Arc((0.47, 0.64), (0.25, 0.21), 270, 515)),),
    ),
    "four": (
        (((0.60, 0.85), (0.60, 0.15), (0.23, 0.63), (0.79, 0.63)),),
        (((0.31, 0.15), (0.25, 0.54), (0.76, 0.54)), ((0.66, 0.22), (0.62, 0.85))),
    ),
    "five": (
        (((0.71, 0.15), (0.33, 0.15), (0.30, 0.46), Arc((0.48, 0.62), (0.24, 0.23), 225, 505)),),
        (
            (
                (0.70, 0.15),
                (0.36, 0.15),
                (0.36, 0.42),
                (0.46, 0.42),
                Arc((0.46, 0.63), (0.24, 0.21), 270, 480),
            ),
        ),
    ),
    "six": (
        ((Arc((0.66, 0.63), (0.39, 0.48), 280, 180), Arc((0.50, 0.65), (0.23, 0.20), 180, -180)),),
        (((0.58, 0.15), Arc((0.48, 0.66), (0.20, 0.19), 200, -180)),),
    ),
    "seven": (
        (((0.25, 0.15), (0.75, 0.15), (0.43, 0.85)),),
        (((0.25, 0.15), (0.75, 0.15), (0.43, 0.85)), ((0.36, 0.50), (0.74, 0.50))),
    ),
    "eight": (
        ((Arc((0.50, 0.32), (0.19, 0.17), 90, -270), Arc((0.50, 0.67), (0.23, 0.18), -90, 270)),),
        (
            (
                Arc((0.50, 0.31), (0.19, 0.16), 0, -130),
                Arc((0.50, 0.68), (0.21, 0.17), -50, 230),
                (0.69, 0.31),
            ),
        ),
    ),
    "nine": (
        ((Arc((0.50, 0.35), (0.23, 0.20), 0, 360), Arc((0.34, 0.37), (0.39, 0.48), 0, 100)),),
        ((Arc((0.48, 0.34), (0.20, 0.19), 0, -360), (0.68, 0.34), (0.62, 0.85)),),
    ),
}


def stroke_points(stroke: Stroke) -> list[Point]:
    """Return the points that the pen goes through.

    Parameters
    ----------
    stroke : Stroke

    Returns
    -------
    list of Point
    """
    points: list[Point] = []
    for piece in stroke:
        points.extend(piece.points() if isinstance(piece, Arc) else [piece])
    return points


def draw_lines(lines: Sequence[Sequence[Point]], size: int, pen_width: float) -> Image.Image:
    """Draw polylines with a round pen, white on black.

    Parameters
    ----------
    lines : sequence of sequence of Point
    size : int
        Width and height of the picture in pixels.
    pen_width : float
        Part of the picture's width.

    Returns
    -------
    Image
        Mode "L", 0 for the ground and 255 for the ink.

    Notes
    -----
    Drawn `OVERSAMPLING` times as large and averaged, which makes the edges smooth.
    """
    canvas_size = size * OVERSAMPLING
    canvas = Image.new("L", (canvas_size, canvas_size), 0)
    pen = ImageDraw.Draw(canvas)
    radius = pen_width * canvas_size / 2
    # An ellipse covers both of its bounds, one pixel more than a line of that width.
    cap = radius - 0.5
    for line in lines:
        places = [(x * canvas_size, y * canvas_size) for x, y in line]
        pen.line(places, fill=255, width=round(2 * radius))
        for x, y in places:
            pen.ellipse((x - cap, y - cap, x + cap, y + cap), fill=255)
    return canvas.reduce(OVERSAMPLING)


def draw_digit(label: str) -> Image.Image:
    """Draw the picture of one digit.

    Parameters
    ----------
    label : str
        One of `LABELS`.

    Returns
    -------
    Image
        Mode "L", `PICTURE_SIZE` pixels wide and high.
    """
    lines = [stroke_points(stroke) for stroke in DRAWINGS[label][0]]
    return draw_lines(lines, PICTURE_SIZE, PEN_WIDTH)
