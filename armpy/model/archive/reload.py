"""Loads compiled models as ordinary networks: for other shapes, options, machines than theirs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from armpy.backend.caches import model_named
from armpy.compiler import OptimizedNetwork
from armpy.compiler.compiled_parts import ArchivedPart, ArchivedParts, given_parts
from armpy.compiler.files.layout import MODEL
from armpy.compiler.files.reading import NetworkContents, read_contents
from armpy.errors import ParserError
from armpy.execution.arrays.reshaping import with_names
from armpy.execution.runtime import Runtime
from armpy.model.archive.compiled_file import WRONG_FORM, CompiledFile, signatures_of
from armpy.model.archive.light_loading import model_of
from armpy.model.archive.metadata import signature_record
from armpy.model.load_options import differing_options
from armpy.model.model import Model
from armpy.model.network_handle import NetworkHandle
from armpy.model.provenance import Derivation
from armpy.model.related_models import Signatures
from armpy.store.archive.container import Container


def load_ordinary(file: CompiledFile) -> Model:
    """Load a compiled model as a network; errors as for `armpy.load`."""
    if MODEL not in file.container.sections:  # the model cache keeps some without their graph
        raise ParserError(
            "the model file has changed since, and its entry runs only the shapes that "
            "it was called with before",
            where=file.container.where,
            fix="Load it again",
        )
    asked = file.request.options
    runtime = asked.runtime
    options = asked.runtime_options()
    is_own = runtime is None
    record = signature_record(file, asked.signature)
    if runtime is None:
        runtime = Runtime(options)
    try:
        return _loaded(
            file,
            record,
            runtime,
            signatures_of(file, asked.signature),
            closes_runtime=is_own,
        )
    # An interrupt as well: only this function can close the runtime.
    except BaseException:
        if is_own:
            runtime.close()
        raise


def open_signature(
    file: CompiledFile, name: str, signatures: Signatures[Model], first: Model
) -> Model:
    """The model for another signature of the file, on the first one's runtime."""
    derivation = Derivation(first, "signature", name)
    record, of_first = [signature_record(file, n) for n in (name, signatures.first_name)]
    is_same = record["section"] == of_first["section"] and "inputs" in record
    if is_same and first.handle.can_be_renamed:
        handle = NetworkHandle.load(
            with_names(first.graph, record["inputs"], record["outputs"]),
            first.runtime,
            first.handle.properties,
            shares_state_with=first.handle,
            read_source=lambda: read_signature(file.container, record).graph,
            original=first.handle,
        )
        return model_of(file, handle, signatures, derivation)
    return _loaded(file, record, first.runtime, signatures, derivation)


def _loaded(
    file: CompiledFile,
    record: Mapping[str, Any],  # Any: a record of the file, checked
    runtime: Runtime,
    signatures: Signatures[Model],
    derivation: Derivation | None = None,
    *,
    closes_runtime: bool = False,
) -> Model:
    asked = file.request.options
    graph, optimized = read_signature(file.container, record)
    network = graph
    if optimized is not None and graph.is_fully_shaped and keeps_places(file, runtime):
        network = optimized  # type: ignore[assignment]  # loaded as it is placed
    first: Model | None = None if derivation is None else derivation.model
    with (
        model_named(str(file.container.manifest.get("title", ""))),
        given_parts(archived_parts(file)),
    ):
        handle = NetworkHandle.load(
            network,
            runtime,
            asked.properties if first is None else first.handle.properties,
            closes_runtime=closes_runtime,
            shares_state_with=None if first is None else first.handle,
            read_source=lambda: graph,
        )
        # Within the file's parts, which are given only here: a later preparation would compile
        # anew.
        if optimized is not None and handle.loaded.latest is None:
            _prepare_for_saved_shapes(handle, optimized)
    return model_of(file, handle, signatures, derivation)


def read_signature(
    container: Container,
    record: Mapping[str, Any],  # Any: one of `signature_records`
) -> NetworkContents[OptimizedNetwork]:
    """The network of a signature, for all shapes and as it was saved."""
    contents = read_contents(container, OptimizedNetwork, record["section"])
    if "inputs" not in record:
        return contents
    graph, optimized = contents
    names = record["inputs"], record["outputs"]
    if optimized is not None:
        # Nothing else of it is looked at: it is prepared as it was placed.
        optimized = replace(optimized, source=with_names(optimized.source, *names))
    return NetworkContents(with_names(graph, *names), optimized)


def _prepare_for_saved_shapes(handle: NetworkHandle, optimized: OptimizedNetwork) -> None:
    """Prepare a network with open dimensions as it was when it was saved, with the saved parts."""
    try:
        shapes = tuple([value.info.known_shape for value in optimized.source.inputs])
        handle.loaded.prepare(shapes)
    except BaseException:  # an interrupt as well: the caller cannot close it yet
        handle.close()
        raise


def keeps_places(file: CompiledFile, runtime: Runtime) -> bool:
    """Return whether the layers go where they were when the file was made."""
    options = file.container.manifest.get("options")
    saved = options if isinstance(options, dict) else {}
    return not differing_options(runtime.options, saved)


def archived_parts(file: CompiledFile) -> ArchivedParts:
    """The compiled parts of the file, those of the targets that come first before others."""
    parts = []
    for record in file.programs:
        try:
            shapes = tuple([tuple(map(int, shape)) for shape in record["shapes"]])
            about = dict(record["about"])
            part = ArchivedPart(
                str(record["backend"]),
                str(record["digest"]),
                shapes,
                int(record["working_bytes"]),
                about,
                partial(file.saved_program, record),
                tuple(map(int, record["layer_ids"])),
            )
        except WRONG_FORM as error:
            raise ParserError(
                f"a program cannot be read: {error!r}", where=file.container.where
            ) from error
        parts.append(part)
    problem = "" if file.verdict.uses_code else f"its code is not used: {file.verdict.reason}"
    layers = file.container.manifest.get("kept")
    if not isinstance(layers, dict) or not all(map(_are_ids, layers.values())):
        file.container.refuse("what backends have left as it is cannot be read")
    return ArchivedParts(parts, problem, {name: frozenset(ids) for name, ids in layers.items()})


def _are_ids(listed: object) -> bool:
    """Return whether a manifest's list holds numbers of layers."""
    return isinstance(listed, list) and all(type(number) is int for number in listed)
