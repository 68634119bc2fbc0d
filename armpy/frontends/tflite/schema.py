"""Facts of the .tflite schema, version 3: where the fields are that armpy reads.

Notes
-----
A field is its number in the table, its type, and its default: a code of `struct` for a number,
``text``, ``union``, the name of a table, or one of these in brackets for a vector. The field
before a union says which table it holds. The `tflite` package says the same of the whole schema;
importing that takes longer than reading a small model.
"""

from __future__ import annotations

TABLES: dict[str, dict[str, tuple[int, str, float]]] = {
    "Model": {
        "Version": (0, "I", 0),
        "OperatorCodes": (1, "[OperatorCode]", 0),
        "Subgraphs": (2, "[SubGraph]", 0),
        "Description": (3, "text", 0),
        "Buffers": (4, "[Buffer]", 0),
        "Metadata": (6, "[Metadata]", 0),
        "SignatureDefs": (7, "[SignatureDef]", 0),
    },
    "OperatorCode": {
        "DeprecatedBuiltinCode": (0, "b", 0),
        "CustomCode": (1, "text", 0),
        "Version": (2, "i", 1),
        "BuiltinCode": (3, "i", 0),
    },
    "SubGraph": {
        "Tensors": (0, "[Tensor]", 0),
        "Inputs": (1, "[i]", 0),
        "Outputs": (2, "[i]", 0),
        "Operators": (3, "[Operator]", 0),
        "Name": (4, "text", 0),
    },
    "Tensor": {
        "Shape": (0, "[i]", 0),
        "Type": (1, "b", 0),
        "Buffer": (2, "I", 0),
        "Name": (3, "text", 0),
        "Quantization": (4, "QuantizationParameters", 0),
        "IsVariable": (5, "?", 0),
        "Sparsity": (6, "SparsityParameters", 0),
        "ShapeSignature": (7, "[i]", 0),
        "HasRank": (8, "?", 0),
    },
    "QuantizationParameters": {
        "Scale": (2, "[f]", 0),
        "ZeroPoint": (3, "[q]", 0),
        "DetailsType": (4, "B", 0),
        "Details": (5, "union", 0),
        "QuantizedDimension": (6, "i", 0),
    },
    "BlockwiseQuantization": {
        "Scales": (0, "i", 0),
        "ZeroPoints": (1, "i", 0),
        "BlockSize": (2, "i", 0),
    },
    "Buffer": {"Data": (0, "[B]", 0), "Offset": (1, "Q", 0), "Size": (2, "Q", 0)},
    "Metadata": {"Name": (0, "text", 0), "Buffer": (1, "I", 0)},
    "Operator": {
        "OpcodeIndex": (0, "I", 0),
        "Inputs": (1, "[i]", 0),
        "Outputs": (2, "[i]", 0),
        "BuiltinOptions": (4, "union", 0),
        "CustomOptions": (5, "[B]", 0),
        "Intermediates": (8, "[i]", 0),
        "BuiltinOptions2": (12, "union", 0),
    },
    "SignatureDef": {
        "Inputs": (0, "[TensorMap]", 0),
        "Outputs": (1, "[TensorMap]", 0),
        "SignatureKey": (2, "text", 0),
        "SubgraphIndex": (4, "I", 0),
    },
    "TensorMap": {"Name": (0, "text", 0), "TensorIndex": (1, "I", 0)},
    "AddOptions": {"FusedActivationFunction": (0, "b", 0), "PotScaleInt16": (1, "?", 1)},
    "ArgMaxOptions": {"OutputType": (0, "b", 0)},
    "ArgMinOptions": {"OutputType": (0, "b", 0)},
    "BatchMatMulOptions": {"AdjX": (0, "?", 0), "AdjY": (1, "?", 0)},
    "BidirectionalSequenceLSTMOptions": {
        "FusedActivationFunction": (0, "b", 0),
        "CellClip": (1, "f", 0.0),
        "ProjClip": (2, "f", 0.0),
        "MergeOutputs": (3, "?", 0),
        "TimeMajor": (4, "?", 1),
    },
    "BidirectionalSequenceRNNOptions": {
        "TimeMajor": (0, "?", 0),
        "FusedActivationFunction": (1, "b", 0),
        "MergeOutputs": (2, "?", 0),
    },
    "BucketizeOptions": {"Boundaries": (0, "[f]", 0)},
    "CallOnceOptions": {"InitSubgraphIndex": (0, "i", 0)},
    "ConcatenationOptions": {"Axis": (0, "i", 0), "FusedActivationFunction": (1, "b", 0)},
    "Conv2DOptions": {
        "Padding": (0, "b", 0),
        "StrideW": (1, "i", 0),
        "StrideH": (2, "i", 0),
        "FusedActivationFunction": (3, "b", 0),
        "DilationWFactor": (4, "i", 1),
        "DilationHFactor": (5, "i", 1),
    },
    "CumsumOptions": {"Exclusive": (0, "?", 0), "Reverse": (1, "?", 0)},
    "Conv3DOptions": {
        "Padding": (0, "b", 0),
        "StrideD": (1, "i", 0),
        "StrideW": (2, "i", 0),
        "StrideH": (3, "i", 0),
        "FusedActivationFunction": (4, "b", 0),
        "DilationDFactor": (5, "i", 1),
        "DilationWFactor": (6, "i", 1),
        "DilationHFactor": (7, "i", 1),
    },
    "DepthToSpaceOptions": {"BlockSize": (0, "i", 0)},
    "DepthwiseConv2DOptions": {
        "Padding": (0, "b", 0),
        "StrideW": (1, "i", 0),
        "StrideH": (2, "i", 0),
        "DepthMultiplier": (3, "i", 0),
        "FusedActivationFunction": (4, "b", 0),
        "DilationWFactor": (5, "i", 1),
        "DilationHFactor": (6, "i", 1),
    },
    "DivOptions": {"FusedActivationFunction": (0, "b", 0)},
    "EmbeddingLookupSparseOptions": {"Combiner": (0, "b", 0)},
    "FakeQuantOptions": {
        "Min": (0, "f", 0.0),
        "Max": (1, "f", 0.0),
        "NumBits": (2, "i", 0),
        "NarrowRange": (3, "?", 0),
    },
    "FullyConnectedOptions": {
        "FusedActivationFunction": (0, "b", 0),
        "WeightsFormat": (1, "b", 0),
        "KeepNumDims": (2, "?", 0),
        "AsymmetricQuantizeInputs": (3, "?", 0),
    },
    "GatherOptions": {"Axis": (0, "i", 0), "BatchDims": (1, "i", 0)},
    "GeluOptions": {"Approximate": (0, "?", 0)},
    "IfOptions": {"ThenSubgraphIndex": (0, "i", 0), "ElseSubgraphIndex": (1, "i", 0)},
    "L2NormOptions": {"FusedActivationFunction": (0, "b", 0)},
    "LSHProjectionOptions": {"Type": (0, "b", 0)},
    "LSTMOptions": {
        "FusedActivationFunction": (0, "b", 0),
        "CellClip": (1, "f", 0.0),
        "ProjClip": (2, "f", 0.0),
        "KernelType": (3, "b", 0),
    },
    "LeakyReluOptions": {"Alpha": (0, "f", 0.0)},
    "LocalResponseNormalizationOptions": {
        "Radius": (0, "i", 0),
        "Bias": (1, "f", 0.0),
        "Alpha": (2, "f", 0.0),
        "Beta": (3, "f", 0.0),
    },
    "MirrorPadOptions": {"Mode": (0, "b", 0)},
    "MulOptions": {"FusedActivationFunction": (0, "b", 0)},
    "OneHotOptions": {"Axis": (0, "i", 0)},
    "PackOptions": {"ValuesCount": (0, "i", 0), "Axis": (1, "i", 0)},
    "Pool2DOptions": {
        "Padding": (0, "b", 0),
        "StrideW": (1, "i", 0),
        "StrideH": (2, "i", 0),
        "FilterWidth": (3, "i", 0),
        "FilterHeight": (4, "i", 0),
        "FusedActivationFunction": (5, "b", 0),
    },
    "RNNOptions": {"FusedActivationFunction": (0, "b", 0)},
    "RandomOptions": {"Seed": (0, "q", 0), "Seed2": (1, "q", 0)},
    "ReduceWindowOptions": {"ReduceFunction": (0, "i", 0)},
    "ReducerOptions": {"KeepDims": (0, "?", 0)},
    "ReshapeOptions": {"NewShape": (0, "[i]", 0)},
    "ResizeBilinearOptions": {"AlignCorners": (2, "?", 0), "HalfPixelCenters": (3, "?", 0)},
    "ResizeNearestNeighborOptions": {"AlignCorners": (0, "?", 0), "HalfPixelCenters": (1, "?", 0)},
    "ReverseSequenceOptions": {"SeqDim": (0, "i", 0), "BatchDim": (1, "i", 0)},
    "SVDFOptions": {"Rank": (0, "i", 0), "FusedActivationFunction": (1, "b", 0)},
    "SequenceRNNOptions": {"TimeMajor": (0, "?", 0), "FusedActivationFunction": (1, "b", 0)},
    "ShapeOptions": {"OutType": (0, "b", 0)},
    "SoftmaxOptions": {"Beta": (0, "f", 0.0)},
    "SpaceToDepthOptions": {"BlockSize": (0, "i", 0)},
    "SplitOptions": {"NumSplits": (0, "i", 0)},
    "SplitVOptions": {"NumSplits": (0, "i", 0)},
    "SqueezeOptions": {"SqueezeDims": (0, "[i]", 0)},
    "StableHLOCompositeOptions": {"DecompositionSubgraphIndex": (1, "i", 0)},
    "StablehloGatherOptions": {
        "OffsetDims": (0, "[q]", 0),
        "CollapsedSliceDims": (1, "[q]", 0),
        "StartIndexMap": (2, "[q]", 0),
        "IndexVectorDim": (3, "q", 0),
        "SliceSizes": (4, "[q]", 0),
    },
    "StablehloPadOptions": {
        "EdgePaddingLow": (0, "[q]", 0),
        "EdgePaddingHigh": (1, "[q]", 0),
        "InteriorPadding": (2, "[q]", 0),
    },
    "StablehloReduceWindowOptions": {
        "WindowDimensions": (0, "[q]", 0),
        "WindowStrides": (1, "[q]", 0),
        "BaseDilations": (2, "[q]", 0),
        "WindowDilations": (3, "[q]", 0),
        "Padding": (4, "[q]", 0),
        "BodySubgraphIndex": (5, "i", 0),
    },
    "StablehloRngBitGeneratorOptions": {"Algorithm": (0, "b", 0)},
    "StablehloScatterOptions": {
        "UpdateWindowDims": (1, "[q]", 0),
        "InsertedWindowDims": (2, "[q]", 0),
        "ScatterDimsToOperandDims": (3, "[q]", 0),
        "IndexVectorDim": (4, "q", 0),
        "UpdateComputationSubgraphIndex": (6, "i", 0),
    },
    "StridedSliceOptions": {
        "BeginMask": (0, "i", 0),
        "EndMask": (1, "i", 0),
        "EllipsisMask": (2, "i", 0),
        "NewAxisMask": (3, "i", 0),
        "ShrinkAxisMask": (4, "i", 0),
        "Offset": (5, "?", 0),
    },
    "SubOptions": {"FusedActivationFunction": (0, "b", 0), "PotScaleInt16": (1, "?", 1)},
    "TransposeConvOptions": {
        "Padding": (0, "b", 0),
        "StrideW": (1, "i", 0),
        "StrideH": (2, "i", 0),
        "FusedActivationFunction": (3, "b", 0),
    },
    "UnidirectionalSequenceLSTMOptions": {
        "FusedActivationFunction": (0, "b", 0),
        "CellClip": (1, "f", 0.0),
        "ProjClip": (2, "f", 0.0),
        "TimeMajor": (3, "?", 0),
        "DiagonalRecurrentTensors": (5, "?", 0),
    },
    "UnpackOptions": {"Num": (0, "i", 0), "Axis": (1, "i", 0)},
    "HashtableOptions": {
        "TableId": (0, "i", 0),
        "KeyDtype": (1, "b", 0),
        "ValueDtype": (2, "b", 0),
    },
    "VarHandleOptions": {"Container": (0, "text", 0), "SharedName": (1, "text", 0)},
    "WhileOptions": {"CondSubgraphIndex": (0, "i", 0), "BodySubgraphIndex": (1, "i", 0)},
    "SparsityParameters": {
        "TraversalOrder": (0, "[i]", 0),
        "BlockMap": (1, "[i]", 0),
        "DimMetadata": (2, "[DimensionMetadata]", 0),
    },
    "DimensionMetadata": {
        "Format": (0, "b", 0),
        "DenseSize": (1, "i", 0),
        "ArraySegmentsType": (2, "B", 0),
        "ArraySegments": (3, "union", 0),
        "ArrayIndicesType": (4, "B", 0),
        "ArrayIndices": (5, "union", 0),
    },
    "Int32Vector": {"Values": (0, "[i]", 0)},
    "Uint16Vector": {"Values": (0, "[H]", 0)},
    "Uint8Vector": {"Values": (0, "[B]", 0)},
}

