"""Models sent over a cluster of Ray's: the bytes once into its store, and once to each node."""

from __future__ import annotations

import os
from hashlib import sha256
from typing import Any

import numpy as np
import ray

from armpy.core.file_digest import content_digest
from armpy.core.file_ownership import why_exposed
from armpy.errors import ParserError
from armpy.model import as_source, begins_prepared
from armpy_serving.prediction.node_files import received_file


class SentModel:
    """A model's bytes in Ray's object store, and the path that they came from.

    Raises
    ------
    InvalidArgumentError
        If it is neither.
    ParserError
        If the file cannot be read.

    Notes
    -----
    Code in a compiled model is judged by the sender, as by `armpy.load`: `is_own` is whether it may
    be used. The file that a node writes does not show where the bytes came from.

    Small itself, as an actor's arguments should be, which Ray keeps for as long as the actor may be
    started again. The sender has to hold it until then, as the bytes are freed with it.
    """

    def __init__(self, model: object) -> None:
        source = as_source(model)
        if isinstance(source, str | os.PathLike):
            self._path = os.path.abspath(os.fsdecode(source))
            try:
                contents = np.fromfile(self._path, np.uint8)
                self._digest = content_digest(self._path)
                exposed = why_exposed(self._path, os.stat(self._path))
            except OSError as error:
                raise ParserError(
                    f"the file cannot be read: {error.strerror}", where=self._path
                ) from error
        else:
            self._path, contents = "", np.frombuffer(source, np.uint8)
            self._digest = sha256(contents.data).hexdigest()
            exposed = "the writer of bytes is unknown"
        self.is_own = not (exposed and begins_prepared(contents.data))
        # An array: the store's readers share its memory, and do not copy as they do with bytes.
        self._reference: Any = ray.put(contents)  # Any: Ray is not typed here

    def on_this_node(self) -> str | bytes:
        """The path of the same file, if the node has it; else of one written of the bytes."""
        if self._has_file():
            return self._path
        path = received_file(self._digest, self._contents)
        return path if path is not None else bytes(self._contents())

    def _has_file(self) -> bool:
        """Return whether the path leads to the same bytes here, as on a shared file system."""
        try:
            return bool(self._path) and content_digest(self._path) == self._digest
        except OSError:
            return False

    def _contents(self) -> memoryview:
        """The bytes out of the store."""
        return memoryview(ray.get(self._reference))
