"""Saves loaded models as compiled models."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armpy import __version__
from armpy.backend import NO_OPTIONS, SavedProgram, packed_view
from armpy.backend.programs import HOST_TARGET
from armpy.compiler import OptimizedNetwork
from armpy.compiler.compiled_parts import part_digest
from armpy.compiler.compiled_programs import saved_program
from armpy.compiler.files.layout import CONSTANTS, MODEL, ModelRecord
from armpy.compiler.files.plain import plain
from armpy.compiler.files.writing import ArrayStore, NetworkWriter
from armpy.errors import Argument, InvalidArgumentError, ParserError
from armpy.execution.loaded_network import LoadedNetwork
from armpy.execution.programs.compiled_program import CompiledProgram
from armpy.execution.programs.program import BoundProgram
from armpy.execution.programs.staged_program import StagedProgram
from armpy.execution.programs.traced.template import ResizedNetwork
from armpy.graph import Layer, SubgraphView
from armpy.model.compile_targets import check_targets, targets_of
from armpy.model.load_options import options_to_save
from armpy.model.related_models import ModelT
from armpy.ops.backend_internal import PreCompiled
from armpy.ops.operation import Array
from armpy.plugins.extension_tables import MODEL_SUFFIXES
from armpy.plugins.proxy.guard import BackendProxy
from armpy.store.archive.container import ALIGNMENT_BYTES, write_container, written_document
from armpy.store.archive.magic import KIND_MODEL, KIND_SHAPES, METADATA, PLACEMENT
from armpy.store.archive.packed_views import DTYPES, read_view
from armpy.tensor import TensorInfo
from armpy.types import BackendId

if TYPE_CHECKING:
    from armpy.backend.memory.packed_view import View
    from armpy.execution.setup.options import RuntimeOptions
    from armpy.plugins.hooks.metadata import ModelMetadata
    from armpy.store.archive.signing import FileSignature

_LEAST_SHARED_BYTES = 512
"""Smallest constant that is read out of a part: the text that says where it is takes some bytes."""

_log = logging.getLogger("armpy.execution")


class ModelContents(NamedTuple):
    """The contents of a model, as far as they are written."""

    network: LoadedNetwork  # the network of the model itself
    signature: str | None  # the signature that it is for
    # The file's other signatures, each opened when its turn comes.
    others: Iterable[tuple[str, LoadedNetwork]]
    options: RuntimeOptions  # of the runtime that they are loaded on
    read_metadata: Callable[[], ModelMetadata]  # returns the metadata of the model's file


def _settle(network: LoadedNetwork) -> None:
    """Wait for background compilations, and compile programs that were resized from others."""
    if network.tiers is not None:
        network.tiers.settle()
    whole = network.original or network
    for prepared in [*whole.program_cache.ready.values()]:
        if isinstance(prepared.program.network, ResizedNetwork):
            whole.exchange(whole.compiled(prepared.shapes))


def contents_of(model: ModelT) -> ModelContents:
    """Gather what a file of a model is written of."""
    network, signatures = model.handle.loaded, model.provenance.signatures
    _settle(network)

    def others() -> Iterator[tuple[str, LoadedNetwork]]:
        for name in model.signatures:
            if name != signatures.first_name:
                other = model.signature(name).handle.loaded
                _settle(other)
                yield name, other

    options, first_name = model.runtime.options, signatures.first_name
    return ModelContents(network, first_name, others(), options, lambda: model.metadata)


def save_model(
    contents: ModelContents,
    path: str | os.PathLike[str],
    *,
    targets: Sequence[str] = (),
    sign: Callable[[bytes], FileSignature] | None = None,
    shares: bool = True,  # whether constants are read out of what compiled parts have packed
    entry: str | None = None,  # name of the file in the model cache, if it is one of those
) -> int:
    """Write a model with all that preparing it has made; see `armpy.Model.save`.

    Returns the size of the file in bytes.
    """
    stem, suffix = os.path.splitext(os.fspath(path))
    if suffix.lower() in MODEL_SUFFIXES:
        raise InvalidArgumentError(
            "the name is that of another kind of file",
            where=f"'{os.fspath(path)}'",
            expected="a name for a compiled model",
            actual=f"one that ends in {suffix}",
            fix=f"Save it as '{stem}.armpy'",
        )
    if sign is not None and not callable(sign):
        raise InvalidArgumentError(
            "the signer cannot be called",
            argument=Argument("sign"),
            expected="a function that signs bytes",
            actual=type(sign).__name__,
            fix="Pass one that returns a FileSignature, as armpy.store.archive.signing.sign does",
        )
    network = contents.network
    if network.latest is None:
        raise InvalidArgumentError(
            "the model is prepared for no shapes, so that there is nothing compiled to save",
            expected=network.describe_shapes(),
            fix="Say for which with Model.prepare, or armpy compile --shape",
        )
    check_targets(targets, network.backends)
    arrays, parts = ArrayStore(), _CompiledParts(targets)
    records: dict[str, ModelRecord] = {}
    sections_of: dict[LoadedNetwork, str] = {}
    signatures: list[dict[str, object]] = []
    # The model's own network first: the file is loaded as its first section.
    for name, named in ((contents.signature, network), *contents.others):
        whole = named.original or named
        section = sections_of.setdefault(whole, f"{MODEL}/{len(sections_of)}" if records else MODEL)
        signatures.append({"name": name, "section": section})
        if whole is not named:
            inputs = [value.name for value in named.graph.inputs]
            signatures[-1] |= {"inputs": inputs, "outputs": named.graph.output_names}
        if section in records:
            continue
        for inner in (whole, *whole.subgraphs.networks):
            for program in compiled_programs([*inner.program_cache.programs.values()]):
                parts.add(program, whole.backends)
        latest = _compiled(whole.latest)
        optimized = None if latest is None else latest.network
        records[section] = NetworkWriter(arrays).record(whole.graph, optimized)
    # After all parts are known, and before any text is written: a constant may lie in any of them,
    # and the texts say where.
    if shares:
        _share(arrays, parts)
    places = arrays.records()
    texts = {name: NetworkWriter.text(replace(r, arrays=places)) for name, r in records.items()}
    # The metadata before all constants are gathered: both together take much memory.
    sections: dict[str, bytes | Array] = {**texts, **_metadata_section(contents)}
    sections |= {CONSTANTS: arrays.elements(), **parts.sections}
    manifest: dict[str, object] = {
        "kind": KIND_MODEL,
        "armpy": __version__,
        "title": network.settings.name,
        "signatures": signatures,
        "options": options_to_save(contents.options),
        "programs": parts.records,
        "left_out": parts.left_out,
        "kept": parts.kept,
        "quick": _quick_record(network, network.latest, parts),
    }
    if entry is not None:
        manifest["entry"] = entry
        manifest["interface"] = _open_interface(network) if takes_many_shapes(network) else None
    return write_container(path, manifest, sections, sign)


def _metadata_section(contents: ModelContents) -> dict[str, bytes | Array]:
    """The section with the original file's metadata; none if that cannot be read."""
    try:
        return {METADATA: written_document(plain(contents.read_metadata()))}
    # The model runs without it, and is worth being saved.
    except ParserError as error:
        _log.warning("the metadata is left out: %s", error)
        return {}


