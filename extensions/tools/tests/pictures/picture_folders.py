"""Many small pictures, and the command on them."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from PIL import Image

from armpy_testing.digits import FOLDER as DIGITS

MODEL = str(DIGITS / "digits_int8.tflite")
LABELS = str(DIGITS / "labels.txt")
NAMES = Path(LABELS).read_text("utf-8").split()


def make_pictures(folder: Path, count: int, damaged: tuple[int, ...] = ()) -> Path:
    """Noisy digits, some files that are none, and a file of labels of which one in five is wrong.

    Returns of the file of labels.
    """
    folder.mkdir()
    random = np.random.default_rng(5)
    digits = [np.asarray(Image.open(DIGITS / "pictures" / f"{name}.png")) for name in NAMES]
    rows = []
    for number in range(count):
        path = folder / f"{number:04}.png"
        if number in damaged:
            path.write_text("no picture")
        else:
            pixels = digits[number % 10]
            noise = random.integers(-60, 60, pixels.shape)
            Image.fromarray(np.clip(pixels + noise, 0, 255).astype(np.uint8)).save(path)
        rows.append((f"{folder.name}/{path.name}", NAMES[(number + (number % 5 == 0)) % 10]))
    with (folder.parent / "truth.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return folder.parent / "truth.csv"
