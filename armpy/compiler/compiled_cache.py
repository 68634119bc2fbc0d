"""Compiled cache: a part that was compiled before is loaded instead of compiled again.

A file is believed if it is sound (see `armpy.store.entries`), was written for the same contents
(`Key.contents`), and in one go with the part's other file. Everything else is a miss with its
reason, and a new object takes its place.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import numpy as np

from armpy import __version__
from armpy.backend import (
    NO_OPTIONS,
    CacheUse,
    IBackendInternal,
    OptimizationViews,
    PreparationRequest,
    SavedProgram,
    Substitution,
    postpone_compilation,
    report_cache_use,
)
from armpy.backend.caches import KEEPS_NOTHING, model_name
from armpy.backend.preparation import LOOK_UP
from armpy.compiler.compiled_parts import Programs, current_parts, title_of
from armpy.compiler.compiled_programs import saved_program
from armpy.compiler.substitute import check_answer, offer
from armpy.core.machine import machine_identity
from armpy.errors import ArmpyError, BackendCapabilityError
from armpy.graph import Graph, Layer, SubgraphView
from armpy.ops.backend_internal import PreCompiled
from armpy.plugins.proxy.guard import BackendProxy
from armpy.store.digests import UnknownContentsError, digest_of
from armpy.store.entries import Entries
from armpy.store.settings import CompilationCaching
from armpy.types import BackendId, Preference

NAME = "compiled parts"
"""The cache's name."""

_PREFERENCE_CODES = {Preference.LEAST_POWER: 0, Preference.SUSTAINED: 2}
"""NNAPI's codes; 1, for one fast answer, is what counts where nothing else is said."""

_KINDS = "model0", "data0"
_MAKING_BYTES = 16

_log = logging.getLogger("armpy.compiler")


class Key(NamedTuple):
    """Key of a part's files: their name, and the digest of all that the answer depends on."""

    name: bytes
    contents: bytes


class CompiledFiles(NamedTuple):
    """Contents of a part's two files: description and code, and large parts, as constants.

    References
    ----------
    NNAPI ``modelCache`` and ``dataCache``.
    """

    model: Sequence[bytes]
    data: Sequence[bytes]


class LookedUp(NamedTuple):
    """Outcome of looking up a part: its files, or why they cannot be used."""

    files: CompiledFiles | None
    reason: str = ""
    making: bytes = b""  # identifies the write that the parts come from


def cached_preparation(
    graph: Graph,
    backend: IBackendInternal,
    view: SubgraphView,
    request: PreparationRequest,
    caching: CompilationCaching,
) -> Callable[[], OptimizationViews]:
    """Return a function that lets a backend with files prepare a part, as `prepare` does."""
    part = CachedPart(graph, backend, view, request)
    parts = CompiledParts.of(caching, backend.get_id())
    if parts is None:
        return part.prepare_without_files
    return partial(part.prepare, parts, caching.token)


@contextmanager
def saved_programs(
    graph: Graph,
    backend: IBackendInternal,
    request: PreparationRequest,
    caching: CompilationCaching | None,
    # Makes a part as it is prepared later, if its tensors have other names then.
    as_prepared: Callable[[SubgraphView], SubgraphView] = lambda view: view,
) -> Iterator[None]:
    """Let a backend that is asked about layers know which parts need not be compiled."""
    archived, programs = current_parts(), Programs(backend, request.model_options)
    parts = CompiledParts.of(caching, backend.get_id())
    token = None if caching is None else caching.token

    def look_up(view: SubgraphView) -> tuple[bool, bytes]:
        if archived is not None and archived.has(backend, view, request):
            return True, b""
        try:
            key = key_of(graph, backend, as_prepared(view), request, token)
        except UnknownContentsError:  # nothing is kept without a name
            return False, b""
        abouts = parts.descriptions(key) if parts is not None and programs.are_kept else []
        return bool(abouts) and not any(map(programs.why_unfit, abouts)), key.contents

    previous = LOOK_UP.set(look_up)
    try:
        yield
    finally:
        LOOK_UP.reset(previous)