def compiled_views(network: LoadedNetwork) -> Iterator[tuple[BackendId, SubgraphView]]:
    """Return the compiled views of a network, and of those that its control flow runs."""
    for inner in (network, *network.subgraphs.networks):
        for program in compiled_programs([*inner.program_cache.programs.values()]):
            for layer in program.network.graph.layers:
                if isinstance(layer.operation, PreCompiled):
                    yield program.network.backend_ids[layer.id], _view(program.network, layer)


def save_interface(
    # Of a model for which `takes_many_shapes` holds, and that has no signatures.
    contents: ModelContents,
    path: str | os.PathLike[str],
    entry: str,  # name of the file in the model cache
) -> int:
    """Write what calls of a model see of it before it is prepared for any shapes.

    The network is not in it. Front-ends leave layers for later where shapes are not known yet, and
    what makes these is in no file.

    Returns the size of the file in bytes.
    """
    network = contents.network
    manifest: dict[str, object] = {
        "kind": KIND_MODEL,
        "armpy": __version__,
        "title": network.settings.name,
        "signatures": [{"name": None, "section": MODEL}],
        "options": options_to_save(contents.options),
        "programs": [],
        "quick": None,
        "entry": entry,
        "interface": _open_interface(network),
    }
    return write_container(path, manifest, _metadata_section(contents))


