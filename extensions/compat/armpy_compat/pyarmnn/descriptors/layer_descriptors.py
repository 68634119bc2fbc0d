"""Descriptors of layers, with Arm NN's members and defaults."""

from __future__ import annotations

from armpy_compat.pyarmnn import constants
from armpy_compat.pyarmnn.descriptors.descriptor import Descriptor
from armpy_compat.pyarmnn.fields import (
    ObjectField,
    ScalarField,
    choice,
    flag,
    pairs,
    real,
    signed,
    signeds,
    unsigned,
    unsigneds,
)
from armpy_compat.pyarmnn.tensors.permutation_vector import PermutationVector
from armpy_compat.pyarmnn.tensors.tensor_info import TensorShape

__all__ = [
    "ActivationDescriptor",
    "ArgMinMaxDescriptor",
    "BatchMatMulDescriptor",
    "BatchNormalizationDescriptor",
    "BatchToSpaceNdDescriptor",
    "ChannelShuffleDescriptor",
    "ComparisonDescriptor",
    "Convolution2dDescriptor",
    "Convolution3dDescriptor",
    "DepthToSpaceDescriptor",
    "DepthwiseConvolution2dDescriptor",
    "DetectionPostProcessDescriptor",
    "ElementwiseBinaryDescriptor",
    "ElementwiseUnaryDescriptor",
    "FakeQuantizationDescriptor",
    "FillDescriptor",
    "FullyConnectedDescriptor",
    "GatherDescriptor",
    "InstanceNormalizationDescriptor",
    "L2NormalizationDescriptor",
    "LogSoftmaxDescriptor",
    "LogicalBinaryDescriptor",
    "LstmDescriptor",
    "MeanDescriptor",
    "NormalizationDescriptor",
    "PadDescriptor",
    "PermuteDescriptor",
    "Pooling2dDescriptor",
    "Pooling3dDescriptor",
    "ReduceDescriptor",
    "ReshapeDescriptor",
    "ResizeDescriptor",
    "SliceDescriptor",
    "SoftmaxDescriptor",
    "SpaceToBatchNdDescriptor",
    "SpaceToDepthDescriptor",
    "StackDescriptor",
    "StandInDescriptor",
    "StridedSliceDescriptor",
    "TileDescriptor",
    "TransposeConvolution2dDescriptor",
    "TransposeDescriptor",
]

_NCHW = constants.DataLayout_NCHW
_NHWC = constants.DataLayout_NHWC


def _layout(default: int = _NCHW) -> ScalarField[int]:
    return choice("DataLayout", default)


def _permutation() -> ObjectField[PermutationVector]:
    return ObjectField(
        PermutationVector,
        "armnn::PermutationVector *",
        lambda other: PermutationVector(() if other is None else tuple(other)),
    )


def _shape() -> ObjectField[TensorShape]:
    return ObjectField(TensorShape, "armnn::TensorShape *", TensorShape.copy_of)


class ActivationDescriptor(Descriptor):
    """Configuration of `INetwork.AddActivationLayer`."""

    m_Function = choice("ActivationFunction", constants.ActivationFunction_Sigmoid)
    m_A = real()
    m_B = real()


class ArgMinMaxDescriptor(Descriptor):
    """Configuration of `INetwork.AddArgMinMaxLayer`."""

    m_Function = choice("ArgMinMaxFunction", constants.ArgMinMaxFunction_Min)
    m_Axis = signed(-1)
    m_Output_Type = choice("DataType", constants.DataType_Signed32)


class BatchMatMulDescriptor(Descriptor):
    """Configuration of `INetwork.AddBatchMatMulLayer`."""

    _arguments = (
        "m_TransposeX",
        "m_TransposeY",
        "m_AdjointX",
        "m_AdjointY",
        "m_DataLayoutX",
        "m_DataLayoutY",
    )
    m_TransposeX = flag()
    m_TransposeY = flag()
    m_AdjointX = flag()
    m_AdjointY = flag()
    m_DataLayoutX = _layout()
    m_DataLayoutY = _layout()


class BatchNormalizationDescriptor(Descriptor):
    """Configuration of `INetwork.AddBatchNormalizationLayer`."""

    m_Eps = real(0.0001)
    m_DataLayout = _layout()


class BatchToSpaceNdDescriptor(Descriptor):
    """Configuration of `INetwork.AddBatchToSpaceNdLayer`."""

    _arguments, _least = ("m_BlockShape", "m_Crops"), 2
    m_BlockShape = unsigneds(1, 1)
    m_Crops = pairs((0, 0), (0, 0))
    m_DataLayout = _layout()


