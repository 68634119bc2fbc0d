"""Flatbuffers files, for front-ends: a reader that checks offsets and limits work, and a writer."""

from armpy.core.flatbuffers.reader import Ledger, Schema, TableReader, Tables, table_errors
from armpy.core.flatbuffers.writer import Field, FlatTable, write_flatbuffer

__all__ = [
    "Field",
    "FlatTable",
    "Ledger",
    "Schema",
    "TableReader",
    "Tables",
    "table_errors",
    "write_flatbuffer",
]
