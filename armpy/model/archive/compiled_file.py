"""A compiled model that was opened, and the ways to call its contents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from armpy.backend.programs import SavedProgram
from armpy.errors import ParserError
from armpy.model import archive
from armpy.model.related_models import Signatures
from armpy.store.archive.container import Container
from armpy.store.archive.trust import CodeVerdict

# An import here slows every start of a compiled model.

if TYPE_CHECKING:
    from collections.abc import Sequence

    from armpy.backend.memory.packed_view import View
    from armpy.model.load_request import LoadRequest
    from armpy.model.model import Model

WRONG_FORM = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError)
"""Exceptions that a malformed record raises."""


class CompiledFile(NamedTuple):
    """A compiled model that was opened, checked and judged."""

    container: Container
    verdict: CodeVerdict
    request: LoadRequest

    @property
    def programs(self) -> Sequence[Mapping[str, Any]]:
        """Records of the programs in it."""
        records = self.container.manifest.get("programs", [])
        if not isinstance(records, list) or not all(isinstance(r, dict) for r in records):
            self.container.refuse("its programs cannot be read")
        return records

    def saved_program(self, record: Mapping[str, Any]) -> SavedProgram:
        """A program of the file; its code is a copy that was checked."""
        about, parts, code = record.get("about"), record.get("parts"), record.get("code")
        if not (isinstance(about, dict) and isinstance(parts, dict) and isinstance(code, list)):
            self.container.refuse("a program cannot be read")
        if not self.verdict.uses_code:  # tables without code say where code reads and writes
            raise ParserError(
                f"the file's code is not used: {self.verdict.reason}", where=self.container.where
            )
        # Code is copied while it is summed: a mapped file could be written to between check and
        # use.
        find, check = self.container.section, self.container.checked
        read = {name: check(s) if name in code else find(s) for name, s in parts.items()}
        return SavedProgram(about, read, tuple(code), FileViews(self, parts))


class FileViews(Mapping[str, "Sequence[View]"]):
    """Views of a program's parts, read from the file's networks on first use."""

    def __init__(self, file: CompiledFile, parts: Mapping[str, str]) -> None:
        self._file = file
        self._parts = parts  # sections by the parts' names
        self._found: dict[str, list[View]] | None = None

    def __getitem__(self, name: str) -> Sequence[View]:
        return self._read()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())

    def _read(self) -> dict[str, list[View]]:
        """Read them, once."""
        if self._found is None:
            by_section: dict[str, list[View]] = {}
            container = self._file.container
            try:
                for section in {record["section"] for record in signature_records(container)}:
                    for array in container.document(section)["arrays"]:
                        if array["view"] is not None:
                            by_section.setdefault(array["section"], []).append(array["view"])
            except (LookupError, TypeError):
                container.refuse("its constants cannot be read")
            parts = self._parts.items()
            self._found = {name: by_section[s] for name, s in parts if s in by_section}
        return self._found


def signatures_of(
    file: CompiledFile,
    # The signature that the first model is for; the file's first network if left out.
    name: str | None = None,
) -> Signatures[Model]:
    """The ways to call a prepared model."""
    records = signature_records(file.container)

    def open_one(name: str, signatures: Signatures[Model], first: Model) -> Model:
        return archive.reload.open_signature(file, name, signatures, first)

    names = tuple([str(record["name"]) for record in records if record["name"] is not None])
    return Signatures(lambda: names, open_one, records[0]["name"] if name is None else name)


def signature_records(container: Container) -> list[Mapping[str, Any]]:
    """Name and section of each way to call the model, the first one first.

    Those that differ in the names of inputs and outputs alone have one section; a record has the
    names that the section does not have.
    """
    records = container.manifest.get("signatures")
    if not isinstance(records, list) or not records:
        container.refuse("it has no networks")
    for item in records:
        kinds = isinstance(item, dict) and "name" in item and isinstance(item.get("section"), str)
        edges = ("inputs", "outputs") if kinds and ("inputs" in item or "outputs" in item) else ()
        names = [item.get(edge) for edge in edges]
        is_text = all(isinstance(n, list) and all(isinstance(x, str) for x in n) for n in names)
        if not kinds or not isinstance(item.get("name"), str | None) or not is_text:
            container.refuse("its signatures cannot be read")
    return records
