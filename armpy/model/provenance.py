"""Provenance: a model is named by its sources, and made of them again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from armpy.model.related_models import Signatures

if TYPE_CHECKING:
    from armpy.model.load_request import FileState, LoadRequest
    from armpy.plugins.hooks.metadata import ModelMetadata


class Derivation(NamedTuple):
    """A step that made a model of another one."""

    model: Any  # Any: the other model, which has a provenance itself
    method: str  # its method, such as ``reshape``
    given: object  # the method's argument


class Provenance:
    """Files of a model, their metadata, and the request or the step that it was made by."""

    def __init__(
        self,
        # The files that it was made of, and their state then.
        files: FileState | None = None,
        *,
        # Whether the list is complete: front-ends of plugins need not report theirs.
        are_all: bool = False,
        # Paths of the files that the model names. The model's own is among them if it names itself.
        data_files: Iterable[str] = (),
        derivation: Derivation | None = None,  # the step that made it of another model
        # Ways to call the model's file.
        signatures: Signatures[Any] | None = None,  # Any: of models
        # Returns the metadata of the model's file.
        read_metadata: Callable[[], ModelMetadata] | None = None,
    ) -> None:
        self.files: FileState = files or {}
        self.are_all = are_all
        self.data_files = tuple(data_files)
        self.derivation = derivation
        self.request: LoadRequest | None = None
        self.load: Callable[..., Any] | None = None  # Any: a model, which has a provenance
        self.signatures: Signatures[Any] = signatures or Signatures()  # Any: as above
        self.read_metadata = read_metadata
        # Read without a lock: two threads may both read the file, and get the same.
        self._metadata: ModelMetadata | None = None

    def complete(self, request: LoadRequest, state: FileState, load: Callable[..., Any]) -> None:
        """Add the origin of the model: `armpy.load`, its arguments, the file before that."""
        # The earlier state counts: a file that has changed meanwhile is not the loaded one.
        self.request, self.files, self.load = request, {**self.files, **state}, load

    @property
    def metadata(self) -> ModelMetadata:
        """Return the metadata of the model's file, read at the first use."""
        if self._metadata is None:
            from armpy.plugins.hooks.metadata import ModelMetadata  # noqa: PLC0415 - brings pluggy

            self._metadata = (self.read_metadata or ModelMetadata)()
        return self._metadata

    @property
    def is_one_file(self) -> bool:
        """Return whether the model is known to be made of the file that it was loaded from alone.

        A model that names its own file is not: under another name it would be another model.
        """
        return self.are_all and len(self.files) == 1 and not self.data_files

    @property
    def title(self) -> str:
        """The name of the file; empty where there is none."""
        path = None if self.request is None else self.request.path
        return "" if path is None else os.path.splitext(os.path.basename(os.fspath(path)))[0]
