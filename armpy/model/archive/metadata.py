"""Metadata of compiled models, for models that run without being loaded as networks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from armpy.backend.caches import CacheUse
from armpy.compiler.files.plain import PlainReader
from armpy.compiler.placement import Placement
from armpy.model.archive.compiled_file import signature_records
from armpy.model.related_models import no_signature
from armpy.store.archive.magic import METADATA, PLACEMENT

if TYPE_CHECKING:
    from armpy.model.archive.compiled_file import CompiledFile
    from armpy.plugins.hooks.metadata import ModelMetadata
    from armpy.store.archive.container import Container


def signature_record(file: CompiledFile, name: str | None) -> Mapping[str, Any]:
    """The record of a signature; the first one for None."""
    records = signature_records(file.container)
    if name is None:
        return records[0]
    for record in records:
        if record["name"] == name:
            return record
    names = [str(record["name"]) for record in records if record["name"] is not None]
    raise no_signature(name, names)


def read_placement(
    file: CompiledFile,
    *,
    is_cached: bool = False,  # whether it was kept by armpy itself when the model was loaded before
) -> Placement:
    """The placement report of the file's first network, or of its programs."""
    container = file.container
    if PLACEMENT in container.sections:
        stored = container.document(PLACEMENT)
    else:
        document = container.document(signature_record(file, None)["section"])
        plan = document.get("plan") if isinstance(document, dict) else None
        stored = plan.get("placement") if isinstance(plan, dict) else None
    report = PlainReader().read(Placement, stored, "placement")
    place = "the model cache" if is_cached else "the compiled model"
    used = {str(record.get("backend")): None for record in file.programs}
    uses = [CacheUse(name, "the whole model", True, f"from {place}") for name in used]
    return replace(report, cache_uses=tuple(uses))


def read_metadata(container: Container) -> ModelMetadata:
    """Read the metadata of the original file."""
    from armpy.plugins.hooks.metadata import ModelMetadata  # noqa: PLC0415 - brings pluggy

    if METADATA not in container.sections:
        return ModelMetadata()
    return PlainReader().read(ModelMetadata, container.document(METADATA), METADATA)
