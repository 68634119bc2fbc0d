"""Constants of PyArmNN 24.02: the numbers are Arm NN's and differ between its versions."""

DataType_Float16 = 0
DataType_Float32 = 1
DataType_QAsymmU8 = 2
DataType_Signed32 = 3
DataType_Boolean = 4
DataType_QSymmS16 = 5
DataType_QSymmS8 = 6
DataType_QAsymmS8 = 7
DataType_BFloat16 = 8
DataType_Signed64 = 9

DataLayout_NCHW = 1
DataLayout_NHWC = 2
DataLayout_NDHWC = 3
DataLayout_NCDHW = 4

ActivationFunction_Sigmoid = 0
ActivationFunction_TanH = 1
ActivationFunction_Linear = 2
ActivationFunction_ReLu = 3
ActivationFunction_BoundedReLu = 4
ActivationFunction_SoftReLu = 5
ActivationFunction_LeakyReLu = 6
ActivationFunction_Abs = 7
ActivationFunction_Sqrt = 8
ActivationFunction_Square = 9
ActivationFunction_Elu = 10
ActivationFunction_HardSwish = 11
ActivationFunction_Gelu = 12

ArgMinMaxFunction_Min = 0
ArgMinMaxFunction_Max = 1

ComparisonOperation_Equal = 0
ComparisonOperation_Greater = 1
ComparisonOperation_GreaterOrEqual = 2
ComparisonOperation_Less = 3
ComparisonOperation_LessOrEqual = 4
ComparisonOperation_NotEqual = 5

LogicalBinaryOperation_LogicalAnd = 0
LogicalBinaryOperation_LogicalOr = 1

UnaryOperation_Abs = 0
UnaryOperation_Exp = 1
UnaryOperation_Sqrt = 2
UnaryOperation_Rsqrt = 3
UnaryOperation_Neg = 4
UnaryOperation_LogicalNot = 5
UnaryOperation_Log = 6
UnaryOperation_Sin = 7
UnaryOperation_Ceil = 8

BinaryOperation_Add = 0
BinaryOperation_Div = 1
BinaryOperation_Maximum = 2
BinaryOperation_Minimum = 3
BinaryOperation_Mul = 4
BinaryOperation_Sub = 5
BinaryOperation_SqDiff = 6
BinaryOperation_Power = 7

PoolingAlgorithm_Max = 0
PoolingAlgorithm_Average = 1
PoolingAlgorithm_L2 = 2

ReduceOperation_Sum = 0
ReduceOperation_Max = 1
ReduceOperation_Mean = 2
ReduceOperation_Min = 3
ReduceOperation_Prod = 4

ResizeMethod_Bilinear = 0
ResizeMethod_NearestNeighbor = 1

PaddingMethod_IgnoreValue = 0
PaddingMethod_Exclude = 1

PaddingMode_Constant = 0
PaddingMode_Reflect = 1
PaddingMode_Symmetric = 2

NormalizationAlgorithmChannel_Across = 0
NormalizationAlgorithmChannel_Within = 1

NormalizationAlgorithmMethod_LocalBrightness = 0
NormalizationAlgorithmMethod_LocalContrast = 1

OutputShapeRounding_Floor = 0
OutputShapeRounding_Ceiling = 1

ShapeInferenceMethod_ValidateOnly = 0
ShapeInferenceMethod_InferAndValidate = 1

MemorySource_Undefined = 0
MemorySource_Malloc = 1
MemorySource_DmaBuf = 2
MemorySource_DmaBufProtected = 4
MemorySource_Gralloc = 8

ProfilingDetailsMethod_Undefined = 0
ProfilingDetailsMethod_DetailsWithEvents = 1
ProfilingDetailsMethod_DetailsOnly = 2

QosExecPriority_Low = 0
QosExecPriority_Medium = 1
QosExecPriority_High = 2
