"""Archived parts: parts of a network that a compiled model has programs of."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from armpy.backend import (
    CacheUse,
    IBackendInternal,
    IPrograms,
    OptimizationViews,
    OptionValues,
    PreparationRequest,
    ProgramCheck,
    ProgramFit,
    SavedProgram,
    Substitution,
    report_cache_use,
)
from armpy.compiler.substitute import check_answer
from armpy.core.units import counted
from armpy.core.vlog import wants_traceback
from armpy.errors import ArmpyError, BackendError
from armpy.graph import Graph, Layer, SubgraphView
from armpy.ops.backend_internal import PreCompiled
from armpy.plugins.proxy.guarded_call import ask_method, describe
from armpy.store.digests import UnknownContentsError, digest_of
from armpy.types import BackendId

_log = logging.getLogger("armpy.compiler")


def title_of(view: SubgraphView) -> str:
    """What is compiled of a part of a graph, for people: ``2 layers from 'conv_1'``."""
    return f"{counted(len(view.layers), 'layer')} from '{view.layers[0].name}'"


class Programs:
    """Reader of the programs that one backend has written down."""

    def __init__(
        self,
        backend: IBackendInternal,
        options: OptionValues,  # options of scope MODEL that the programs are made with
    ) -> None:
        self._backend_id = backend.get_id()
        self._programs = backend.get_programs()
        self._options = options

    @property
    def are_kept(self) -> bool:
        """Return whether the backend writes and reads programs at all."""
        return self._programs is not None

    def why_unfit(self, about: Mapping[str, object]) -> str:
        """Why the backend does not take a program of this description; empty if it does."""
        check = ask_method(
            self._backend_id, ProgramCheck, self._programs, "check", about, self._options
        )
        if check.fit is ProgramFit.ACCEPTED:
            return ""
        # The type of the answer was checked at the boundary, the types of its fields were not.
        fit = check.fit.value if isinstance(check.fit, ProgramFit) else describe(check.fit)
        return f"{fit}: {check.reason}"

    def load(self, saved: SavedProgram) -> object:
        """Let the backend load a program that it has accepted; its errors are raised."""
        program: object = ask_method(self._backend_id, object, self._programs, "load", saved)
        if program is None:
            where = f"{self._backend_id} / {IPrograms.__name__}.load"
            raise BackendError("it gives no program", where=where, actual="None")
        return program


class ArchivedPart(NamedTuple):
    """A part of a network in a compiled model."""

    backend_id: BackendId
    digest: str  # of the layers, see `part_digest`
    shapes: tuple[tuple[int, ...], ...]  # of the outputs
    working_bytes: int
    about: Mapping[str, object]  # for `IPrograms.check`
    read: Callable[[], SavedProgram]  # all of it, checked
    layers: tuple[int, ...] = ()  # their ids in the graph that was assigned to backends


class ArchivedParts:
    """All parts of a compiled model."""

    def __init__(
        self,
        # The preferred ones first, where there are several of the same layers.
        parts: Sequence[ArchivedPart],
        problem: str = "",  # why none of them may be used; empty if they may
        # By backend id, ids of layers that it has left as they are.
        kept: Mapping[BackendId, frozenset[int]] = MappingProxyType({}),
    ) -> None:
        self.parts = parts
        self.kept = kept
        self.problem = problem

    def prepare(
        self,
        graph: Graph,
        backend: IBackendInternal,
        view: SubgraphView,
        request: PreparationRequest,
        otherwise: Callable[[], OptimizationViews],
    ) -> OptimizationViews:
        """Take a part from the file, or act as without one."""
        of_backend = [part for part in self.parts if part.backend_id == backend.get_id()]
        if not of_backend:
            return otherwise()
        views, reason = self._taken(graph, backend, view, request, of_backend)
        shown = f"from the compiled model{': ' if reason else ''}{reason}"
        use = CacheUse(backend.get_id(), title_of(view), views is not None, shown)
        report_cache_use(use)
        return otherwise() if views is None else views

    def has(
        self, backend: IBackendInternal, view: SubgraphView, request: PreparationRequest
    ) -> bool:
        """Return whether the file has programs of a whole part that fit this machine."""
        of_backend = [part for part in self.parts if part.backend_id == backend.get_id()]
        if self.problem or not of_backend:
            return False
        pieces, left = _pieces(view, of_backend)
        programs = Programs(backend, request.model_options)
        return not left and all(
            any(not programs.why_unfit(part.about) for part in candidates)
            for _, candidates in pieces
        )

    def _taken(
        self,
        graph: Graph,
        backend: IBackendInternal,
        view: SubgraphView,
        request: PreparationRequest,
        parts: Sequence[ArchivedPart],
    ) -> tuple[OptimizationViews | None, str]:
        """The answer that a saved program gives, or why there is none."""
        if self.problem:
            return None, self.problem
        pieces, left = _pieces(view, parts)
        ids = self.kept.get(backend.get_id(), frozenset())
        # Layers that the backend left uncompiled when the file was written are not missing from it.
        if not pieces or not all(layer.id in ids for layer in left):
            return None, "it has no program of these layers"
        views = OptimizationViews()
        try:
            programs = Programs(backend, request.model_options)
            if not programs.are_kept:
                return None, "the backend takes no programs from files"
            for piece, candidates in pieces:
                compiled, reason = _compiled(programs, candidates)
                if compiled is None:
                    return None, reason
                views.substitutions.append(Substitution.by_operation(piece, compiled))
            if left:
                views.untouched.append(view.part(left))
            return check_answer(graph, f"{backend.get_id()} / load", view, views), ""
        # A saved program can cost a compilation, but no load.
        except ArmpyError as error:
            _log.warning("%s", error, exc_info=wants_traceback(_log))
            return None, str(error)


_Pieces: TypeAlias = list[tuple[SubgraphView, list[ArchivedPart]]]


def _pieces(view: SubgraphView, parts: Sequence[ArchivedPart]) -> tuple[_Pieces, list[Layer]]:
    """Return the pieces of a part with programs, each with these, and the layers without any."""
    # By contents and not by ids: a network that is specialised again has other layers' ids.
    digest = part_digest(view)
    whole = [part for part in parts if part.digest == digest]
    if whole:
        return [(view, whole)], []
    by_id = {layer.id: layer for layer in view.layers}
    candidates: dict[tuple[int, ...], list[ArchivedPart]] = {}
    for part in parts:
        # Ids are compared first: they cost nothing, and a digest reads every weight.
        if part.layers and by_id.keys() >= set(part.layers):
            candidates.setdefault(part.layers, []).append(part)
    pieces: _Pieces = []
    for ids, of_layers in candidates.items():
        # A piece that was found before may have taken some of them.
        if by_id.keys() >= set(ids):
            piece = view.part([by_id[number] for number in ids])
            same = [part for part in of_layers if part.digest == part_digest(piece)]
            if same:
                pieces.append((piece, same))
                for number in ids:
                    del by_id[number]
    return pieces, [layer for layer in view.layers if layer.id in by_id]


def _compiled(
    programs: Programs, candidates: Sequence[ArchivedPart]
) -> tuple[PreCompiled | None, str]:
    """The first program that can be used here, loaded; or why there is none."""
    reasons = []
    for part in candidates:
        try:
            # The description first: it is small, and reading a program checks all of its bytes.
            reason = programs.why_unfit(part.about)
            if not reason:
                program = programs.load(part.read())
                return PreCompiled(program, part.shapes, part.working_bytes), ""
            reasons.append(reason)
        except ArmpyError as error:  # the next one may be another machine's
            _log.warning("%s", error, exc_info=wants_traceback(_log))
            reasons.append(str(error))
    return None, "; ".join(dict.fromkeys(reasons))


def part_digest(view: SubgraphView) -> str:
    """Name a part by its contents; empty if the contents cannot be identified."""
    try:
        return digest_of(view).hex()
    # Nothing is saved under an empty name, so it matches no part.
    except UnknownContentsError:
        return ""


# In the context: plans that a load prepares deep inside must find them, other threads' not.
_CURRENT: ContextVar[ArchivedParts | None] = ContextVar("saved parts", default=None)


@contextmanager
def given_parts(parts: ArchivedParts | None) -> Iterator[None]:
    """Have parts taken from a file while networks are loaded and prepared."""
    token = _CURRENT.set(parts)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_parts() -> ArchivedParts | None:
    """The parts that may be taken now."""
    return _CURRENT.get()
