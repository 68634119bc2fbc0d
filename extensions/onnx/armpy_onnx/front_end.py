"""The front-end as armpy registers it; what reads files is imported for the first of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from armpy.backend.options import BackendOption, OptionScope
from armpy.plugins.hooks import FrontEnd, ModelFile, ParseSettings, hookimpl

if TYPE_CHECKING:
    from armpy import ModelMetadata
    from armpy.graph.network import Network
    from armpy.plugins.hooks.outline import FileOutline

# `armpy doctor` and the choice of a front-end import this module without a file.
# ruff: noqa: PLC0415

_VERSION = 1 << 3
_FIELDS = bytes(number << 3 | 2 for number in (2, 3, 4, 6, 7, 8, 14)) + bytes([5 << 3])
"""First bytes of protocol buffers' fields: producer, domain, text, graph, operator sets."""

_OPTIONS = (
    BackendOption(
        "dimensions",
        "",
        'Sizes of named dimensions, as JSON (in Python also as a dict): {"batch": 1}.',
        OptionScope.RUNTIME,
    ),
    BackendOption(
        "structures",
        "",
        "What inputs that are not tensors hold, as JSON (in Python also as a dict): the length of "
        "a sequence; null for an empty optional, true for one that holds a tensor.",
        OptionScope.RUNTIME,
    ),
    BackendOption(
        "external_data",
        "",
        "The folder of external data, instead of the model's own one; also for models given as "
        "bytes.",
        OptionScope.RUNTIME,
    ),
    BackendOption(
        "tie_dimensions",
        True,
        "Whether inputs whose open dimensions share a name must agree in a call; ONNX Runtime does "
        "not ask for it.",
        OptionScope.RUNTIME,
    ),
    BackendOption(
        "fold_quantization",
        True,
        "Compute with integers between DequantizeLinear and QuantizeLinear.",
        OptionScope.RUNTIME,
    ),
)


@hookimpl
def armpy_register_front_end() -> FrontEnd:
    """Register the front-end for .onnx files."""
    return FrontEnd(
        "onnx",
        "ONNX",
        _parse,
        suffixes=(".onnx",),
        recognizes=_is_onnx,
        describe=_describe,
        options=_OPTIONS,
        metadata=_metadata,
        outline=_outline,
        requires=("onnx",),
        install='pip install "onnx>=1.17"',  # these quotes are cmd.exe's, too
        notes_other_files=True,
        rename_other_files=_rename_data_files,
    )


def _is_onnx(data: memoryview) -> bool:
    """Return whether bytes begin as an ONNX model's do: a version, then another of its fields."""
    return len(data) > 2 and data[0] == _VERSION and data[1] < 0x80 and data[2] in _FIELDS


def _parse(file: ModelFile, settings: ParseSettings) -> Network:
    from armpy_onnx.parser import parse_file

    return parse_file(file, settings)


def _describe(file: ModelFile) -> Mapping[str, str]:
    """Facts of an .onnx file."""
    from armpy_onnx.reading import describe

    return describe(file)


def _metadata(file: ModelFile, signature: str | None) -> ModelMetadata:
    """An .onnx file's metadata."""
    from armpy_onnx.metadata import read_metadata

    return read_metadata(file, signature)


def _outline(file: ModelFile, signature: str | None) -> FileOutline:
    """The operators and tensors of an .onnx file."""
    from armpy_onnx.outline import read_outline

    return read_outline(file)


def _rename_data_files(file: ModelFile, names: Mapping[Path, str]) -> bytes:
    """The bytes of an .onnx file whose data files have new names."""
    from armpy_onnx.external_data import with_data_names

    return with_data_names(file, names)
