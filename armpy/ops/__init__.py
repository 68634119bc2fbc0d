"""What each operation is: attributes, operands, type rules and shape rule, once and for all.

Notes
-----
A family is imported when one of its names is first used.
"""

from typing import TYPE_CHECKING

from armpy.lazy import offer

if TYPE_CHECKING:
    from armpy.ops.activation_layers import *
    from armpy.ops.activations import FusedActivation as FusedActivation
    from armpy.ops.backend_internal import *
    from armpy.ops.bidirectional import *
    from armpy.ops.blocks import *
    from armpy.ops.composite import *
    from armpy.ops.control_flow import *
    from armpy.ops.convolution import *
    from armpy.ops.dense import *
    from armpy.ops.detection import *
    from armpy.ops.elementwise import *
    from armpy.ops.generation import *
    from armpy.ops.joining import *
    from armpy.ops.lookup import *
    from armpy.ops.lstm import *
    from armpy.ops.movement import *
    from armpy.ops.normalization import *
    from armpy.ops.operation import Operand as Operand
    from armpy.ops.operation import Operation as Operation
    from armpy.ops.operation import TypeRule as TypeRule
    from armpy.ops.operation import rule as rule
    from armpy.ops.operation import same as same
    from armpy.ops.ordering import *
    from armpy.ops.pooling import *
    from armpy.ops.quantized_lstm import *
    from armpy.ops.quantizing import *
    from armpy.ops.recurrent import *
    from armpy.ops.reduction import *
    from armpy.ops.region_pooling import *
    from armpy.ops.reshaping import *
    from armpy.ops.resizing import *
    from armpy.ops.sampling import *
    from armpy.ops.shapes import Padding as Padding
    from armpy.ops.slicing import *
    from armpy.ops.strided_slicing import *
    from armpy.ops.transpose_convolution import *

    __all__: list[str]

FAMILIES = {
    "activation_layers": (
        "Activation",
        "ActivationFunction",
        "L2Normalization",
        "LogSoftmax",
        "Softmax",
    ),
    "activations": ("FusedActivation",),
    "backend_internal": ("MemCopy", "PreCompiled"),
    "bidirectional": ("BidirectionalSequenceLstm", "BidirectionalSequenceRnn"),
    "blocks": ("BatchToSpaceNd", "DepthToSpace", "SpaceToBatchNd", "SpaceToDepth"),
    "composite": ("Composite", "LayerBuilder", "Tensor"),
    "control_flow": ("If", "While"),
    "convolution": ("Convolution2d", "DepthwiseConvolution2d"),
    "dense": ("BatchMatMul", "FullyConnected"),
    "detection": (
        "AxisAlignedBboxTransform",
        "BoxWithNmsLimit",
        "DetectionPostProcess",
        "GenerateProposals",
        "NmsKernel",
    ),
    "elementwise": (
        "BinaryOperation",
        "Comparison",
        "ComparisonOperation",
        "ElementwiseBinary",
        "ElementwiseUnary",
        "LogicalBinary",
        "LogicalBinaryOperation",
        "Prelu",
        "Select",
        "UnaryOperation",
    ),
    "generation": ("Fill", "OneHot", "Range", "Rank", "Shape"),
    "joining": ("Concat", "Stack"),
    "lookup": ("HashtableLookup", "LshProjection", "LshProjectionType"),
    "lstm": ("Lstm", "UnidirectionalSequenceLstm"),
    "movement": (
        "BroadcastTo",
        "ChannelShuffle",
        "Pad",
        "PaddingMode",
        "ReverseV2",
        "Tile",
        "Transpose",
    ),
    "normalization": ("InstanceNormalization", "Normalization"),
    "operation": ("Operand", "Operation", "TypeRule", "rule", "same"),
    "ordering": ("TopkV2",),
    "pooling": ("Pooling2d", "PoolingAlgorithm"),
    "quantized_lstm": ("QLstm", "QuantizedLstm"),
    "quantizing": ("Cast", "Dequantize", "Quantize"),
    "recurrent": ("RecurrentActivation", "Rnn", "Svdf", "UnidirectionalSequenceRnn"),
    "reduction": ("ArgMinMax", "ArgMinMaxFunction", "Reduce", "ReduceOperation"),
    "region_pooling": ("HeatmapMaxKeypoint", "RoiAlign", "RoiPooling"),
    "reshaping": ("ExpandDims", "Reshape", "Squeeze"),
    "resizing": ("Resize", "ResizeMethod"),
    "sampling": ("RandomMultinomial",),
    "shapes": ("Padding",),
    "slicing": ("Gather", "GatherNd", "Slice", "Splitter", "Unstack"),
    "strided_slicing": ("StridedSlice",),
    "transpose_convolution": ("TransposeConvolution2d",),
}
"""Names that each module gives to this room."""

if not TYPE_CHECKING:
    _SOURCES = {name: f"armpy.ops.{family}" for family, names in FAMILIES.items() for name in names}
    __all__ = list(_SOURCES)
    __getattr__, __dir__ = offer(__name__, _SOURCES)
