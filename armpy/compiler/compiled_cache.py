"""Compiled cache: a part that was compiled before is loaded instead of compiled again."""

from __future__ import annotations

import hashlib
import logging
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from armpy import __version__
from armpy.backend import (
    NO_OPTIONS,
    CacheUse,
    IBackendInternal,
    OptimizationViews,
    PreparationRequest,
    postpone_compilation,
    report_cache_use,
)
from armpy.compiler.compiled_programs import Programs
from armpy.compiler.devices.machine import machine_identity
from armpy.compiler.substitute import check_answer, offer
from armpy.errors import ArmpyError
from armpy.graph import Graph, SubgraphView
from armpy.plugins.proxy.guard import BackendProxy
from armpy.store.compiled import CompiledParts, Key, LookedUp
from armpy.store.digests import UnknownContentsError, digest_of
from armpy.store.settings import CompilationCaching
from armpy.types import Preference

_PREFERENCE_CODES = {Preference.LOW_POWER: 0, Preference.SUSTAINED: 2}
"""NNAPI's codes; 1, for one fast answer, is what counts where nothing else is said."""

KEEPS_NOTHING = "the backend keeps nothing of it"
"""Why a part is not in files though all is well: `IPrograms.save` has answered None."""

_log = logging.getLogger("armpy.compiler")


def cached_preparation(
    graph: Graph,
    backend: IBackendInternal,
    view: SubgraphView,
    request: PreparationRequest,
    caching: CompilationCaching,
) -> Callable[[], OptimizationViews]:
    """What lets a backend that keeps files prepare a part, as `prepare` does.

    Raises
    ------
    InvalidArgumentError
        If the environment says something about the cache that cannot be.
    """
    parts = CompiledParts.of(caching, backend.get_id())
    if parts is None:
        return partial(_without_files, graph, backend, view, request)
    return partial(prepare, graph, backend, view, request, parts, caching.token)


def _without_files(
    graph: Graph, backend: IBackendInternal, view: SubgraphView, request: PreparationRequest
) -> OptimizationViews:
    """Let a backend prepare a part where nothing is kept; errors as from `offer`."""
    what = f"{len(view.layers)} layers from '{view.layers[0].name}'"
    postpone_compilation(backend.get_id(), what, is_kept=False)
    return offer(graph, backend, view, request)


def prepare(
    graph: Graph,
    backend: IBackendInternal,
    view: SubgraphView,
    request: PreparationRequest,
    parts: CompiledParts,
    token: bytes | None = None,
) -> OptimizationViews:
    """Let a backend prepare a part, from files if it has been prepared before.

    Parameters
    ----------
    graph : Graph
    backend : IBackendInternal
    view : SubgraphView
    request : PreparationRequest
    parts : CompiledParts
        Where files are.
    token : bytes, optional
        By which the application names the model.

    Returns
    -------
    OptimizationViews
        As from `offer`.

    Raises
    ------
    ArmpyError
        As from `offer`: nothing that is wrong with files is an error.

    Notes
    -----
    Of all processes and threads that prepare the same part at a time, one compiles. The others
    wait, and load what it wrote.
    """
    about = _Part(graph, backend, view, request, parts)
    try:
        key = key_of(graph, backend, view, request, token)
    # Without a name nothing can be found again, which is a miss and no error.
    except UnknownContentsError as error:
        about.report_miss(str(error))
        return offer(graph, backend, view, request)
    # Without the lock at first: where all is kept already, nobody waits for anybody.
    found = about.look_up(key)
    if (views := about.loaded(found)) is not None:
        about.report_hit()
        return views
    postpone_compilation(backend.get_id(), about.title, is_kept=True)
    with parts.making(key, request.deadline_s):
        # Whoever held the lock before may have written it; what was refused is not asked twice.
        again = about.look_up(key)
        if again.making != found.making and (views := about.loaded(again)) is not None:
            about.report_hit("another process has just compiled it")
            return views
        views = offer(graph, backend, view, request)
        problem = about.kept(key, views)
    about.report_miss("; ".join(filter(None, (about.reason, problem))))
    return views


@dataclass
class _Part:
    """A part that is being prepared, and why it was not found."""

    graph: Graph
    backend: IBackendInternal
    view: SubgraphView
    request: PreparationRequest
    parts: CompiledParts
    reason: str = ""

    def look_up(self, key: Key) -> LookedUp:
        """Its files, as they are now."""
        found = self.parts.look_up(key)
        # The first reason is told: the second look, under the lock, finds less.
        self.reason = self.reason or found.reason
        return found

    def loaded(self, found: LookedUp) -> OptimizationViews | None:
        """What the backend makes of files; None if that is nothing."""
        if found.files is None:
            return None
        backend_id = self.backend.get_id()
        try:
            programs = Programs(self.backend, self.request)
            views = programs.views_of(found.files, self.view)
            return check_answer(self.graph, f"{backend_id} / load", self.view, views)
        # A bad file costs a compilation and no network: the part is made anew.
        except ArmpyError as error:
            _log.info("%s; the part is prepared anew", error)
            self.reason = f"the backend does not take what was kept: {error}"
            return None

    def kept(self, key: Key, views: OptimizationViews) -> str:
        """Keep what the backend writes down; why nothing is kept, or empty."""
        try:
            files = Programs(self.backend, self.request).files_of(views, self.view)
        # The program itself is fine and runs; the next process compiles it again.
        except ArmpyError as error:
            _log.warning("%s; nothing is kept", error)
            return f"it is not kept: {error}"
        if files is None:
            return KEEPS_NOTHING
        return "" if self.parts.keep(key, files, self.title) else "it could not be written"

    @property
    def title(self) -> str:
        """What it is, for people."""
        layers = self.view.layers
        count = "1 layer" if len(layers) == 1 else f"{len(layers)} layers"
        return f"{count} from '{layers[0].name}'"

    def report_hit(self, reason: str = "") -> None:
        """Say that it was there."""
        report_cache_use(CacheUse(self.backend.get_id(), self.title, True, reason))

    def report_miss(self, reason: str) -> None:
        """Say that it was not there."""
        report_cache_use(CacheUse(self.backend.get_id(), self.title, False, reason))


def key_of(
    graph: Graph,
    backend: IBackendInternal,
    view: SubgraphView,
    request: PreparationRequest,
    token: bytes | None = None,
) -> Key:
    """The key of a part.

    Raises
    ------
    UnknownContentsError
        If it cannot be told what the part consists of.

    Notes
    -----
    The contents are all that the backend's answer may depend on: layers, shapes and constants,
    options of runtime and network, preference and priority, the backend with its version, armpy's,
    and the machine. By themselves they name the part. With a token, the name is NNAPI's: a chain
    of the token, the part (where there are several), the device, its version, preference and
    priority. As a model of NNAPI is compiled here once for each set of shapes that it is run with,
    these are in it too.
    """
    options = backend.runtime_options if isinstance(backend, BackendProxy) else NO_OPTIONS
    told = (request.preference.value, int(request.priority), request.relaxed)
    machine = machine_identity(), backend.get_id(), backend.version, __version__
    # An application may give one token to two models, so that a name alone proves nothing.
    contents = digest_of(view, options, request.model_options, *told, *machine)
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
