"""armpy's own front-ends, registered through the hook that plugins use."""

from __future__ import annotations

from armpy.hooks import FrontEnd, Magic, ModelFile, ModelSignature, ParseSettings, hookimpl
from armpy.network import Network

# A parser is imported when there is a file for it.
# ruff: noqa: PLC0415


@hookimpl
def armpy_register_front_end() -> FrontEnd:
    """TensorFlow Lite."""
    return FrontEnd(
        "tflite",
        "TensorFlow Lite",
        _parse_tflite,
        suffixes=(".tflite",),
        magic=(Magic(b"TFL3", offset=4),),
        signatures=_tflite_signatures,
    )


def _parse_tflite(file: ModelFile, settings: ParseSettings) -> Network:
    """The network of a .tflite file."""
    from armpy.frontends.tflite.parser import parse_file

    return parse_file(file, settings.signature, settings.memory_limit_bytes)


def _tflite_signatures(file: ModelFile) -> list[ModelSignature]:
    """The signatures of a .tflite file."""
    from armpy.frontends.tflite.parser import file_signatures

    return [
        ModelSignature(found.name, tuple(found.inputs), tuple(found.outputs))
        for found in file_signatures(file).values()
    ]
