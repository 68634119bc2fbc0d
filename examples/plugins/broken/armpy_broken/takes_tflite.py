"""Wants armpy's own format for itself."""

from __future__ import annotations

from typing import NoReturn

from armpy.plugins.hooks import FrontEnd, Magic, ModelFile, ParseSettings, hookimpl


def parse(file: ModelFile, settings: ParseSettings) -> NoReturn:
    """Never called for a .tflite file."""
    raise AssertionError


def recognizes(data: memoryview) -> bool:
    """Fail at every file."""
    return data[len(data)] == 0


@hookimpl
def armpy_register_front_end() -> list[FrontEnd]:
    """Three ways to take it."""
    return [
        FrontEnd("tflite", "by its name", parse),
        FrontEnd("suffix", "by its suffix", parse, suffixes=(".tflite",)),
        FrontEnd("magic", "by its magic number", parse, magic=(Magic(b"TFL3", 4),)),
        FrontEnd("greedy", "by taking everything", parse, recognizes=recognizes),
    ]