def save_shapes(
    network: LoadedNetwork,
    prepared: BoundProgram,  # for which `can_be_light` holds
    path: str | os.PathLike[str],
    entry: str,  # name of the file in the model cache
    most_bytes: int,  # limit of the compiled parts
) -> int:
    """Write what a network runs for some input shapes, without the network itself.

    Returns the size of the file in bytes; 0 if none is written, as compiled parts have more, or it
    takes more than these to run the model.
    """
    program = _compiled(prepared)
    assert program is not None
    # By the first layer: there is no graph with whose parts they could be compared by contents.
    parts = _CompiledParts(name=lambda view: str(view.layers[0].id))
    parts.add(program, network.backends)
    record = _quick_record(network, prepared, parts)
    if record is None or sum(map(len, parts.sections.values())) > most_bytes:
        return 0
    manifest: dict[str, object] = {
        "kind": KIND_SHAPES,
        "armpy": __version__,
        "title": network.settings.name,
        "entry": entry,
        "programs": parts.records,
        "quick": record,
    }
    placement = written_document(plain(program.placement))
    return write_container(path, manifest, {**parts.sections, PLACEMENT: placement})


def can_be_light(network: LoadedNetwork, prepared: BoundProgram | None) -> bool:
    """Return whether a file would run a network for some shapes without anything being prepared."""
    program = _compiled(prepared)
    if program is None or network.graph.variables or network.profiler:
        return False
    return all(isinstance(layer.operation, PreCompiled) for layer in program.layers)


def takes_many_shapes(network: LoadedNetwork) -> bool:
    """Return whether programs for other shapes can be kept beside a file of the network."""
    graph = network.graph
    return not (graph.is_fully_shaped or graph.variables or network.profiler)


def _share(arrays: ArrayStore, parts: _CompiledParts) -> None:
    """Have constants read out of what compiled parts have packed, not written twice."""
    for section, (payload, views) in parts.packed.items():
        for view in views or _whole_views(arrays, payload):
            # Its results are compared, so that a wrong view makes no wrong file.
            number = arrays.find(read_view(view, payload))
            if number is None or arrays.is_read_elsewhere(number):
                continue
            size_bytes = arrays.arrays[number].nbytes
            if max(_LEAST_SHARED_BYTES, len(json.dumps(view))) <= size_bytes:
                arrays.read_from(number, section, view)


def _whole_views(arrays: ArrayStore, payload: Array) -> list[View]:
    """Views of a part of which nothing is said, as the constants that are as large."""
    dtypes = {array.dtype for array in arrays.arrays if array.nbytes == payload.size}
    places = {dtype: np.arange(0, payload.size, dtype.itemsize) for dtype in dtypes}
    views = [packed_view(places[dtype], dtype) for dtype in dtypes if dtype.name in DTYPES]
    return [view for view in views if view is not None]


