"""Front-end: what a plugin says of a model format and its parser."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeAlias

from armpy.backend.options import BackendOption
from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError
from armpy.plugins.hooks.model_file import ModelFile

if TYPE_CHECKING:
    from pathlib import Path

    from armpy.backend.options import OptionValue
    from armpy.graph import Graph
    from armpy.graph.network import Network
    from armpy.plugins.hooks.custom_operator import CustomConverter
    from armpy.plugins.hooks.metadata import ModelMetadata
    from armpy.plugins.hooks.outline import FileOutline


class FrontEndOptionError(InvalidArgumentError):
    """A front-end option has a value that does not fit the file.

    Parsers raise it; other errors of a parser are the file's, and become a `ParserError`.
    """


@dataclass(frozen=True, slots=True)
class Magic:
    """Magic number: bytes that files of a format have at a fixed place.

    Raises InvalidArgumentError if there are no bytes, or the offset is negative.
    """

    pattern: bytes
    offset: int = 0
    """Bytes from the beginning of the file."""

    def __post_init__(self) -> None:
        if not isinstance(self.pattern, bytes) or not self.pattern:
            raise _wrong("magic", "bytes, at least one", self.pattern)
        # Exactly int: True is one to `isinstance`.
        if type(self.offset) is not int or self.offset < 0:
            raise _wrong("magic", "an offset of 0 or more", self.offset)

    def fits(self, data: memoryview) -> bool:
        """Return whether a file has these bytes."""
        return data[self.offset : self.offset + len(self.pattern)] == self.pattern


@dataclass(frozen=True, slots=True)
class ModelSignature:
    """One way to call a model."""

    name: str
    # Names, in the file's order.
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    # Whether it calls the model's main part with all of its inputs and outputs, and the names are
    # in the main part's order. The two are prepared once then.
    is_main: bool = False


@dataclass(frozen=True, slots=True)
class ParseSettings:
    """Settings of parsing a file."""

    signature: str | None
    """The signature to follow, one that the front-end has named; None for the model's main part."""
    memory_limit_bytes: int
    """How much a single tensor, and all variables together, may take up. The core refuses what
    is larger; a parser that allocates before it has read everything looks at it too.
    """
    options: Mapping[str, OptionValue]
    """Every option that the front-end declares, checked."""
    custom_operators: Callable[[], Mapping[str, CustomConverter]] = dict
    """Asks plugins what they make of custom operators of .tflite files, by name."""


Parser: TypeAlias = "Callable[[ModelFile, ParseSettings], Network | Graph]"
"""Makes a network of a file."""


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """A model format and its parser.

    Raises InvalidArgumentError if a field cannot be used.
    """

    name: str
    """Lower case letters, digits, hyphens and underscores; what ``front_end=`` and
    ``--front-end`` name.
    """
    title: str
    """The format in words, for reports."""
    parse: Parser
    """Called with a `ModelFile` and `ParseSettings`; returns a `Network` or a `Graph`. Heavy
    imports belong inside it. May be called by several threads at once.
    """
    suffixes: tuple[str, ...] = ()
    """Ends of file names, lower case, with their dot."""
    magic: tuple[Magic, ...] = ()
    """Any of them identifies the format."""
    recognizes: Callable[[memoryview], bool] | None = None
    """Called with the bytes of a file without a known magic number; whether it has this format."""
    signatures: Callable[[ModelFile], list[ModelSignature]] | None = None
    """Called with a `ModelFile`; returns a list of `ModelSignature`."""
    describe: Callable[[ModelFile], Mapping[str, str]] | None = None
    """Called with a `ModelFile`; returns facts for `armpy inspect`, text by name."""
    options: tuple[BackendOption, ...] = ()
    """Options of ``front_end_options=`` and ``--front-end-option``."""
    requires: tuple[str, ...] = ()
    """Modules that the parser imports and that may not be installed."""
    install: str = ""
    """The command that installs these."""
    metadata: Callable[[ModelFile, str | None], ModelMetadata] | None = None
    """Called with a `ModelFile` and the name of a signature, or None; returns the file's
    `ModelMetadata`, whose inputs and outputs have the names that they have in the network.
    """
    outline: Callable[[ModelFile, str | None], FileOutline] | None = None
    """Called with a `ModelFile` and the name of a signature, or None; returns a `FileOutline`:
    the file's operators and tensors under its own names, also those that `parse` refuses.
    """
    notes_other_files: bool = False
    """Whether `parse` calls `ModelFile.also_read` for each other file that it reads. Only then
    the model cache keeps models of one file.
    """
    rename_other_files: Callable[[ModelFile, Mapping[Path, str]], bytes] | None = None
    """Called with a `ModelFile` and new paths, relative to the model's new folder, by the resolved
    paths of the other files that it is made of; returns the bytes of a model file that refers
    to these. Paths without a new one become unreadable.
    """

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _is_plain(self.name):
            raise _wrong("name", "lower case letters, digits, '-' and '_'", self.name)
        for field in ("title", "install"):
            if not isinstance(getattr(self, field), str):
                raise _wrong(field, "text", getattr(self, field))
        if not callable(self.parse):
            raise _wrong("parse", "something that can be called", self.parse)
        if not isinstance(self.notes_other_files, bool):
            raise _wrong("notes_other_files", "True or False", self.notes_other_files)
        for field in _CALLABLES:
            value = getattr(self, field)
            if value is not None and not callable(value):
                raise _wrong(field, "something that can be called, or None", value)
        for field, kind in _TUPLES.items():
            value = getattr(self, field)
            if not isinstance(value, tuple) or not all(isinstance(item, kind) for item in value):
                raise _wrong(field, f"a tuple of {kind.__name__}", value)
        for suffix in self.suffixes:
            dot, *parts = suffix.split(".")
            if dot or not parts or not all(map(_is_plain, parts)):
                raise _wrong("suffixes", "ends such as '.toy', lower case", suffix)


_CALLABLES = (
    *("recognizes", "signatures", "describe", "metadata", "outline"),
    "rename_other_files",
)
"""Fields that may be left out and are called otherwise."""

_TUPLES: dict[str, type] = {
    "suffixes": str,
    "magic": Magic,
    "options": BackendOption,
    "requires": str,
}


def _is_plain(text: str) -> bool:
    word = text.replace("-", "").replace("_", "")
    return word.isalnum() and text.isascii() and text == text.lower() and text[0] not in "-_"


def _wrong(field: str, expected: str, actual: object) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"its {field} cannot be used", where="FrontEnd", expected=expected, actual=repr(actual)
    )
