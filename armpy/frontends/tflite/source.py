"""Recognition of .tflite files, and of other formats by a model's bytes."""

from __future__ import annotations

from armpy.errors import ParserError
from armpy.plugins.hooks.file_kinds import (
    HEAD_BYTES,
    NO_MODEL_FIX,
    begins_as_onnx,
    kind_without_model,
)
from armpy.plugins.hooks.model_file import ModelSource, open_model_file

IDENTIFIER = b"TFL3"
_IDENTIFIER_END = 8

_MODELS: tuple[tuple[bytes, str], ...] = (
    (b"PK\x03\x04", "a zip archive, such as a .keras or PyTorch file"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file, such as a Keras .h5 file"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"GGUF", "a GGUF file"),
    (b"\x08\x01\x12", "a SavedModel of TensorFlow"),
    (b"\x80\x02", "a Python pickle, such as an old PyTorch file"),
)
"""First bytes of models of other formats, and their names."""

_FIXES = {
    b"\x1f\x8b": "Unpack it with 'gunzip < FILE > MODEL', or with tar",
    b"PK": "If it holds a .tflite or .onnx file, unpack it; else convert the model to .tflite",
}
"""What to do with a file by its first two bytes."""

_OTHER_FORMAT_FIX = "Convert the model to .tflite"


def is_tflite(source: ModelSource) -> bool:
    """Return whether a model is a .tflite file by its contents, whatever it is called.

    Raises
    ------
    ParserError
        If it cannot be read.
    """
    return _has_identifier(open_model_file(source).data)


def _has_identifier(data: memoryview) -> bool:
    """Return whether bytes say of themselves that they are a .tflite file."""
    return data[4:_IDENTIFIER_END] == IDENTIFIER


def check_identifier(data: memoryview) -> None:
    """Check that the bytes say of themselves that they are a .tflite file.

    Raises
    ------
    ParserError
        If they do not; the text says what they look like instead.
    """
    if not _has_identifier(data):
        head = bytes(data[:HEAD_BYTES])
        kind = kind_without_model(head)
        fix = NO_MODEL_FIX if kind else _FIXES.get(head[:2], _OTHER_FORMAT_FIX)
        raise ParserError(
            "not a .tflite file",
            expected=f"'{IDENTIFIER.decode()}' in bytes 4 to 7, as in every .tflite file",
            actual=kind or _describe(head),
            fix=fix,
        )


def _describe(head: bytes) -> str:
    """Describe the beginning of a file that may hold a model."""
    for beginning, kind in _MODELS:
        if head.startswith(beginning):
            return kind
    if head[4:_IDENTIFIER_END] == b"ORTM":
        return "ONNX Runtime's own format (.ort); load the .onnx file that it was made from"
    if begins_as_onnx(head):
        return "an ONNX file (protocol buffers)"
    if len(head) < _IDENTIFIER_END:
        return f"a file of {len(head)} bytes"
    return f"the bytes {head[4:_IDENTIFIER_END]!r}"
