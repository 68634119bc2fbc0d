"""Operations that move elements between the spatial axes and the channels or the batch."""

from __future__ import annotations

from armpy.graph import Value
from armpy.ops.blocks import BatchToSpaceNd, DepthToSpace, SpaceToBatchNd, SpaceToDepth
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.operations.definition import OperationDefinition
from armpy_nnapi.operations.form import Argument, forms
from armpy_nnapi.operations.lowering_context import LoweringContext
from armpy_nnapi.operations.padding import PADDINGS, check_zero_point, padding_pairs
from armpy_nnapi.operations.shared import data_layout, quantized_like, vector
from armpy_nnapi.operations.windows import DEFAULT_NCHW, IMAGE, IMAGE_ROWS

_C = OperandCode

_BLOCK_SIZE = Argument("block_size", _C.INT32)
_BLOCK_SHAPE = Argument(
    "block_shape", _C.TENSOR_INT32, "Height and width of a block.", decisive=True
)
_OUTPUTS = (Argument("output", "T"),)


def _lower_depth(lower: LoweringContext, kind: type[DepthToSpace] | type[SpaceToDepth]) -> Value:
    operation = kind(lower.integer("block_size"), data_layout(lower))
    return lower.add(operation, lower["input"], output=quantized_like(lower))


def _lower_batch_to_space(lower: LoweringContext) -> Value:
    block = vector(lower, "block_shape", 2)
    # NNAPI's operation has no crops.
    operation = BatchToSpaceNd(block, ((0, 0), (0, 0)), data_layout(lower))
    return lower.add(operation, lower["input"], output=quantized_like(lower))


def _lower_space_to_batch(lower: LoweringContext) -> Value:
    block = vector(lower, "block_shape", 2)
    operation = SpaceToBatchNd(block, padding_pairs(lower), data_layout(lower))
    return lower.add(operation, lower["input"], output=quantized_like(lower))


DEFINITIONS: tuple[OperationDefinition, ...] = (
    OperationDefinition(
        OperationCode.DEPTH_TO_SPACE,
        "Spread channels over square blocks of an image.",
        forms((IMAGE, _BLOCK_SIZE), (29, (DEFAULT_NCHW,)), outputs=_OUTPUTS),
        IMAGE_ROWS,
        lambda lower: _lower_depth(lower, DepthToSpace),
    ),
    OperationDefinition(
        OperationCode.SPACE_TO_DEPTH,
        "Gather square blocks of an image into channels.",
        forms((IMAGE, _BLOCK_SIZE), (29, (DEFAULT_NCHW,)), outputs=_OUTPUTS),
        IMAGE_ROWS,
        lambda lower: _lower_depth(lower, SpaceToDepth),
    ),
    OperationDefinition(
        OperationCode.BATCH_TO_SPACE_ND,
        "Gather blocks of an image from the batch.",
        forms((IMAGE, _BLOCK_SHAPE), (29, (DEFAULT_NCHW,)), outputs=_OUTPUTS, feature_level=28),
        IMAGE_ROWS,
        _lower_batch_to_space,
    ),
    OperationDefinition(
        OperationCode.SPACE_TO_BATCH_ND,
        "Pad an image with real 0 and spread its blocks over the batch.",
        forms(
            (IMAGE, _BLOCK_SHAPE, PADDINGS),
            (29, (DEFAULT_NCHW,)),
            outputs=_OUTPUTS,
            feature_level=28,
        ),
        IMAGE_ROWS,
        _lower_space_to_batch,
        check=check_zero_point,
    ),
)
