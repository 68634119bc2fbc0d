"""Moves a model away from the files that hold its tensors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from armpy.frontends.onnx.external_data import find_location
from armpy.frontends.onnx.reading import external_tensors, load_model
from armpy.plugins.hooks.model_file import open_model_file


def with_data_names(path: Path, names: Mapping[Path, str]) -> bytes:
    """Contents of a model file in which external data has other names.

    Parameters
    ----------
    path : Path
        The model file.
    names : mapping of Path to str
        New locations, relative to the model's new folder, by the resolved paths of the data files.
        Every other location becomes empty, which no reader accepts.

    Raises
    ------
    ParserError
        If the model file cannot be read.

    References
    ----------
    ONNX, "External Data": the entry ``location`` of ``TensorProto.external_data``.
    """
    model = load_model(open_model_file(path))
    folder = path.parent.resolve()
    for tensor in external_tensors(model):
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = _new_name(folder, entry.value, names)
    contents: bytes = model.SerializeToString()
    return contents


def _new_name(folder: Path, location: str, names: Mapping[Path, str]) -> str:
    """The new location of a data file; empty if the file does not move with the model."""
    try:
        data_file = find_location(folder, location)
    except (OSError, ValueError, RuntimeError):
        return ""  # the front-end cannot have read this file either
    return "" if data_file is None else names.get(data_file, "")
