"""Conversions of the schema's operators to layers: one table per family.

A new operator is one entry in its family's ``CONVERTERS``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from armpy.core.lazy import ModuleTables
from armpy.frontends.tflite.node import Converter, ConverterTable


class _Converters(Mapping[str, Converter]):
    """The tables of all families as one; families are imported for what a file has."""

    def __init__(self) -> None:
        self._families = ModuleTables(__name__, "CONVERTERS")

    def __getitem__(self, name: str) -> Converter:
        converter: Converter | None = self._families.entry(name, name)
        if converter is None:
            raise KeyError(name)
        return converter

    def __iter__(self) -> Iterator[str]:
        for family in self._families.modules():
            yield from family.CONVERTERS

    def __len__(self) -> int:
        return sum(1 for _ in self)


CONVERTERS: ConverterTable = _Converters()
"""Converters by the operators' names in the schema's BuiltinOperator."""
