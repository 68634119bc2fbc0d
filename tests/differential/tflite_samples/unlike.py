"""Kinds of elements of which armpy and LiteRT do not give the same, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping

_SCALE = "LiteRT's kernel reads a scale that is not there, or its result has no meaning"
_PLAIN = "integers without a scale: CAST to int32 and back"
_RAW = "stored integers are compared or added up whatever their scale: DEQUANTIZE first"
_TRUTH = "truth values are computed with as numbers: CAST first"
_AS_FLOATS = "LiteRT's matrix_diag.cc and matrix_set_diag.cc read all other types as float32"
_NO_CASE = "LiteRT's comparisons.cc has no case for it in NotEqualEval and leaves its output"
_BYTES = "LiteRT reads the slopes as bytes"
_SPARSE = "LiteRT's kernel reads sparse weights as if they were dense"
_PACKED = "LiteRT's depthwise_conv.cc reads packed weights as int8 beside int16"
_HALVES = "LiteRT's kernel reads weights of float16 as float32: DEQUANTIZE them"
_UNSIGNED = "LiteRT's embedding_lookup.cc reads uint8 as int8"
_FOUR_BITS = "elements of 4 bits are constants only"
_OLD = "weights with a zero point: converters have written int8 ones since 2020"
_WIDTHS = "an output wider or narrower than the input: add a QUANTIZE after it"


_MEMORY = "LiteRT fills with bytes of its own memory instead of the string"

_REASONS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "AVERAGE_POOL_2D": (("INT16", "INT8"), _SCALE),
    "MAX_POOL_2D": (("INT16", "INT8", "UINT8"), _SCALE),
    "MEAN SUM": (("INT16", "INT8", "UINT8"), _SCALE),
    "CONV_2D": (("FLOAT32 of UINT8",), _OLD),
    " CONV_2D": (("FLOAT32 of FLOAT16",), _HALVES),
    "FULLY_CONNECTED ": (("FLOAT32 of UINT8",), _OLD),
    " FULLY_CONNECTED": (("INT8 to INT16", "INT16 to INT8"), _WIDTHS),
    "RESIZE_NEAREST_NEIGHBOR": (("BOOL", "INT32", "UINT16", "UINT32"), _PLAIN),
    "UNIQUE": (("INT16 quantised", "INT8 quantised", "UINT8 quantised"), _RAW),
    "WHERE": (("INT8 quantised", "UINT8 quantised"), _RAW),
    "STABLEHLO_ADD STABLEHLO_MAXIMUM STABLEHLO_MINIMUM STABLEHLO_MULTIPLY": (("BOOL",), _TRUTH),
    "SCATTER_ND": (("INT8 quantised", "UINT8 quantised"), _RAW),
    "MATRIX_DIAG": (("COMPLEX64", "FLOAT16", "FLOAT64", "UINT16", "UINT64"), _AS_FLOATS),
    "MATRIX_SET_DIAG": (
        ("BOOL", "COMPLEX64", "FLOAT16", "FLOAT64", "UINT16", "UINT64"),
        _AS_FLOATS,
    ),
    "NOT_EQUAL": (("INT16",), _NO_CASE),
    "FILL": (("STRING",), _MEMORY),
    "PRELU": (("INT16 quantised",), _BYTES),
    "DEPTHWISE_CONV_2D": (("INT16 of INT4", "INT16 of INT4 per channel"), _PACKED),
    " DEPTHWISE_CONV_2D": (("FLOAT32 of sparse FLOAT32", "INT8 of sparse INT8"), _SPARSE),
    "CONV_2D TRANSPOSE_CONV": (
        ("FLOAT32 of sparse FLOAT32", "FLOAT32 of sparse INT8", "INT8 of sparse INT8"),
        _SPARSE,
    ),
    "BATCH_MATMUL": (("INT8, to INT32",), _RAW),
    "FULLY_CONNECTED": (("FLOAT32 of sparse INT8",), _SPARSE),
    "EMBEDDING_LOOKUP": (("FLOAT32 of UINT8 quantised",), _UNSIGNED),
    "CAST": (("FLOAT32 to INT4",), _FOUR_BITS),
    "QUANTIZE": (("FLOAT32 to INT4 quantised",), _FOUR_BITS),
}
"""Operators, kinds and the reason."""

UNLIKE: dict[tuple[str, str], str] = {
    (name, kind): reason
    for names, (kinds, reason) in _REASONS.items()
    for name in names.split()
    for kind in kinds
}


def reason_for(operator: str, kind: str) -> str:
    """Why a kind is not the same; empty if it has to be."""
    return UNLIKE.get((operator, kind), "")
