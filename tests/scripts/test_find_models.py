"""The script that finds models and data, and makes samples of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from armpy.errors import InvalidArgumentError
from armpy_testing.digits import MODEL as DIGITS
from scripts.find_models import files_of, find, main

SHAPE = (1, 16, 16, 1)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a model, an array that fits it, and ones that do not."""
    folder = tmp_path / "place"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "digits.tflite").write_bytes(DIGITS.read_bytes())
    np.save(folder / "fits.npy", np.full(SHAPE, 5, np.int8))
    np.save(folder / "other.npy", np.zeros((2, 3), np.int8))
    (folder / "damaged.npy").write_bytes(b"nothing")
    return folder


def test_models_become_samples_of_the_data_that_fits(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / "made"
    assert main([str(place), "--samples", str(made)]) == 0
    assert "1 models, 0 pictures, 3 arrays" in capsys.readouterr().out
    with np.load(made / "digits.npz") as file:
        assert file.files == ["0/in0"]
        assert file["0/in0"].tolist() == np.full(SHAPE, 5).tolist()
    assert (made / "digits.tflite").read_bytes() == DIGITS.read_bytes()
    main([str(place), "--samples", str(made)])
    assert "not copied" in capsys.readouterr().out


def test_pictures_are_resized_to_the_input(place: Path, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    (place / "fits.npy").unlink()
    image.new("L", (40, 40), 255).save(place / "white.png")
    made = tmp_path / "made"
    assert main([str(place), "--samples", str(made)]) == 0
    with np.load(made / "digits.npz") as file:
        array = file["0/in0"]
    assert (array.shape, array.dtype) == (SHAPE, np.int8)
    assert (array == 127).all()  # white, with the input's scale 1 / 255 and zero point -128


def test_a_place_is_a_folder_or_a_distribution(place: Path) -> None:
    assert [path.name for path in find([str(place), str(place)]).models] == ["digits.tflite"]
    assert any(path.name == "__init__.py" for path in files_of("numpy"))
    with pytest.raises(InvalidArgumentError, match="name of an installed distribution"):
        files_of("neither-folder-nor-distribution")
