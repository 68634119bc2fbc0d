"""Signatures of a prepared file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from armpy.model.signatures import Signatures

if TYPE_CHECKING:
    from collections.abc import Mapping

    from armpy.model.archive.quick_loading import PreparedFile
    from armpy.model.model import Model


def signatures_of(file: PreparedFile, name: str | None = None) -> Signatures:
    """The ways to call a prepared model.

    Parameters
    ----------
    file : PreparedFile
    name : str, optional
        The signature that the first model is for; the file's first network if left out.

    Raises
    ------
    ParserError
        If they cannot be read.
    """
    records = signature_records(file)
    names = tuple([str(one["name"]) for one in records if one["name"] is not None])

    def open_one(wanted: str, signatures: Signatures, first: Model) -> Model:
        from armpy.model.archive.reload import open_signature  # noqa: PLC0415

        return open_signature(file, wanted, signatures, first)

    return Signatures(lambda: names, open_one, records[0]["name"] if name is None else name)


def signature_records(file: PreparedFile) -> list[Mapping[str, Any]]:
    """Name and section of each network in the file, the first one first."""
    records = file.container.manifest.get("signatures")
    if not isinstance(records, list) or not records:
        file.container.refuse("it has no networks")
    for one in records:
        kinds = isinstance(one, dict) and "name" in one and isinstance(one.get("section"), str)
        if not kinds or not isinstance(one.get("name"), str | None):
            file.container.refuse("its signatures cannot be read")
    return records
