"""Operations that make one element of many along axes."""

from __future__ import annotations

from armpy.graph import Value
from armpy.ops.reduction import ArgMinMax, ArgMinMaxFunction, Reduce, ReduceOperation
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.operations.definition import OperationDefinition
from armpy_nnapi.operations.form import Argument, TypeRow, forms, rows
from armpy_nnapi.operations.lowering_context import LoweringContext
from armpy_nnapi.operations.shared import quantized_like, vector, with_an_axis

_C = OperandCode

_FLOATS = rows("T", (_C.TENSOR_FLOAT16, 29), (_C.TENSOR_FLOAT32, 29))
_TRUTH = rows("T", (_C.TENSOR_BOOL8, 29))
_ORDERED = (
    *_FLOATS,
    *rows("T", (_C.TENSOR_QUANT8_ASYMM, 29), (_C.TENSOR_QUANT8_ASYMM_SIGNED, 30)),
)
# The reference asks no newer level for the signed type here; the type itself does.
_COMPARED = rows(
    "T",
    (_C.TENSOR_FLOAT16, 29),
    (_C.TENSOR_FLOAT32, 29),
    (_C.TENSOR_INT32, 29),
    (_C.TENSOR_QUANT8_ASYMM, 29),
    (_C.TENSOR_QUANT8_ASYMM_SIGNED, 29),
)
_MEAN = rows(
    "T",
    (_C.TENSOR_FLOAT32, 28),
    (_C.TENSOR_QUANT8_ASYMM, 28),
    (_C.TENSOR_FLOAT16, 29),
    (_C.TENSOR_QUANT8_ASYMM_SIGNED, 30),
)


def _lower_reduction(lower: LoweringContext, kind: ReduceOperation) -> Value:
    info = quantized_like(lower)
    reduce = Reduce(
        kind,
        vector(lower, "axes"),
        # MEAN has an integer here, of which only numbers above 0 mean yes.
        lower.number("keep_dims") > 0,
        # NNAPI's reference averages stored integers, and skips the product after a zero.
        rounds_down=kind is ReduceOperation.MEAN,
        zero_absorbs=kind is ReduceOperation.PROD,
    )
    return with_an_axis(lower, lower.add(reduce, lower["input"], output=info))


def _reduction(
    code: OperationCode, kind: ReduceOperation, summary: str, type_rows: tuple[TypeRow, ...]
) -> OperationDefinition:
    """The definition of MEAN or of one of REDUCE_*, whose flags differ in type."""
    is_mean = kind is ReduceOperation.MEAN
    return OperationDefinition(
        code,
        f"{summary} along axes.",
        forms(
            (
                Argument("input", "T", ranks=(1, 2, 3, 4)),
                Argument(
                    "axes", _C.TENSOR_INT32, "Negative ones count from the end.", decisive=True
                ),
                Argument(
                    "keep_dims",
                    # MEAN is older than operands of type BOOL.
                    _C.INT32 if is_mean else _C.BOOL,
                    f"Whether reduced axes stay with size 1{' (above 0)' if is_mean else ''}.",
                ),
            ),
            outputs=(Argument("output", "T"),),
        ),
        type_rows,
        lambda lower: _lower_reduction(lower, kind),
    )


def _lower_search(lower: LoweringContext, function: ArgMinMaxFunction) -> Value:
    """ARGMAX and ARGMIN."""
    search = ArgMinMax(function, lower.integer("axis"))
    position = lower.add(search, lower["input"], output=lower.output_info().with_shape(None))
    return with_an_axis(lower, position)


def _search(code: OperationCode, function: ArgMinMaxFunction, noun: str) -> OperationDefinition:
    """The definition of ARGMAX or ARGMIN."""
    return OperationDefinition(
        code,
        f"Position of the {noun} element along an axis, the first one of equals.",
        forms(
            (
                Argument("input", "T"),
                Argument("axis", _C.INT32, "Negative counts from the end."),
            ),
            outputs=(Argument("output", _C.TENSOR_INT32),),
        ),
        _COMPARED,
        lambda lower: _lower_search(lower, function),
    )


DEFINITIONS: tuple[OperationDefinition, ...] = (
    _reduction(OperationCode.MEAN, ReduceOperation.MEAN, "Mean", _MEAN),
    _reduction(OperationCode.REDUCE_ALL, ReduceOperation.ALL, "Whether all are true", _TRUTH),
    _reduction(OperationCode.REDUCE_ANY, ReduceOperation.ANY, "Whether any is true", _TRUTH),
    _reduction(OperationCode.REDUCE_MAX, ReduceOperation.MAX, "Greatest element", _ORDERED),
    _reduction(OperationCode.REDUCE_MIN, ReduceOperation.MIN, "Least element", _ORDERED),
    _reduction(OperationCode.REDUCE_PROD, ReduceOperation.PROD, "Product", _FLOATS),
    _reduction(OperationCode.REDUCE_SUM, ReduceOperation.SUM, "Sum", _FLOATS),
    _search(OperationCode.ARGMAX, ArgMinMaxFunction.MAX, "greatest"),
    _search(OperationCode.ARGMIN, ArgMinMaxFunction.MIN, "least"),
)