class CachedPart(NamedTuple):
    """A part of a network that a backend is to prepare."""

    graph: Graph
    backend: IBackendInternal
    view: SubgraphView
    request: PreparationRequest

    def prepare_without_files(self) -> OptimizationViews:
        """Let the backend prepare it where nothing is kept; errors as from `offer`."""
        postpone_compilation(self.backend.get_id(), self._title, is_kept=False)
        return offer(*self)

    def prepare(
        self,
        parts: CompiledParts,  # where files are
        token: bytes | None = None,  # by which the application names the model
    ) -> OptimizationViews:
        """Let the backend prepare it, from files if it has been prepared before.

        Of all processes and threads that prepare the same part at a time, one compiles. The others
        wait, and load what it wrote.
        """
        try:
            key = key_of(*self, token)
        # Without a name nothing can be found again, which is a miss and no error.
        except UnknownContentsError as error:
            self._report(False, str(error))
            return offer(*self)
        # Without the lock at first: where all parts are cached, no process waits.
        entry = parts.look_up(key)
        views, reason = self._loaded(entry)
        if views is not None:
            self._report(True)
            return views
        postpone_compilation(self.backend.get_id(), self._title, is_kept=True)
        with parts.entries.making(f"{parts.prefix}part", key.name.hex(), self.request.deadline_s):
            # The last holder of the lock may have written it; a refused entry is not read twice.
            again = parts.look_up(key)
            if again.making != entry.making:
                views, _ = self._loaded(again)
            if views is not None:
                self._report(True, "another process has just compiled it")
                return views
            views = offer(*self)
            problem = self._kept(parts, key, views)
        self._report(False, "; ".join(filter(None, (reason, problem))))
        return views

    def _loaded(self, entry: LookedUp) -> tuple[OptimizationViews | None, str]:
        """Return the program that the backend loads from files; or the reason why there is none."""
        if entry.files is None:
            return None, entry.reason
        try:
            views = views_of(entry.files, self.backend, self.view, self.request)
            where = f"{self.backend.get_id()} / load"
            return check_answer(self.graph, where, self.view, views), ""
        # A bad file costs a compilation and no network: the part is made anew.
        except ArmpyError as error:
            _log.info("%s; the part is prepared anew", error)
            return None, f"the backend does not take the stored part: {error}"

    def _kept(self, parts: CompiledParts, key: Key, views: OptimizationViews) -> str:
        """Store the backend's saved program; return why nothing is stored, or empty."""
        try:
            files = files_of(views, self.backend, self.view, self.request)
        # The program itself is fine and runs; the next process compiles it again.
        except ArmpyError as error:
            _log.warning("%s; nothing is kept", error)
            return f"it is not kept: {error}"
        if files is None:
            return KEEPS_NOTHING
        if parts.keep(key, files, self._title):
            return ""
        return f"not kept: {parts.entries.problem or 'there is no room'}"

    @property
    def _title(self) -> str:
        return title_of(self.view)

    def _report(self, is_hit: bool, reason: str = "") -> None:
        report_cache_use(CacheUse(self.backend.get_id(), self._title, is_hit, reason))


def key_of(
    graph: Graph,
    backend: IBackendInternal,
    view: SubgraphView,
    request: PreparationRequest,
    token: bytes | None = None,
) -> Key:
    """The key of a part.

    The contents are all that the backend's answer may depend on: layers, shapes and constants,
    options of runtime and network, preference and priority, the backend with its version and the
    state of its files, armpy's version, and the machine. By themselves they name the part. With a
    token, the name is NNAPI's: a chain of the token, the part (where there are several), the
    device, its version, preference and priority, and the shapes, for which a model of NNAPI is
    compiled each.
    """
    options = backend.runtime_options if isinstance(backend, BackendProxy) else NO_OPTIONS
    properties = (request.preference.value, int(request.priority), request.relaxed)
    # Code that was changed without another version counts as well.
    state = backend.facts.code if isinstance(backend, BackendProxy) else ""
    machine = machine_identity(), backend.get_id(), backend.version, state, __version__
    # An application may give one token to two models, so that a name alone proves nothing.
    contents = digest_of(view, options, request.model_options, *properties, *machine)
    if token is None:
        return Key(hashlib.sha256(b"armpy compiled part" + contents).digest(), contents)
    chain = hashlib.sha256(token)
    # A network that is one part has NNAPI's plain name; of several, each needs a name of its own.
    if len(view.layers) < len(graph.layers):
        for layer in view.layers:
            chain.update(struct.pack("<q", layer.id))
    for text in (backend.get_id(), backend.version):
        chain.update(text.encode())
    code = _PREFERENCE_CODES.get(request.preference, 1)
    chain.update(struct.pack("<ii", code, int(request.priority)))
    infos = [value.info for value in (*view.inputs, *view.outputs)]
    return Key(digest_of(infos, origin=chain.digest()), contents)


