"""Facts of the schema of .armnn files: where the fields are.

Notes
-----
A table is its fields in the order of their numbers, each as ``name:type`` or ``name:type=default``,
with the types of `armpy.plugins.hooks.flatbuffers`. A union takes two numbers. The struct
``Connection`` is one number of 64 bits: the source's index in its lower half, the number of the
source's output slot in its upper half, and -1 where the file leaves it out.

References
----------
ArmnnSchema.fbs of Arm NN 24.02, file identifier ARMN.
"""

from __future__ import annotations

from armpy.plugins.hooks.flatbuffers import Schema

_FIELDS = {
    "TensorInfo": """
        dimensions:[I] dataType:b quantizationScale:f=1.0 quantizationOffset:i
        quantizationScales:[f] quantizationDim:I dimensionality:I=1 dimensionSpecificity:[B]
        isConstant:?
    """,
    "ByteData": "data:[B]",
    "ShortData": "data:[H]",
    "IntData": "data:[i]",
    "LongData": "data:[q]",
    "ConstTensor": "info:TensorInfo data:union",
    "InputSlot": "index:I connection:Q=-1 isOverridden:? overriddenTensorInfo:TensorInfo",
    "OutputSlot": "index:I tensorInfo:TensorInfo",
    "LayerBase": """
        index:I layerName:text layerType:I inputSlots:[InputSlot] outputSlots:[OutputSlot]
    """,
    "BindableLayerBase": "base:LayerBase layerBindingId:i",
    "ActivationDescriptor": "activationFunction:b a:f b:f",
    "ArgMinMaxDescriptor": "argMinMaxFunction:b axis:i",
    "ChannelShuffleDescriptor": "axis:I numGroups:I",
    "ComparisonDescriptor": "operation:b",
    "ConstantLayer": "base:LayerBase input:ConstTensor",
    "Convolution2dLayer": """
        base:LayerBase descriptor:Convolution2dDescriptor weights:ConstTensor biases:ConstTensor
    """,
    "Convolution2dDescriptor": """
        padLeft:I padRight:I padTop:I padBottom:I strideX:I strideY:I dilationX:I=1 dilationY:I=1
        biasEnabled:? dataLayout:b=1
    """,
    "Convolution3dDescriptor": """
        padLeft:I padRight:I padTop:I padBottom:I padFront:I padBack:I strideX:I strideY:I strideZ:I
        dilationX:I=1 dilationY:I=1 dilationZ:I=1 biasEnabled:? dataLayout:b=2
    """,
    "DepthToSpaceDescriptor": "blockSize:I dataLayout:b",
    "ElementwiseBinaryDescriptor": "operation:b",
    "ElementwiseUnaryDescriptor": "operation:b",
    "FillDescriptor": "value:f",
    "FullyConnectedLayer": """
        base:LayerBase descriptor:FullyConnectedDescriptor weights:ConstTensor biases:ConstTensor
    """,
    "FullyConnectedDescriptor": "biasEnabled:? transposeWeightsMatrix:? constantWeights:?=1",
    "GatherDescriptor": "axis:i",
    "InputLayer": "base:BindableLayerBase",
    "InstanceNormalizationDescriptor": "gamma:f beta:f eps:f dataLayout:b",
    "LogSoftmaxDescriptor": "beta:f=1 axis:i=-1",
    "L2NormalizationDescriptor": "dataLayout:b=1 eps:f=1e-12",
    "LogicalBinaryDescriptor": "operation:b",
    "Pooling2dDescriptor": """
        poolType:b padLeft:I padRight:I padTop:I padBottom:I poolWidth:I poolHeight:I strideX:I
        strideY:I outputShapeRounding:b paddingMethod:b dataLayout:b
    """,
    "Pooling3dDescriptor": """
        poolType:b padLeft:I padRight:I padTop:I padBottom:I padFront:I padBack:I poolWidth:I
        poolHeight:I poolDepth:I strideX:I strideY:I strideZ:I outputShapeRounding:b paddingMethod:b
        dataLayout:b
    """,
    "SoftmaxDescriptor": "beta:f axis:i=-1",
    "DepthwiseConvolution2dLayer": """
        base:LayerBase descriptor:DepthwiseConvolution2dDescriptor weights:ConstTensor
        biases:ConstTensor
    """,
    "DepthwiseConvolution2dDescriptor": """
        padLeft:I padRight:I padTop:I padBottom:I strideX:I strideY:I dilationX:I=1 dilationY:I=1
        biasEnabled:? dataLayout:b=1
    """,
    "OutputLayer": "base:BindableLayerBase",
    "ReshapeDescriptor": "targetShape:[I]",
    "PermuteDescriptor": "dimMappings:[I]",
    "SpaceToBatchNdDescriptor": "blockShape:[I] padList:[I] dataLayout:b",
    "SpaceToDepthDescriptor": "blockSize:I dataLayout:b",
    "BatchToSpaceNdDescriptor": "blockShape:[I] crops:[I] dataLayout:b",
    "NormalizationDescriptor": """
        normChannelType:b normMethodType:b normSize:I alpha:f beta:f k:f dataLayout:b=1
    """,
    "MeanDescriptor": "axis:[I] keepDims:?",
    "PadDescriptor": "padList:[I] padValue:f paddingMode:b",
    "BatchNormalizationLayer": """
        base:LayerBase descriptor:BatchNormalizationDescriptor mean:ConstTensor variance:ConstTensor
        beta:ConstTensor gamma:ConstTensor
    """,
    "BatchNormalizationDescriptor": "eps:f dataLayout:b",
    "ResizeBilinearDescriptor": """
        targetWidth:I targetHeight:I dataLayout:b alignCorners:? halfPixelCenters:?
    """,
    "SliceDescriptor": "begin:[I] size:[I]",
    "StridedSliceDescriptor": """
        begin:[i] end:[i] stride:[i] beginMask:i endMask:i shrinkAxisMask:i ellipsisMask:i
        newAxisMask:i dataLayout:b
    """,
    "ConcatLayer": "base:LayerBase descriptor:OriginsDescriptor",
    "MergerLayer": "base:LayerBase descriptor:OriginsDescriptor",
    "UintVector": "data:[I]",
    "OriginsDescriptor": "concatAxis:I numViews:I numDimensions:I viewOrigins:[UintVector]",
    "ViewsDescriptor": "origins:OriginsDescriptor viewSizes:[UintVector] hasAxis:? axis:i",
    "SplitterLayer": "base:LayerBase descriptor:ViewsDescriptor",
    "DetectionPostProcessLayer": """
        base:LayerBase descriptor:DetectionPostProcessDescriptor anchors:ConstTensor
    """,
    "DetectionPostProcessDescriptor": """
        maxDetections:I maxClassesPerDetection:I detectionsPerClass:I nmsScoreThreshold:f
        nmsIouThreshold:f numClasses:I useRegularNms:? scaleX:f scaleY:f scaleW:f scaleH:f
    """,
    "LstmInputParams": """
        inputToForgetWeights:ConstTensor inputToCellWeights:ConstTensor
        inputToOutputWeights:ConstTensor recurrentToForgetWeights:ConstTensor
        recurrentToCellWeights:ConstTensor recurrentToOutputWeights:ConstTensor
        forgetGateBias:ConstTensor cellBias:ConstTensor outputGateBias:ConstTensor
        inputToInputWeights:ConstTensor recurrentToInputWeights:ConstTensor
        cellToInputWeights:ConstTensor inputGateBias:ConstTensor projectionWeights:ConstTensor
        projectionBias:ConstTensor cellToForgetWeights:ConstTensor cellToOutputWeights:ConstTensor
        inputLayerNormWeights:ConstTensor forgetLayerNormWeights:ConstTensor
        cellLayerNormWeights:ConstTensor outputLayerNormWeights:ConstTensor
    """,
    "LstmDescriptor": """
        activationFunc:I clippingThresCell:f clippingThresProj:f cifgEnabled:?=1 peepholeEnabled:?
        projectionEnabled:? layerNormEnabled:?
    """,
    "LstmLayer": "base:LayerBase descriptor:LstmDescriptor inputParams:LstmInputParams",
    "QLstmInputParams": """
        inputToForgetWeights:ConstTensor inputToCellWeights:ConstTensor
        inputToOutputWeights:ConstTensor recurrentToForgetWeights:ConstTensor
        recurrentToCellWeights:ConstTensor recurrentToOutputWeights:ConstTensor
        forgetGateBias:ConstTensor cellBias:ConstTensor outputGateBias:ConstTensor
        inputToInputWeights:ConstTensor recurrentToInputWeights:ConstTensor
        inputGateBias:ConstTensor projectionWeights:ConstTensor projectionBias:ConstTensor
        cellToInputWeights:ConstTensor cellToForgetWeights:ConstTensor
        cellToOutputWeights:ConstTensor inputLayerNormWeights:ConstTensor
        forgetLayerNormWeights:ConstTensor cellLayerNormWeights:ConstTensor
        outputLayerNormWeights:ConstTensor
    """,
    "QLstmDescriptor": """
        cifgEnabled:?=1 peepholeEnabled:? projectionEnabled:? layerNormEnabled:? cellClip:f
        projectionClip:f inputIntermediateScale:f forgetIntermediateScale:f cellIntermediateScale:f
        outputIntermediateScale:f hiddenStateZeroPoint:i hiddenStateScale:f
    """,
    "QLstmLayer": "base:LayerBase descriptor:QLstmDescriptor inputParams:QLstmInputParams",
    "QuantizedLstmInputParams": """
        inputToInputWeights:ConstTensor inputToForgetWeights:ConstTensor
        inputToCellWeights:ConstTensor inputToOutputWeights:ConstTensor
        recurrentToInputWeights:ConstTensor recurrentToForgetWeights:ConstTensor
        recurrentToCellWeights:ConstTensor recurrentToOutputWeights:ConstTensor
        inputGateBias:ConstTensor forgetGateBias:ConstTensor cellBias:ConstTensor
        outputGateBias:ConstTensor
    """,
    "QuantizedLstmLayer": "base:LayerBase inputParams:QuantizedLstmInputParams",
    "TransposeConvolution2dLayer": """
        base:LayerBase descriptor:TransposeConvolution2dDescriptor weights:ConstTensor
        biases:ConstTensor
    """,
    "TransposeConvolution2dDescriptor": """
        padLeft:I padRight:I padTop:I padBottom:I strideX:I strideY:I biasEnabled:? dataLayout:b=1
    """,
    "TransposeDescriptor": "dimMappings:[I]",
    "ResizeDescriptor": """
        targetHeight:I targetWidth:I method:b dataLayout:b alignCorners:? halfPixelCenters:?
    """,
    "StackDescriptor": "axis:I numInputs:I inputShape:[I]",
    "StandInDescriptor": "numInputs:I numOutputs:I",
    "ReduceDescriptor": "keepDims:? axis:[I] reduceOperation:b",
    "UnidirectionalSequenceLstmDescriptor": """
        activationFunc:I clippingThresCell:f clippingThresProj:f cifgEnabled:?=1 peepholeEnabled:?
        projectionEnabled:? layerNormEnabled:? timeMajor:?
    """,
    "UnidirectionalSequenceLstmLayer": """
        base:LayerBase descriptor:UnidirectionalSequenceLstmDescriptor inputParams:LstmInputParams
    """,
    "BatchMatMulDescriptor": """
        transposeX:? transposeY:? adjointX:? adjointY:? dataLayoutX:b=1 dataLayoutY:b=1
    """,
    "TileDescriptor": "m_Multiples:[I]",
    "AnyLayer": "layer:union",
    "FeatureCompatibilityVersions": """
        bindingIdsScheme:I weightsLayoutScheme:I constantTensorsAsInputs:I
    """,
    "SerializedGraph": """
        layers:[AnyLayer] inputIds:[i] outputIds:[i] featureVersions:FeatureCompatibilityVersions
    """,
}
"""Fields of tables; of layers only where they have more than a base, or than a base and the
descriptor that is called as they are.
"""

