"""Operations that take parts of a tensor."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.graph import Value
from armpy.ops.operation import require
from armpy.ops.shapes import normalize_axis
from armpy.ops.slicing import Gather, Slice, Splitter
from armpy.ops.strided_slicing import StridedSlice
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.operations.definition import OperationDefinition
from armpy_nnapi.operations.form import Argument, Arguments, forms, rows
from armpy_nnapi.operations.lowering_context import LoweringContext
from armpy_nnapi.operations.shared import ANY_NUMBERS_FROM_29, quantized_like, vector, with_an_axis

_C = OperandCode

_OUTPUT = (Argument("output", "T"),)


def _lower_embedding_lookup(lower: LoweringContext) -> Value:
    lookups, values = lower.shape("lookups"), lower.shape("values")
    require(
        len(lookups) == 1 and len(values) >= 2,
        "lookups or values have the wrong rank",
        expected="rank 1, and rank 2 or more",
        actual=f"{lookups} and {values}",
    )
    info = quantized_like(lower, "values")
    return lower.add(Gather(0), lower["values"], lower["lookups"], output=info)


def _lower_gather(lower: LoweringContext) -> Value:
    gather = Gather(lower.integer("axis"))
    return lower.add(gather, lower["input"], lower["indices"], output=quantized_like(lower))


def _lower_slice(lower: LoweringContext) -> Value:
    rank = len(lower.shape("input"))
    slicing = Slice(vector(lower, "begin", rank), vector(lower, "size", rank))
    return lower.add(slicing, lower["input"], output=quantized_like(lower))


def _check_num_splits(arguments: Arguments) -> int:
    """There is one output per part."""
    num_splits = arguments.constant("num_splits")
    if num_splits is not None:
        _require_num_splits(int(num_splits), len(arguments.outputs))
    return arguments.match.feature_level


def _require_num_splits(num_splits: int, num_outputs: int) -> None:
    """Check the number of parts against that of the outputs."""
    require(
        num_splits == num_outputs,
        "num_splits is not the number of outputs",
        expected=str(num_outputs),
        actual=num_splits,
    )


def _lower_split(lower: LoweringContext) -> Sequence[Value]:
    num_splits = lower.integer("num_splits")
    # Checked here as well, for the number may have become known only now.
    _require_num_splits(num_splits, len(lower.arguments.outputs))
    axis = normalize_axis(lower.integer("axis"), len(lower.shape("input")))
    infos = [quantized_like(lower, index=index) for index in range(num_splits)]
    return lower.add_layer(Splitter(num_splits, axis), [lower["input"]], infos)


def _lower_strided_slice(lower: LoweringContext) -> Value:
    """STRIDED_SLICE; unlike the core's, an axis to be shrunk must come out with one element."""
    shape = lower.shape("input")
    begin, end, strides = (vector(lower, name, len(shape)) for name in ("begin", "end", "strides"))
    begin_mask, end_mask = lower.integer("begin_mask"), lower.integer("end_mask")
    shrink = lower.integer("shrink_axis_mask")
    first = list(begin)
    for axis, (dim, stride) in enumerate(zip(shape, strides, strict=True)):
        require(stride != 0, "a stride is 0", expected="positive or negative strides")
        if not shrink >> axis & 1:
            continue
        start = None if begin_mask >> axis & 1 else begin[axis]
        stop = None if end_mask >> axis & 1 else end[axis]
        # Python counts as the reference does: from the end where negative, cut at the borders.
        indexes = range(*slice(start, stop, stride).indices(dim))
        require(
            stride > 0 and len(indexes) == 1,
            f"axis {axis} cannot be shrunk",
            expected="a stride above 0 that takes one element",
            actual=f"a stride of {stride} that takes {len(indexes)}",
        )
        # The core takes the one element from here, whatever the masks said.
        first[axis] = indexes.start
    sliced = lower.add(
        StridedSlice(tuple(first), end, strides, begin_mask, end_mask, shrink),
        lower["input"],
        output=quantized_like(lower),
    )
    # NNAPI has no tensors of rank 0, also where every axis is shrunk.
    return with_an_axis(lower, sliced)


DEFINITIONS: tuple[OperationDefinition, ...] = (
    OperationDefinition(
        OperationCode.EMBEDDING_LOOKUP,
        "Slices of a tensor that are looked up along its first axis.",
        forms(
            (
                Argument("lookups", _C.TENSOR_INT32, "Positions along the first axis; rank 1."),
                Argument("values", "T", "Rank 2 or more."),
            ),
            outputs=_OUTPUT,
        ),
        rows(
            "T",
            (_C.TENSOR_FLOAT32, 27),
            (_C.TENSOR_INT32, 29),
            (_C.TENSOR_QUANT8_ASYMM, 29),
            (_C.TENSOR_FLOAT16, 30),
            (_C.TENSOR_QUANT8_ASYMM_SIGNED, 30),
        ),
        _lower_embedding_lookup,
    ),
    OperationDefinition(
        OperationCode.GATHER,
        "Slices of a tensor that are looked up along an axis.",
        forms(
            (
                Argument("input", "T"),
                Argument("axis", _C.INT32, "Negative counts from the end."),
                Argument("indices", _C.TENSOR_INT32, "Positions along the axis."),
            ),
            outputs=_OUTPUT,
        ),
        ANY_NUMBERS_FROM_29,
        _lower_gather,
    ),
    OperationDefinition(
        OperationCode.SLICE,
        "A block of a tensor.",
        forms(
            (
                Argument("input", "T"),
                Argument("begin", _C.TENSOR_INT32, "One position per axis.", decisive=True),
                Argument(
                    "size",
                    _C.TENSOR_INT32,
                    "One size per axis; -1 for all that follows.",
                    decisive=True,
                ),
            ),
            outputs=_OUTPUT,
        ),
        ANY_NUMBERS_FROM_29,
        _lower_slice,
        allows_zero_sized=True,
    ),
    OperationDefinition(
        OperationCode.SPLIT,
        "Equal parts of a tensor along an axis.",
        forms(
            (
                Argument("input", "T"),
                Argument("axis", _C.INT32, "Negative counts from the end."),
                Argument("num_splits", _C.INT32, "The number of outputs."),
            ),
            outputs=(Argument("outputs", "T", variadic=True),),
        ),
        ANY_NUMBERS_FROM_29,
        _lower_split,
        check=_check_num_splits,
    ),
    OperationDefinition(
        OperationCode.STRIDED_SLICE,
        "Every n-th element of a range along each axis.",
        forms(
            (
                Argument("input", "T", ranks=(1, 2, 3, 4)),
                Argument("begin", _C.TENSOR_INT32, "One position per axis.", decisive=True),
                Argument("end", _C.TENSOR_INT32, "One position per axis.", decisive=True),
                Argument("strides", _C.TENSOR_INT32, "One step per axis.", decisive=True),
                Argument("begin_mask", _C.INT32, "Bit i set: axis i starts at its border."),
                Argument("end_mask", _C.INT32, "Bit i set: axis i ends at its border."),
                Argument("shrink_axis_mask", _C.INT32, "Bit i set: axis i is removed."),
            ),
            outputs=_OUTPUT,
        ),
        rows(
            "T",
            (_C.TENSOR_FLOAT32, 28),
            (_C.TENSOR_QUANT8_ASYMM, 28),
            (_C.TENSOR_FLOAT16, 29),
            (_C.TENSOR_QUANT8_ASYMM_SIGNED, 30),
        ),
        _lower_strided_slice,
    ),
)
