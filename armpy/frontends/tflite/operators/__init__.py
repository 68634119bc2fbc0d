"""How each operator of the schema becomes layers: one table per family.

A new operator is one entry in its family's table, and its name here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from armpy.frontends.tflite.node import Converter, ConverterTable

FAMILIES = {
    "activation": """
        ELU GELU HARD_SWISH L2_NORMALIZATION LEAKY_RELU LOGISTIC LOG_SOFTMAX RELU RELU6
        RELU_0_TO_1 RELU_N1_TO_1 SOFTMAX TANH
    """,
    "control_flow": """
        IF WHILE
    """,
    "conversion": """
        CAST DEQUANTIZE QUANTIZE
    """,
    "dense": """
        BATCH_MATMUL FULLY_CONNECTED
    """,
    "elementwise": """
        ABS ADD CEIL COS DIV EQUAL EXP FLOOR FLOOR_DIV FLOOR_MOD GREATER GREATER_EQUAL LESS
        LESS_EQUAL LOG LOGICAL_AND LOGICAL_NOT LOGICAL_OR MAXIMUM MINIMUM MUL NEG NOT_EQUAL POW
        PRELU ROUND RSQRT SELECT SELECT_V2 SIN SQRT SQUARE SQUARED_DIFFERENCE SUB
    """,
    "generation": """
        FILL ONE_HOT RANGE RANK SHAPE
    """,
    "lookup": """
        HASHTABLE_LOOKUP LOCAL_RESPONSE_NORMALIZATION LSH_PROJECTION TOPK_V2
    """,
    "movement": """
        BATCH_TO_SPACE_ND BROADCAST_TO CONCATENATION DEPTH_TO_SPACE MIRROR_PAD PACK PAD PADV2
        RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR REVERSE_V2 SPACE_TO_BATCH_ND SPACE_TO_DEPTH TILE
        TRANSPOSE
    """,
    "recurrent": """
        BIDIRECTIONAL_SEQUENCE_LSTM BIDIRECTIONAL_SEQUENCE_RNN LSTM RNN SVDF
        UNIDIRECTIONAL_SEQUENCE_LSTM UNIDIRECTIONAL_SEQUENCE_RNN
    """,
    "reduction": """
        ARG_MAX ARG_MIN MEAN REDUCE_ALL REDUCE_ANY REDUCE_MAX REDUCE_MIN REDUCE_PROD SUM
    """,
    "reshaping": """
        EXPAND_DIMS RESHAPE SQUEEZE
    """,
    "slicing": """
        GATHER GATHER_ND SLICE SPLIT SPLIT_V STRIDED_SLICE UNPACK
    """,
    "windows": """
        AVERAGE_POOL_2D CONV_2D DEPTHWISE_CONV_2D L2_POOL_2D MAX_POOL_2D TRANSPOSE_CONV
    """,
}
"""Operators of each module, which is imported when a file has one of them."""


class _Converters(Mapping[str, Converter]):
    """The tables of all families as one."""

    def __init__(self) -> None:
        self._families = {n: family for family, names in FAMILIES.items() for n in names.split()}

    def __getitem__(self, name: str) -> Converter:
        module = import_module(f"{__name__}.{self._families[name]}")
        table: ConverterTable = module.CONVERTERS
        return table[name]

    def __contains__(self, name: object) -> bool:
        return name in self._families

    def __iter__(self) -> Iterator[str]:
        return iter(self._families)

    def __len__(self) -> int:
        return len(self._families)


CONVERTERS: ConverterTable = _Converters()
"""Converters by the operators' names in the schema's BuiltinOperator."""
