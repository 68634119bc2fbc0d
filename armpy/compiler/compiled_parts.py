"""Saved programs: parts that a prepared file has compiled already."""

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
from armpy.core.vlog import wants_traceback
from armpy.errors import ArmpyError, BackendError
from armpy.graph import Graph, Layer, SubgraphView
from armpy.ops.backend_internal import PreCompiled
from armpy.plugins.proxy.guarded_call import ask_method, describe
from armpy.store.digests import UnknownContentsError, digest_of
from armpy.types import BackendId

_log = logging.getLogger("armpy.compiler")


class ArchivedPart(NamedTuple):
    """A part of a network in a prepared file.

    Parameters
    ----------
    backend_id : str
    digest : str
        Of the layers, see `part_digest`.
    shapes : tuple of tuple of int
        Of the outputs.
    working_bytes : int
        Memory of the program's own.
    about : mapping
        For `IPrograms.check`.
    read : callable
        Reads all of it, checked.
    layers : tuple of int
        Ids of the layers in the graph that was assigned to backends.
    """

    backend_id: BackendId
    digest: str
    shapes: tuple[tuple[int, ...], ...]
    working_bytes: int
    about: Mapping[str, object]
    read: Callable[[], SavedProgram]
    layers: tuple[int, ...] = ()


class ArchivedParts:
    """All parts of a prepared file.

    Parameters
    ----------
    parts : sequence of ArchivedPart
        The preferred ones first, where there are several of the same layers.
    problem : str
        Why none of them may be used; empty if they may.
    kept : mapping of str to set of int
        By backend id, ids of layers that it has left as they are.
    """

    def __init__(
        self,
        parts: Sequence[ArchivedPart],
        problem: str = "",
        kept: Mapping[BackendId, frozenset[int]] = MappingProxyType({}),
    ) -> None:
        self.parts = parts
        self.kept = kept
        self.problem = problem

    def preparation(
        self,
        graph: Graph,
        backend: IBackendInternal,
        view: SubgraphView,
        request: PreparationRequest,
        otherwise: Callable[[], OptimizationViews],
    ) -> Callable[[], OptimizationViews]:
        """What prepares a part: takes it from the file, or does what is done without one."""
        of_backend = [part for part in self.parts if part.backend_id == backend.get_id()]
        if not of_backend:
            return otherwise
        title = f"{len(view.layers)} layers from '{view.layers[0].name}'"

        def prepare() -> OptimizationViews:
            views, reason = self._taken(graph, backend, view, request, of_backend)
            shown = f"from the prepared file{': ' if reason else ''}{reason}"
            is_hit = views is not None
            report_cache_use(CacheUse(backend.get_id(), title, is_hit, shown))
            return otherwise() if views is None else views

        return prepare

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
        kept = self.kept.get(backend.get_id(), frozenset())
        # Layers that the backend left uncompiled when the file was written are not missing from it.
        if not pieces or not all(layer.id in kept for layer in left):
            return None, "it has no program of these layers"
        views = OptimizationViews()
        try:
            programs = backend.get_programs()
            if programs is None:
                return None, "the backend takes no programs from files"
            for piece, candidates in pieces:
                compiled, reason = _compiled(backend.get_id(), programs, candidates, request)
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
    """What of a part there are programs of, each with these, and the layers without any."""
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
    found: _Pieces = []
    for ids, of_layers in candidates.items():
        # A piece that was found before may have taken some of them.
        if by_id.keys() >= set(ids):
            piece = view.part([by_id[number] for number in ids])
            same = [part for part in of_layers if part.digest == part_digest(piece)]
            if same:
                found.append((piece, same))
                for number in ids:
                    del by_id[number]
    return found, [layer for layer in view.layers if layer.id in by_id]


def _compiled(
    backend_id: BackendId,
    programs: IPrograms,
    candidates: Sequence[ArchivedPart],
    request: PreparationRequest,
) -> tuple[PreCompiled | None, str]:
    """The first program that can be used here, loaded; or why there is none."""
    reasons = []
    for part in candidates:
        try:
            # The description first: it is small, and reading a program checks all of its bytes.
            reason = why_unfit(backend_id, programs, part.about, request.model_options)
            if not reason:
                program = loaded_program(backend_id, programs, part.read())
                return PreCompiled(program, part.shapes, part.working_bytes), ""
            reasons.append(reason)
        except ArmpyError as error:  # the next one may be another machine's
            _log.warning("%s", error, exc_info=wants_traceback(_log))
            reasons.append(str(error))
    return None, "; ".join(dict.fromkeys(reasons))


def why_unfit(
    backend_id: BackendId, programs: IPrograms, about: Mapping[str, object], options: OptionValues
) -> str:
    """Why a backend does not take a program of this description; empty if it does.

    Raises
    ------
    ArmpyError
        If it fails to say.
    """
    check = ask_method(backend_id, ProgramCheck, programs, "check", about, options)
    if check.fit is ProgramFit.ACCEPTED:
        return ""
    # The type of the answer was checked at the boundary, the types of its fields were not.
    fit = check.fit.value if isinstance(check.fit, ProgramFit) else describe(check.fit)
    return f"{fit}: {check.reason}"


def loaded_program(backend_id: BackendId, programs: IPrograms, saved: SavedProgram) -> object:
    """Let a backend load a program that it has accepted.

    Raises
    ------
    ArmpyError
        If it does not.
    """
    program: object = ask_method(backend_id, object, programs, "load", saved)
    if program is None:
        where = f"{backend_id} / {IPrograms.__name__}.load"
        raise BackendError("it gives no program", where=where, actual="None")
    return program


def part_digest(view: SubgraphView) -> str:
    """What names a part by its contents; empty if it cannot be told what it consists of."""
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
