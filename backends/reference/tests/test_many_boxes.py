"""Non-maximum suppression of many boxes, several at once, chooses what one by one would."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from armpy_reference.workloads.non_max_suppression import NonMaxSuppressionWorkload

from armpy.ops import NonMaxSuppression
from armpy.ops.operation import Array
from armpy_testing.run_operation import run_operation, tensor


def one_by_one(boxes: Array, scores: Array, limit: int, threshold: float) -> list[int]:
    """Each box against each that was chosen before, in float32."""
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    areas = (high - low).prod(axis=1)
    chosen: list[int] = []
    for box in sorted(range(len(scores)), key=lambda number: (-scores[number], number)):
        for other in chosen:
            sides = np.minimum(high[box], high[other]) - np.maximum(low[box], low[other])
            common = np.maximum(sides, 0).prod()
            union = areas[box] + areas[other] - common
            if common > 0 and not common / union <= np.float32(threshold):
                break
        else:
            chosen.append(box)
    return chosen[:limit]


@pytest.mark.sampled(7)
@pytest.mark.parametrize("limit", [5, 70, 1 << 62])
@pytest.mark.parametrize("size", [0.02, 0.2, 1.0])
def test_many_boxes_are_chosen_as_one_by_one(size: float, limit: int) -> None:
    random = np.random.default_rng(int(100 * size))
    first = random.random((1, 200, 2), np.float32)
    boxes = np.concatenate([first, first + size * random.random((1, 200, 2), np.float32)], axis=-1)
    scores = random.integers(0, 20, (1, 2, 200)).astype(np.float32)  # so that many are equal
    (chosen,) = run_operation(NonMaxSuppression(limit, 0.3), [tensor(boxes), tensor(scores)])
    expected = [
        (0, label, box)
        for label in range(2)
        for box in one_by_one(boxes[0], scores[0, label], limit, 0.3)
    ]
    assert [tuple(row) for row in chosen.tolist()] == expected


@pytest.mark.parametrize("limit", [5, 15, 60])
def test_boxes_without_a_score_come_last(limit: int) -> None:
    random = np.random.default_rng(4)
    first = random.random((1, 200, 2), np.float32)
    boxes = np.concatenate([first, first + np.float32(0.1)], axis=-1)
    scores = random.random((1, 1, 200)).astype(np.float32)
    last = np.where(np.arange(200) % 4 == 0, scores, np.float32(-1))
    boxes[0, np.argsort(-last[0, 0])[:30]] = boxes[0, 0]  # more than are looked at first
    (chosen,) = run_operation(
        NonMaxSuppression(limit, 0.3), [tensor(boxes), tensor(np.where(last < 0, np.nan, scores))]
    )
    assert chosen[:, 2].tolist() == one_by_one(boxes[0], last[0, 0], limit, 0.3)


@pytest.mark.parametrize("limit", [30, 1 << 62])
def test_boxes_of_different_classes_far_apart_are_not_compared(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(0)
    compared, overlap = [], NonMaxSuppressionWorkload._overlap

    def counted(self: Any, boxes: Array, areas: Array, some: Array, others: Array) -> Array:
        compared.append(len(some) * len(others))
        return overlap(self, boxes, areas, some, others)

    monkeypatch.setattr(NonMaxSuppressionWorkload, "_overlap", counted)
    # Exporters of PyTorch move each class's boxes away from those of the others.
    low = random.random((1000, 2), np.float32) + 3 * random.integers(0, 10, (1000, 1))
    boxes = np.concatenate([low, low + random.random((1000, 2))], axis=-1).astype(np.float32)
    scores = random.random(1000, np.float32)
    inputs = [tensor(boxes[None]), tensor(scores[None, None])]
    (chosen,) = run_operation(NonMaxSuppression(limit, 0.5), inputs)
    assert chosen[:, 2].tolist() == one_by_one(boxes, scores, limit, 0.5)
    assert sum(compared) < 10 * 120**2


@pytest.mark.parametrize("limit", [0, -1, -(1 << 63)])
def test_a_limit_below_one_chooses_no_boxes(limit: int) -> None:
    boxes = np.array([[[0, 0, 1, 1], [0, 0, 1, 2]]], np.float32)
    scores = np.ones((1, 1, 2), np.float32)
    (chosen,) = run_operation(NonMaxSuppression(limit, 0.3), [tensor(boxes), tensor(scores)])
    assert chosen.shape == (0, 3)