class ChannelShuffleDescriptor(Descriptor):
    """Configuration of `INetwork.AddChannelShuffleLayer`."""

    _arguments, _least = ("m_NumGroups", "m_Axis"), 2
    m_NumGroups = unsigned()
    m_Axis = unsigned()


class ComparisonDescriptor(Descriptor):
    """Configuration of `INetwork.AddComparisonLayer`."""

    _arguments, _least = ("m_Operation",), 1
    m_Operation = choice("ComparisonOperation", constants.ComparisonOperation_Equal)


class Convolution2dDescriptor(Descriptor):
    """Configuration of `INetwork.AddConvolution2dLayer`."""

    m_PadLeft = unsigned()
    m_PadRight = unsigned()
    m_PadTop = unsigned()
    m_PadBottom = unsigned()
    m_StrideX = unsigned(1)
    m_StrideY = unsigned(1)
    m_DilationX = unsigned(1)
    m_DilationY = unsigned(1)
    m_BiasEnabled = flag()
    m_DataLayout = _layout()


class Convolution3dDescriptor(Descriptor):
    """Configuration of `INetwork.AddConvolution3dLayer`."""

    m_PadLeft = unsigned()
    m_PadRight = unsigned()
    m_PadTop = unsigned()
    m_PadBottom = unsigned()
    m_PadFront = unsigned()
    m_PadBack = unsigned()
    m_StrideX = unsigned(1)
    m_StrideY = unsigned(1)
    m_StrideZ = unsigned(1)
    m_DilationX = unsigned(1)
    m_DilationY = unsigned(1)
    m_DilationZ = unsigned(1)
    m_BiasEnabled = flag()
    m_DataLayout = _layout(constants.DataLayout_NDHWC)


class DepthToSpaceDescriptor(Descriptor):
    """Configuration of `INetwork.AddDepthToSpaceLayer`."""

    _arguments, _least = ("m_BlockSize", "m_DataLayout"), 2
    m_BlockSize = unsigned(1)
    m_DataLayout = _layout(_NHWC)


class DepthwiseConvolution2dDescriptor(Descriptor):
    """Configuration of `INetwork.AddDepthwiseConvolution2dLayer`."""

    m_PadLeft = unsigned()
    m_PadRight = unsigned()
    m_PadTop = unsigned()
    m_PadBottom = unsigned()
    m_StrideX = unsigned(1)
    m_StrideY = unsigned(1)
    m_DilationX = unsigned(1)
    m_DilationY = unsigned(1)
    m_BiasEnabled = flag()
    m_DataLayout = _layout()

    def GetNumInputs(self) -> int:
        """Return the number of inputs: input, weights and, if there is one, bias."""
        return 3 if self.m_BiasEnabled else 2


class DetectionPostProcessDescriptor(Descriptor):
    """Configuration of `INetwork.AddDetectionPostProcessLayer`."""

    m_MaxDetections = unsigned()
    m_MaxClassesPerDetection = unsigned(1)
    m_DetectionsPerClass = unsigned(1)
    m_NmsScoreThreshold = real()
    m_NmsIouThreshold = real()
    m_NumClasses = unsigned()
    m_UseRegularNms = flag()
    m_ScaleX = real()
    m_ScaleY = real()
    m_ScaleW = real()
    m_ScaleH = real()


class ElementwiseBinaryDescriptor(Descriptor):
    """Configuration of `INetwork.AddElementwiseBinaryLayer`."""

    _arguments, _least = ("m_Operation",), 1
    m_Operation = choice("BinaryOperation", constants.BinaryOperation_Add)


class ElementwiseUnaryDescriptor(Descriptor):
    """Configuration of `INetwork.AddElementwiseUnaryLayer`."""

    _arguments, _least = ("m_Operation",), 1
    m_Operation = choice("UnaryOperation", constants.UnaryOperation_Abs)


class FakeQuantizationDescriptor(Descriptor):
    """Range of a quantisation that is simulated; no layer of `INetwork` takes it."""

    m_Min = real(-6.0)
    m_Max = real(6.0)


class FillDescriptor(Descriptor):
    """Configuration of `INetwork.AddFillLayer`."""

    _arguments, _least = ("m_Value",), 1
    m_Value = real()


