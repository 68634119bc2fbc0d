"""Kinds of work by which kernels' time is estimated."""

from __future__ import annotations

import enum


class WorkKind(enum.StrEnum):
    """Work that takes a kernel's time, for those who estimate it."""

    FLOATS = "floats"
    """Arithmetic on float32, or memory."""

    BYTES = "bytes"
    """Products of bytes, by as few instructions as the processor needs."""

    PAIRS = "pairs"
    """Products of 16-bit elements, two by one instruction."""

    WINDOWS = "windows"
    """Products of float32 that wait for elements of an image."""

    BYTE_WINDOWS = "byte windows"
    """The same of bytes."""

    WEIGHTS = "weights"
    """float32 weights that are read once."""

    BYTE_WEIGHTS = "byte weights"
    """The same of bytes."""
