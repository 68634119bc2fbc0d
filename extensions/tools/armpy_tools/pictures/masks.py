"""Masks as pictures, in colours that are far from each other."""

from __future__ import annotations

import colorsys

import numpy as np
import numpy.typing as npt
from PIL import Image

_GOLDEN_ANGLE = 0.381966


def write_mask(path: str, mask: npt.NDArray[np.int64]) -> None:
    """Write a mask as a picture whose palette indexes are the classes (modulo 256)."""
    picture = Image.fromarray((mask % 256).astype(np.uint8)).convert("L")
    picture.putpalette(palette())
    picture.save(path)


def palette() -> list[int]:
    """256 colours, three numbers each: black for class 0, then hues far from each other.

    Notes
    -----
    Each hue is the golden angle away from the one before, in three shades by turns.
    """
    colours: list[int] = [0, 0, 0]
    for index in range(1, 256):
        shade = (1.0, 0.75, 0.55)[index // 8 % 3]
        colour = colorsys.hsv_to_rgb(index * _GOLDEN_ANGLE % 1.0, 0.75, shade)
        colours += [round(255 * part) for part in colour]
    return colours
