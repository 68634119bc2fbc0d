"""Objects and people in the outputs of models that look for them."""

from __future__ import annotations

import numpy as np
import pytest

from armpy.cli.pictures.labels import Labels
from armpy_tools.pictures.detections import KEY_POINTS, Findings, Frame, find

SHOWN = (100, 50)
PICTURE = Frame.of((200, 100), SHOWN, "stretch")
ANIMALS = Labels({0: "cat", 1: "dog", 2: "cow"})

BOXES = np.array([[[0.1, 0.2, 0.5, 0.6], [0, 0, 1, 1], [0.5, 0.5, 0.75, 1]]], np.float64)
CLASSES = np.array([[2.0, 0, 1]])
SCORES = np.array([[0.5, 0.25, 0.75]])
COUNT = np.array([3.0])


def found(outputs: list[np.ndarray], labels: Labels | None = ANIMALS) -> Findings:
    findings = find(outputs, SHOWN, PICTURE, labels, 0.3)
    assert findings is not None
    return findings


@pytest.mark.parametrize(
    "order", [(BOXES, CLASSES, SCORES, COUNT), (SCORES, BOXES, COUNT, CLASSES)], ids=["tf1", "tf2"]
)
def test_objects_are_found_in_either_order_of_the_outputs(order: tuple[np.ndarray, ...]) -> None:
    findings = found(list(order))
    assert findings.kind == "objects"
    assert [(d.label, d.index, d.score) for d in findings.detections] == [
        ("dog", 1, 0.75),
        ("cow", 2, 0.5),
    ]
    cow = findings.detections[1]
    assert (cow.left, cow.top, cow.right, cow.bottom) == pytest.approx((40, 10, 120, 50))


def test_the_count_says_how_many_rows_there_are() -> None:
    findings = found([BOXES, CLASSES, SCORES, np.array([1.0])])
    assert [d.label for d in findings.detections] == ["cow"]
    assert not found([BOXES, CLASSES, SCORES, np.array([0.0])]).detections
    assert len(found([BOXES, CLASSES, SCORES]).detections) == 2


def test_boxes_in_pixels_are_of_the_input() -> None:
    pixels = BOXES * np.array([50, 100, 50, 100])
    (_, cow) = found([pixels, CLASSES, SCORES, COUNT]).detections
    assert (cow.left, cow.top, cow.right, cow.bottom) == pytest.approx((40, 10, 120, 50))


def test_one_object_is_distinguished_from_a_count() -> None:
    outputs = [BOXES[:, :1], np.array([[1.0]]), np.array([[0.875]]), np.array([1.0])]
    (dog,) = found(outputs).detections
    assert (dog.label, dog.score) == ("dog", 0.875)


def test_labels_that_begin_with_the_background_are_shifted() -> None:
    labels = Labels({0: "???", 1: "cat", 2: "dog", 3: "cow"})
    names = [d.label for d in found([BOXES, CLASSES, SCORES, COUNT], labels).detections]
    assert names == ["dog", "cow"]
    assert found([BOXES, CLASSES, SCORES, COUNT], None).detections[0].label == ""


@pytest.mark.parametrize(
    "outputs",
    [
        [np.zeros((1, 10))],
        [np.zeros((1, 3, 4)), np.zeros((1, 3))],
        [np.zeros((1, 3, 4)), np.zeros((1, 3)), np.zeros((1, 3)), np.zeros((1, 7))],
        [np.zeros((1, 17, 2))],
        [np.zeros((2, 3, 4)), np.zeros((2, 3)), np.zeros((2, 3)), np.zeros(2)],
        [np.zeros(())],
    ],
)
def test_other_outputs_have_nothing_to_find(outputs: list[np.ndarray]) -> None:
    assert find(outputs, SHOWN, PICTURE, None, 0.3) is None


def points(score: float = 0.5) -> np.ndarray:
    """Key points on a line from the left top, as y, x and score."""
    place = np.arange(17) / 100
    return np.stack([place, 2 * place, np.full(17, score)], axis=-1)


def test_key_points_of_one_person_are_found() -> None:
    (pose,) = found([points().reshape(1, 1, 17, 3)]).poses
    wrist = pose.points[KEY_POINTS.index("left wrist")]
    assert (wrist.name, wrist.x, wrist.y, wrist.score) == ("left wrist", 36, 9, 0.5)
    assert pose.score == 0.5


def test_several_people_come_in_order_of_their_scores() -> None:
    people = np.zeros((1, 3, 56))
    people[0, :, :51] = points().reshape(-1)
    people[0, :, 55] = 0.4, 0.1, 0.9
    findings = found([people])
    assert [pose.score for pose in findings.poses] == [0.9, 0.4]
    assert not findings.detections


def test_a_person_is_read_out_of_heat_maps_and_offsets() -> None:
    heat, offsets = np.full((1, 6, 11, 17), -5.0), np.zeros((1, 6, 11, 34))
    heat[0, 2, 3, :] = 5.0
    offsets[0, 2, 3, :17], offsets[0, 2, 3, 17:] = 0.4, -0.3
    (pose,) = found([heat, offsets, np.zeros((1, 6, 11, 64))]).poses
    # A step is (50 - 1) / 5 rows and (100 - 1) / 10 columns; the picture is twice as large.
    nose = pose.points[0]
    assert nose.y == pytest.approx(2 * (2 * 9.8 + 0.4))
    assert nose.x == pytest.approx(2 * (3 * 9.9 - 0.3))
    assert nose.score == pytest.approx(1 / (1 + np.exp(-5)))


def test_decoded_poses_are_of_pixels() -> None:
    places = points()[None, None, :, :2] * np.array([50, 100])
    findings = found([places, np.full((1, 1, 17), 0.6), np.array([[0.7]]), np.array([1.0])])
    (pose,) = findings.poses
    assert (pose.score, pose.points[4].x, pose.points[4].y) == pytest.approx((0.7, 16, 4))


@pytest.mark.parametrize(
    ("method", "edges"),
    [
        ("stretch", (0, 0, 200, 100)),
        ("crop", (50, 0, 150, 100)),
        ("pad", (0, -50, 200, 150)),
    ],
)
def test_a_frame_is_what_the_model_is_shown(method: str, edges: tuple[float, ...]) -> None:
    frame = Frame.of((200, 100), (64, 64), method)
    assert (frame.left, frame.top, frame.right, frame.bottom) == edges
    assert (frame.x(0.5), frame.y(0.5)) == (100, 50)
