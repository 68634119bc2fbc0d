"""Write TFLite model metadata for tests, by the numbers of the schema's fields.

A `Fields` is a table: what each of its fields holds, by the field's number in metadata_schema.fbs.

    metadata = metadata_bytes({0: "classifier", 4: "its author"})

References
----------
metadata_schema.fbs of TensorFlow Lite Support, version 1.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import flatbuffers
import numpy as np
from flatbuffers import number_types

AXIS_LABELS, VALUE_LABELS, VOCABULARY = np.int8(2), np.int8(3), np.int8(5)
FEATURES, IMAGE, BOXES, AUDIO = (np.uint8(number) for number in (1, 2, 3, 4))
NORMALIZATION, CALIBRATION, THRESHOLD, BERT, SENTENCE_PIECE, REGEX = (
    np.uint8(number) for number in range(1, 7)
)
RGB = np.int8(1)

Fields: TypeAlias = Mapping[int, "Field"]
Field: TypeAlias = (
    str | np.int8 | np.uint8 | np.uint32 | np.float32 | Sequence["Field"] | float | Fields
)

_FLAGS = {
    np.int8: number_types.Int8Flags,
    np.uint8: number_types.Uint8Flags,
    np.uint32: number_types.Uint32Flags,
    np.float32: number_types.Float32Flags,
}


def metadata_bytes(model: Fields, identifier: bytes = b"M001") -> bytes:
    """A flatbuffer whose root is a ModelMetadata."""
    builder = flatbuffers.Builder(256)
    builder.Finish(_write(builder, model), identifier)
    return bytes(builder.Output())


def packed(files: Mapping[str, str | bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """An archive, to be appended to a model."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return content.getvalue()


def _write(builder: flatbuffers.Builder, value: Field) -> int:
    """Write text, a vector or a table; its offset."""
    if isinstance(value, str):
        return int(builder.CreateString(value))
    if isinstance(value, Mapping):
        return _write_table(builder, value)
    assert isinstance(value, Sequence)
    if value and isinstance(value[0], float):
        return int(builder.CreateNumpyVector(np.array(value, np.float32)))
    offsets = [_write(builder, item) for item in value if not isinstance(item, float)]
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return int(builder.EndVector())


def _write_table(builder: flatbuffers.Builder, fields: Fields) -> int:
    """Write a table, after the objects that it refers to."""
    offsets = {
        number: _write(builder, value)
        for number, value in fields.items()
        if not isinstance(value, np.generic)
    }
    builder.StartObject(1 + max(fields, default=-1))
    for number, value in fields.items():
        if isinstance(value, np.generic):
            builder.PrependSlot(_FLAGS[type(value)], number, value.item(), None)
        else:
            builder.PrependUOffsetTRelativeSlot(number, offsets[number], 0)
    return int(builder.EndObject())
