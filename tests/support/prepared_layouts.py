"""Compiled models made and read by what ``docs/reference/compiled_models.md`` says alone."""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

HEADER = struct.Struct("<8sIIQQ32s")
HEADER_BYTES = 256
VERSION = 4
"""Of the newest layout."""
ALIGNMENT_BYTES = 64
PAGE_BYTES = 4096


def document(record: object) -> bytes:
    """A section with a record."""
    return zlib.compress(json.dumps(record).encode())


def read_document(section: bytes) -> Any:  # Any: whatever JSON holds
    """What such a section holds."""
    return json.loads(zlib.decompress(section))


class PlainFile(NamedTuple):
    """What a file of the newest layout consists of."""

    manifest: dict[str, Any]
    manifest_text: bytes
    sections: dict[str, bytes]
    offsets: dict[str, int]


def oldest_layout(record: object, constants: bytes) -> bytes:
    """A file of version 1: a header of 64 bytes, one text, constants."""
    text = json.dumps(record).encode()
    rest = text + bytes(-(64 + len(text)) % 64) + constants
    digest = hashlib.sha256(rest).digest()
    return HEADER.pack(b"armpyNet", 1, 0, len(text), 64 + len(rest), digest) + rest


def newest_layout(
    sections: Mapping[str, bytes],
    manifest: Mapping[str, object] | None = None,
    *,
    room: int = 1 << 16,
) -> bytes:
    """A file of version 4.

    `manifest`: the file's description of itself, without the table of sections.
    `room`: bytes of the manifest, which is filled up with blanks.
    """
    table, parts, end = [], [], HEADER_BYTES + room
    for name, contents in sections.items():
        aligned = PAGE_BYTES if len(contents) >= PAGE_BYTES else ALIGNMENT_BYTES
        gap = -end % aligned
        table.append([name, end + gap, len(contents), hashlib.sha256(contents).hexdigest()])
        parts += [bytes(gap), contents]
        end += gap + len(contents)
    said = {"kind": "network", "armpy": "0"} if manifest is None else manifest
    text = json.dumps({**said, "sections": table}, separators=(",", ":")).encode()
    assert len(text) <= room
    return sealed(text.ljust(room), b"".join(parts))


def sealed(text: bytes, rest: bytes, *, signer: bytes = b"") -> bytes:
    """A file with a right header before a manifest and what follows it."""
    size = HEADER_BYTES + len(text) + len(rest)
    header = HEADER.pack(b"armpyNet", VERSION, 0, len(text), size, hashlib.sha256(text).digest())
    return (header + signer).ljust(HEADER_BYTES, b"\0") + text + rest


def read_plainly(contents: bytes) -> PlainFile:
    """Take a file of version 4 apart, and check that everything is as documented."""
    magic, version, zero, text_bytes, size, digest = HEADER.unpack(contents[:64])
    assert (magic, version, zero, size) == (b"armpyNet", VERSION, 0, len(contents))
    assert not any(contents[160:HEADER_BYTES])
    text = contents[HEADER_BYTES : HEADER_BYTES + text_bytes]
    assert digest == hashlib.sha256(text).digest()
    manifest = json.loads(text)
    sections, offsets, end = {}, {}, HEADER_BYTES + text_bytes
    for name, offset, length, digits in manifest["sections"]:
        aligned = PAGE_BYTES if length >= PAGE_BYTES else ALIGNMENT_BYTES
        assert offset == end + -end % aligned
        assert not any(contents[end:offset])
        sections[name] = contents[offset : offset + length]
        offsets[name] = offset
        assert hashlib.sha256(sections[name]).hexdigest() == digits
        end = offset + length
    assert end == size
    return PlainFile(manifest, text, sections, offsets)
