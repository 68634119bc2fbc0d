"""The numbers of the Neural Networks API."""

from __future__ import annotations

import enum
from types import MappingProxyType

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.types import DataType


class OperandCode(enum.IntEnum):
    """Type of an operand.

    References
    ----------
    NNAPI ``OperandCode``.
    """

    FLOAT32 = 0
    INT32 = 1
    UINT32 = 2
    TENSOR_FLOAT32 = 3
    TENSOR_INT32 = 4
    TENSOR_QUANT8_ASYMM = 5
    BOOL = 6
    TENSOR_QUANT16_SYMM = 7
    TENSOR_FLOAT16 = 8
    TENSOR_BOOL8 = 9
    FLOAT16 = 10
    TENSOR_QUANT8_SYMM_PER_CHANNEL = 11
    TENSOR_QUANT16_ASYMM = 12
    TENSOR_QUANT8_SYMM = 13
    TENSOR_QUANT8_ASYMM_SIGNED = 14
    MODEL = 15
    OEM_SCALAR = 10000
    TENSOR_OEM_BYTE = 10001

    @property
    def traits(self) -> OperandTraits:
        """Traits of operands of this type."""
        return OPERAND_TRAITS[self]


@dataclass(frozen=True, slots=True)
class OperandTraits:
    """Traits of operands of one type."""

    data_type: DataType | None  # the core's type with these elements; None for a model
    is_tensor: bool  # whether it has dimensions
    feature_level: int  # lowest feature level that has the type
    zero_points: tuple[int, int] = (0, 0)
    """Lowest and highest zero point; both 0 where there is none."""
    needs_scale: bool | None = False
    """Whether the scale is above 0 (True), 0 (False), or either (None)."""
    short_name: str = ""  # for graph dumps

    @property
    def size_bytes(self) -> int:
        """Bytes of one element; 0 for a model."""
        return 0 if self.data_type is None else self.data_type.size_bytes

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """NumPy dtype of the elements."""
        return np.dtype(np.uint8) if self.data_type is None else self.data_type.dtype


_C, _T = OperandCode, DataType
OPERAND_TRAITS = MappingProxyType(
    {
        _C.FLOAT32: OperandTraits(_T.FLOAT32, False, 27, short_name="F32"),
        _C.INT32: OperandTraits(_T.SIGNED32, False, 27, short_name="I32"),
        _C.UINT32: OperandTraits(_T.UNSIGNED32, False, 27, short_name="U32"),
        _C.TENSOR_FLOAT32: OperandTraits(_T.FLOAT32, True, 27, short_name="TF32"),
        # With a scale as a bias, without one as an index.
        _C.TENSOR_INT32: OperandTraits(_T.SIGNED32, True, 27, (0, 0), None, "TI32"),
        _C.TENSOR_QUANT8_ASYMM: OperandTraits(_T.QASYMM_U8, True, 27, (0, 255), True, "TQ8A"),
        _C.BOOL: OperandTraits(_T.BOOLEAN, False, 29),
        _C.TENSOR_QUANT16_SYMM: OperandTraits(_T.QSYMM_S16, True, 29, (0, 0), True),
        _C.TENSOR_FLOAT16: OperandTraits(_T.FLOAT16, True, 29),
        _C.TENSOR_BOOL8: OperandTraits(_T.BOOLEAN, True, 29),
        _C.FLOAT16: OperandTraits(_T.FLOAT16, False, 29),
        # Its scales lie along the channels; the type's own is 0.
        _C.TENSOR_QUANT8_SYMM_PER_CHANNEL: OperandTraits(_T.QSYMM_S8, True, 29),
        _C.TENSOR_QUANT16_ASYMM: OperandTraits(_T.QASYMM_U16, True, 29, (0, 65535), True),
        _C.TENSOR_QUANT8_SYMM: OperandTraits(_T.QSYMM_S8, True, 29, (0, 0), True),
        _C.TENSOR_QUANT8_ASYMM_SIGNED: OperandTraits(_T.QASYMM_S8, True, 30, (-128, 127), True),
        _C.MODEL: OperandTraits(None, False, 30),
        _C.OEM_SCALAR: OperandTraits(_T.UNSIGNED8, False, 27, short_name="OEM"),
        _C.TENSOR_OEM_BYTE: OperandTraits(_T.UNSIGNED8, True, 27, (0, 0), None, "TOEMB"),
    }
)
"""Traits by type; extension types are not in it."""