class _CompiledParts:
    """Compiled parts of programs, each once."""

    def __init__(
        self,
        targets: Sequence[str] = (),  # machines that they are for; this one alone if there are none
        # Names a part; an empty name if its contents cannot be identified.
        name: Callable[[SubgraphView], str] = part_digest,
    ) -> None:
        self._targets = tuple(dict.fromkeys(targets)) or (HOST_TARGET,)
        self._name = name
        self._known: dict[tuple[BackendId, str], int | None] = {}
        self.sections: dict[str, bytes | Array] = {}
        self._by_contents: dict[bytes, str] = {}
        self.kept: dict[BackendId, list[int]] = {}  # layers that are not compiled
        # What constants may be read out of, and how.
        self.packed: dict[str, tuple[Array, Sequence[View]]] = {}
        self.records: list[dict[str, object]] = []
        self.left_out: list[dict[str, object]] = []

    def add(self, program: CompiledProgram, backends: Sequence[BackendProxy]) -> None:
        """Save the compiled parts of a program."""
        by_id = {backend.get_id(): backend for backend in backends}
        network = program.network
        for layer in network.graph.layers:
            backend = by_id.get(network.backend_ids[layer.id])
            if backend is None:
                continue
            if isinstance(layer.operation, PreCompiled):
                self._add(network, layer, backend)
            else:
                ids = network.origins.get(layer.id, (layer.id,))
                self.kept.setdefault(backend.get_id(), []).extend(ids)

    def number(self, network: OptimizedNetwork, layer: Layer) -> int | None:
        """The number of the record of a layer's compiled part; None if it has none."""
        key = network.backend_ids[layer.id], self._name(_view(network, layer))
        return self._known.get(key)

    def _add(self, network: OptimizedNetwork, layer: Layer, backend: BackendProxy) -> None:
        """Save the compiled part of a layer."""
        view, operation = _view(network, layer), layer.operation
        assert isinstance(operation, PreCompiled)
        digest = self._name(view)
        key = backend.get_id(), digest
        if not digest:
            self._leave_out(backend, view, None, "its contents cannot be identified")
        if not digest or key in self._known:
            return
        # Known before it is tried: what cannot be kept is neither tried nor reported once more.
        self._known[key] = None
        options = network.model_options.get(backend.get_id(), NO_OPTIONS)
        if backend.get_programs() is None:
            self._leave_out(backend, view, None, "the backend saves no programs")
            return
        known = targets_of(backend)
        for target in self._targets:
            if target not in known:
                self._leave_out(backend, view, target, "the backend makes no programs for it")
                continue
            saved = saved_program(backend, options, operation.program, view, target)
            if saved is None:
                self._leave_out(backend, view, target, "the program cannot be kept")
                continue
            number = self._write(key, target, view, operation, saved)
            # The first target's: its program is the one that the quick record names.
            if self._known[key] is None:
                self._known[key] = number

    def _leave_out(
        self, backend: BackendProxy, view: SubgraphView, target: str | None, reason: str
    ) -> None:
        """Note that a part has no program in the file, for a target or for all (None)."""
        about: dict[str, object] = {
            "backend": backend.get_id(),
            "target": target,
            "layers": len(view.layers),
            "first": view.layers[0].name,
            "reason": reason,
        }
        self.left_out.append(about)

    def _section(self, number: int, name: str, saved: SavedProgram) -> str:
        """The section with a part of a program; one for all of the same bytes."""
        payload = np.ascontiguousarray(np.frombuffer(saved.parts[name], np.uint8))
        digest = hashlib.sha256(payload.data).digest()
        # Targets that differ in their code alone share packed constants, which are most of a file.
        section = self._by_contents.setdefault(digest, f"programs/{number}/{name}")
        self.sections[section] = payload
        # Never out of code: it is read only where it may be used, and constants always.
        if payload.size >= _LEAST_SHARED_BYTES and name not in saved.code:
            self.packed[section] = payload, saved.views.get(name, ())
        return section

    def _write(
        self,
        key: tuple[BackendId, str],
        target: str,
        view: SubgraphView,
        operation: PreCompiled,
        saved: SavedProgram,
    ) -> int:
        """Put a program into sections of its own; its number."""
        number = len(self.records)
        names = {name: self._section(number, name, saved) for name in saved.parts}
        record = {
            "backend": key[0],
            "digest": key[1],
            "target": target,
            "layers": len(view.layers),
            "first": view.layers[0].name,
            "layer_ids": [layer.id for layer in view.layers],
            "shapes": [list(shape) for shape in operation.output_shapes],
            "working_bytes": operation.working_bytes,
            "about": dict(saved.about),
            "parts": names,
            "code": list(saved.code),
        }
        self.records.append(record)
        return number


