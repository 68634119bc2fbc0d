"""Files of outputs and masks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from armpy import DataType, Model, Network, Quantization, TensorInfo
from armpy_testing.models.networks import RELU
from armpy_tools.cli.pictures.one_picture import PictureRequest, run_one
from armpy_tools.cli.pictures.output_files import write_outputs_and_masks
from armpy_tools.pictures.masks import palette


def test_outputs_and_masks_are_written(tmp_path: Path) -> None:
    stored = np.arange(6, dtype=np.int8).reshape(1, 2, 3)
    mask = np.array([[0, 1, 255], [256, 257, -1]], np.int64)
    written = write_outputs_and_masks(
        str(tmp_path / "new" / "folder"), {"a/b": stored}, {"a/b": mask}
    )
    assert [Path(path).name for path in written] == ["a_b.npy", "a_b.png"]
    np.testing.assert_array_equal(np.load(written[0]), stored)
    with Image.open(written[1]) as picture:
        assert picture.mode == "P"
        assert np.asarray(picture).tolist() == [[0, 1, 255], [0, 1, 255]]
        assert picture.convert("RGB").getpixel((0, 0)) == (0, 0, 0)


def test_a_picture_over_an_image_input_gives_a_mask_as_a_picture(tmp_path: Path) -> None:
    net = Network("mask")
    info = TensorInfo((1, 8, 8, 1), DataType.QASYMM_U8, Quantization.per_tensor(1.0, 0))
    net.output("y", net.add(RELU, net.input("x", info)))
    shown = np.zeros((8, 8), np.uint8)
    shown[:2] = 2
    Image.fromarray(shown).save(tmp_path / "shown.png")
    request = PictureRequest(image=str(tmp_path / "shown.png"), output=str(tmp_path / "out"))
    report, _ = run_one(Model(net), request)
    assert [Path(path).name for path in report.files] == ["y.npy", "y.png"]
    with Image.open(tmp_path / "out" / "y.png") as picture:
        np.testing.assert_array_equal(np.asarray(picture), shown)


def test_every_colour_of_the_palette_differs() -> None:
    colours = np.array(palette()).reshape(256, 3)
    assert len(np.unique(colours, axis=0)) == 256
    assert colours[0].tolist() == [0, 0, 0]
    first = colours[:8].astype(int)
    distances = np.abs(first[:, None] - first[None]).sum(axis=-1) + 1000 * np.eye(8, dtype=int)
    assert distances.min() > 100