ENUMERATIONS: dict[str, str] = {
    "ActivationFunctionType": "NONE RELU RELU_N1_TO_1 RELU6 TANH SIGN_BIT",
    "BuiltinOperator": """
        ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE
        EMBEDDING_LOOKUP FLOOR FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D
        LOCAL_RESPONSE_NORMALIZATION LOGISTIC LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU
        RELU_N1_TO_1 RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH SVDF TANH
        CONCAT_EMBEDDINGS SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD
        UNIDIRECTIONAL_SEQUENCE_RNN GATHER BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB
        DIV SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE BIDIRECTIONAL_SEQUENCE_RNN EXP
        TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM ARG_MAX
        MINIMUM LESS NEG PADV2 GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV
        SPARSE_TO_DENSE TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW ARG_MIN
        FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT UNPACK
        REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE
        RESIZE_NEAREST_NEIGHBOR LEAKY_RELU SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL
        REVERSE_V2 ADD_N GATHER_ND COS WHERE RANK ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE
        MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5
        SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM BATCH_MATMUL PLACEHOLDER_FOR_GREATER_OP_CODES
        CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D IMAG REAL COMPLEX_ABS HASHTABLE
        HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL CONV_3D_TRANSPOSE VAR_HANDLE
        READ_VARIABLE ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL BUCKETIZE
        RANDOM_UNIFORM MULTINOMIAL GELU DYNAMIC_UPDATE_SLICE RELU_0_TO_1 UNSORTED_SEGMENT_PROD
        UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2 UNSORTED_SEGMENT_MIN SIGN BITCAST
        BITWISE_XOR RIGHT_SHIFT STABLEHLO_LOGISTIC STABLEHLO_ADD STABLEHLO_DIVIDE
        STABLEHLO_MULTIPLY STABLEHLO_MAXIMUM STABLEHLO_RESHAPE STABLEHLO_CLAMP
        STABLEHLO_CONCATENATE STABLEHLO_BROADCAST_IN_DIM STABLEHLO_CONVOLUTION STABLEHLO_SLICE
        STABLEHLO_CUSTOM_CALL STABLEHLO_REDUCE STABLEHLO_ABS STABLEHLO_AND STABLEHLO_COSINE
        STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR STABLEHLO_LOG STABLEHLO_MINIMUM STABLEHLO_NEGATE
        STABLEHLO_OR STABLEHLO_POWER STABLEHLO_REMAINDER STABLEHLO_RSQRT STABLEHLO_SELECT
        STABLEHLO_SUBTRACT STABLEHLO_TANH STABLEHLO_SCATTER STABLEHLO_COMPARE STABLEHLO_CONVERT
        STABLEHLO_DYNAMIC_SLICE STABLEHLO_DYNAMIC_UPDATE_SLICE STABLEHLO_PAD STABLEHLO_IOTA
        STABLEHLO_DOT_GENERAL STABLEHLO_REDUCE_WINDOW STABLEHLO_SORT STABLEHLO_WHILE
        STABLEHLO_GATHER STABLEHLO_TRANSPOSE DILATE STABLEHLO_RNG_BIT_GENERATOR REDUCE_WINDOW
        STABLEHLO_COMPOSITE STABLEHLO_SHIFT_LEFT STABLEHLO_CBRT
    """,
    "BuiltinOptions": """
        NONE Conv2DOptions DepthwiseConv2DOptions ConcatEmbeddingsOptions LSHProjectionOptions
        Pool2DOptions SVDFOptions RNNOptions FullyConnectedOptions SoftmaxOptions
        ConcatenationOptions AddOptions L2NormOptions LocalResponseNormalizationOptions
        LSTMOptions ResizeBilinearOptions CallOptions ReshapeOptions SkipGramOptions
        SpaceToDepthOptions EmbeddingLookupSparseOptions MulOptions PadOptions GatherOptions
        BatchToSpaceNDOptions SpaceToBatchNDOptions TransposeOptions ReducerOptions SubOptions
        DivOptions SqueezeOptions SequenceRNNOptions StridedSliceOptions ExpOptions TopKV2Options
        SplitOptions LogSoftmaxOptions CastOptions DequantizeOptions MaximumMinimumOptions
        ArgMaxOptions LessOptions NegOptions PadV2Options GreaterOptions GreaterEqualOptions
        LessEqualOptions SelectOptions SliceOptions TransposeConvOptions SparseToDenseOptions
        TileOptions ExpandDimsOptions EqualOptions NotEqualOptions ShapeOptions PowOptions
        ArgMinOptions FakeQuantOptions PackOptions LogicalOrOptions OneHotOptions
        LogicalAndOptions LogicalNotOptions UnpackOptions FloorDivOptions SquareOptions
        ZerosLikeOptions FillOptions BidirectionalSequenceLSTMOptions
        BidirectionalSequenceRNNOptions UnidirectionalSequenceLSTMOptions FloorModOptions
        RangeOptions ResizeNearestNeighborOptions LeakyReluOptions SquaredDifferenceOptions
        MirrorPadOptions AbsOptions SplitVOptions UniqueOptions ReverseV2Options AddNOptions
        GatherNdOptions CosOptions WhereOptions RankOptions ReverseSequenceOptions
        MatrixDiagOptions QuantizeOptions MatrixSetDiagOptions HardSwishOptions IfOptions
        WhileOptions DepthToSpaceOptions NonMaxSuppressionV4Options NonMaxSuppressionV5Options
        ScatterNdOptions SelectV2Options DensifyOptions SegmentSumOptions BatchMatMulOptions
        CumsumOptions CallOnceOptions BroadcastToOptions Rfft2dOptions Conv3DOptions
        HashtableOptions HashtableFindOptions HashtableImportOptions HashtableSizeOptions
        VarHandleOptions ReadVariableOptions AssignVariableOptions RandomOptions BucketizeOptions
        GeluOptions DynamicUpdateSliceOptions UnsortedSegmentProdOptions UnsortedSegmentMaxOptions
        UnsortedSegmentMinOptions UnsortedSegmentSumOptions ATan2Options SignOptions
        BitcastOptions BitwiseXorOptions RightShiftOptions
    """,
    "BuiltinOptions2": """
        NONE StablehloConcatenateOptions StablehloBroadcastInDimOptions StablehloSliceOptions
        StablehloConvolutionOptions StablehloCustomCallOptions StablehloReduceOptions
        StablehloScatterOptions StablehloCompareOptions StablehloDynamicSliceOptions
        StablehloPadOptions StablehloIotaOptions StablehloDotGeneralOptions
        StablehloReduceWindowOptions StablehloSortOptions StablehloWhileOptions
        StablehloGatherOptions StablehloTransposeOptions DilateOptions
        StablehloRngBitGeneratorOptions ReduceWindowOptions StableHLOCompositeOptions
        StablehloShiftLeftOptions
    """,
    "CombinerType": "SUM MEAN SQRTN",
    "FullyConnectedOptionsWeightsFormat": "DEFAULT SHUFFLED4x16INT8",
    "LSHProjectionType": "UNKNOWN SPARSE DENSE",
    "LSTMKernelType": "FULL BASIC",
    "MirrorPadMode": "REFLECT SYMMETRIC",
    "Padding": "SAME VALID",
    "QuantizationDetails": "NONE CustomQuantization BlockwiseQuantization",
    "ReduceWindowFunction": "UNSUPPORTED ADD MUL MINIMUM MAXIMUM ALL ANY",
    "RngAlgorithm": "DEFAULT PHILOX THREEFRY",
    "SparseIndexVector": "NONE Int32Vector Uint16Vector Uint8Vector",
    "TensorType": """
        FLOAT32 FLOAT16 INT32 UINT8 INT64 STRING BOOL INT16 COMPLEX64 INT8 FLOAT64 COMPLEX128
        UINT64 RESOURCE VARIANT UINT32 UINT16 INT4 BFLOAT16 INT2 UINT4
    """,
}
"""Names in the order of their numbers; ``-`` where a number has none."""
