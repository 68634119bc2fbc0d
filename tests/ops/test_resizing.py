"""Rules of Resize."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from armpy.errors import LayerValidationError
from armpy.ops import Resize, ResizeMethod
from armpy.tensor import Quantization, Shape, TensorInfo
from armpy.types import DataLayout, DataType
from armpy_testing.labels import operation_label

X = TensorInfo((1, 4, 6, 3), DataType.FLOAT32)
SIZE = TensorInfo((2,), DataType.SIGNED32)


@pytest.mark.parametrize(
    ("operation", "inputs", "expected"),
    [
        (Resize((5, 7)), [X], (1, 5, 7, 3)),
        (Resize((5, 7), data_layout=DataLayout.NCHW), [X], (1, 4, 5, 7)),
        (Resize((5, 7)), [TensorInfo((None,) * 4, DataType.FLOAT16)], (None, 5, 7, None)),
        (Resize(), [X, SIZE], (1, None, None, 3)),
    ],
    ids=operation_label,
)
def test_output_shape(operation: Resize, inputs: Sequence[TensorInfo], expected: Shape) -> None:
    assert operation.infer(inputs)[0].shape == expected


@pytest.mark.parametrize(
    ("operation", "inputs", "match"),
    [
        (Resize((5, 0)), [X], "both above 0"),
        (Resize((5, 1, 1)), [X], "height, width"),  # type: ignore[arg-type]
        (Resize(), [X], "gives size"),
        (
            Resize((1, 1), ResizeMethod.BILINEAR, align_corners=True, half_pixel_centers=True),
            [X],
            "exclude each other",
        ),
        (Resize((1, 1)), [TensorInfo((1, 2, 3), DataType.FLOAT32)], "rank 4"),
        (Resize((1, 1)), [TensorInfo((1, 2, 3, 4), DataType.BOOLEAN)], "data types"),
    ],
    ids=operation_label,
)
def test_what_cannot_be_is_refused(
    operation: Resize, inputs: Sequence[TensorInfo], match: str
) -> None:
    with pytest.raises(LayerValidationError, match=match):
        operation.infer(inputs)


def test_output_is_quantised_like_the_input() -> None:
    source = TensorInfo((1, 2, 2, 1), DataType.QASYMM_U8, Quantization.per_tensor(0.5, 3))
    target = TensorInfo(None, DataType.QASYMM_U8, Quantization.per_tensor(0.25, 3))
    with pytest.raises(LayerValidationError, match="quantised unlike"):
        Resize((3, 3)).infer([source], [target])


@pytest.mark.parametrize("method", list(ResizeMethod))
def test_the_same_size_changes_nothing(method: ResizeMethod) -> None:
    same = Resize((4, 6), method)
    assert same.identity_of([X], same.infer([X])) == 0
    other = Resize((6, 4), method)
    assert other.identity_of([X], other.infer([X])) is None


def test_shifted_samples_are_others_even_at_the_same_size() -> None:
    odd = Resize((4, 6), align_corners=True, half_pixel_centers=True)
    assert odd.identity_of([X], odd.infer([X])) is None
