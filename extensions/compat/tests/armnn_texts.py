"""Flatbuffers in their text form, made into .armnn files through the schema's table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from armpy.plugins.hooks.flatbuffers import Field, FlatTable, write_flatbuffer
from armpy_compat.armnn_format.schema import ARMNN_SCHEMA

Json = Any  # Any: numbers, strings, lists and dicts, nested

_TOKEN = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([{}\[\]:,])|([^\s{}\[\]:,"]+))')
_DTYPES = {"B": np.int8, "H": np.int16, "I": np.uint32, "i": np.int32, "f": np.float32}
_LARGE = {"q": np.int64}
_ENUMERATIONS = {
    # The enumeration of a field that is not called like it.
    ("LayerBase", "layerType"): "LayerType",
    ("TensorInfo", "dataType"): "DataType",
    ("ActivationDescriptor", "activationFunction"): "ActivationFunction",
    ("ArgMinMaxDescriptor", "argMinMaxFunction"): "ArgMinMaxFunction",
    ("ComparisonDescriptor", "operation"): "ComparisonOperation",
    ("ElementwiseBinaryDescriptor", "operation"): "BinaryOperation",
    ("ElementwiseUnaryDescriptor", "operation"): "UnaryOperation",
    ("LogicalBinaryDescriptor", "operation"): "LogicalBinaryOperation",
    ("NormalizationDescriptor", "normChannelType"): "NormalizationAlgorithmChannel",
    ("NormalizationDescriptor", "normMethodType"): "NormalizationAlgorithmMethod",
    ("PadDescriptor", "paddingMode"): "PaddingMode",
    ("Pooling2dDescriptor", "poolType"): "PoolingAlgorithm",
    ("Pooling2dDescriptor", "outputShapeRounding"): "OutputShapeRounding",
    ("Pooling2dDescriptor", "paddingMethod"): "PaddingMethod",
    ("ReduceDescriptor", "reduceOperation"): "ReduceOperation",
    ("ResizeDescriptor", "method"): "ResizeMethod",
}


def armnn_file(text: str, identifier: bytes = b"ARMN") -> bytes:
    """The .armnn file that a graph in text form describes."""
    graph = parse_text(text)
    return write_flatbuffer(table_of("SerializedGraph", graph), identifier, ARMNN_SCHEMA)


def parse_text(text: str) -> Json:
    """A text of flatbuffers: JSON with names unquoted and commas after the last item."""
    tokens = _tokens(text)
    return _value(next(tokens), tokens)


def table_of(kind: str, fields: Mapping[str, Json]) -> FlatTable:
    """A table of the schema, ready to be written."""
    written: dict[str, Field] = {}
    known = ARMNN_SCHEMA.tables[kind]
    for name, value in fields.items():
        if name.endswith("_type") and name not in known:
            continue  # says which table the union beside it holds
        written[name] = _field(kind, name, known[name][1], value, fields)
    return FlatTable(kind, written)


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    at, text = 0, text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match, text[at : at + 40]
        at = match.end()
        quoted, mark, word = match.groups()
        if mark:
            yield "mark", mark
        elif quoted is not None:
            yield "text", quoted
        else:
            yield "word", word


def _value(token: tuple[str, str], tokens: Iterator[tuple[str, str]]) -> Json:
    sort, text = token
    if token == ("mark", "["):
        return list(_items(tokens, "]"))
    if token == ("mark", "{"):
        return dict(_items(tokens, "}"))
    if sort == "text":
        return text
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text


def _items(tokens: Iterator[tuple[str, str]], end: str) -> Iterator[Json]:
    for token in tokens:
        if token == ("mark", end):
            return
        if token == ("mark", ","):
            continue
        if end == "]":
            yield _value(token, tokens)
        else:
            assert next(tokens) == ("mark", ":"), token
            yield token[1], _value(next(tokens), tokens)


def _field(kind: str, name: str, code: str, value: Json, fields: Mapping[str, Json]) -> Field:
    if code == "union":
        return table_of(str(fields[f"{name}_type"]), value)
    if code == "Q":
        return int(value["sourceLayerIndex"] | value.get("outputSlotIndex", 0) << 32)
    if code == "text":
        return str(value)
    if code.startswith("[") and code[1:-1] in ARMNN_SCHEMA.tables:
        return [table_of(code[1:-1], item) for item in value]
    if code.startswith("["):
        return np.array(value, _LARGE.get(code[1:-1]) or _DTYPES[code[1:-1]])
    if code in ARMNN_SCHEMA.tables:
        return table_of(code, value)
    if isinstance(value, str) and code != "f":
        enumeration = "DataLayout" if "dataLayout" in name else _ENUMERATIONS[kind, name]
        names = ARMNN_SCHEMA.enumerations[enumeration].split()
        return names.index(value)
    return float(value) if code == "f" else int(value)
