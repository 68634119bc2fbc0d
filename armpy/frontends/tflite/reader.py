"""The tables of a .tflite file."""

from __future__ import annotations

import struct
from typing import ClassVar

from armpy.core.flatbuffers.reader import Ledger, Schema, TableReader
from armpy.errors import ParserError
from armpy.frontends.tflite.schema import ENUMERATIONS, TABLES
from armpy.frontends.tflite.source import check_identifier

SCHEMA_VERSION = 3

TFLITE_SCHEMA = Schema(
    TABLES,
    ENUMERATIONS,
    unions={
        **dict.fromkeys(("ArraySegments", "ArrayIndices"), "SparseIndexVector"),
        "Details": "QuantizationDetails",
    },
)


class TfliteTable(TableReader):
    """One table of a .tflite file."""

    schema: ClassVar[Schema] = TFLITE_SCHEMA

    __slots__ = ()


def read_model(data: memoryview) -> TableReader:
    """The root table of a .tflite file.

    Raises
    ------
    ParserError
        If the bytes are not a .tflite file of schema version 3.
    """
    check_identifier(data)
    (position,) = struct.unpack_from("<I", data)
    model = TfliteTable(data, position, "Model", Ledger(len(data)), "")
    version = model.integer("Version")
    if version != SCHEMA_VERSION:
        raise ParserError(
            "the schema version is not supported",
            expected=str(SCHEMA_VERSION),
            actual=str(version),
        )
    return model


def enumerators(kind: str) -> dict[int, str]:
    """Names of the enumerators of one of the schema's enumerations, by number."""
    return TFLITE_SCHEMA.enumerators(kind)
