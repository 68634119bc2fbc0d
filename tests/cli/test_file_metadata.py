"""Settings that a run takes from the metadata of the model's file, and from options instead."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy.cli.inputs.complete import complete_inputs
from armpy.cli.inputs.request import InputRequest
from armpy.cli.pictures.file_metadata import FileMetadata
from armpy.cli.pictures.options import PictureOptions
from armpy.cli.run.run_model import RunReport, RunRequest, run_model
from armpy_testing.command_line import Cli
from armpy_testing.models.tflite_metadata import (
    AXIS_LABELS,
    IMAGE,
    NORMALIZATION,
    RGB,
    VALUE_LABELS,
    Fields,
    metadata_bytes,
    packed,
)
from armpy_testing.models.tflite_writer import model_with_input
from armpy_testing.systems import NEEDS_REPLACEABLE_FILES

PIXELS = np.array([[[0, 0, 0], [255, 255, 255]]], np.uint8)


def image_model(
    mean: list[float],
    std: list[float],
    labels: str = "no\nyes",
    kind: np.int8 = AXIS_LABELS,
    quantization: tuple[str, float, int] | None = None,
) -> bytes:
    """A model of a picture of two pixels, that gives what it gets as six scores."""
    data_type, scale, zero_point = quantization or ("FLOAT32", None, None)
    model, graph, x = model_with_input((1, 1, 2, 3), data_type, scale=scale, zero_point=zero_point)
    y = graph.tensor("y", (1, 6), data_type, scale=scale, zero_point=zero_point)
    shape = graph.tensor("shape", (2,), "INT32", data=[1, 6])
    graph.operator("RESHAPE", [x, shape], [y], {"new_shape": [1, 6]})
    graph.outputs(y)
    picture: Fields = {
        3: {0: IMAGE, 1: {0: RGB}},
        4: [{0: NORMALIZATION, 1: {0: mean, 1: std}}],
    }
    scores: Fields = {6: [{0: "labels.txt", 2: kind}]}
    model.metadata("TFLITE_METADATA", metadata_bytes({3: [{2: [picture], 3: [scores]}]}))
    return model.to_bytes() + packed({"labels.txt": labels})


@pytest.fixture
def picture(tmp_path: Path) -> str:
    """A black pixel and a white one."""
    path = tmp_path / "picture.png"
    pytest.importorskip("PIL.Image").fromarray(PIXELS).save(path)
    return str(path)


def run(content: bytes, request: RunRequest) -> tuple[list[float], RunReport]:
    """The scores, and the report about them."""
    with armpy.load(content, backends=["CpuRef"]) as model:
        report = run_model(model, request)
        scores = {c.index: c.score for c in report.outputs[0].classes}
    return [scores[index] for index in range(6)], report


SIX = "a\nb\nc\nd\ne\nf"


def test_pixels_are_normalised_and_classes_named_as_the_file_says(picture: str) -> None:
    content = image_model([127.5, 0.0, 0.0], [127.5, 255.0, 51.0], SIX)
    scores, report = run(content, RunRequest(image=picture, top=6))
    assert scores == pytest.approx([-1, 0, 0, 1, 1, 5])
    assert {c.index: c.label for c in report.outputs[0].classes}[5] == "f"
    assert report.metadata == (
        "pixels normalised by mean 127.5,0,0, std 127.5,255,51",
        "6 labels of output 'y'",
    )


def test_options_come_before_what_the_file_says(picture: str, tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("u\nv\nw\nx\ny\nz\n")
    request = RunRequest(
        image=picture,
        top=6,
        picture=PictureOptions(value_range=(0, 2)),
        labels=str(tmp_path / "labels.txt"),
    )
    scores, report = run(image_model([127.5], [127.5], SIX), request)
    assert scores == [0, 0, 0, 2, 2, 2]
    assert report.outputs[0].classes[0].label == "x"
    assert report.metadata == ()


@pytest.mark.parametrize(
    ("mean", "std", "quantization", "expected", "used"),
    [
        # It goes with the quantisation, here of -1 to 1: what the network was trained on.
        ([127.5], [127.5], ("INT8", 1 / 128, 0), [-1, 127 / 128], True),
        ([100.0], [100.0], ("INT8", 1 / 64, 0), [-1, 99 / 64], True),
        ([127.5] * 3, [127.5, 127.5, 170], ("INT8", 1 / 128, 0), [-1, 96 / 128], True),
        # It is the float model's, or that of pixels: the pixel itself is what is stored.
        ([127.5], [127.5], ("UINT8", 1.0, 0), [0, 255], False),
        ([0.0], [1.0], ("UINT8", 1 / 128, 128), [-1, 127 / 128], False),
        ([0.0] * 2, [1.0], None, [0, 1], False),
    ],
)
def test_a_normalisation_counts_if_it_goes_with_the_input(
    picture: str,
    mean: list[float],
    std: list[float],
    quantization: tuple[str, float, int] | None,
    expected: list[float],
    used: bool,
) -> None:
    content = image_model(mean, std, SIX, quantization=quantization)
    scores, report = run(content, RunRequest(image=picture, top=6))
    assert (scores[0], scores[-1]) == pytest.approx(tuple(expected))
    assert any("normalised" in text for text in report.metadata) == used
    assert any("the normalisation in the file" in hint for hint in report.hints) != used


def test_labels_that_do_not_go_with_the_scores_are_left_alone(picture: str) -> None:
    _, few = run(image_model([0.0], [1.0]), RunRequest(image=picture, top=6))
    assert any("2 of them for 6 classes" in hint for hint in few.hints)
    _, values = run(image_model([0.0], [1.0], SIX, VALUE_LABELS), RunRequest(image=picture, top=6))
    for report in (few, values):
        assert {c.label for c in report.outputs[0].classes} == {""}


def test_damaged_metadata_are_left_alone_with_a_hint(picture: str) -> None:
    content = image_model([0.0], [255.0], SIX)
    content = content[: content.rindex(b"PK\x01\x02")]
    scores, report = run(content, RunRequest(image=picture, top=6))
    assert scores == [0, 0, 0, 1, 1, 1]
    assert "the file's metadata are left alone: " in report.hints[-1]


@NEEDS_REPLACEABLE_FILES
def test_inspect_shows_metadata_and_damage(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "model.tflite"
    content = image_model([127.5], [127.5], SIX)
    path.write_bytes(content)
    shown = cli.out("inspect", str(path), "--backends", "CpuRef")
    for text in ("Metadata", "127.5", "labels.txt", "a; b; c; d; e; f"):
        assert text in shown
    for cut, failed in (
        (content.index(b"PK\x03\x04"), "the model has no file of this name"),
        (content.rindex(b"PK\x01\x02"), "the archive of packed files is cut short"),
        (len(content) - 1, "the archive of packed files is cut short"),
    ):
        path.write_bytes(content[:cut])
        shown = cli.out("inspect", str(path), "--backends", "CpuRef")
        assert failed in shown
        assert "Copy the file again, from where it is whole" in shown


def test_pixels_stay_what_they_are_where_quantisation_normalises(picture: str) -> None:
    content = image_model([127.5], [127.5], SIX, quantization=("UINT8", 1 / 128, 128))
    with armpy.load(content, backends=["CpuRef"]) as model:
        inputs = complete_inputs(model, InputRequest(), picture, metadata=FileMetadata(model))
    np.testing.assert_array_equal(inputs.arrays["x"][0], PIXELS)
    assert not inputs.hints
