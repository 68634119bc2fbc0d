"""Rules of Reduce and ArgMinMax."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from armpy.errors import LayerValidationError
from armpy.ops import ArgMinMax, Operation, Reduce, ReduceOperation
from armpy.tensor import Quantization, Shape, TensorInfo
from armpy.types import DataType
from armpy_testing.labels import operation_label

X = TensorInfo((2, 3, 4), DataType.FLOAT32)
UNKNOWN = TensorInfo((None, 3, None), DataType.FLOAT32)
SCALAR = TensorInfo((), DataType.FLOAT32)
AXES = TensorInfo((1,), DataType.SIGNED32)
QUANTIZED = TensorInfo((2, 3), DataType.QASYMM_S8, Quantization.per_tensor(0.5, 3))
RESCALED = TensorInfo(None, DataType.QASYMM_S8, Quantization.per_tensor(0.25, 3))


@pytest.mark.parametrize(
    ("operation", "inputs", "expected"),
    [
        (Reduce(axes=(1, -1)), [X], (2,)),
        (Reduce(axes=(1, -1), keep_dims=True), [X], (2, 1, 1)),
        (Reduce(axes=(1, 1)), [X], (2, 4)),
        (Reduce(axes=1), [X], (2, 4)),  # type: ignore[arg-type]  # a constant operand of rank 0
        (Reduce(axes=()), [X], (2, 3, 4)),
        (Reduce(), [X], ()),
        (Reduce(keep_dims=True), [X], (1, 1, 1)),
        (Reduce(axes=(0,)), [SCALAR], ()),
        (Reduce(ReduceOperation.MAX), [TensorInfo((2,), DataType.SIGNED8)], ()),
        (Reduce(axes=(1,)), [UNKNOWN], (None, None)),
        (Reduce(), [X, AXES], None),
        (Reduce(keep_dims=True), [X, AXES], (None, None, None)),
        (ArgMinMax(axis=1), [X], (2, 4)),
        (ArgMinMax(axis=(-1,)), [UNKNOWN], (None, 3)),  # type: ignore[arg-type]
        (ArgMinMax(), [X, AXES], (None, None)),
    ],
    ids=operation_label,
)
def test_output_shape(
    operation: Operation, inputs: Sequence[TensorInfo], expected: Shape | None
) -> None:
    assert operation.infer(inputs)[0].shape == expected


@pytest.mark.parametrize(
    ("operation", "inputs", "match"),
    [
        (Reduce(axes=(3,)), [X], "axis is out of range"),
        (Reduce(ReduceOperation.ANY), [X], "ANY does not take.*BOOLEAN; got FLOAT32"),
        (
            Reduce(ReduceOperation.SUM),
            [TensorInfo((2,), DataType.BOOLEAN)],
            "SUM does not take.*numbers; got BOOLEAN",
        ),
        (Reduce(), [TensorInfo((2,), DataType.UNSIGNED8)], "SUM does not take.*got UNSIGNED8"),
        (Reduce(), [TensorInfo((2,), DataType.UNSIGNED16)], "combination of data types"),
        (Reduce(rounds_down=True), [X], "rounds_down .*Expected MEAN; got SUM"),
        (Reduce(zero_absorbs=True), [X], "zero_absorbs .*Expected PROD; got SUM"),
        (ArgMinMax(axis=0), [SCALAR], "a scalar has no axis"),
        (ArgMinMax(), [X], "neither an attribute nor an operand gives axis"),
        (ArgMinMax(axis=0), [TensorInfo((0, 2), DataType.FLOAT32)], "axis is empty"),
    ],
    ids=operation_label,
)
def test_what_cannot_be_is_refused(
    operation: Operation, inputs: Sequence[TensorInfo], match: str
) -> None:
    with pytest.raises(LayerValidationError, match=match):
        operation.infer(inputs)


@pytest.mark.parametrize(
    "operation", [ReduceOperation.SUM, ReduceOperation.MEAN, ReduceOperation.PROD]
)
def test_computed_results_may_be_rescaled(operation: ReduceOperation) -> None:
    (output,) = Reduce(operation).infer([QUANTIZED], [RESCALED])
    assert output.quantization == RESCALED.quantization


@pytest.mark.parametrize("operation", [ReduceOperation.MAX, ReduceOperation.MIN])
def test_selected_elements_keep_their_quantisation(operation: ReduceOperation) -> None:
    assert Reduce(operation).infer([QUANTIZED])[0].quantization == QUANTIZED.quantization
    with pytest.raises(LayerValidationError, match="quantised unlike"):
        Reduce(operation).infer([QUANTIZED], [RESCALED])


def test_reducing_nothing_changes_nothing() -> None:
    nothing = Reduce(axes=())
    assert nothing.identity_of([QUANTIZED], nothing.infer([QUANTIZED])) == 0
    assert nothing.identity_of([QUANTIZED], nothing.infer([QUANTIZED], [RESCALED])) is None
    assert Reduce().identity_of([X], Reduce().infer([X])) is None


@pytest.mark.parametrize("output_type", [DataType.SIGNED32, DataType.SIGNED64])
def test_positions_have_the_type_of_the_attribute(output_type: DataType) -> None:
    (output,) = ArgMinMax(axis=0, output_type=output_type).infer([QUANTIZED])
    assert output == TensorInfo((3,), output_type)


def test_a_mean_that_rounds_down_keeps_the_quantisation() -> None:
    mean = Reduce(ReduceOperation.MEAN, (0,), rounds_down=True)
    assert mean.infer([QUANTIZED])[0].quantization == QUANTIZED.quantization
    with pytest.raises(LayerValidationError, match="is quantised unlike"):
        mean.infer([QUANTIZED], [RESCALED])
