"""Model of an interpreter: its file, read at once, and armpy's model of it, loaded when needed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import armpy
from armpy.errors import ArmpyError
from armpy.plugins.hooks.model_file import open_model_file
from armpy_compat.litert.file_records import FileRecord, read_file

_MOST_RESHAPED = 8
"""Maximum number of models of other shapes that an interpreter keeps."""

Shapes = Mapping[str, tuple[int, ...]]


class ModelProvider:
    """A .tflite file and the models that armpy makes of it.

    Parameters
    ----------
    source : path or bytes
    options : mapping of str to object
        Options of `armpy.load`.

    Raises
    ------
    ValueError
        If there is no such file, or it is not a .tflite file.
    """

    def __init__(self, source: str | os.PathLike[str] | bytes, options: Mapping[str, Any]) -> None:
        try:
            file = open_model_file(source)
        except ArmpyError as error:
            raise ValueError(
                f"Could not open '{source!s}'.The model allocation is null/empty: {error}"
            ) from error
        # With the mapping, the program may replace or remove the file before the model is loaded.
        self._data = file.data
        self._source = source
        self._stamp = _stamp(source)
        self._options = dict(options)
        self._model: armpy.Model | None = None
        self._reshaped: dict[tuple[object, ...], armpy.Model] = {}
        self.file: FileRecord = read_file(file.data)

    @property
    def model(self) -> armpy.Model:
        """The model of the main subgraph.

        Raises
        ------
        RuntimeError
            If armpy cannot load it.
        """
        if self._model is None:
            # By its path where it can be, as armpy's model cache knows files alone.
            is_there = self._stamp is not None and _stamp(self._source) == self._stamp
            try:
                self._model = armpy.load(self._source if is_there else self._data, **self._options)
            except ArmpyError as error:
                raise RuntimeError(load_failure(error)) from error
        return self._model

    def of_subgraph(self, index: int) -> armpy.Model:
        """The model of a subgraph that a signature calls.

        Raises
        ------
        RuntimeError
            If no signature calls it, or armpy cannot load it.
        """
        if not index:
            return self.model
        names = [n for n, entry in self.file.signatures.items() if entry.subgraph == index]
        if not names:
            raise RuntimeError(f"subgraph {index} has no signature, and armpy runs no others")
        try:
            return self.model.signature(names[0])
        except ArmpyError as error:
            raise RuntimeError(str(error)) from error

    def with_shapes(self, index: int, shapes: Sequence[tuple[int, ...]]) -> armpy.Model:
        """The model of a subgraph that takes inputs of some shapes.

        Raises
        ------
        RuntimeError
            If a layer is written for the file's own shapes.
        """
        model = self.of_subgraph(index)
        changed = {
            spec.name: shape
            for spec, shape in zip(model.inputs, shapes, strict=True)
            if not _agrees(spec.shape, shape)
        }
        if not changed:
            return model
        key = (index, *changed.items())
        reshaped = self._reshaped.pop(key, None)
        if reshaped is None:
            try:
                reshaped = model.reshape(changed)
            except ArmpyError as error:
                raise RuntimeError(str(error)) from error
        self._reshaped[key] = reshaped  # the latest at the end
        while len(self._reshaped) > _MOST_RESHAPED:
            del self._reshaped[next(iter(self._reshaped))]
        return reshaped


def load_failure(error: ArmpyError) -> str:
    """LiteRT's text for a model that cannot be loaded, followed by armpy's."""
    prefix, suffix = "custom '", "'"
    for name in getattr(error, "operators", ()):
        if name.startswith(prefix):
            custom = name.removeprefix(prefix).removesuffix(suffix)
            return f"Encountered unresolved custom op: {custom}.\n{error}"
    return str(error)


def _agrees(known: Sequence[int | None] | None, shape: tuple[int, ...]) -> bool:
    """Compare a shape with one that has open dimensions."""
    if known is None:
        return True
    pairs = zip(known, shape, strict=False)
    return len(known) == len(shape) and all(size in (None, wanted) for size, wanted in pairs)


def _stamp(source: object) -> tuple[int, ...] | None:
    """Metadata that detects changes of a file; None for bytes, and for a file that is gone."""
    if not isinstance(source, str | os.PathLike):
        return None
    try:
        status = os.stat(source)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