def files_of(
    views: OptimizationViews,
    backend: IBackendInternal,
    view: SubgraphView,
    request: PreparationRequest,
) -> CompiledFiles | None:
    """Write an answer down.

    None if the backend does not keep one of its programs, has given layers back (which may be
    otherwise the next time), or has put no programs in their place.
    """
    if backend.get_programs() is None or views.failed:
        return None
    positions = {layer: number for number, layer in enumerate(view.layers)}
    # Code and data apart, as NNAPI's cache has files for each.
    pieces, code, data = [], [], []
    for substitution in views.substitutions:
        piece: dict[str, object] = {"layers": _numbers(substitution.subgraph, positions)}
        if substitution.replacement.layers:
            compiled = _compiled_of(substitution.replacement)
            saved = (
                None
                if compiled is None
                else saved_program(backend, request.model_options, compiled.program)
            )
            if compiled is None or saved is None:
                return None
            names = [name for name in saved.parts if name not in saved.code]
            piece["shapes"] = [list(shape) for shape in compiled.output_shapes]
            piece["working_bytes"] = compiled.working_bytes
            piece["about"], piece["code"], piece["data"] = dict(saved.about), saved.code, names
            piece["views"] = {name: list(views) for name, views in saved.views.items()}
            code += [bytes(saved.parts[name]) for name in saved.code]
            data += [bytes(saved.parts[name]) for name in names]
        pieces.append(piece)
    # Without a program there is nothing that took long, or that a later check could refuse.
    if not any("about" in piece for piece in pieces):
        return None
    untouched = [_numbers(part, positions) for part in views.untouched]
    head = json.dumps({"pieces": pieces, "untouched": untouched}).encode()
    return CompiledFiles([head, *code], data)


def views_of(
    files: CompiledFiles, backend: IBackendInternal, view: SubgraphView, request: PreparationRequest
) -> OptimizationViews:
    """Read an answer.

    Raises BackendCapabilityError if the backend does not take its programs here and now; ArmpyError
    if it fails to load one.
    """
    programs = Programs(backend, request.model_options)
    if not programs.are_kept:
        raise BackendCapabilityError("it takes no programs any more", where=backend.get_id())
    views = OptimizationViews()
    try:
        head = json.loads(files.model[0])
        code, data = iter(files.model[1:]), iter(files.data)
        for piece in head["pieces"]:
            part = view.part([view.layers[number] for number in piece["layers"]])
            if "about" not in piece:
                views.substitutions.append(Substitution.by_nothing(part))
                continue
            parts = {name: next(code) for name in piece["code"]}
            parts |= {name: _array(next(data)) for name in piece["data"]}
            saved = SavedProgram(piece["about"], parts, tuple(piece["code"]), piece["views"])
            if reason := programs.why_unfit(saved.about):
                raise BackendCapabilityError(reason, where=backend.get_id())
            shapes = tuple(map(tuple, piece["shapes"]))
            compiled = PreCompiled(programs.load(saved), shapes, piece["working_bytes"])
            views.substitutions.append(Substitution.by_operation(part, compiled))
        for numbers in head["untouched"]:
            views.untouched.append(view.part([view.layers[number] for number in numbers]))
    except (IndexError, KeyError, StopIteration, TypeError, ValueError) as error:
        text = f"the stored part has another layout: {error!r}"
        raise BackendCapabilityError(text, where=backend.get_id()) from error
    return views


def _numbers(part: SubgraphView, positions: Mapping[Layer, int]) -> list[int]:
    """Positions of a part's layers among the offered ones."""
    return [positions[layer] for layer in part.layers]


def _compiled_of(replacement: Graph) -> PreCompiled | None:
    """The one program that stands for a part; None if anything else does."""
    if len(replacement.layers) != 1:
        return None
    (layer,) = replacement.layers
    is_plain = layer.inputs == replacement.inputs and layer.outputs == replacement.outputs
    operation = layer.operation
    if not is_plain or not isinstance(operation, PreCompiled):
        return None
    # Exactly integers: a program for a traced size has formulas in it, which files do not keep.
    is_shaped = all(type(size) is int for shape in operation.output_shapes for size in shape)
    return operation if is_shaped else None


def _array(part: bytes) -> np.ndarray[Any, np.dtype[np.uint8]]:  # Any: of one dimension
    """A part of a program as `IPrograms.load` is given it: read-only, at a multiple of 64 bytes."""
    # NumPy promises less alignment than programs may rely on, so the array begins further inside.
    raw = np.empty(len(part) + 63, np.uint8)
    start = -raw.ctypes.data % 64
    array = raw[start : start + len(part)]
    array[:] = np.frombuffer(part, np.uint8)
    array.flags.writeable = False
    return array


