"""Files of outputs and masks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from armpy_tools.cli.pictures.output_files import write_outputs_and_masks
from armpy_tools.pictures.masks import palette


def test_outputs_and_masks_are_written(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    stored = np.arange(6, dtype=np.int8).reshape(1, 2, 3)
    mask = np.array([[0, 1, 255], [256, 257, -1]], np.int64)
    written = write_outputs_and_masks(
        str(tmp_path / "new" / "folder"), {"a/b": stored}, {"a/b": mask}
    )
    assert [Path(path).name for path in written] == ["a_b.npy", "a_b.png"]
    np.testing.assert_array_equal(np.load(written[0]), stored)
    with image.open(written[1]) as picture:
        assert picture.mode == "P"
        assert np.asarray(picture).tolist() == [[0, 1, 255], [0, 1, 255]]
        assert picture.convert("RGB").getpixel((0, 0)) == (0, 0, 0)


def test_every_colour_of_the_palette_differs() -> None:
    colours = np.array(palette()).reshape(256, 3)
    assert len(np.unique(colours, axis=0)) == 256
    assert colours[0].tolist() == [0, 0, 0]
    first = colours[:8].astype(int)
    distances = np.abs(first[:, None] - first[None]).sum(axis=-1) + 1000 * np.eye(8, dtype=int)
    assert distances.min() > 100
