"""The front-end as armpy registers it; the modules that read files are imported for the first."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from armpy.graph.network import Network
from armpy.plugins.hooks import FrontEnd, Magic, ModelFile, ParseSettings, hookimpl
from armpy.plugins.hooks.outline import FileOutline


@hookimpl
def armpy_register_front_end() -> FrontEnd:
    """Register the front-end for .armnn files."""
    return FrontEnd(
        "armnn",
        "Arm NN",
        _parse,
        suffixes=(".armnn",),
        magic=(Magic(b"ARMN", offset=4),),
        recognizes=_recognizes,
        describe=_describe,
        outline=_outline,
    )


def _call(module: str, function: str, *arguments: object) -> Any:  # Any: what the function returns
    """Call a function of this package."""
    return getattr(import_module(f"armpy_compat.armnn_format.{module}"), function)(*arguments)


def _recognizes(data: memoryview) -> bool:
    is_recognized: bool = _call("reading", "looks_like_armnn", data)
    return is_recognized


def _parse(file: ModelFile, settings: ParseSettings) -> Network:
    network: Network = _call("parser", "parse_file", file, settings)
    return network


def _describe(file: ModelFile) -> Mapping[str, str]:
    facts: Mapping[str, str] = _call("bindings", "describe", file)
    return facts


def _outline(file: ModelFile, signature: str | None) -> FileOutline:
    outline: FileOutline = _call("outline", "read_outline", file)
    return outline