class OperationCode(enum.IntEnum):
    """Type of an operation.

    References
    ----------
    NNAPI ``OperationCode``.
    """

    ADD = 0
    AVERAGE_POOL_2D = 1
    CONCATENATION = 2
    CONV_2D = 3
    DEPTHWISE_CONV_2D = 4
    DEPTH_TO_SPACE = 5
    DEQUANTIZE = 6
    EMBEDDING_LOOKUP = 7
    FLOOR = 8
    FULLY_CONNECTED = 9
    HASHTABLE_LOOKUP = 10
    L2_NORMALIZATION = 11
    L2_POOL_2D = 12
    LOCAL_RESPONSE_NORMALIZATION = 13
    LOGISTIC = 14
    LSH_PROJECTION = 15
    LSTM = 16
    MAX_POOL_2D = 17
    MUL = 18
    RELU = 19
    RELU1 = 20
    RELU6 = 21
    RESHAPE = 22
    RESIZE_BILINEAR = 23
    RNN = 24
    SOFTMAX = 25
    SPACE_TO_DEPTH = 26
    SVDF = 27
    TANH = 28
    BATCH_TO_SPACE_ND = 29
    DIV = 30
    MEAN = 31
    PAD = 32
    SPACE_TO_BATCH_ND = 33
    SQUEEZE = 34
    STRIDED_SLICE = 35
    SUB = 36
    TRANSPOSE = 37
    ABS = 38
    ARGMAX = 39
    ARGMIN = 40
    AXIS_ALIGNED_BBOX_TRANSFORM = 41
    BIDIRECTIONAL_SEQUENCE_LSTM = 42
    BIDIRECTIONAL_SEQUENCE_RNN = 43
    BOX_WITH_NMS_LIMIT = 44
    CAST = 45
    CHANNEL_SHUFFLE = 46
    DETECTION_POSTPROCESSING = 47
    EQUAL = 48
    EXP = 49
    EXPAND_DIMS = 50
    GATHER = 51
    GENERATE_PROPOSALS = 52
    GREATER = 53
    GREATER_EQUAL = 54
    GROUPED_CONV_2D = 55
    HEATMAP_MAX_KEYPOINT = 56
    INSTANCE_NORMALIZATION = 57
    LESS = 58
    LESS_EQUAL = 59
    LOG = 60
    LOGICAL_AND = 61
    LOGICAL_NOT = 62
    LOGICAL_OR = 63
    LOG_SOFTMAX = 64
    MAXIMUM = 65
    MINIMUM = 66
    NEG = 67
    NOT_EQUAL = 68
    PAD_V2 = 69
    POW = 70
    PRELU = 71
    QUANTIZE = 72
    QUANTIZED_16BIT_LSTM = 73
    RANDOM_MULTINOMIAL = 74
    REDUCE_ALL = 75
    REDUCE_ANY = 76
    REDUCE_MAX = 77
    REDUCE_MIN = 78
    REDUCE_PROD = 79
    REDUCE_SUM = 80
    ROI_ALIGN = 81
    ROI_POOLING = 82
    RSQRT = 83
    SELECT = 84
    SIN = 85
    SLICE = 86
    SPLIT = 87
    SQRT = 88
    TILE = 89
    TOPK_V2 = 90
    TRANSPOSE_CONV_2D = 91
    UNIDIRECTIONAL_SEQUENCE_LSTM = 92
    UNIDIRECTIONAL_SEQUENCE_RNN = 93
    RESIZE_NEAREST_NEIGHBOR = 94
    QUANTIZED_LSTM = 95
    IF = 96
    WHILE = 97
    ELU = 98
    HARD_SWISH = 99
    FILL = 100
    RANK = 101
    OEM_OPERATION = 10000


CONTROL_FLOW_CODES = (OperationCode.IF, OperationCode.WHILE)
"""Operations that run other graphs."""


class FuseCode(enum.IntEnum):
    """Activation that is fused into an operation; NNAPI ``FuseCode``."""

    NONE = 0
    RELU = 1
    RELU1 = 2
    RELU6 = 3


class PaddingCode(enum.IntEnum):
    """Implicit padding; NNAPI ``PaddingCode``."""

    SAME = 1
    VALID = 2


class PreferenceCode(enum.IntEnum):
    """Preference of a compilation; NNAPI ``PreferenceCode``."""

    LOW_POWER = 0
    FAST_SINGLE_ANSWER = 1
    SUSTAINED_SPEED = 2


class DurationCode(enum.IntEnum):
    """Kind of an execution's duration; NNAPI ``DurationCode``."""

    ON_HARDWARE = 0
    IN_DRIVER = 1
    FENCED_ON_HARDWARE = 2
    FENCED_IN_DRIVER = 3


class DeviceTypeCode(enum.IntEnum):
    """Kind of device; NNAPI ``DeviceTypeCode``."""

    UNKNOWN = 0
    OTHER = 1
    CPU = 2
    GPU = 3
    ACCELERATOR = 4


class FeatureLevel(enum.IntEnum):
    """Version of the specification, numbered as Android's API levels.

    Notes
    -----
    HAL 1.0, 1.1, 1.2 and 1.3.
    """

    LEVEL_1 = 27
    LEVEL_2 = 28
    LEVEL_3 = 29
    LEVEL_4 = 30


LOWEST_FEATURE_LEVEL = FeatureLevel.LEVEL_1
LATEST_FEATURE_LEVEL = FeatureLevel.LEVEL_4

MAX_IMMEDIATE_COPY_BYTES = 128
"""Constants up to this size are copied when they are set, larger ones at the end."""

MAX_OPERANDS = 0xFFFFFFFE
"""Highest number of operands, and of operations."""

MAX_SIZE_BYTES = 0xFFFFFFFF
"""Largest size of one operand's elements."""

EXTENSION_PREFIX_SHIFT = 16
"""Type codes of extensions have the extension's prefix above this bit, the type below."""

MAX_EXTENSION_PREFIX = 0x7FFF
"""Most extensions that can be in use: codes are positive 32-bit integers."""


def is_extension(code: int) -> bool:
    """Return whether a code of an operand or operation type belongs to an extension."""
    # Prefix 0 is NNAPI's own, and negative codes are undefined.
    return code >> EXTENSION_PREFIX_SHIFT > 0


def operation_name(code: int) -> str:
    """Name of an operation's type, for messages."""
    if is_extension(code):
        return f"extension operation {code:#x}"
    try:
        return OperationCode(code).name
    except ValueError:
        return f"unknown operation {code}"
