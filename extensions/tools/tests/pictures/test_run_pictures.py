"""The command on many pictures: a row for each, and files of results."""

from __future__ import annotations

import csv
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from armpy import ops
from armpy.cli.inputs.request import InputRequest
from armpy.errors import InvalidArgumentError
from armpy.graph.network import Network
from armpy.model import Model
from armpy.tensor import Shape
from armpy_testing.command_line import armpy_command
from armpy_testing.digits import FOLDER as DIGITS
from armpy_testing.models.networks import ADD, RELU, f32
from armpy_tools.cli.pictures.one_picture import PictureRequest, run_one
from armpy_tools.cli.pictures.run_pictures import PictureRun

for library in ("click", "PIL"):
    pytest.importorskip(library)

Image = pytest.importorskip("PIL.Image")

MODEL = str(DIGITS / "digits_int8.tflite")
LABELS = str(DIGITS / "labels.txt")


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """Folders of digits: a seven, a three, an eight filed under three, and a damaged file."""
    place = tmp_path / "pictures"
    for name, truth in (("seven", "seven"), ("three", "three"), ("eight", "three")):
        (place / truth).mkdir(parents=True, exist_ok=True)
        shutil.copy(DIGITS / "pictures" / f"{name}.png", place / truth)
    (place / "seven" / "bad.png").write_text("no picture")
    return place


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = armpy_command(["pictures", MODEL, "--labels", LABELS, *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_damaged_picture_is_reported_in_its_row_and_the_others_go_on(
    folders: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, str(folders))
    rows = [line.split(maxsplit=4) for line in out.splitlines()[1:6]]
    assert rows == [
        ["file", "class", "score", "label", "problem"],
        ["seven/bad.png", "not", "a", "picture", "that can be read"],
        ["seven/seven.png", "7", "0.9961", "seven"],
        ["three/eight.png", "8", "0.9961", "eight"],
        ["three/three.png", "3", "0.9961", "three"],
    ]
    assert "not used: 1 of 4 pictures" in out
    assert (code, err) == (1, "")


def test_results_are_written_as_a_table(folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folders / "results.csv"
    run(capsys, f"{folders}/*/*.png", "--output", str(path), "--top", "2")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [Path(row["file"]).name for row in rows] == [
        *("bad.png", "seven.png", "eight.png", "three.png")
    ]
    assert rows[0]["error"] == "not a picture that can be read"
    assert (rows[1]["class"], rows[1]["label"]) == ("7", "seven")
    assert float(rows[1]["score"]) == pytest.approx(255 / 256, abs=1e-5)
    assert "class_2" in rows[0]
    assert "class_3" not in rows[0]


def test_results_are_written_as_lines(folders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = folders / "results.jsonl"
    run(capsys, str(folders), "--output", str(lines))
    rows = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [bool(row["error"]) for row in rows] == [True, False, False, False]
    assert rows[1]["outputs"][0]["classes"][0]["label"] == "seven"


def test_arrays_and_random_numbers_have_a_file_of_results_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "x.npy", np.full((1, 16, 16, 1), -128, np.int8))
    path = tmp_path / "y.csv"
    for inputs in (["--input", str(tmp_path / "x.npy")], []):
        code, out, _ = run(capsys, *inputs, "--output", str(path))
        assert code == 0
        assert f"written: {path}\n" in out
        assert path.read_text().startswith("file,class,score,label,class_2")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.png"], "'nowhere.png' does not exist"),
        (["nowhere/*.png"], "no file matches the pattern"),
        (["--batch", "2"], "--batch: there are no pictures"),
        (["--output", "nowhere/x.csv"], "there is no such folder. Got nowhere"),
        ([LABELS, LABELS + "*", "--batch", "2"], "does not take so many pictures together"),
    ],
)
def test_wrong_options_are_reported_before_anything_runs(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert message in err


def scaled_model(shape: Shape) -> Model:
    net = Network("relu")
    net.output("y", net.add(RELU, net.input("x", f32(*shape))))
    return Model(net)


def greys(folder: Path, *values: int) -> list[str]:
    paths = [str(folder / f"{number}.png") for number in range(len(values))]
    for path, value in zip(paths, values, strict=True):
        Image.new("RGB", (6, 4), (value, value, value)).save(path)
    return paths


@pytest.mark.parametrize("shape", [(None, 2, 2, 1), (2, 2, 2, 1), (2, 2, 2)], ids=str)
def test_pictures_go_in_together_where_the_model_takes_several(
    shape: Shape, tmp_path: Path
) -> None:
    paths = greys(tmp_path, 0, 51, 255)
    report = PictureRun(scaled_model(shape), PictureRequest(image=paths[0]), batch=2).run(paths)
    assert report.input == f"float32 {(2, *shape[1:])}"
    assert [p.outputs[0].max for p in report.pictures] == pytest.approx([0, 0.2, 1])
    assert [p.outputs[0].shape[0] for p in report.pictures] == [1, 1, 1]


@pytest.mark.parametrize(
    ("inputs", "option"),
    [
        (InputRequest(("x=1",)), "--input"),
        (InputRequest(shape_sets=({"x": (1, 2, 2, 1)},)), "--shape"),
    ],
)
def test_other_inputs_than_several_pictures_are_refused(
    inputs: InputRequest, option: str, tmp_path: Path
) -> None:
    paths = greys(tmp_path, 0, 51)
    request = PictureRequest(image=paths[0], inputs=inputs)
    with pytest.raises(InvalidArgumentError, match=f"{option} does not go with several pictures"):
        PictureRun(scaled_model((None, 2, 2, 1)), request)


def test_one_picture_goes_beside_other_inputs(tmp_path: Path) -> None:
    net = Network("scaled")
    picture, scale = net.input("x", f32(1, 2, 2, 1)), net.input("scale", f32(1))
    multiply = ops.ElementwiseBinary(ops.BinaryOperation.MUL)
    net.output("y", net.add(multiply, picture, scale))
    (path,) = greys(tmp_path, 255)
    drawn = str(tmp_path / "drawn")
    inputs = InputRequest(("scale=3",))
    request = PictureRequest(image=path, inputs=inputs, save_pictures=drawn)
    report, _ = run_one(Model(net), request)
    assert report.outputs[0].max == pytest.approx(3)
    assert report.inputs.endswith("as float32 (1, 2, 2, 1), scale=3")


@pytest.mark.parametrize("keep_dims", [True, False])
def test_a_batch_that_does_not_come_out_again_is_an_error(keep_dims: bool, tmp_path: Path) -> None:
    net = Network("sum")
    value = net.input("x", f32(None, 2, 2, 1))
    total = ops.Reduce(ops.ReduceOperation.SUM, axes=(0,), keep_dims=keep_dims)
    net.output("y", net.add(total, value))
    paths = greys(tmp_path, 0, 51)
    with pytest.raises(InvalidArgumentError, match=r"output 'y': .*no row for each.*--batch out"):
        PictureRun(Model(net), PictureRequest(image=paths[0]), batch=2).run(paths)


def test_a_picture_that_the_model_refuses_has_an_error_in_its_row(tmp_path: Path) -> None:
    net = Network("two by two")
    value = net.input("x", f32(1, None, None, 1))
    net.output("y", net.add(ADD, value, net.constant(np.zeros((1, 2, 2, 1), np.float32))))
    (path,) = greys(tmp_path, 0)
    (picture,) = PictureRun(Model(net), PictureRequest(image=path)).run([path]).pictures
    assert "(1, 2, 2, 1)" in picture.error


def test_what_the_model_remembers_is_forgotten_between_pictures(tmp_path: Path) -> None:
    net = Network("counter")
    state = net.variable("state", f32(1, 1, 1, 1))
    total = net.add(ADD, net.input("x", f32(1, 1, 1, 1)), state)
    net.assign(state, total)
    net.output("y", total)
    paths = greys(tmp_path, 255, 51, 102)
    report = PictureRun(Model(net), PictureRequest(image=paths[0])).run(paths)
    assert [p.outputs[0].max for p in report.pictures] == pytest.approx([1, 0.2, 0.4])


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_name_that_is_no_utf_8_is_written_with_its_bytes_escaped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    place = tmp_path / "pictures"
    place.mkdir()
    odd = os.fsdecode(os.fsencode(place) + b"/caf\xe9.png")
    try:
        shutil.copy(DIGITS / "pictures" / "seven.png", odd)
    except OSError:
        pytest.skip("the file system takes UTF-8 alone")
    path = tmp_path / f"results.{suffix}"
    code, out, err = run(capsys, str(place), "--output", str(path))
    assert (code, err) == (0, "")
    assert "caf\\udce9.png" in out
    assert "caf\\udce9.png" in path.read_text("utf-8")
