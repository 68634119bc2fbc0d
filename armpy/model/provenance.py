"""Provenance: a model is named by what it was made of, and made of that again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from armpy.model.load_request import FileState, LoadRequest


class Derivation(NamedTuple):
    """A step that made a model of another one."""

    # Returns the other model's recipe.
    recipe: Callable[[], Any]  # Any: few models are pickled, and the others know no recipes
    method: str  # its method, such as ``reshape``
    given: object  # the method's argument


class Provenance:
    """Files of a model, and the request or the step that it was made by.

    Parameters
    ----------
    files : mapping of str to (FileStamp or None)
        The files that it was made of, and what they were like then.
    are_all : bool
        Whether there can be no others: front-ends of plugins need not tell of theirs.
    data_files : iterable of str
        Paths of the files that the model names. The model's own is among them if it names itself.
    derivation : Derivation, optional
        The step that made it of another model.
    """

    __slots__ = ("are_all", "data_files", "derivation", "files", "load", "request")

    def __init__(
        self,
        files: FileState | None = None,
        *,
        are_all: bool = False,
        data_files: Iterable[str] = (),
        derivation: Derivation | None = None,
    ) -> None:
        self.files: FileState = files or {}
        self.are_all = are_all
        self.data_files = tuple(data_files)
        self.derivation = derivation
        self.request: LoadRequest | None = None
        self.load: Callable[..., Any] | None = None  # Any: a model, which has a provenance

    def complete(self, request: LoadRequest, state: FileState, load: Callable[..., Any]) -> None:
        """Add what made the model: `armpy.load`, what it was asked for, the file before that."""
        # The state of before counts: a file that has changed meanwhile is not what was loaded.
        self.request, self.files, self.load = request, {**self.files, **state}, load

    @property
    def is_one_file(self) -> bool:
        """Whether the model is known to be made of the file that it was loaded from alone.

        A model that names its own file is not: under another name it would be another model.
        """
        return self.are_all and len(self.files) == 1 and not self.data_files

    @property
    def title(self) -> str:
        """The name of the file; empty where there is none."""
        path = None if self.request is None else self.request.path
        return "" if path is None else os.path.splitext(os.path.basename(os.fspath(path)))[0]
