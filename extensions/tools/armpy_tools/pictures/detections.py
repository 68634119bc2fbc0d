"""Detections in a picture: objects in boxes, people by key points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from armpy.cli.pictures.labels import BACKGROUND, Labels
from armpy.core.dataclass import dataclass

Real = npt.NDArray[np.float64]

_NO_CLASS = frozenset({BACKGROUND, "???"})
"""First labels of lists that count the background, which detectors do not."""

_MOST_FRACTION = 2.0
"""Coordinates beyond it are pixels; boxes may reach out of a picture by some."""

_BOX = 4
_PAIR = 2

KEY_POINTS = (
    *("nose", "left eye", "right eye", "left ear", "right ear"),
    *("left shoulder", "right shoulder", "left elbow", "right elbow"),
    *("left wrist", "right wrist", "left hip", "right hip"),
    *("left knee", "right knee", "left ankle", "right ankle"),
)
"""Of people, as COCO orders them; MoveNet, PoseNet and others give these."""

_MOVENET_LENGTH = 3 * len(KEY_POINTS)
_PEOPLE_LENGTH = _MOVENET_LENGTH + _BOX + 1
"""Of a person in MoveNet MultiPose's output: key points, a box, a score."""


@dataclass(frozen=True, slots=True)
class Detection:
    """An object in a box.

    Parameters
    ----------
    index : int
        Its class.
    label : str
        Empty where no name is known.
    score : float
    left, top, right, bottom : float
        Pixels of the picture; fractions of the input where there is none.
    """

    index: int
    label: str
    score: float
    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class KeyPoint:
    """A point of a person.

    Parameters
    ----------
    name : str
    score : float
    x, y : float
        Pixels of the picture; fractions of the input where there is none.
    """

    name: str
    score: float
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class Pose:
    """A person.

    Parameters
    ----------
    score : float
    points : tuple of KeyPoint
        In the order of `KEY_POINTS`.
    """

    score: float
    points: tuple[KeyPoint, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """The part of a picture that a model was shown.

    Parameters
    ----------
    left, top, right, bottom : float
        Pixels of the picture; beyond it where the picture was filled up.
    """

    left: float = 0.0
    top: float = 0.0
    right: float = 1.0
    bottom: float = 1.0

    @classmethod
    def of(cls, picture: tuple[int, int], shown: tuple[int, int], method: str) -> Frame:
        """The frame of a picture that was brought to a size.

        Parameters
        ----------
        picture, shown : tuple of int
            Width and height of the picture and of the model's input.
        method : {"stretch", "crop", "pad"}
        """
        width, height = picture
        if method == "stretch":
            return cls(0, 0, width, height)
        scales = shown[0] / width, shown[1] / height
        scale = max(scales) if method == "crop" else min(scales)
        half_width, half_height = shown[0] / scale / 2, shown[1] / scale / 2
        x, y = width / 2, height / 2
        return cls(x - half_width, y - half_height, x + half_width, y + half_height)

    def x(self, fraction: float) -> float:
        """Column of a fraction of the frame's width."""
        return self.left + fraction * (self.right - self.left)

    def y(self, fraction: float) -> float:
        """Row of a fraction of the frame's height."""
        return self.top + fraction * (self.bottom - self.top)


@dataclass(frozen=True, slots=True)
class Findings:
    """Objects or people found in a picture.

    Parameters
    ----------
    kind : {"objects", "people"}
    detections : tuple of Detection
        The best first.
    poses : tuple of Pose
        The best first.
    """

    kind: str
    detections: tuple[Detection, ...] = ()
    poses: tuple[Pose, ...] = ()


def find(
    outputs: Sequence[Real],
    shown: tuple[int, int],
    frame: Frame,
    labels: Labels | None,
    min_score: float,
) -> Findings | None:
    """Find places in a model's outputs, if they are of a known form.

    Parameters
    ----------
    outputs : sequence of ndarray, float64
        All of the model's, for one picture, dequantised.
    shown : tuple of int
        Width and height of the model's input.
    frame : Frame
    labels : Labels, optional
    min_score : float
        Least score of what counts.

    Returns
    -------
    Findings or None

    Notes
    -----
    Objects: boxes (1, n, 4) as top, left, bottom, right, classes (1, n), scores (1, n) and, if it
    is there, a count, in any order, as TFLite's detection postprocessing gives them. People:
    MoveNet's (1, 1, 17, 3) as y, x and score and its (1, n, 56), PoseNet's heat maps
    (1, h, w, 17) with offsets (1, h, w, 34), and decoded poses (1, n, 17, 2) with scores
    (1, n, 17) and (1, n).
    """
    objects = _objects(outputs, shown)
    if objects is not None:
        return Findings("objects", _detections(*objects, frame, labels, min_score))
    people = _people(outputs, shown)
    if people is None:
        return None
    poses = [_pose(points, score, frame) for points, score in people if score >= min_score]
    return Findings("people", poses=tuple(sorted(poses, key=lambda pose: -pose.score)))


def _objects(outputs: Sequence[Real], shown: tuple[int, int]) -> tuple[Real, Real, Real] | None:
    """Boxes (n, 4) in fractions, classes (n,) and scores (n,)."""
    flat = [output[0] for output in outputs if output.ndim > 1 and len(output) == 1]
    boxes = [part for part in flat if part.ndim == _PAIR and part.shape[1] == _BOX]
    if len(boxes) != 1:
        return None
    count = len(boxes[0])
    pair = [part for part in flat if part.shape == (count,)]
    numbers = [output for output in outputs if output.size == 1]
    if count == 1:  # all are of one element then: their order decides
        pair = [output.reshape(-1) for output in outputs if output.size == 1][:_PAIR]
        numbers = numbers[_PAIR:]
    if len(pair) != _PAIR or len(outputs) - len(pair) - 1 != len(numbers):
        return None
    # Classes are whole numbers; where both are, as for nothing found, they come first.
    is_turned = _are_whole(pair[1]) and not _are_whole(pair[0])
    classes, scores = pair[::-1] if is_turned else pair
    valid = int(numbers[0].reshape(-1)[0]) if numbers else count
    fractions = _fractions(boxes[0], (shown[1], shown[0]) * 2)
    return fractions[:valid], classes[:valid], scores[:valid]


def _are_whole(values: Real) -> bool:
    """Return whether numbers can be classes."""
    return bool((values == np.rint(values)).all())


def _fractions(values: Real, sizes: Sequence[int]) -> Real:
    """Coordinates as fractions of the input, whether they are that or pixels.

    Parameters
    ----------
    values : ndarray, shape (..., k)
    sizes : sequence of int
        The total of each of the k.
    """
    if np.abs(values).max(initial=0) <= _MOST_FRACTION:
        return values
    return values / np.array(sizes, np.float64)


def _detections(
    boxes: Real,
    classes: Real,
    scores: Real,
    frame: Frame,
    labels: Labels | None,
    min_score: float,
) -> tuple[Detection, ...]:
    """The objects whose score is high enough, the best first."""
    shift = labels is not None and labels.name(0).lower() in _NO_CLASS
    detections = []
    for place in np.argsort(-scores, kind="stable"):
        if scores[place] < min_score:
            break
        top, left, bottom, right = boxes[place]
        index = int(classes[place])
        label = labels.name(index + shift) if labels is not None else ""
        detections.append(
            Detection(
                index,
                label,
                float(scores[place]),
                float(frame.x(left)),
                float(frame.y(top)),
                float(frame.x(right)),
                float(frame.y(bottom)),
            )
        )
    return tuple(detections)


def _people(outputs: Sequence[Real], shown: tuple[int, int]) -> list[tuple[Real, float]] | None:
    """Key points (17, 3) of each person as y, x in fractions and score, and the person's score."""
    num_points = len(KEY_POINTS)
    by_shape = {output.shape: output for output in outputs}
    for shape, output in by_shape.items():
        if len(outputs) == 1 and shape in ((1, 1, num_points, 3), (1, num_points, 3)):
            points = output.reshape(num_points, 3)
            return [(points, float(points[:, 2].mean()))]
        if len(outputs) == 1 and len(shape) == 3 and shape[-1] == _PEOPLE_LENGTH:
            people = output.reshape(-1, _PEOPLE_LENGTH)
            return [
                (person[:_MOVENET_LENGTH].reshape(num_points, 3), float(person[-1]))
                for person in people
            ]
    return _of_heat_maps(by_shape, shown) or _decoded(by_shape, shown)


def _of_heat_maps(
    by_shape: Mapping[tuple[int, ...], Real], shown: tuple[int, int]
) -> list[tuple[Real, float]] | None:
    """The one person of PoseNet's heat maps and offsets."""
    num_points = len(KEY_POINTS)
    for shape, heat in by_shape.items():
        offsets = by_shape.get((*shape[:3], 2 * num_points))
        if len(shape) != _BOX or shape[0] != 1 or shape[3] != num_points or offsets is None:
            continue
        height, width = shape[1:3]
        best = heat[0].reshape(-1, num_points).argmax(axis=0)
        rows, columns = np.divmod(best, width)
        point_numbers = np.arange(num_points)
        steps = [
            (size - 1) / max(cells - 1, 1)
            for size, cells in zip(shown, (width, height), strict=True)
        ]
        y = rows * steps[1] + offsets[0, rows, columns, point_numbers]
        x = columns * steps[0] + offsets[0, rows, columns, num_points + point_numbers]
        scores = heat[0, rows, columns, point_numbers]
        if scores.min() < 0 or scores.max() > 1:
            scores = 1 / (1 + np.exp(-scores))
        points = np.stack([y / shown[1], x / shown[0], scores], axis=-1)
        return [(points, float(scores.mean()))]
    return None


def _decoded(
    by_shape: Mapping[tuple[int, ...], Real], shown: tuple[int, int]
) -> list[tuple[Real, float]] | None:
    """People whose poses were decoded within the network."""
    num_points = len(KEY_POINTS)
    for shape, places in by_shape.items():
        scores = by_shape.get(shape[:-1])
        totals = by_shape.get(shape[:-2])
        if shape[2:] != (num_points, _PAIR) or scores is None or totals is None:
            continue
        points = np.concatenate([_fractions(places, shown[::-1]), scores[..., None]], axis=-1)
        return [(points[0, i], float(totals[0, i])) for i in range(shape[1])]
    return None


def _pose(points: Real, score: float, frame: Frame) -> Pose:
    """A person at its place in the picture."""
    return Pose(
        score,
        tuple(
            KeyPoint(name, float(certainty), float(frame.x(x)), float(frame.y(y)))
            for name, (y, x, certainty) in zip(KEY_POINTS, points, strict=True)
        ),
    )