def _view(network: OptimizedNetwork, layer: Layer) -> SubgraphView:
    """The layers that a compiled one stands for."""
    ids = set(network.origins.get(layer.id, ()))
    layers = [layer for layer in network.source.layers if layer.id in ids]
    return SubgraphView.of(network.source, layers)


def _quick_record(
    network: LoadedNetwork, prepared: BoundProgram, parts: _CompiledParts
) -> dict[str, object] | None:
    """The record of an archived network; None if running it takes more than compiled parts."""
    program = _compiled(prepared)
    if program is None or program.stops_loops or network.graph.variables:
        return None
    optimized = program.network
    graph = optimized.graph
    written = [value for layer in graph.layers for value in layer.outputs]
    # A result that is an input, or given twice, takes a copy that no program makes.
    has_all = set(graph.results) <= set(written) and len(set(graph.results)) == len(graph.results)
    if not has_all or optimized.imports or not graph.layers:
        return None
    between = [value for value in written if value not in set(graph.results)]
    places = {v: n for n, v in enumerate((*graph.sources, *graph.results, *between))}
    begins: dict[object, int] = {}
    size = 0
    for arena, num_bytes in optimized.memory.arenas.items():
        begins[arena] = size
        # Arenas of all backends lie in one block, each aligned as its memory plan requires.
        size += num_bytes + -num_bytes % ALIGNMENT_BYTES
    steps = []
    for layer in graph.layers:
        number = parts.number(optimized, layer)
        if number is None or any(value not in places for value in layer.inputs):
            return None
        step = {
            "program": number,
            "layer": layer.name,
            "inputs": [places[value] for value in layer.inputs if value is not None],
            "outputs": [places[value] for value in layer.outputs],
        }
        steps.append(step)
    planned = optimized.memory.tensors
    return {
        **_interface(network),
        "shapes": [list(shape) for shape in prepared.shapes],
        "results": [_info(value.info) for value in graph.results],
        "tensors": [
            [_info(v.info), begins[planned[v].arena] + planned[v].offset_bytes] for v in between
        ],
        "arena_bytes": size,
        # Compared with a limit at load, when the memory plan that says it is gone.
        "needed_bytes": optimized.placement.peak_bytes
        + sum(value.info.size_bytes for value in graph.results),
        "steps": steps,
    }


def _interface(network: LoadedNetwork) -> dict[str, object]:
    """Inputs and outputs as callers see them."""
    graph = network.graph
    return {
        "inputs": [[value.name, _info(value.info)] for value in graph.inputs],
        "outputs": [
            [name, _info(info)]
            for name, info in zip(graph.output_names, graph.described_outputs, strict=True)
        ],
    }


def _open_interface(network: LoadedNetwork) -> dict[str, object]:
    """The interface of a model with open shapes, and the default shapes of its file."""
    defaults = network.graph.default_shapes
    shapes = [None if shape is None else list(shape) for shape in defaults]
    return {**_interface(network), "default_shapes": shapes}


def _info(info: TensorInfo) -> list[object]:
    """A tensor's info: shape, type, and scales, zero points and axis if it is quantised."""
    quantization = info.quantization
    shape = None if info.shape is None else list(info.shape)
    if quantization is None:
        return [shape, info.data_type.name]
    scales, zero_points = list(quantization.scales), list(quantization.zero_points)
    return [shape, info.data_type.name, scales, zero_points, quantization.axis]


def _compiled(prepared: BoundProgram | None) -> CompiledProgram | None:
    """The program of a prepared network, if all of its shapes are known."""
    program = None if prepared is None else prepared.program
    return program if isinstance(program, CompiledProgram) else None


def compiled_programs(programs: Sequence[object]) -> Iterator[CompiledProgram]:
    """The compiled programs among some programs, and in them, but for resized ones.

    What `_settle` has left of these runs after layers whose results' shapes depend on values.
    """
    for program in programs:
        if isinstance(program, CompiledProgram):
            if not isinstance(program.network, ResizedNetwork):
                yield program
        elif isinstance(program, StagedProgram):
            yield from compiled_programs([program.head])
