"""Pictures with the findings drawn on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from armpy import ops
from armpy.cli.pictures.labels import Labels
from armpy.cli.run.results import OutputReport, ReadOutputs, RegionShare
from armpy.graph.network import Network
from armpy.model import Model
from armpy_testing.models.networks import f32
from armpy_tools.cli.pictures.one_picture import PictureRequest, run_one
from armpy_tools.cli.pictures.picture_files import PictureFiles
from armpy_tools.cli.pictures.run_pictures import PictureRun
from armpy_tools.pictures.detections import KEY_POINTS, Detection, Findings, Frame, KeyPoint, Pose
from armpy_tools.pictures.drawing import colour_of, draw_picture, save_drawn

Image = pytest.importorskip("PIL.Image")

GREY = (100, 100, 100)
NOTHING = ReadOutputs((), {}, {})
PLAIN = OutputReport("y", (1, 8, 8), "SIGNED32", 0, 2, 1)


def grey(folder: Path, size: tuple[int, int] = (800, 400)) -> str:
    path = str(folder / "grey.png")
    Image.new("RGB", size, GREY).save(path)
    return path


def whole(size: tuple[int, int]) -> Frame:
    return Frame.of(size, (8, 8), "stretch")


def test_an_objects_box_is_drawn_with_its_name_above_it(tmp_path: Path) -> None:
    detection = Detection(3, "dog", 0.9, 100, 150, 300, 350)
    drawn = draw_picture(
        grey(tmp_path), NOTHING, Findings("objects", (detection,)), whole((800, 400))
    )
    colour = colour_of(4)
    assert drawn.size == (800, 400)
    assert [drawn.getpixel(place) for place in ((100, 250), (300, 250), (200, 350))] == [colour] * 3
    assert drawn.getpixel((200, 250)) == GREY
    assert drawn.getpixel((101, 146)) == colour  # the ground of the name
    assert drawn.getpixel((700, 146)) == GREY


def test_a_persons_points_are_drawn_if_they_are_certain(tmp_path: Path) -> None:
    points = tuple(
        KeyPoint(name, 0.1 if name == "nose" else 0.9, 40.0 * i + 20, 200.0)
        for i, name in enumerate(KEY_POINTS)
    )
    findings = Findings("people", poses=(Pose(0.9, points),))
    drawn = draw_picture(grey(tmp_path), NOTHING, findings, whole((800, 400)))
    assert drawn.getpixel((20, 200)) == GREY
    assert drawn.getpixel((60, 200)) == (250, 250, 250)
    assert drawn.getpixel((240, 200)) != GREY  # between the shoulders


def test_regions_are_tinted_but_for_the_background_and_named_below(tmp_path: Path) -> None:
    mask = np.zeros((8, 8), np.int64)
    mask[:, 4:] = 2
    regions = (RegionShare(0, 32, 0.5, "background"), RegionShare(2, 32, 0.5, "cat"))
    report = OutputReport("y", (1, 8, 8), "SIGNED32", 0, 2, 1, regions=regions)
    labels = {"y": Labels({0: "background", 2: "cat"})}
    read = ReadOutputs((report,), {"y": mask}, labels)
    drawn = draw_picture(grey(tmp_path), read, None, whole((800, 400)))
    assert drawn.getpixel((200, 200)) == GREY
    expected = [round(0.45 * 100 + 0.55 * part) for part in colour_of(2)]
    assert np.asarray(drawn)[200, 600].tolist() == pytest.approx(expected, abs=1)
    assert drawn.height > 400
    assert (np.asarray(drawn)[400:, :60] == colour_of(2)).all(axis=-1).any()


def test_a_mask_lies_where_the_model_looked(tmp_path: Path) -> None:
    mask = np.full((8, 8), 1, np.int64)
    read = ReadOutputs((PLAIN,), {"y": mask}, {})
    path = grey(tmp_path)
    cropped = draw_picture(path, read, None, Frame.of((800, 400), (8, 8), "crop"))
    assert cropped.getpixel((100, 200)) == GREY
    assert cropped.getpixel((400, 200)) != GREY
    assert cropped.getpixel((700, 200)) == GREY
    padded = draw_picture(path, read, None, Frame.of((800, 400), (8, 8), "pad"))
    assert GREY not in {padded.getpixel(place) for place in ((2, 2), (400, 200), (797, 397))}


def test_a_picture_in_the_same_folder_is_never_written_over(tmp_path: Path) -> None:
    path = grey(tmp_path)
    drawn = Image.new("RGB", (4, 4))
    assert Path(save_drawn(str(tmp_path), "grey", path, drawn)).name == "grey_result.png"
    with Image.open(path) as image:
        assert image.size == (800, 400)
    assert Path(save_drawn(str(tmp_path / "new"), "grey", path, drawn)).name == "grey.png"


def detector() -> Model:
    """A model that finds a cow in every picture, in the right half."""
    net = Network("detector")
    image = net.input("x", f32(1, 8, 8, 3))
    zero = net.add(
        ops.ElementwiseBinary(ops.BinaryOperation.MUL), image, net.constant(np.zeros(1, np.float32))
    )
    none = net.add(ops.Reduce(ops.ReduceOperation.SUM, axes=(1, 2, 3)), zero)
    add = ops.ElementwiseBinary(ops.BinaryOperation.ADD)
    for name, values in (
        ("boxes", [[[0.0, 0.5, 1.0, 1.0], [0, 0, 0, 0]]]),
        ("classes", [[2.0, 0]]),
        ("scores", [[0.75, 0.125]]),
        ("count", [2.0]),
    ):
        net.output(name, net.add(add, net.constant(np.array(values, np.float32)), none))
    return Model(net)


def test_objects_are_listed_and_drawn_for_one_picture_and_for_many(tmp_path: Path) -> None:
    path = grey(tmp_path)
    (tmp_path / "labels.txt").write_text("cat\ndog\ncow\n")
    request = PictureRequest(
        image=path, labels=str(tmp_path / "labels.txt"), save_pictures=str(tmp_path / "drawn")
    )
    report, single = run_one(detector(), request)
    files = PictureFiles([path], None, str(tmp_path / "all"))
    many = PictureRun(detector(), request, files=files).run([path])
    for findings in (single, many.pictures[0].findings):
        assert findings is not None
        (cow,) = findings.detections
        assert (cow.label, cow.left, cow.right, cow.bottom) == ("cow", 400, 800, 400)
    assert report.files == (str(tmp_path / "drawn" / "grey.png"),)
    assert many.pictures[0].files == (str(tmp_path / "all" / "grey.png"),)
    for file in (*report.files, *many.pictures[0].files):
        with Image.open(file) as drawn:
            assert drawn.getpixel((400, 200)) == colour_of(3)