class FullyConnectedDescriptor(Descriptor):
    """Configuration of `INetwork.AddFullyConnectedLayer`."""

    m_BiasEnabled = flag()
    m_TransposeWeightMatrix = flag()
    m_ConstantWeights = flag(True)


class GatherDescriptor(Descriptor):
    """Configuration of `INetwork.AddGatherLayer`."""

    _arguments, _least = ("m_Axis",), 1
    m_Axis = signed()


class InstanceNormalizationDescriptor(Descriptor):
    """Configuration of `INetwork.AddInstanceNormalizationLayer`."""

    m_Gamma = real(1.0)
    m_Beta = real(0.0)
    m_Eps = real(1e-12)
    m_DataLayout = _layout()


class L2NormalizationDescriptor(Descriptor):
    """Configuration of `INetwork.AddL2NormalizationLayer`."""

    m_Eps = real(1e-12)
    m_DataLayout = _layout()


class LogicalBinaryDescriptor(Descriptor):
    """Configuration of `INetwork.AddLogicalBinaryLayer`."""

    _arguments, _least = ("m_Operation",), 1
    m_Operation = choice("LogicalBinaryOperation", constants.LogicalBinaryOperation_LogicalAnd)


class LstmDescriptor(Descriptor):
    """Configuration of `INetwork.AddLstmLayer`."""

    m_ActivationFunc = unsigned(1)
    m_ClippingThresCell = real()
    m_ClippingThresProj = real()
    m_CifgEnabled = flag(True)
    m_PeepholeEnabled = flag()
    m_ProjectionEnabled = flag()
    m_LayerNormEnabled = flag()
    m_TimeMajor = flag()
    m_InputIntermediateScale = real()
    m_ForgetIntermediateScale = real()
    m_CellIntermediateScale = real()
    m_OutputIntermediateScale = real()
    m_HiddenStateZeroPoint = signed()
    m_HiddenStateScale = real()


class MeanDescriptor(Descriptor):
    """Configuration of `INetwork.AddMeanLayer`."""

    _arguments, _least = ("m_Axis", "m_KeepDims"), 2
    m_Axis = unsigneds()
    m_KeepDims = flag()


class NormalizationDescriptor(Descriptor):
    """Configuration of `INetwork.AddNormalizationLayer`."""

    m_NormChannelType = choice(
        "NormalizationAlgorithmChannel", constants.NormalizationAlgorithmChannel_Across
    )
    m_NormMethodType = choice(
        "NormalizationAlgorithmMethod", constants.NormalizationAlgorithmMethod_LocalBrightness
    )
    m_NormSize = unsigned()
    m_Alpha = real()
    m_Beta = real()
    m_K = real()
    m_DataLayout = _layout()


class PadDescriptor(Descriptor):
    """Configuration of `INetwork.AddPadLayer`."""

    _arguments, _least = ("m_PadList", "m_PadValue", "m_PaddingMode"), 1
    m_PadList = pairs()
    m_PadValue = real()
    m_PaddingMode = choice("PaddingMode", constants.PaddingMode_Constant)


class PermuteDescriptor(Descriptor):
    """Configuration of `INetwork.AddPermuteLayer`."""

    _arguments, _least = ("m_DimMappings",), 1
    m_DimMappings = _permutation()


class Pooling2dDescriptor(Descriptor):
    """Configuration of `INetwork.AddPooling2dLayer`."""

    m_PoolType = choice("PoolingAlgorithm", constants.PoolingAlgorithm_Max)
    m_PadLeft = unsigned()
    m_PadRight = unsigned()
    m_PadTop = unsigned()
    m_PadBottom = unsigned()
    m_PoolWidth = unsigned()
    m_PoolHeight = unsigned()
    m_StrideX = unsigned()
    m_StrideY = unsigned()
    m_OutputShapeRounding = choice("OutputShapeRounding", constants.OutputShapeRounding_Floor)
    m_PaddingMethod = choice("PaddingMethod", constants.PaddingMethod_Exclude)
    m_DataLayout = _layout()


class Pooling3dDescriptor(Descriptor):
    """Configuration of `INetwork.AddPooling3dLayer`."""

    m_PoolType = choice("PoolingAlgorithm", constants.PoolingAlgorithm_Max)
    m_PadLeft = unsigned()
    m_PadRight = unsigned()
    m_PadTop = unsigned()
    m_PadBottom = unsigned()
    m_PadFront = unsigned()
    m_PadBack = unsigned()
    m_PoolWidth = unsigned()
    m_PoolHeight = unsigned()
    m_PoolDepth = unsigned()
    m_StrideX = unsigned()
    m_StrideY = unsigned()
    m_StrideZ = unsigned()
    m_OutputShapeRounding = choice("OutputShapeRounding", constants.OutputShapeRounding_Floor)
    m_PaddingMethod = choice("PaddingMethod", constants.PaddingMethod_Exclude)
    m_DataLayout = _layout(constants.DataLayout_NCDHW)