ENUMERATIONS: dict[str, str] = {
    "ActivationFunction": """
        Sigmoid TanH Linear ReLu BoundedReLu SoftReLu LeakyReLu Abs Sqrt Square Elu HardSwish Gelu
    """,
    "ArgMinMaxFunction": "Min Max",
    "DataType": """
        Float16 Float32 QuantisedAsymm8 Signed32 Boolean QuantisedSymm16 QAsymmU8 QSymmS16 QAsymmS8
        QSymmS8 Signed64
    """,
    "DataLayout": "NHWC NCHW NDHWC NCDHW",
    "ReduceOperation": "Sum Max Mean Min Prod",
    "ResizeMethod": "NearestNeighbor Bilinear",
    "LayerType": """
        Addition Input Multiplication Output Pooling2d Reshape Softmax Convolution2d
        DepthwiseConvolution2d Activation Permute FullyConnected Constant SpaceToBatchNd
        BatchToSpaceNd Division Minimum Equal Maximum Normalization Pad Rsqrt Floor
        BatchNormalization Greater ResizeBilinear Subtraction StridedSlice Gather Mean Merger
        L2Normalization Splitter DetectionPostProcess Lstm Quantize Dequantize Merge Switch Concat
        SpaceToDepth Prelu TransposeConvolution2d Resize Stack QuantizedLstm Abs ArgMinMax Slice
        DepthToSpace InstanceNormalization LogSoftmax Comparison StandIn ElementwiseUnary Transpose
        QLstm Fill Rank LogicalBinary Reduce Cast Shape UnidirectionalSequenceLstm ChannelShuffle
        Convolution3d Pooling3d GatherNd BatchMatMul ElementwiseBinary ReverseV2 Tile
    """,
    "ComparisonOperation": "Equal Greater GreaterOrEqual Less LessOrEqual NotEqual",
    "BinaryOperation": "Add Div Maximum Minimum Mul Sub SqDiff Power",
    "UnaryOperation": "Abs Rsqrt Sqrt Exp Neg LogicalNot Log Sin Ceil",
    "LogicalBinaryOperation": "LogicalAnd LogicalOr",
    "PoolingAlgorithm": "Max Average L2",
    "OutputShapeRounding": "Floor Ceiling",
    "PaddingMethod": "IgnoreValue Exclude",
    "NormalizationAlgorithmChannel": "Across Within",
    "NormalizationAlgorithmMethod": "LocalBrightness LocalContrast",
    "PaddingMode": "Constant Reflect Symmetric",
    "layer": """
        NONE ActivationLayer AdditionLayer BatchToSpaceNdLayer BatchNormalizationLayer ConstantLayer
        Convolution2dLayer DepthwiseConvolution2dLayer FullyConnectedLayer InputLayer
        MultiplicationLayer OutputLayer PermuteLayer Pooling2dLayer ReshapeLayer SoftmaxLayer
        SpaceToBatchNdLayer DivisionLayer MinimumLayer EqualLayer MaximumLayer NormalizationLayer
        PadLayer RsqrtLayer FloorLayer GreaterLayer ResizeBilinearLayer SubtractionLayer
        StridedSliceLayer GatherLayer MeanLayer MergerLayer L2NormalizationLayer SplitterLayer
        DetectionPostProcessLayer LstmLayer QuantizedLstmLayer QuantizeLayer DequantizeLayer
        MergeLayer SwitchLayer ConcatLayer SpaceToDepthLayer PreluLayer TransposeConvolution2dLayer
        ResizeLayer StackLayer AbsLayer ArgMinMaxLayer SliceLayer DepthToSpaceLayer
        InstanceNormalizationLayer LogSoftmaxLayer ComparisonLayer StandInLayer
        ElementwiseUnaryLayer TransposeLayer QLstmLayer FillLayer RankLayer LogicalBinaryLayer
        ReduceLayer CastLayer ShapeLayer UnidirectionalSequenceLstmLayer ChannelShuffleLayer
        Convolution3dLayer Pooling3dLayer GatherNdLayer BatchMatMulLayer ElementwiseBinaryLayer
        ReverseV2Layer TileLayer
    """,
    "data": "NONE ByteData ShortData IntData LongData",
}
"""Names in the order of their numbers; unions are called as their fields are."""


def _fields(text: str) -> dict[str, tuple[int, str, float]]:
    """The fields of a table by name: number, type, default."""
    fields: dict[str, tuple[int, str, float]] = {}
    number = 0
    for field in text.split():
        name, _, kind = field.partition(":")
        kind, _, default = kind.partition("=")
        number += kind == "union"
        fields[name] = number, kind, float(default or 0)
        number += 1
    return fields


def _tables() -> dict[str, dict[str, tuple[int, str, float]]]:
    """Every table of the schema."""
    texts = dict(_FIELDS)
    for layer in ENUMERATIONS["layer"].split()[1:]:
        descriptor = layer.removesuffix("Layer") + "Descriptor"
        is_described = descriptor in _FIELDS
        plain = f"base:LayerBase descriptor:{descriptor}" if is_described else "base:LayerBase"
        texts.setdefault(layer, plain)
    return {name: _fields(text) for name, text in texts.items()}


ARMNN_SCHEMA = Schema(_tables(), ENUMERATIONS)
