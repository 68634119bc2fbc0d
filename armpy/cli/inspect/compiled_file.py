"""Describes compiled models by their contents; nothing of them is loaded or run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from armpy.compiler import Placement
from armpy.compiler.files.plain import PlainReader
from armpy.core.dataclass import dataclass
from armpy.errors import ParserError
from armpy.model.archive.compiled_file import signature_records
from armpy.store.archive.container import Container


@dataclass(frozen=True, slots=True)
class ProgramReport:
    """A program in a compiled model."""

    number: int
    backend: str
    target: str
    layers: int  # how many layers it is made of
    first: str  # name of the first one
    # Of its sections with code, and of the others. Sections may belong to several programs.
    code_bytes: int
    data_bytes: int
    # The backend's description of it.
    about: Mapping[str, Any]  # Any: whatever JSON holds


@dataclass(frozen=True, slots=True)
class MissingProgram:
    """Layers of a backend that have no program in a compiled model."""

    backend: str
    target: str | None  # the machine that it is missing for; None for all
    layers: int
    first: str  # name of the first one
    reason: str

    def __str__(self) -> str:
        where = f" for {self.target}" if self.target else ""
        layers = f"{self.layers} layers of {self.backend} from '{self.first}'"
        return f"not in it: {layers}{where}: {self.reason}"


class PreparedContents:
    """Contents of a compiled model as it states them; its checksums are checked."""

    def __init__(self, container: Container) -> None:
        container.check()
        self.container = container
        self.manifest = container.manifest
        self.sections = {name: section.size for name, section in container.sections.items()}
        records = enumerate(self._records("programs"))
        self.programs = tuple([self._program(number, record) for number, record in records])
        reader = PlainReader()
        self.left_out = tuple(
            [reader.read(MissingProgram, entry, "left_out") for entry in self._records("left_out")]
        )

    @property
    def networks(self) -> Sequence[Mapping[str, Any]]:
        """Records of the ways to call the model, the first one first."""
        if "signatures" not in self.manifest:
            return [{"name": None, "section": "model"}]
        return signature_records(self.container)

    def placement(self, section: str = "model") -> Placement | None:
        """The placement report of a network; None if it was prepared for no shapes."""
        document = self.container.document(section)
        plan = document.get("plan") if isinstance(document, dict) else None
        if not isinstance(plan, dict):
            return None
        return PlainReader().read(Placement, plan.get("placement"), "placement")

    def _records(self, name: str) -> Sequence[Mapping[str, Any]]:
        records = self.manifest.get(name, [])
        if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
            self.container.refuse(f"its {name} cannot be read")
        return records

    def _size(self, sections: Iterable[str]) -> int:
        return sum(self.sections.get(name, 0) for name in sections)

    def _program(self, number: int, record: Mapping[str, Any]) -> ProgramReport:
        parts, code, about = record.get("parts"), record.get("code"), record.get("about")
        if not isinstance(parts, dict) or not isinstance(code, list):
            self.container.refuse("a program cannot be read")
        in_code = [str(section) for name, section in parts.items() if name in code]
        in_data = [str(section) for name, section in parts.items() if name not in code]
        try:
            return ProgramReport(
                number,
                str(record["backend"]),
                str(record["target"]),
                int(record.get("layers", 0)),
                str(record.get("first", "")),
                self._size(in_code),
                self._size(in_data),
                about if isinstance(about, dict) else {},
            )
        except (LookupError, TypeError, ValueError) as error:
            raise ParserError(
                f"a program cannot be read: {error!r}", where=self.container.where
            ) from error
