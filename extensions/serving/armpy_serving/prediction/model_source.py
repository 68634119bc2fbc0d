"""Model sources: where the processes of a cluster find the model that they are to run."""

from __future__ import annotations

import logging
import os
import platform
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from armpy import Model, __version__, load
from armpy.core.file_digest import content_digest
from armpy.core.file_ownership import choices_state
from armpy.errors import ArmpyError, InvalidArgumentError, ParserError
from armpy.model import LoadOptions, as_source, begins_prepared
from armpy.plugins.discovery.environment import environment_digest
from armpy.store.archive.container import open_container
from armpy_serving.prediction.node_files import compiled_file, received_file
from armpy_serving.prediction.row_model import RowModel, with_fixed_rows
from armpy_serving.prediction.thread_budget import assigned_threads

_OF_A_PROCESS = ("runtime", "properties", "compile")
"""Options that are not plain data, or for programs that start once."""

_AFTER_COMPILING = (
    "num_threads",
    "memory_limit_bytes",
    "quantize_inputs",
    "dequantize_outputs",
    "code",
    "trusted_keys",
    "affinity",
    "spread",
)
"""Options that a compiled file does not hold."""

_log = logging.getLogger("armpy_serving")


class ModelSource:
    """A model's file or bytes with the options of loading, to be sent from process to process.

    Parameters
    ----------
    options : mapping of str to object
        Options of `armpy.load`.

    Raises
    ------
    InvalidArgumentError
        If there is no model, or an option cannot be sent.
    ParserError
        If a file cannot be read.
    """

    def __init__(self, model: object, max_rows: int | None, options: Mapping[str, Any]) -> None:
        self.options = _checked(options)
        self.max_rows = max_rows
        source = as_source(model)
        if isinstance(source, str | os.PathLike):
            # The process that loads it may work in another directory.
            self.path = os.path.abspath(os.fsdecode(source))
            self._bytes = b""
            # Where only the nodes have the file, nothing is known of it before.
            self.digest = _digest(self.path) if os.path.exists(self.path) else ""
        else:
            self.path, self._bytes = "", bytes(source)
            self.digest = sha256(self._bytes).hexdigest()

    @property
    def key(self) -> tuple[object, ...]:
        """Return the key of a process."""
        return self.path, self.digest, self.max_rows, repr(sorted(self.options.unusual().items()))

    def load(self) -> RowModel:
        """The model, ready to run; compiled unless another process of this node has done so.

        Raises
        ------
        ArmpyError
            As `armpy.load`; a ParserError if the file is another one by now.
        """
        options = self._options()
        path = self.path or received_file(self.digest, lambda: self._bytes)
        if path is None:  # nothing can be kept: each process has a model of its own
            return _row_model(load(self._bytes, **options.given()), self.max_rows)
        digest = _digest(path)
        if self.digest and digest != self.digest:
            raise ParserError(
                "the model file is not the one that the predictor was made with",
                where=path,
                fix="Make the predictor again, or keep each version under a name of its own",
            )
        if begins_prepared(path):
            return _row_model(load(path, **options.given()), self.max_rows)
        return self._compiled(path, digest, options)

    def _options(self) -> LoadOptions:
        """The options with what this process has to add."""
        options = self.options
        if options.num_threads is None:
            options = replace(options, num_threads=assigned_threads())
        if not self.path and options.code is None and begins_prepared(self._bytes):
            # The author of bytes is unknown: a file that is made of them is not trusted either.
            options = replace(options, code="signed")
        return options

    def _compiled(
        self, path: str, digest: str, options: LoadOptions, *, is_again: bool = False
    ) -> RowModel:
        """The model by way of a compiled file, which all processes of the node map."""
        models: list[RowModel] = []

        def save(place: Path) -> bool:
            model = load(path, **options.given())
            models.append(_row_model(model, self.max_rows))
            # The name is made of the file's contents before it was loaded.
            return _is_saved(model, models[0].model, place) and content_digest(path) == digest

        compiled = compiled_file(_name(path, digest, self.max_rows, options), save)
        if compiled is None:
            return models[0] if models else _row_model(load(path, **options.given()), self.max_rows)
        chosen = {n: v for n, v in options.given().items() if n in _AFTER_COMPILING}
        try:
            # The model is left to its end: the weights in the file are the node's, its own are
            # not.
            return RowModel(_sound(compiled, load(compiled, **chosen)), self.max_rows)
        except ParserError as error:
            with suppress(OSError):
                os.unlink(compiled)
            # One that was damaged costs time, and nothing else. One that was just made, or is still
            # there, would be refused for ever: other users can write to its folder, or this one
            # cannot.
            if not models and not is_again:
                _log.warning("%s is made again: %s", compiled, error)
                return self._compiled(path, digest, options, is_again=True)
            _log.warning(
                "each process compiles the model for itself, as the folder %s cannot be used; set "
                "ARMPY_CACHE_DIR to one that no other user can write to: %s",
                os.path.dirname(compiled),
                error,
            )
        return models[0] if models else _row_model(load(path, **options.given()), self.max_rows)


def _checked(options: Mapping[str, Any]) -> LoadOptions:
    """Options of loading that can be sent to other processes."""
    unknown = [name for name in options if not hasattr(LoadOptions, name)]
    refused = [name for name in options if name in _OF_A_PROCESS]
    if unknown or refused:
        raise InvalidArgumentError(
            "the option is unknown, or only for one process",
            where="Predictor",
            expected="options of armpy.load, but for " + ", ".join(_OF_A_PROCESS),
            actual=", ".join(unknown + refused),
        )
    return LoadOptions(**options)


def _digest(path: str) -> str:
    """SHA-256 of a model's file."""
    try:
        return content_digest(path)
    except OSError as error:
        raise ParserError(f"the file cannot be read: {error.strerror}", where=path) from error


def _name(path: str, digest: str, max_rows: int | None, options: LoadOptions) -> str:
    """A name that says all that a compiled file depends on."""
    machine = platform.uname()[1:5]
    asked = repr(sorted(options.unusual().items()))
    suffix = os.path.splitext(path)[1].lower()  # decides the front-end where contents do not
    parts = (digest, suffix, max_rows, asked, __version__, sys.version, machine, choices_state())
    name = sha256(repr(parts).encode(errors="surrogatepass"))
    name.update(environment_digest())
    return name.hexdigest()[:32]


def _row_model(model: Model, max_rows: int | None) -> RowModel:
    return RowModel(with_fixed_rows(model, max_rows), max_rows, model)


def _sound(path: str, model: Model) -> Model:
    """The model of a compiled file, unless it was compiled again as the file is damaged."""
    # A light one was checked whole: this costs time only where a compilation follows anyhow.
    if not model.is_light:
        try:
            open_container(path).check()
        except ParserError:
            model.close()
            raise
    return model


def _is_saved(loaded: Model, fixed: Model, place: Path) -> bool:
    """Save the file that the node's processes map; False if that cannot be done."""
    if not loaded.provenance.is_one_file:  # the name says nothing of elements in other files
        return False
    if any(None in (spec.shape or (None,)) for spec in fixed.inputs):
        return False  # each process prepares it for the shapes that come
    try:
        fixed.save(place)
    except ArmpyError as error:
        _log.info("%s is compiled by each process: %s", loaded.title, error)
        return False
    return True
