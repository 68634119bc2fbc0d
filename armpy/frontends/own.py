"""armpy's own front-ends, registered through the hook that plugins use."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

from armpy.backend.options import BackendOption, OptionScope
from armpy.graph.network import Network
from armpy.plugins.hooks import (
    FrontEnd,
    Magic,
    ModelFile,
    ModelSignature,
    ParseSettings,
    hookimpl,
)


@hookimpl
def armpy_register_front_end() -> list[FrontEnd]:
    """TensorFlow Lite."""
    stand_in = BackendOption(
        "stand_in_for_unsupported",
        False,
        "Make StandIn layers of operators that armpy does not have, for a vendor's backend.",
        OptionScope.RUNTIME,
    )
    tflite = FrontEnd(
        "tflite",
        "TensorFlow Lite",
        _parse_tflite,
        suffixes=(".tflite",),
        magic=(Magic(b"TFL3", offset=4),),
        signatures=_tflite_signatures,
        options=(stand_in,),
        metadata=partial(_call, "tflite.metadata", "read_metadata"),
        outline=partial(_call, "tflite.outline", "read_outline"),
    )
    return [tflite]


def _call(module: str, function: str, *arguments: object) -> Any:  # Any: the function's result
    """Call a function of this package; its module is imported when there is a file for it."""
    return getattr(import_module(f"armpy.frontends.{module}"), function)(*arguments)


def _parse_tflite(file: ModelFile, settings: ParseSettings) -> Network:
    stands_in = settings.options.get("stand_in_for_unsupported") is True
    limits = settings.memory_limit_bytes, stands_in, settings.custom_operators
    network: Network = _call("tflite.parser", "parse_file", file, settings.signature, *limits)
    return network


def _tflite_signatures(file: ModelFile) -> list[ModelSignature]:
    return [
        ModelSignature(entry.name, tuple(entry.inputs), tuple(entry.outputs), entry.is_main)
        for entry in _call("tflite.parser", "file_signatures", file).values()
    ]
