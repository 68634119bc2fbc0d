"""The command on trained models and photographs, where they are there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from armpy_testing.command_line import Cli

for library in ("click", "PIL"):
    pytest.importorskip(library)

SHARED = Path(__file__).parents[2].parent / "shared"
CORAL = SHARED / "models" / "coral"
IMAGES = SHARED / "images"

pytestmark = pytest.mark.skipif(
    not CORAL.is_dir(), reason="the trained models are not there (../shared)"
)

IMAGENET = "imagenet_labels.txt"
BIRDS = "inat_bird_labels.txt"


@pytest.mark.slow
@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("model", "labels", "picture", "expected"),
    [
        ("mobilenet_v2_1.0_224_quant", IMAGENET, "cat", "Egyptian cat"),
        (
            "mobilenet_v2_1.0_224_inat_bird_quant",
            BIRDS,
            "bird",
            "Poecile atricapillus (Black-capped Chickadee)",
        ),
    ],
)
def test_a_photograph_shows_what_it_shows(
    cli: Cli, model: str, labels: str, picture: str, expected: str
) -> None:
    report = cli.document(
        "run",
        CORAL / f"{model}.tflite",
        *("--image", str(IMAGES / f"{picture}.bmp"), "--labels", str(CORAL / labels)),
    )
    (output,) = report["outputs"]
    assert output["classes"][0]["label"] == expected
    assert report["hints"] == []


@pytest.mark.slow
def test_most_of_the_foreground_of_a_photograph_of_a_dog_is_dog(cli: Cli, tmp_path: Path) -> None:
    report = cli.document(
        "run",
        CORAL / "deeplabv3_mnv2_pascal_quant.tflite",
        *("--image", str(IMAGES / "dog_segmentation.bmp")),
        *("--labels", str(CORAL / "pascal_voc_segmentation_labels.txt")),
        *("--output", str(tmp_path)),
    )
    (output,) = report["outputs"]
    pixels = {region["label"]: region["pixels"] for region in output["regions"]}
    foreground = 513 * 513 - pixels["background"]
    assert pixels["dog"] > 0.9 * foreground
    assert 0.3 < pixels["dog"] / (513 * 513) < 0.6
    mask = np.load(tmp_path / "ArgMax.npy")[0]
    assert np.count_nonzero(mask) == foreground