class CompiledParts:
    """The compiled parts of one backend in a folder."""

    def __init__(self, entries: Entries, backend_id: BackendId) -> None:
        self.entries = entries
        self.prefix = _prefix_of(backend_id)

    @classmethod
    def of(cls, caching: CompilationCaching | None, backend_id: BackendId) -> CompiledParts | None:
        """Those that settings mean; None if nothing is to be kept."""
        place = None if caching is None else caching.resolved()
        if caching is None or place is None:
            return None
        entries = _entries_in(*place) if caching.token is None else TokenEntries(place[0])
        return cls(entries, backend_id)

    def look_up(self, key: Key) -> LookedUp:
        """The files of a part, if both are there and can be believed."""
        payloads: list[list[bytes]] = []
        makings: set[bytes] = set()
        missing: list[str] = []
        for kind in _KINDS:
            entry = self.entries.look_up(self.prefix + kind, key.name.hex())
            if entry.parts is None:
                missing.append(entry.reason)
                continue
            if len(entry.parts) < 2:
                return LookedUp(None, "a file has another layout")
            contents, making, *payload = map(bytes, entry.parts)
            # The name may come from a token that the application uses for two models.
            if contents != key.contents:
                return LookedUp(None, "it was made of something else, or for another machine")
            makings.add(making)
            payloads.append(payload)
        if missing:
            whole = len(missing) == len(_KINDS)
            return LookedUp(None, missing[0] if whole else f"a file is missing: {missing[0]}")
        # Two processes may write the same part, and each have put one of its files last.
        if len(makings) != 1:
            return LookedUp(None, "its files were not written together")
        return LookedUp(CompiledFiles(*payloads), making=makings.pop())

    def descriptions(self, key: Key) -> list[dict[str, object]]:
        """Descriptions of a part's programs, without reading the programs; empty without a file."""
        entry = self.entries.look_up(self.prefix + _KINDS[0], key.name.hex())
        if entry.parts is None or bytes(entry.parts[0]) != key.contents:
            return []
        pieces = json.loads(bytes(entry.parts[2]))["pieces"]
        return [piece["about"] for piece in pieces if "about" in piece]

    def keep(self, key: Key, files: CompiledFiles, description: str) -> bool:
        """Write the files of a part; whether both are kept now."""
        # At random, as another process may write the same part at the same moment.
        making = os.urandom(_MAKING_BYTES)
        for kind, payload in zip(_KINDS, files, strict=True):
            parts = [key.contents, making, *payload]
            name = self.prefix + kind
            if not self.entries.write(name, key.name.hex(), parts, description, model_name()):
                return False
        return True


class TokenEntries(Entries):
    """Entries in a folder of the application's, with NNAPI's names and no limit.

    The folder is not made. Nothing is deleted there that was not written under the same name.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, sys.maxsize, NAME)

    def _path(self, kind: str, key: str) -> Path:
        """Two letters per byte of the key; 1 for a model's file, 2 for one of data; its number."""
        letters = "".join(
            chr(ord("A") + (byte & 15)) + chr(ord("A") + (byte >> 4)) for byte in bytes.fromhex(key)
        )
        stem = kind.rstrip("0123456789")
        code = 1 if stem.endswith("model") else 2
        return self._folder / f"{letters}{code}{kind[len(stem) :]}"

    def _make_room(self) -> int:
        """Drop nothing."""
        return self._limit_bytes

    def _make_folder(self) -> None:
        """Leave that to the application."""


def _prefix_of(backend_id: BackendId) -> str:
    """Return the prefix of names of a backend's files."""
    return f"{quote(backend_id, safe='')}+"  # which no quoted id has


def compiled_cache(backend_id: BackendId = "") -> Entries | None:
    """All compiled parts, or those of one backend, for people; None if nothing is kept."""
    place = CompilationCaching().resolved()
    if place is None:
        return None
    return Entries(*place, NAME, _prefix_of(backend_id) if backend_id else "")


# One for the process, or each compilation would begin to count anew; few folders are in use.
@lru_cache(maxsize=8)
def _entries_in(folder: Path, limit_bytes: int) -> Entries:
    """The entries of a folder, which remember how much was written since they listed it."""
    return Entries(folder, limit_bytes, NAME)
