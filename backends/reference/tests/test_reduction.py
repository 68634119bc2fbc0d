"""CpuRef's reductions on small tensors worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from armpy.ops import ArgMinMax, ArgMinMaxFunction, Reduce, ReduceOperation
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_testing.run_operation import run_operation, tensor

X = [[1, 2, 3], [4, 5, -6]]
TRUTH = [[True, False], [True, True]]


@pytest.mark.parametrize(
    "data_type", [DataType.FLOAT32, DataType.FLOAT16, DataType.SIGNED32, DataType.SIGNED64]
)
@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (ReduceOperation.SUM, [6, 3]),
        (ReduceOperation.MEAN, [2, 1]),
        (ReduceOperation.PROD, [6, -120]),
        (ReduceOperation.MAX, [3, 5]),
        (ReduceOperation.MIN, [1, -6]),
    ],
)
def test_numbers_along_the_last_axis(
    operation: ReduceOperation, expected: list[int], data_type: DataType
) -> None:
    (result,) = run_operation(Reduce(operation, (-1,)), [tensor(X, data_type)])
    assert result.tolist() == expected
    (output,) = run_operation(Reduce(operation, (-1,), keep_dims=True), [tensor(X, data_type)])
    assert output.tolist() == [[n] for n in expected]


@pytest.mark.parametrize(
    ("operation", "expected"),
    [(ReduceOperation.ANY, [True, True]), (ReduceOperation.ALL, [True, False])],
)
def test_truth_values(operation: ReduceOperation, expected: list[bool]) -> None:
    (result,) = run_operation(Reduce(operation, (0,)), [tensor(TRUTH, DataType.BOOLEAN)])
    assert result.tolist() == expected


def test_all_axes_leave_a_scalar() -> None:
    (result,) = run_operation(Reduce(), [tensor(X)])
    assert result.shape == ()
    assert result == 9


@pytest.mark.parametrize("data_type", [DataType.FLOAT32, DataType.SIGNED32])
def test_a_scalar_is_its_own_sum(data_type: DataType) -> None:
    assert run_operation(Reduce(), [tensor(3, data_type)])[0] == 3


def test_the_mean_of_integers_rounds_towards_zero() -> None:
    mean = Reduce(ReduceOperation.MEAN, (1,))
    (result,) = run_operation(mean, [tensor([[1, 2], [-1, -2]], DataType.SIGNED32)])
    assert result.tolist() == [1, -1]


@pytest.mark.parametrize(
    ("operation", "values", "expected"),
    [
        (ReduceOperation.SUM, [2**31 - 1, 1], -(2**31)),
        (ReduceOperation.PROD, [2**30, 4], 0),
    ],
)
def test_integers_wrap_around(operation: ReduceOperation, values: list[int], expected: int) -> None:
    assert run_operation(Reduce(operation), [tensor(values, DataType.SIGNED32)])[0] == expected


def test_float_sums_do_not_lose_small_terms() -> None:
    # Added up in float32, 2**24 would swallow each single 1.
    assert run_operation(Reduce(), [tensor([2.0**24, *[1.0] * 8])])[0] == 2**24 + 8


@pytest.mark.parametrize("operation", [ReduceOperation.MAX, ReduceOperation.MIN])
def test_extremes_are_nan_where_there_is_one(operation: ReduceOperation) -> None:
    for row in ([np.nan, -np.inf, 2.0], [2.0, np.inf, np.nan], [np.nan, np.nan]):
        assert np.isnan(run_operation(Reduce(operation), [tensor(row)])[0])


@pytest.mark.parametrize(("operation", "sign"), [("MAX", 1), ("MIN", -1)])
def test_positive_zeros_are_above_negative_ones(operation: str, sign: int) -> None:
    """Wherever they stand; IEEE 754-2019, 9.6."""
    for length in range(2, 40):
        rows = np.full((length, length), -0.0 * sign, np.float32)
        np.fill_diagonal(rows, 0.0 * sign)
        rows[:, 0][1:] = -1 * sign
        for axis in (0, 1):
            reduced = run_operation(Reduce(ReduceOperation[operation], (axis,)), [tensor(rows)])
            extremes = reduced[0][1:]
            np.testing.assert_array_equal(np.copysign(1, extremes), sign)
    alike = run_operation(Reduce(ReduceOperation[operation]), [tensor([-0.0 * sign] * 9)])
    assert np.copysign(1, alike[0]) == -sign


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (ReduceOperation.SUM, 0.0),
        (ReduceOperation.MEAN, np.nan),
        (ReduceOperation.PROD, 1.0),
        (ReduceOperation.MAX, -np.inf),
        (ReduceOperation.MIN, np.inf),
    ],
)
def test_reducing_no_elements(operation: ReduceOperation, expected: float) -> None:
    info = TensorInfo((2, 0), DataType.FLOAT32)
    (result,) = run_operation(Reduce(operation, (1,)), [(info, np.zeros((2, 0), np.float32))])
    np.testing.assert_array_equal(result, [expected] * 2)


@pytest.mark.parametrize(
    "operation", [ReduceOperation.SUM, ReduceOperation.MEAN, ReduceOperation.PROD]
)
def test_reducing_no_quantised_elements_stores_zero(operation: ReduceOperation) -> None:
    info = TensorInfo((2, 0), DataType.QASYMM_S8, Quantization.per_tensor(0.5, 3))
    (result,) = run_operation(Reduce(operation, (1,)), [(info, np.zeros((2, 0), np.int8))])
    assert result.tolist() == [0, 0]


def test_the_mean_of_no_integers_is_zero() -> None:
    info = TensorInfo((0,), DataType.SIGNED32)
    (result,) = run_operation(Reduce(ReduceOperation.MEAN), [(info, np.zeros(0, np.int32))])
    assert result == 0


def test_quantised_sums_are_rescaled_and_saturate() -> None:
    # Real numbers 1, 2, 3 and 4, 5, 56; sums 6 and 65, in steps of 0.25: 24 and 260.
    source = tensor([[5, 7, 9], [11, 13, 115]], DataType.QASYMM_S8, 0.5, 3)
    output = TensorInfo(None, DataType.QASYMM_S8, Quantization.per_tensor(0.25, -10))
    assert run_operation(Reduce(axes=(1,)), [source], [output])[0].tolist() == [14, 127]


def test_quantised_means_are_rescaled() -> None:
    # Real numbers 1, 2, 6 with mean 3, which is 12 steps of 0.25.
    source = tensor([5, 7, 15], DataType.QASYMM_S8, 0.5, 3)
    output = TensorInfo(None, DataType.QASYMM_S8, Quantization.per_tensor(0.25, -10))
    (result,) = run_operation(Reduce(ReduceOperation.MEAN), [source], [output])
    assert result == 2


def test_quantised_products_are_rescaled() -> None:
    # Real numbers 1, 2, 3 with product 6, which is 12 steps of 0.5.
    source = tensor([5, 7, 9], DataType.QASYMM_S8, 0.5, 3)
    output = TensorInfo(None, DataType.QASYMM_S8, Quantization.per_tensor(0.5, -10))
    (result,) = run_operation(Reduce(ReduceOperation.PROD), [source], [output])
    assert result == 2


def test_quantised_extremes_are_stored_elements() -> None:
    source = tensor([5, -7, 9], DataType.QASYMM_S8, 0.5, 3)
    assert run_operation(Reduce(ReduceOperation.MAX), [source])[0] == 9
    assert run_operation(Reduce(ReduceOperation.MIN), [source])[0] == -7


@pytest.mark.parametrize("output_type", [DataType.SIGNED32, DataType.SIGNED64])
@pytest.mark.parametrize(
    ("function", "expected"), [(ArgMinMaxFunction.MAX, [1, 0]), (ArgMinMaxFunction.MIN, [0, 1])]
)
def test_of_equal_elements_the_first_counts(
    function: ArgMinMaxFunction, expected: list[int], output_type: DataType
) -> None:
    values = tensor([[1, 9, 9, 1], [8, 2, 2, 8]], DataType.QASYMM_U8, 0.5, 3)
    (result,) = run_operation(ArgMinMax(function, -1, output_type), [values])
    assert result.tolist() == expected
    assert result.dtype == output_type.dtype


@pytest.mark.parametrize(
    ("row", "greatest", "least"),
    [
        ([np.nan, 1, 2], 0, 0),
        ([2, np.nan, 1], 1, 1),
        ([-np.inf, np.inf, np.nan], 2, 2),
        ([np.nan, np.nan, np.nan], 0, 0),
        ([0.0, -0.0, 0.0], 0, 0),
    ],
)
def test_the_first_nan_is_the_extreme(row: list[float], greatest: int, least: int) -> None:
    for function, expected in ((ArgMinMaxFunction.MAX, greatest), (ArgMinMaxFunction.MIN, least)):
        (result,) = run_operation(ArgMinMax(function, 1), [tensor([row])])
        assert result.tolist() == [expected]


def test_a_quantised_mean_may_be_that_of_the_stored_integers_rounded_down() -> None:
    stored = tensor([[1, 2], [-1, -2], [4, 5]], DataType.QASYMM_S8, 0.5, 3)
    (rounded,) = run_operation(Reduce(ReduceOperation.MEAN, (1,), rounds_down=True), [stored])
    assert rounded.tolist() == [1, -2, 4]


@pytest.mark.parametrize("data_type", [DataType.FLOAT32, DataType.FLOAT16])
def test_a_zero_factor_may_absorb_infinities_and_nan(data_type: DataType) -> None:
    values = tensor([[0, np.inf], [np.nan, 0], [2, 3], [np.inf, 2]], data_type)
    product = Reduce(ReduceOperation.PROD, (1,))
    (plain,) = run_operation(product, [values])
    np.testing.assert_array_equal(plain, [np.nan, np.nan, 6, np.inf])
    (absorbed,) = run_operation(product.with_attributes(zero_absorbs=True), [values])
    assert absorbed.tolist() == [0, 0, 6, np.inf]
