"""The example that reads digits: its model, labels and pictures, as in ``examples/digits``."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
MODEL = FOLDER / "digits_int8.tflite"
