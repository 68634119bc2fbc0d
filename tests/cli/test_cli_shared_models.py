"""The command on trained models and photographs, where they are there."""

from __future__ import annotations

from pathlib import Path

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
