"""Flatbuffers files, for front-ends: a reader that checks offsets and limits work, and a writer.

`read_options` and `read_entries` read FlexBuffers, as options of custom operators often are.
"""

from armpy.core.flatbuffers.flexbuffers import Entry, read_entries, read_options
from armpy.core.flatbuffers.reader import Ledger, Schema, TableReader, Tables, table_errors
from armpy.core.flatbuffers.writer import Field, FlatTable, write_flatbuffer

__all__ = [
    "Entry",
    "Field",
    "FlatTable",
    "Ledger",
    "Schema",
    "TableReader",
    "Tables",
    "read_entries",
    "read_options",
    "table_errors",
    "write_flatbuffer",
]
