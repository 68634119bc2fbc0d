"""Cases whose answers were worked out by hand, so that they do not depend on CpuRef."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.ops import (
    Activation,
    ActivationFunction,
    ArgMinMax,
    ArgMinMaxFunction,
    BatchMatMul,
    BinaryOperation,
    BitCast,
    Cast,
    Comparison,
    ComparisonOperation,
    Concat,
    Convolution2d,
    DecisionTrees,
    DepthToSpace,
    DepthwiseConvolution2d,
    Dequantize,
    ElementwiseBinary,
    ElementwiseUnary,
    FullyConnected,
    FusedActivation,
    Gather,
    LogicalBinary,
    Operation,
    Pad,
    Padding,
    Pooling2d,
    PoolingAlgorithm,
    Prelu,
    Quantize,
    RandomBits,
    RandomGenerator,
    RandomNormal,
    RandomUniform,
    Reduce,
    ReduceOperation,
    Reshape,
    Resize,
    ResizeMethod,
    Select,
    Softmax,
    Splitter,
    StridedSlice,
    Transpose,
    TransposeConvolution2d,
    TreeComparison,
    UnaryOperation,
)
from armpy.ops.operation import Array
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_conformance.case import Case, CaseInput

F32, BYTE, S8, U8, I32, BOOL = (
    DataType.FLOAT32,
    DataType.UNSIGNED8,
    DataType.QASYMM_S8,
    DataType.QASYMM_U8,
    DataType.SIGNED32,
    DataType.BOOLEAN,
)


@dataclass(frozen=True, slots=True)
class T:
    """A tensor written down: nested lists of stored elements, a type, a quantisation."""

    values: object
    data_type: DataType = F32
    scale: float | None = None
    zero_point: int = 0

    @property
    def info(self) -> TensorInfo:
        """Its shape, type and quantisation."""
        quantization = None
        if self.scale is not None:
            quantization = Quantization.per_tensor(self.scale, self.zero_point)
        return TensorInfo(self.array().shape, self.data_type, quantization)

    def array(self) -> Array:
        """Its elements."""
        return np.array(self.values, self.data_type.dtype)


@dataclass(frozen=True, slots=True)
class ByHand:
    """One line: an operation, what goes in, what comes out."""

    label: str
    operation: Operation
    inputs: Sequence[T]
    outputs: Sequence[T]
    constants: tuple[int, ...] = ()


_ONES = 2**64 - 1

_SQUARE = [[[[1], [2]], [[3], [4]]]]
"""An image of 2 by 2 with one channel."""

_NINE = [[[[1], [2], [3]], [[4], [5], [6]], [[7], [8], [9]]]]

TABLE: tuple[ByHand, ...] = (
    ByHand(
        "bits",
        BitCast(I32),
        [T([1.0, -2.0, 0.15625])],
        [T([0x3F800000, -(2**30), 0x3E200000], I32)],
    ),
    ByHand("parts", BitCast(BYTE), [T([1.0, -2.0])], [T([[0, 0, 128, 63], [0, 0, 0, 192]], BYTE)]),
    ByHand("whole", BitCast(F32), [T([[0, 0, 128, 63], [0, 0, 0, 192]], BYTE)], [T([1.0, -2.0])]),
    ByHand(
        "nibbles",
        BitCast(DataType.SIGNED4),
        [T([0, 7, 8, 15], DataType.UNSIGNED4)],
        [T([0, 7, -8, -1], DataType.SIGNED4)],
    ),
    ByHand(
        # 8-bit floats 1.0, 448 (the largest), 2 and a subnormal of 1/512; -0.0 keeps its sign.
        "to-e4m3",
        Cast(),
        [T([1.0, 1e6, 2.04, 1 / 512, -0.0])],
        [T([0x38, 0x7E, 0x40, 0x01, 0x80], DataType.FLOAT8_E4M3FN)],
    ),
    ByHand(
        "to-e5m2-infinity",
        Cast(saturate=False),
        [T([1.0, 1e6, -1e6, 1.125])],
        [T([0x3C, 0x7C, 0xFC, 0x3C], DataType.FLOAT8_E5M2)],
    ),
    ByHand(
        "from-e2m1",
        Cast(),
        [T(range(16), DataType.FLOAT4_E2M1)],
        [T([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])],
    ),
    ByHand(
        "powers-up",
        Cast(rounding="up"),
        [T([1.0, 1.01, 0.75, 3.0])],
        [T([127, 128, 127, 129], DataType.FLOAT8_E8M0)],
    ),
    # TensorFlow's raw_ops of the same seeds.
    ByHand(
        "tensorflow",
        RandomUniform((6,), seed=1, seed2=2),
        [],
        [
            T(
                [
                    *(0.406396746635437, 0.8575996160507202, 0.05539584159851074),
                    *(0.08587229251861572, 0.41215360164642334, 0.036630868911743164),
                ]
            )
        ],
    ),
    ByHand(
        "tensorflow-scaled",
        RandomUniform((3,), -1, 3, seed=-5, seed2=7, output_type=DataType.FLOAT64),
        [],
        [
            T(
                [4 * u - 1 for u in (0.7523554361272518, 0.6210910291876153, 0.5919917146492506)],
                DataType.FLOAT64,
            )
        ],
    ),
    # Known answers of the Random123 library.
    *(
        ByHand(
            label,
            RandomBits((len(words),), generator, DataType.UNSIGNED32),
            [T(state, DataType.UNSIGNED64)],
            [T(after, DataType.UNSIGNED64), T(words, DataType.UNSIGNED32)],
        )
        for label, generator, state, after, words in (
            (
                "philox-zeros",
                RandomGenerator.PHILOX,
                (0, 0),
                (0, 1),
                (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8),
            ),
            (
                "philox-ones",
                RandomGenerator.PHILOX,
                (_ONES, _ONES, _ONES),
                (_ONES, 0, _ONES),
                (0x408F276D, 0x41C83B0E, 0xA20BC7C6),
            ),
            (
                "threefry-ones",
                RandomGenerator.THREEFRY,
                (_ONES, _ONES),
                (_ONES, 0),
                (0x1CB996FC, 0xBB002BE7),
            ),
            (
                "threefry-pi",
                RandomGenerator.THREEFRY,
                (0x0370734413198A2E, 0x85A308D3243F6A88),
                (0x0370734413198A2E, 0x85A308D3243F6A89),
                (0xC4923A9C, 0x483DF7A0),
            ),
        )
    ),
    ByHand(
        "tensorflow",
        RandomNormal((5,), seed=1, seed2=2),
        [],
        [
            T(
                [
                    *(-1.0467792749404907, 0.8397045731544495, 1.235836386680603),
                    *(2.0637853145599365, 0.3037427067756653),
                ]
            )
        ],
    ),
    ByHand(
        "to-nibbles-wraps",
        Cast(),
        [T([7.9, 8.0, -9.0, 100.0])],
        [T([7, -8, 7, 4], DataType.SIGNED4)],
    ),
    ByHand("arm-nn-sample", ElementwiseBinary(), [T([5, 3]), T([10, 8])], [T([15, 11])]),
    ByHand("sub", ElementwiseBinary(BinaryOperation.SUB), [T([5, 3]), T([10, 8])], [T([-5, -5])]),
    ByHand(
        "mul-row",
        ElementwiseBinary(BinaryOperation.MUL),
        [T([[1, 2], [3, 4]]), T([10, -1])],
        [T([[10, -2], [30, -4]])],
    ),
    ByHand(
        "div", ElementwiseBinary(BinaryOperation.DIV), [T([1, -3]), T([2, 4])], [T([0.5, -0.75])]
    ),
    ByHand(
        "add-relu6",
        ElementwiseBinary(activation=FusedActivation.RELU6),
        [T([-5, 2, 5]), T([1, 2, 3])],
        [T([0, 4, 6])],
    ),
    ByHand(
        # 0.5 (10 - 2) + 0.5 (6 - 2) = 6 = 1 (9 - 3); -4 + 0.5 saturates at neither end.
        "add-quantized",
        ElementwiseBinary(),
        [T([10, -6], S8, 0.5, 2), T([6, 3], S8, 0.5, 2)],
        [T([9, 0], S8, 1.0, 3)],
    ),
    ByHand(
        "add-saturates",
        ElementwiseBinary(),
        [T([255, 0], U8, 1.0, 100), T([255, 0], U8, 1.0, 100)],
        [T([255, 0], U8, 1.0, 100)],
    ),
    ByHand(
        "add-integers-wrap",
        ElementwiseBinary(),
        [T([2**31 - 1, 5], I32), T([1, -7], I32)],
        [T([-(2**31), -2], I32)],
    ),
    ByHand("neg", ElementwiseUnary(UnaryOperation.NEG), [T([1, -2, 0.5])], [T([-1, 2, -0.5])]),
    ByHand(
        "round-to-even",
        ElementwiseUnary(UnaryOperation.ROUND),
        [T([0.5, 1.5, 2.5, -0.5])],
        [T([0, 2, 2, 0])],
    ),
    ByHand("sqrt", ElementwiseUnary(UnaryOperation.SQRT), [T([0, 4, 2.25])], [T([0, 2, 1.5])]),
    ByHand(
        "less",
        Comparison(ComparisonOperation.LESS),
        [T([1, 2, 3]), T([2, 2, 2])],
        [T([True, False, False], BOOL)],
    ),
    ByHand(
        "and",
        LogicalBinary(),
        [T([True, True, False, False], BOOL), T([True, False, True, False], BOOL)],
        [T([True, False, False, False], BOOL)],
    ),
    ByHand(
        "basic",
        Select(),
        [T([True, False, True], BOOL), T([1, 2, 3]), T([4, 5, 6])],
        [T([1, 5, 3])],
    ),
    ByHand("basic", Prelu(), [T([-2, 2]), T([0.25, 0.25])], [T([-0.5, 2])], (1,)),
    ByHand("relu", Activation(ActivationFunction.RELU), [T([-1, 0, 2.5])], [T([0, 0, 2.5])]),
    ByHand(
        "relu-quantized",
        Activation(ActivationFunction.RELU),
        [T([-128, -10, 5, 127], S8, 0.25, -10)],
        [T([-10, -10, 5, 127], S8, 0.25, -10)],
    ),
    ByHand("sigmoid-of-0", Activation(ActivationFunction.SIGMOID), [T([0.0])], [T([0.5])]),
    ByHand("equal", Softmax(), [T([[3, 3, 3, 3]])], [T([[0.25] * 4])]),
    ByHand("large", Softmax(), [T([[1000, 0]])], [T([[1, 0]])]),
    ByHand(
        # Each window of ones adds up four neighbours; the bias is added once.
        "window-sums",
        Convolution2d(),
        [T(_NINE), T([[[[1], [1]], [[1], [1]]]]), T([10])],
        [T([[[[22], [26]], [[34], [38]]]])],
        (1, 2),
    ),
    ByHand(
        # Corners see 4 elements, edges 6, the middle all 9.
        "same-padding-counts",
        Convolution2d(padding=Padding.SAME),
        [T(np.ones((1, 3, 3, 1))), T(np.ones((1, 3, 3, 1))), T([0])],
        [T([[[[4], [6], [4]], [[6], [9], [6]], [[4], [6], [4]]]])],
        (1, 2),
    ),
    ByHand(
        # 0.5 (x - 1) times 1 (w - 0), x = 3, 5: (2 * 2 + 4 * 1) / 2 = 4; + 2 * 0.5 = 5.
        "quantized",
        Convolution2d(),
        [
            T([[[[3, 5]]]], S8, 0.5, 1),
            T([[[[2, 1]]]], S8, 1.0, 0),
            T([2], I32, 0.5),
        ],
        [T([[[[4]]]], S8, 1.0, -1)],
        (1, 2),
    ),
    ByHand(
        "channels-apart",
        DepthwiseConvolution2d(),
        [T([[[[1, 10], [2, 20]]]]), T([[[[1, 1], [1, -1]]]]), T([0, 1])],
        [T([[[[3, -9]]]])],
        (1, 2),
    ),
    ByHand(
        # Every element is spread over a block of its own.
        "blocks",
        TransposeConvolution2d(stride=(2, 2)),
        [T(_SQUARE), T([[[[1], [2]], [[0], [0]]]]), T([0])],
        [
            T(
                [
                    [
                        [[1], [2], [2], [4]],
                        [[0], [0], [0], [0]],
                        [[3], [6], [4], [8]],
                        [[0], [0], [0], [0]],
                    ]
                ]
            )
        ],
        (1, 2),
    ),
    ByHand(
        "basic",
        FullyConnected(),
        [T([[1, 2]]), T([[3, 4], [5, 6], [-1, 1]]), T([10, 20, 30])],
        [T([[21, 37, 31]])],
        (1, 2),
    ),
    ByHand(
        "basic",
        BatchMatMul(),
        [T([[1, 2], [3, 4]]), T([[5, 6], [7, 8]])],
        [T([[19, 22], [43, 50]])],
    ),
    ByHand(
        "max",
        Pooling2d(PoolingAlgorithm.MAX, (2, 2), (1, 1)),
        [T(_NINE)],
        [T([[[[5], [6]], [[8], [9]]]])],
    ),
    ByHand(
        # Padding elements do not count: the last corner is the mean of one element.
        "average-without-padding",
        Pooling2d(PoolingAlgorithm.AVERAGE, (2, 2), (1, 1), Padding.SAME),
        [T(_SQUARE)],
        [T([[[[2.5], [3]], [[3.5], [4]]]])],
    ),
    ByHand(
        "mean-of-rows",
        Reduce(ReduceOperation.MEAN, (1,)),
        [T([[1, 2, 3], [4, 5, 9]])],
        [T([2, 6])],
    ),
    ByHand(
        "sum-keep", Reduce(ReduceOperation.SUM, (0,), True), [T([[1, 2], [3, 4]])], [T([[4, 6]])]
    ),
    ByHand(
        "rounded-down",
        Reduce(ReduceOperation.MEAN, (1,), rounds_down=True),
        [T([[1, 2], [-1, -4]], S8, 0.5, 7)],
        [T([1, -3], S8, 0.5, 7)],
    ),
    ByHand(
        "zero-absorbs-infinity",
        Reduce(ReduceOperation.PROD, (1,), zero_absorbs=True),
        [T([[0, float("inf")], [2, 3]])],
        [T([0, 6])],
    ),
    ByHand(
        "first-of-equals",
        ArgMinMax(ArgMinMaxFunction.MAX, 0),
        [T([1, 7, 7, 3])],
        [T(1, I32)],
    ),
    ByHand(
        # The second row follows the missing values; the second tree is a leaf alone.
        "two-trees",
        DecisionTrees(),
        [
            T([[0.5, 3], [float("nan"), 3], [2, 1]]),
            T([0, 1], I32),
            T([TreeComparison.LESS_OR_EQUAL, TreeComparison.EQUAL], BYTE),
            T([0.5, 1]),
            T([True, False], BOOL),
            T([1, -2], I32),
            T([-1, -3], I32),
            T([0, -4], I32),
        ],
        [T([[2, 3], [2, 3], [0, 3]], I32)],
        (1, 2, 3, 4, 5, 6, 7),
    ),
    ByHand(
        # In float32 the feature would be the threshold.
        "double",
        DecisionTrees(),
        [
            T([[0.1]], DataType.FLOAT64),
            T([0], I32),
            T([TreeComparison.GREATER], BYTE),
            T([0.1 - 1e-12], DataType.FLOAT64),
            T([False], BOOL),
            T([-2], I32),
            T([-1], I32),
            T([0], I32),
        ],
        [T([[1]], I32)],
        (1, 2, 3, 4, 5, 6, 7),
    ),
    ByHand("columns", Concat(1), [T([[1], [2]]), T([[3], [4]])], [T([[1, 3], [2, 4]])]),
    ByHand("basic", Transpose((1, 0)), [T([[1, 2, 3], [4, 5, 6]])], [T([[1, 4], [2, 5], [3, 6]])]),
    ByHand("basic", Reshape((2, 2)), [T([1, 2, 3, 4])], [T([[1, 2], [3, 4]])]),
    ByHand("zero-point", Pad(((1, 1),)), [T([5], S8, 1.0, 7)], [T([7, 5, 7], S8, 1.0, 7)]),
    ByHand("backwards", StridedSlice((-1,), (-4,), (-1,)), [T([1, 2, 3, 4])], [T([4, 3, 2])]),
    ByHand("halves", Splitter(2, 0), [T([1, 2, 3, 4])], [T([1, 2]), T([3, 4])]),
    ByHand(
        "rows", Gather(0), [T([[1, 2], [3, 4]]), T([1, 0, 1], I32)], [T([[3, 4], [1, 2], [3, 4]])]
    ),
    ByHand("basic", DepthToSpace(2), [T([[[[1, 2, 3, 4]]]])], [T(_SQUARE)]),
    ByHand(
        "nearest",
        Resize((4, 2), ResizeMethod.NEAREST_NEIGHBOR),
        [T(_SQUARE)],
        [T([[[[1], [2]], [[1], [2]], [[3], [4]], [[3], [4]]]])],
    ),
    ByHand(
        "bilinear",
        Resize((2, 4), ResizeMethod.BILINEAR),
        [T(_SQUARE)],
        [T([[[[1], [1.5], [2], [2]], [[3], [3.5], [4], [4]]]])],
    ),
    ByHand(
        "half-away-from-zero",
        Quantize(),
        [T([1.25, -1.25, 100.0, -100.0])],
        [T([10, 4, 127, -128], S8, 0.5, 7)],
    ),
    ByHand(
        "half-to-even",
        Quantize(rounds_to_even=True),
        [T([1.25, -1.25, 1.75, -0.25, 100.0, -100.0])],
        [T([9, 5, 11, 7, 127, -128], S8, 0.5, 7)],
    ),
    ByHand(
        "sums",
        FullyConnected(),
        [T([[1, 2], [130, 0]], U8, 0.5, 128), T([[1, -1], [100, 3]], S8, 0.25, 1)],
        [T([[252, -12825], [256, -58]], I32)],
        constants=(1,),
    ),
    ByHand("basic", Dequantize(), [T([0, 128, 255], U8, 0.5, 128)], [T([-64.0, 0.0, 63.5])]),
)


def cases() -> Iterator[Case]:
    """The lines of the table as cases."""
    for line in TABLE:
        name = f"{line.operation.name}/by-hand-{line.label}"
        yield Case(
            f"{name}/{(*line.inputs, *line.outputs)[0].data_type.name.lower()}",
            line.operation,
            tuple(
                CaseInput(item.info, item.array(), index in line.constants)
                for index, item in enumerate(line.inputs)
            ),
            tuple(item.info for item in line.outputs),
            tuple(item.array() for item in line.outputs),
            is_exact=isinstance(line.operation, Quantize),
        )
