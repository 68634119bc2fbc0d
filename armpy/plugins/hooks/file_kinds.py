"""Recognition of files that are found in the place of a model, by their first bytes."""

from __future__ import annotations

HEAD_BYTES = 64
"""Number of first bytes that are enough."""

NO_MODEL_FIX = "Check the path, or download or export the file again"
"""What to do about a file that holds no model."""

TEXT = "a text file"
"""What `kind_without_model` says of text, which a plugin's front-end may read."""

_PICTURE = "a {} picture, which is an input and not the model"
_KINDS: tuple[tuple[bytes, str], ...] = (
    (b"version https://git-lfs", "a Git LFS pointer in place of the file itself"),
    (b"<", "an HTML or XML page, perhaps of a failed download"),
    (b"\x89PNG\r\n\x1a\n", _PICTURE.format("PNG")),
    (b"\xff\xd8\xff", _PICTURE.format("JPEG")),
    (b"GIF8", _PICTURE.format("GIF")),
    (b"BM", _PICTURE.format("BMP")),
    (b"\x93NUMPY", "an array of NumPy, which is an input and not the model"),
    (b"%PDF", "a PDF document"),
)
"""First bytes, and what the file is."""


_LEAST_IR_VERSION = 3
"""Of .onnx files that are met; TensorFlow's SavedModel begins alike, with version 1."""


def begins_as_onnx(head: bytes) -> bool:
    """Return whether a file begins as .onnx files usually do: with a version, then a producer.

    Parameters
    ----------
    head : bytes
        The first `HEAD_BYTES` of the file, or fewer.
    """
    is_version = head[:1] == b"\x08" and head[2:3] == b"\x12"
    return is_version and _LEAST_IR_VERSION <= head[1] < 0x80  # one byte of a variable length


def kind_without_model(head: bytes) -> str:
    """Describe a file that holds no model, for errors of front-ends.

    Parameters
    ----------
    head : bytes
        The first `HEAD_BYTES` of the file, or fewer.

    Returns
    -------
    str
        Such as ``an empty file``; empty if the file may hold a model.
    """
    if not head:
        return "an empty file"
    for beginning, kind in _KINDS:
        if head.startswith(beginning):
            return kind
    is_text = all(byte in b"\t\n\r" or 0x20 <= byte < 0x7F for byte in head)
    return TEXT if is_text else ""
