"""Write ``pictures/zero.png`` to ``pictures/nine.png``, drawn by ``drawing.py``.

Run ``python examples/digits/draw.py``. Needs Pillow; the pictures in the repository were
drawn with Pillow 13.0.0 on Python 3.11.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from drawing import LABELS, draw_digit


def main() -> None:
    """Write one PNG file for each digit."""
    parser = argparse.ArgumentParser(description="Draw pictures of the ten digits.")
    default_folder = Path(__file__).parent / "pictures"
    parser.add_argument(
        "--output", type=Path, default=default_folder, help="folder for the PNG files"
    )
    folder: Path = parser.parse_args().output
    folder.mkdir(parents=True, exist_ok=True)
    for label in LABELS:
        draw_digit(label).save(folder / f"{label}.png", optimize=True)


if __name__ == "__main__":
    main()
