"""Definitions of convolutions of volumes: shapes, groups, refusals."""

from __future__ import annotations

import pytest

from armpy.errors import LayerValidationError
from armpy.ops import Convolution3d, TransposeConvolution3d
from armpy.ops.operation import Operation
from armpy.ops.shapes import Padding
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataLayout, DataType

NCDHW = DataLayout.NCDHW


def shape_of(operation: Operation, *shapes: Shape) -> Shape | None:
    """Inferred shape for float inputs."""
    infos = [TensorInfo(shape, DataType.FLOAT32) for shape in shapes]
    return operation.infer(infos)[0].shape


@pytest.mark.parametrize(
    ("operation", "shape", "kernel", "expected"),
    [
        (Convolution3d(), (2, 4, 6, 7, 3), (5, 2, 3, 3, 3), (2, 3, 4, 5, 5)),
        (Convolution3d((2, 2, 2), padding=Padding.SAME), (1, 5, 6, 7, 4), (8, 3, 3, 3, 4), None),
        (Convolution3d(dilation=(1, 2, 3)), (1, 4, 6, 7, 3), (5, 2, 2, 3, 3), (1, 3, 4, 1, 5)),
        (Convolution3d(data_layout=NCDHW), (1, 3, 4, 6, 7), (5, 2, 3, 3, 3), (1, 5, 3, 4, 5)),
        (Convolution3d(), (1, None, 6, 7, 3), (5, 2, 3, 3, 3), (1, None, 4, 5, 5)),
        (Convolution3d(), (1, 4, 4, 4, 6), (9, 2, 2, 2, 2), (1, 3, 3, 3, 9)),
        (TransposeConvolution3d((2, 2, 2)), (1, 2, 3, 4, 3), (5, 2, 3, 3, 3), (1, 4, 7, 9, 5)),
        (
            TransposeConvolution3d((2, 3, 1), padding=Padding.SAME),
            (1, 2, 3, 4, 3),
            (5, 2, 3, 3, 3),
            (1, 4, 9, 4, 5),
        ),
        (
            TransposeConvolution3d(dilation=(1, 2, 3), padding=((0, 0), (1, 1), (0, 2))),
            (1, 2, 3, 4, 4),
            (6, 2, 3, 3, 2),
            (1, 3, 5, 8, 6),
        ),
    ],
)
def test_output_sizes_follow_from_the_windows(
    operation: Operation, shape: Shape, kernel: Shape, expected: Shape | None
) -> None:
    assert shape_of(operation, shape, kernel) == (expected or (1, 3, 3, 4, 8))


@pytest.mark.parametrize("make", [Convolution3d, TransposeConvolution3d])
@pytest.mark.parametrize(
    ("attributes", "shape", "kernel", "match"),
    [
        ({"data_layout": DataLayout.NHWC}, (1, 4, 4, 4, 3), (5, 2, 2, 2, 3), "NDHWC or NCDHW"),
        ({"stride": (1, 0, 1)}, (1, 4, 4, 4, 3), (5, 2, 2, 2, 3), "the stride is not positive"),
        (
            {"dilation": (1, 1)},
            (1, 4, 4, 4, 3),
            (5, 2, 2, 2, 3),
            "the dilation does not have one number per axis",
        ),
        ({"padding": ((0, 0), (0, 0))}, (1, 4, 4, 4, 3), (5, 2, 2, 2, 3), "3 pairs"),
        ({}, (1, 4, 4, 4, 3), (5, 2, 2, 2, 2), "a divisor of 3"),
        ({}, (1, 4, 4, 4, 4), (5, 2, 2, 2, 2), "a multiple of 2 filters"),
        ({}, (1, 4, 4, 4), (5, 2, 2, 2, 2), "rank 5"),
    ],
)
def test_what_does_not_fit_is_refused(
    make: type[Operation], attributes: dict[str, object], shape: Shape, kernel: Shape, match: str
) -> None:
    operation = make(**attributes)
    with pytest.raises(LayerValidationError, match=match):
        shape_of(operation, shape, kernel)


def test_a_volume_smaller_than_the_windows_is_refused() -> None:
    with pytest.raises(LayerValidationError, match="5 or more elements of the input"):
        shape_of(Convolution3d(), (1, 4, 9, 9, 1), (1, 5, 1, 1, 1))


def test_a_given_output_shape_counts() -> None:
    operation = TransposeConvolution3d(output_shape=(9, 3, 4, 5, 9))
    assert shape_of(operation, (1, 2, 3, 4, 3), (5, 2, 2, 2, 3)) == (1, 3, 4, 5, 5)
