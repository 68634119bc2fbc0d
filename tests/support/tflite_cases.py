"""One small .tflite model per operator, and the operation that it stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from armpy.ops import (
    Activation,
    ActivationFunction,
    ArgMinMax,
    ArgMinMaxFunction,
    BatchMatMul,
    BatchToSpaceNd,
    BidirectionalSequenceLstm,
    BidirectionalSequenceRnn,
    BinaryOperation,
    BroadcastTo,
    Cast,
    Comparison,
    ComparisonOperation,
    Concat,
    Convolution2d,
    DepthToSpace,
    DepthwiseConvolution2d,
    Dequantize,
    ElementwiseBinary,
    ElementwiseUnary,
    ExpandDims,
    Fill,
    FullyConnected,
    Gather,
    GatherNd,
    HashtableLookup,
    L2Normalization,
    LogicalBinary,
    LogicalBinaryOperation,
    LogSoftmax,
    LshProjection,
    LshProjectionType,
    Lstm,
    Normalization,
    OneHot,
    Pad,
    PaddingMode,
    Pooling2d,
    PoolingAlgorithm,
    Prelu,
    Quantize,
    Range,
    Rank,
    RecurrentActivation,
    Reduce,
    ReduceOperation,
    Reshape,
    Resize,
    ResizeMethod,
    ReverseV2,
    Rnn,
    Select,
    Shape,
    Slice,
    Softmax,
    SpaceToBatchNd,
    SpaceToDepth,
    Splitter,
    Squeeze,
    Stack,
    StridedSlice,
    Svdf,
    Tile,
    TopkV2,
    Transpose,
    TransposeConvolution2d,
    UnaryOperation,
    UnidirectionalSequenceLstm,
    UnidirectionalSequenceRnn,
    Unstack,
)
from armpy.ops.activations import FusedActivation
from armpy.ops.operation import Operation
from armpy.ops.shapes import Padding
from armpy.types import DataType
from tests.support.tflite_writer import OptionValue, Subgraph, Tensor, TfliteModel


@dataclass(frozen=True)
class Spec:
    """One tensor to write; a constant if it has data."""

    shape: tuple[int, ...]
    type: str = "FLOAT32"
    data: object = None
    scale: float | None = None
    zero_point: int = 0
    variable: bool = False

    def write(self, graph: Subgraph, name: str) -> Tensor:
        """Add the tensor to a subgraph."""
        return graph.tensor(
            name,
            self.shape,
            self.type,
            data=self.data,  # type: ignore[arg-type]  # each case knows its data
            scale=self.scale,
            zero_point=self.zero_point,
            variable=self.variable,
        )


def ints(*values: int) -> Spec:
    """A constant of int32 in one dimension."""
    return Spec((len(values),), "INT32", list(values))


def scalar(value: float, type: str = "INT32") -> Spec:
    """A constant without dimensions."""
    return Spec((), type, value)


def zeros(*shape: int) -> Spec:
    """A constant of float32 zeros."""
    count = 1
    for dim in shape:
        count *= dim
    return Spec(shape, "FLOAT32", bytes(4 * count))


@dataclass(frozen=True)
class Case:
    """One operator, and what it should become.

    Attributes
    ----------
    inputs : sequence of (Spec or None)
    expected : Operation
    order : tuple of (int or None), optional
        Which of the operator's inputs the layer reads, None for an operand left out; the same
        ones in the same order if not given.
    """

    operator: str
    inputs: Sequence[Spec | None]
    expected: Operation
    options: Mapping[str, OptionValue] | None = None
    outputs: Sequence[Spec] = (Spec((1,)),)
    order: tuple[int | None, ...] | None = None
    intermediates: Sequence[Spec] = field(default=())

    def model(self) -> TfliteModel:
        """The model with this one operator."""
        model = TfliteModel()
        graph = model.subgraph()
        inputs = [
            None if spec is None else spec.write(graph, f"in{i}")
            for i, spec in enumerate(self.inputs)
        ]
        outputs = [spec.write(graph, f"out{i}") for i, spec in enumerate(self.outputs)]
        between = [spec.write(graph, f"between{i}") for i, spec in enumerate(self.intermediates)]
        graph.operator(self.operator, inputs, outputs, self.options, intermediates=between)
        given = [
            tensor
            for spec, tensor in zip(self.inputs, inputs, strict=True)
            if spec is not None and tensor is not None and spec.data is None and not spec.variable
        ]
        graph.inputs(*given)
        graph.outputs(*outputs)
        return model

    def __str__(self) -> str:
        return self.operator


X = Spec((2, 3))
IMAGE = Spec((1, 4, 4, 2))
FLAGS = Spec((2, 3), "BOOL")
STRIDES: Mapping[str, OptionValue] = {"stride_w": 1, "stride_h": 2, "padding": "SAME"}
DILATIONS: Mapping[str, OptionValue] = {"dilation_w_factor": 3, "dilation_h_factor": 1}
POOL: Mapping[str, OptionValue] = {
    "stride_w": 1,
    "stride_h": 2,
    "padding": "VALID",
    "filter_width": 3,
    "filter_height": 2,
    "fused_activation_function": "RELU6",
}

_BINARY_CASES = (
    [
        Case(
            name,
            [X, X],
            ElementwiseBinary(operation, FusedActivation.RELU, power_of_two_scales=is_default),
            {"fused_activation_function": "RELU"}
            | ({} if is_default else {"pot_scale_int16": False}),
        )
        for name, operation in (("ADD", BinaryOperation.ADD), ("SUB", BinaryOperation.SUB))
        for is_default in (True, False)
    ]
    + [
        Case(
            name,
            [X, X],
            ElementwiseBinary(operation, FusedActivation.RELU),
            {"fused_activation_function": "RELU"},
        )
        for name, operation in {
            "MUL": BinaryOperation.MUL,
            "DIV": BinaryOperation.DIV,
        }.items()
    ]
    + [
        Case(name, [X, X], ElementwiseBinary(operation))
        for name, operation in {
            "MAXIMUM": BinaryOperation.MAXIMUM,
            "MINIMUM": BinaryOperation.MINIMUM,
            "POW": BinaryOperation.POWER,
            "FLOOR_DIV": BinaryOperation.FLOOR_DIV,
            "FLOOR_MOD": BinaryOperation.FLOOR_MOD,
            "SQUARED_DIFFERENCE": BinaryOperation.SQUARED_DIFFERENCE,
        }.items()
    ]
)

_UNARY_CASES = [
    Case(name, [X], ElementwiseUnary(operation))
    for name, operation in {
        "ABS": UnaryOperation.ABS,
        "CEIL": UnaryOperation.CEIL,
        "COS": UnaryOperation.COS,
        "EXP": UnaryOperation.EXP,
        "FLOOR": UnaryOperation.FLOOR,
        "LOG": UnaryOperation.LOG,
        "NEG": UnaryOperation.NEG,
        "ROUND": UnaryOperation.ROUND,
        "RSQRT": UnaryOperation.RSQRT,
        "SIN": UnaryOperation.SIN,
        "SQRT": UnaryOperation.SQRT,
        "SQUARE": UnaryOperation.SQUARE,
    }.items()
]

_LOGICAL_CASES = [
    Case(name, [X, X], Comparison(operation), outputs=[FLAGS])
    for name, operation in {
        "EQUAL": ComparisonOperation.EQUAL,
        "NOT_EQUAL": ComparisonOperation.NOT_EQUAL,
        "GREATER": ComparisonOperation.GREATER,
        "GREATER_EQUAL": ComparisonOperation.GREATER_OR_EQUAL,
        "LESS": ComparisonOperation.LESS,
        "LESS_EQUAL": ComparisonOperation.LESS_OR_EQUAL,
    }.items()
] + [
    Case("LOGICAL_NOT", [FLAGS], ElementwiseUnary(UnaryOperation.LOGICAL_NOT), outputs=[FLAGS]),
    Case(
        "LOGICAL_AND",
        [FLAGS, FLAGS],
        LogicalBinary(LogicalBinaryOperation.LOGICAL_AND),
        outputs=[FLAGS],
    ),
    Case(
        "LOGICAL_OR",
        [FLAGS, FLAGS],
        LogicalBinary(LogicalBinaryOperation.LOGICAL_OR),
        outputs=[FLAGS],
    ),
    Case("PRELU", [X, zeros(3)], Prelu()),
    Case("SELECT", [FLAGS, X, X], Select()),
    Case("SELECT_V2", [FLAGS, X, X], Select()),
]

_ACTIVATION_CASES = [
    Case("ELU", [X], Activation(ActivationFunction.ELU, 1.0)),
    Case("GELU", [X], Activation(ActivationFunction.GELU, approximate=True), {"approximate": True}),
    Case("HARD_SWISH", [X], Activation(ActivationFunction.HARD_SWISH)),
    Case("LEAKY_RELU", [X], Activation(ActivationFunction.LEAKY_RELU, 0.25), {"alpha": 0.25}),
    Case("LOGISTIC", [X], Activation(ActivationFunction.SIGMOID)),
    Case("RELU", [X], Activation(ActivationFunction.RELU)),
    Case("RELU6", [X], Activation(ActivationFunction.BOUNDED_RELU, 6.0, 0.0)),
    Case("RELU_0_TO_1", [X], Activation(ActivationFunction.BOUNDED_RELU, 1.0, 0.0)),
    Case("RELU_N1_TO_1", [X], Activation(ActivationFunction.BOUNDED_RELU, 1.0, -1.0)),
    Case("TANH", [X], Activation(ActivationFunction.TANH, 1.0, 1.0)),
    Case("L2_NORMALIZATION", [X], L2Normalization(), {}),
    Case("LOG_SOFTMAX", [X], LogSoftmax()),
    Case("SOFTMAX", [X], Softmax(0.5), {"beta": 0.5}),
]

_CONVERSION_CASES = [
    Case("CAST", [X], Cast(), outputs=[Spec((2, 3), "INT32")]),
    Case("DEQUANTIZE", [Spec((4,), "INT8", scale=0.5, zero_point=3)], Dequantize()),
    Case("QUANTIZE", [X], Quantize(), outputs=[Spec((4,), "UINT8", scale=0.5, zero_point=3)]),
]

_WINDOW_CASES = [
    Case(
        "CONV_2D",
        [IMAGE, zeros(3, 2, 2, 2), zeros(3)],
        Convolution2d((2, 1), (1, 3), Padding.SAME, FusedActivation.RELU6),
        {**STRIDES, **DILATIONS, "fused_activation_function": "RELU6"},
    ),
    Case(
        "DEPTHWISE_CONV_2D",
        [IMAGE, zeros(1, 2, 2, 4)],
        DepthwiseConvolution2d((2, 1), (1, 3), Padding.SAME, FusedActivation.RELU1),
        {**STRIDES, **DILATIONS, "fused_activation_function": "RELU_N1_TO_1"},
    ),
    Case(
        "TRANSPOSE_CONV",
        [ints(1, 8, 4, 3), zeros(3, 2, 2, 2), IMAGE, zeros(3)],
        TransposeConvolution2d((2, 1), Padding.SAME),
        STRIDES,
        order=(2, 1, 3, 0),
    ),
    *(
        Case(
            name,
            [IMAGE],
            Pooling2d(algorithm, (2, 3), (2, 1), activation=FusedActivation.RELU6),
            POOL,
        )
        for name, algorithm in {
            "AVERAGE_POOL_2D": PoolingAlgorithm.AVERAGE,
            "L2_POOL_2D": PoolingAlgorithm.L2,
            "MAX_POOL_2D": PoolingAlgorithm.MAX,
        }.items()
    ),
    Case(
        "FULLY_CONNECTED",
        [X, zeros(4, 3), zeros(4)],
        FullyConnected(FusedActivation.RELU, keep_num_dims=True),
        {"fused_activation_function": "RELU", "keep_num_dims": True},
    ),
    Case(
        "FULLY_CONNECTED",
        [X, zeros(4, 3)],
        FullyConnected(asymmetric_quantize_inputs=True),
        {"asymmetric_quantize_inputs": True},
    ),
    Case("BATCH_MATMUL", [X, X], BatchMatMul(transpose_y=True), {"adj_y": True}),
]

_SHAPE_CASES = [
    Case("RESHAPE", [X, ints(3, 2)], Reshape(), {"new_shape": [1, 6]}),
    Case("RESHAPE", [X], Reshape((1, -1)), {"new_shape": [1, -1]}),
    Case("RESHAPE", [Spec((1, 1))], Reshape(()), {"new_shape": [0]}),
    Case("SQUEEZE", [Spec((1, 3, 1))], Squeeze((2,)), {"squeeze_dims": [2]}),
    Case("EXPAND_DIMS", [X, scalar(1)], ExpandDims()),
    Case("TRANSPOSE", [X, ints(1, 0)], Transpose()),
    Case("PAD", [X, Spec((2, 2), "INT32", [[1, 0], [0, 2]])], Pad(), order=(0, None, 1)),
    Case(
        "PADV2",
        [X, Spec((2, 2), "INT32", [[1, 0], [0, 2]]), scalar(1.5, "FLOAT32")],
        Pad(),
        order=(0, 2, 1),
    ),
    Case(
        "MIRROR_PAD",
        [X, Spec((2, 2), "INT32", [[1, 0], [0, 2]])],
        Pad(padding_mode=PaddingMode.SYMMETRIC),
        {"mode": "SYMMETRIC"},
        order=(0, None, 1),
    ),
    Case("SLICE", [X, ints(0, 1), ints(2, 2)], Slice()),
    Case(
        "STRIDED_SLICE",
        [X, ints(0, 1), ints(2, 2), ints(1, 1)],
        StridedSlice(
            begin_mask=1, end_mask=2, shrink_axis_mask=2, ellipsis_mask=0, new_axis_mask=0
        ),
        {"begin_mask": 1, "end_mask": 2, "shrink_axis_mask": 2},
    ),
    Case(
        "SPLIT",
        [scalar(1), X],
        Splitter(num_splits=3),
        {"num_splits": 3},
        [Spec((2, 1))] * 3,
        order=(1, None, 0),
    ),
    Case(
        "SPLIT_V",
        [X, ints(1, 2), scalar(1)],
        Splitter(num_splits=2),
        {"num_splits": 2},
        [Spec((2, 1))] * 2,
    ),
    Case("CONCATENATION", [X, X], Concat(-1), {"axis": -1}),
    Case("PACK", [X, X], Stack(1), {"axis": 1, "values_count": 2}),
    Case("UNPACK", [X], Unstack(2, 0), {"num": 2, "axis": 0}, [Spec((3,))] * 2),
    Case("GATHER", [X, ints(1, 0)], Gather(1, 0), {"axis": 1}),
    Case("GATHER_ND", [X, Spec((1, 2), "INT32", [[1, 0]])], GatherNd()),
    Case("TILE", [X, ints(2, 1)], Tile()),
    Case("BROADCAST_TO", [X, ints(4, 2, 3)], BroadcastTo()),
    Case("REVERSE_V2", [X, ints(1)], ReverseV2()),
    Case("DEPTH_TO_SPACE", [Spec((1, 2, 2, 4))], DepthToSpace(2), {"block_size": 2}),
    Case("SPACE_TO_DEPTH", [IMAGE], SpaceToDepth(2), {"block_size": 2}),
    Case(
        "SPACE_TO_BATCH_ND",
        [IMAGE, ints(2, 2), Spec((2, 2), "INT32", [[0, 0], [0, 0]])],
        SpaceToBatchNd(),
    ),
    Case(
        "BATCH_TO_SPACE_ND",
        [Spec((4, 2, 2, 1)), ints(2, 2), Spec((2, 2), "INT32", [[0, 0], [0, 0]])],
        BatchToSpaceNd(),
    ),
    Case(
        "RESIZE_BILINEAR",
        [IMAGE, ints(8, 8)],
        Resize(method=ResizeMethod.BILINEAR, half_pixel_centers=True),
        {"half_pixel_centers": True},
    ),
    Case(
        "RESIZE_NEAREST_NEIGHBOR",
        [IMAGE, ints(8, 8)],
        Resize(align_corners=True),
        {"align_corners": True},
    ),
    Case("FILL", [ints(2, 2), scalar(1.5, "FLOAT32")], Fill(), order=(1, 0)),
    Case(
        "ONE_HOT",
        [Spec((2,), "INT32"), scalar(3), scalar(1.0, "FLOAT32"), scalar(0.0, "FLOAT32")],
        OneHot(axis=-1),
        {"axis": -1},
        order=(0, 2, 3, 1),
    ),
    Case(
        "SHAPE",
        [X],
        Shape(DataType.SIGNED64),
        {"out_type": "INT64"},
        [Spec((2,), "INT64")],
    ),
    Case("RANK", [X], Rank(), outputs=[Spec((), "INT32")]),
    Case(
        "RANGE",
        [scalar(0), scalar(5), scalar(2)],
        Range(output_type=DataType.SIGNED32),
        outputs=[Spec((3,), "INT32")],
    ),
]

_REDUCTION_CASES = [
    Case(name, [x, ints(1)], Reduce(operation, keep_dims=True), {"keep_dims": True}, [x])
    for name, operation, x in (
        ("MEAN", ReduceOperation.MEAN, X),
        ("SUM", ReduceOperation.SUM, X),
        ("REDUCE_MAX", ReduceOperation.MAX, X),
        ("REDUCE_MIN", ReduceOperation.MIN, X),
        ("REDUCE_PROD", ReduceOperation.PROD, X),
        ("REDUCE_ANY", ReduceOperation.ANY, FLAGS),
        ("REDUCE_ALL", ReduceOperation.ALL, FLAGS),
    )
] + [
    Case(
        name,
        [X, scalar(1)],
        ArgMinMax(function, output_type=DataType.SIGNED64),
        {"output_type": "INT64"},
        [Spec((2,), "INT64")],
    )
    for name, function in (
        ("ARG_MAX", ArgMinMaxFunction.MAX),
        ("ARG_MIN", ArgMinMaxFunction.MIN),
    )
]

_LOOKUP_CASES = [
    Case(
        "HASHTABLE_LOOKUP",
        [Spec((3,), "INT32"), ints(1, 5), X],
        HashtableLookup(),
        outputs=[Spec((3, 3)), Spec((3,), "UINT8")],
    ),
    Case(
        "LOCAL_RESPONSE_NORMALIZATION",
        [IMAGE],
        Normalization(radius=3, alpha=0.5, beta=0.25, k=2.0),
        {"radius": 3, "alpha": 0.5, "beta": 0.25, "bias": 2.0},
    ),
    Case(
        "LSH_PROJECTION",
        [X, Spec((4,), "INT32"), Spec((4,))],
        LshProjection(LshProjectionType.DENSE),
        {"type": "DENSE"},
        [Spec((6,), "INT32")],
    ),
    Case("TOPK_V2", [X, scalar(2)], TopkV2(), {}, [Spec((2, 2)), Spec((2, 2), "INT32")]),
]

_TANH = {"fused_activation_function": "TANH"}
_STATE = Spec((1, 2), variable=True)
_RNN = [zeros(2, 2), zeros(2, 2), zeros(2), _STATE]
_LSTM = [*([zeros(2, 2)] * 8), *([None] * 3), *([zeros(2)] * 4), *([None] * 2)]
_S8 = Spec((1, 1, 2), "INT8", scale=0.5, zero_point=0)
_S8_WEIGHTS = Spec((2, 2), "INT8", b"\1\2\3\4", 0.25)
_S8_BIAS = Spec((2,), "INT32", [0, 0], 0.125)

_RECURRENT_CASES = [
    Case("RNN", [Spec((1, 2)), *_RNN], Rnn(RecurrentActivation.TANH), _TANH, [Spec((1, 2))]),
    Case(
        "UNIDIRECTIONAL_SEQUENCE_RNN",
        [Spec((3, 1, 2)), *_RNN],
        UnidirectionalSequenceRnn(RecurrentActivation.TANH, time_major=True),
        {**_TANH, "time_major": True},
        [Spec((3, 1, 2))],
    ),
    Case(
        "BIDIRECTIONAL_SEQUENCE_RNN",
        [Spec((3, 1, 2)), *_RNN, *_RNN, *([None] * 3)],
        BidirectionalSequenceRnn(RecurrentActivation.TANH, time_major=True),
        {**_TANH, "time_major": True},
        [Spec((3, 1, 2)), Spec((3, 1, 2))],
    ),
    Case(
        "LSTM",
        [Spec((1, 2)), *_LSTM, _STATE, _STATE],
        Lstm(cell_clip=3.0, projection_clip=2.0),
        {**_TANH, "cell_clip": 3.0, "proj_clip": 2.0},
        [Spec((1, 2))],
    ),
    Case(
        "BIDIRECTIONAL_SEQUENCE_LSTM",
        [Spec((3, 1, 2)), *_LSTM, *_LSTM, *([_STATE] * 4), *([None] * 9)],
        BidirectionalSequenceLstm(
            cell_clip=3.0, projection_clip=2.0, merge_outputs=True, time_major=True
        ),
        {**_TANH, "cell_clip": 3.0, "proj_clip": 2.0, "merge_outputs": True, "time_major": True},
        [Spec((3, 1, 4))],
    ),
    Case(
        "SVDF",
        [X, zeros(4, 3), zeros(4, 5), None, Spec((2, 20), variable=True)],
        Svdf(2, RecurrentActivation.RELU),
        {"rank": 2, "fused_activation_function": "RELU"},
    ),
    Case(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        [
            Spec((1, 3, 2)),
            *_LSTM,
            _STATE,
            _STATE,
            *([None] * 4),
        ],
        UnidirectionalSequenceLstm(cell_clip=3.0, projection_clip=2.0),
        {"fused_activation_function": "TANH", "cell_clip": 3.0, "proj_clip": 2.0},
        [Spec((1, 3, 2))],
    ),
    Case(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        [
            _S8,
            *([_S8_WEIGHTS] * 8),
            *([None] * 3),
            *([_S8_BIAS] * 4),
            *([None] * 2),
            Spec((1, 2), "INT8", scale=0.5, zero_point=0, variable=True),
            Spec((1, 2), "INT16", scale=2.0**-12, variable=True),
        ],
        UnidirectionalSequenceLstm(
            time_major=True,
            hidden_state_scale=0.5,
            hidden_state_zero_point=7,
        ),
        {"fused_activation_function": "TANH", "time_major": True},
        [_S8],
        intermediates=[*([Spec((0,))] * 4), Spec((0,), "INT8", scale=0.5, zero_point=7)],
    ),
]

CASES: list[Case] = [
    *_BINARY_CASES,
    *_UNARY_CASES,
    *_LOGICAL_CASES,
    *_ACTIVATION_CASES,
    *_CONVERSION_CASES,
    *_WINDOW_CASES,
    *_SHAPE_CASES,
    *_REDUCTION_CASES,
    *_LOOKUP_CASES,
    *_RECURRENT_CASES,
]
