"""Operators that take parts of tensors."""

from __future__ import annotations

from collections.abc import Sequence

from armpy.frontends.tflite.composed import moving
from armpy.frontends.tflite.node import BoundOperator, ConverterTable, direct
from armpy.graph import Value
from armpy.ops.slicing import Gather, GatherNd, Slice, Splitter, Unstack
from armpy.ops.strided_slicing import StridedSlice


def _gather(node: BoundOperator) -> Gather:
    options = node.options("GatherOptions")
    return Gather(options.integer("Axis"), options.integer("BatchDims"))


def _strided_slice(node: BoundOperator) -> StridedSlice:
    options = node.options("StridedSliceOptions")
    return StridedSlice(
        begin_mask=options.integer("BeginMask"),
        end_mask=options.integer("EndMask"),
        shrink_axis_mask=options.integer("ShrinkAxisMask"),
        ellipsis_mask=options.integer("EllipsisMask"),
        new_axis_mask=options.integer("NewAxisMask"),
        end_is_offset=options.flag("Offset"),
    )


def _split(node: BoundOperator) -> Sequence[Value]:
    node.expect_outputs(node.options("SplitOptions").integer("NumSplits"))
    operation = Splitter(num_splits=len(node.outputs))
    # SPLIT has the axis first. Without sizes (None), the parts are equal.
    return node.layer(operation, node.input(1), None, node.input(0))


def _split_v(node: BoundOperator) -> Sequence[Value]:
    node.expect_outputs(node.options("SplitVOptions").integer("NumSplits"))
    return node.layer(Splitter(num_splits=len(node.outputs)), *node.inputs)


def _unpack(node: BoundOperator) -> Unstack:
    options = node.options("UnpackOptions")
    node.expect_outputs(options.integer("Num"))
    return Unstack(len(node.outputs), options.integer("Axis"))


CONVERTERS: ConverterTable = {
    "GATHER": moving(direct(_gather)),
    "GATHER_ND": moving(direct(GatherNd())),
    "SLICE": moving(direct(Slice())),
    "SPLIT": moving(_split, 1),
    "SPLIT_V": moving(_split_v),
    "STRIDED_SLICE": moving(direct(_strided_slice)),
    "UNPACK": direct(_unpack),
}