class ReduceDescriptor(Descriptor):
    """Configuration of `INetwork.AddReduceLayer`."""

    m_KeepDims = flag()
    m_vAxis = unsigneds()
    m_ReduceOperation = choice("ReduceOperation", constants.ReduceOperation_Sum)


class ReshapeDescriptor(Descriptor):
    """Configuration of `INetwork.AddReshapeLayer`."""

    _arguments, _least = ("m_TargetShape",), 1
    m_TargetShape = _shape()


class ResizeDescriptor(Descriptor):
    """Configuration of `INetwork.AddResizeLayer`."""

    m_TargetWidth = unsigned()
    m_TargetHeight = unsigned()
    m_Method = choice("ResizeMethod", constants.ResizeMethod_NearestNeighbor)
    m_DataLayout = _layout()
    m_AlignCorners = flag()
    m_HalfPixelCenters = flag()


class SliceDescriptor(Descriptor):
    """Configuration of `INetwork.AddSliceLayer`."""

    _arguments, _least = ("m_Begin", "m_Size"), 2
    m_Begin = unsigneds()
    m_Size = unsigneds()


class SoftmaxDescriptor(Descriptor):
    """Configuration of `INetwork.AddSoftmaxLayer` and `INetwork.AddLogSoftmaxLayer`."""

    m_Beta = real(1.0)
    m_Axis = signed(-1)


LogSoftmaxDescriptor = SoftmaxDescriptor


class SpaceToBatchNdDescriptor(Descriptor):
    """Configuration of `INetwork.AddSpaceToBatchNdLayer`."""

    _arguments, _least = ("m_BlockShape", "m_PadList"), 2
    m_BlockShape = unsigneds(1, 1)
    m_PadList = pairs((0, 0), (0, 0))
    m_DataLayout = _layout()


class SpaceToDepthDescriptor(Descriptor):
    """Configuration of `INetwork.AddSpaceToDepthLayer`."""

    _arguments, _least = ("m_BlockSize", "m_DataLayout"), 2
    m_BlockSize = unsigned(1)
    m_DataLayout = _layout(_NHWC)


class StackDescriptor(Descriptor):
    """Configuration of `INetwork.AddStackLayer`."""

    _arguments, _least = ("m_Axis", "m_NumInputs", "m_InputShape"), 3
    m_Axis = unsigned()
    m_NumInputs = unsigned()
    m_InputShape = _shape()


class StandInDescriptor(Descriptor):
    """Configuration of `INetwork.AddStandInLayer`."""

    _arguments, _least = ("m_NumInputs", "m_NumOutputs"), 2
    m_NumInputs = unsigned()
    m_NumOutputs = unsigned()


class StridedSliceDescriptor(Descriptor):
    """Configuration of `INetwork.AddStridedSliceLayer`."""

    _arguments, _least = ("m_Begin", "m_End", "m_Stride"), 3
    m_Begin = signeds()
    m_End = signeds()
    m_Stride = signeds()
    m_BeginMask = signed()
    m_EndMask = signed()
    m_ShrinkAxisMask = signed()
    m_EllipsisMask = signed()
    m_NewAxisMask = signed()
    m_DataLayout = _layout()


class TileDescriptor(Descriptor):
    """Configuration of `INetwork.AddTileLayer`."""

    _arguments, _least = ("m_Multiples",), 1
    m_Multiples = unsigneds()


class TransposeConvolution2dDescriptor(Descriptor):
    """Configuration of `INetwork.AddTransposeConvolution2dLayer`."""

    m_PadLeft = unsigned()
    m_PadRight = unsigned()
    m_PadTop = unsigned()
    m_PadBottom = unsigned()
    m_StrideX = unsigned()
    m_StrideY = unsigned()
    m_BiasEnabled = flag()
    m_DataLayout = _layout()
    m_OutputShapeEnabled = flag()
    m_OutputShape = unsigneds()


class TransposeDescriptor(Descriptor):
    """Configuration of `INetwork.AddTransposeLayer`."""

    _arguments, _least = ("m_DimMappings",), 1
    m_DimMappings = _permutation()
