"""Saved programs: parts that a prepared file has compiled already."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from armpy.backend import (
    CacheUse,
    IBackendInternal,
    IPrograms,
    OptimizationViews,
    PreparationRequest,
    ProgramCheck,
    ProgramFit,
    SavedProgram,
    Substitution,
    report_cache_use,
)
from armpy.caching.digests import UnknownContentsError, digest_of
from armpy.errors import ArmpyError
from armpy.graph import Graph, SubgraphView
from armpy.logs import wants_traceback
from armpy.ops.backend_internal import PreCompiled
from armpy.optimizer.substitute import check_answer
from armpy.plugins.boundary import ask_method
from armpy.types import BackendId

_log = logging.getLogger("armpy.optimizer")


class SavedPart(NamedTuple):
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
    """

    backend_id: BackendId
    digest: str
    shapes: tuple[tuple[int, ...], ...]
    working_bytes: int
    about: Mapping[str, object]
    read: Callable[[], SavedProgram]


class SavedParts:
    """All parts of a prepared file.

    Parameters
    ----------
    parts : sequence of SavedPart
        The preferred ones first, where there are several of the same layers.
    problem : str
        Why none of them may be used; empty if they may.
    """

    def __init__(self, parts: Sequence[SavedPart], problem: str = "") -> None:
        self.parts = parts
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
        of_backend = [part for part in self.parts if part.backend_id == backend.backend_id]
        if not of_backend:
            return otherwise
        title = f"{len(view.layers)} layers from '{view.layers[0].name}'"

        def prepare() -> OptimizationViews:
            views, reason = self._taken(graph, backend, view, request, of_backend)
            shown = f"from the prepared file{': ' if reason else ''}{reason}"
            is_hit = views is not None
            report_cache_use(CacheUse(backend.backend_id, title, is_hit, shown))
            return otherwise() if views is None else views

        return prepare

    def _taken(
        self,
        graph: Graph,
        backend: IBackendInternal,
        view: SubgraphView,
        request: PreparationRequest,
        parts: Sequence[SavedPart],
    ) -> tuple[OptimizationViews | None, str]:
        """The answer that a saved program gives, or why there is none."""
        if self.problem:
            return None, self.problem
        digest = part_digest(view)
        parts = [part for part in parts if part.digest == digest]
        if not parts:
            return None, "it has no program of these layers"
        backend_id = backend.backend_id
        reasons = []
        for part in parts:
            try:
                programs = backend.get_programs()
                if programs is None:
                    return None, "the backend takes no programs from files"
                ask = (backend_id, ProgramCheck, programs, "check")
                check = ask_method(*ask, part.about, request.model_options)
                if check.fit is ProgramFit.ACCEPTED:
                    return _views(graph, backend_id, programs, view, part), ""
                reasons.append(f"{check.fit.value}: {check.reason}")
            except ArmpyError as error:
                _log.warning("%s", error, exc_info=wants_traceback(_log))
                reasons.append(str(error))
        return None, "; ".join(dict.fromkeys(reasons))


def _views(
    graph: Graph, backend_id: BackendId, programs: IPrograms, view: SubgraphView, part: SavedPart
) -> OptimizationViews:
    """The answer with a loaded program."""
    program = ask_method(backend_id, object, programs, "load", part.read())
    views = OptimizationViews()
    compiled = PreCompiled(program, part.shapes, part.working_bytes)
    views.substitutions.append(Substitution.by_operation(view, compiled))
    return check_answer(graph, f"{backend_id} / load", view, views)


def part_digest(view: SubgraphView) -> str:
    """What names a part by its contents; empty if it cannot be told what it consists of."""
    try:
        return digest_of(view).hex()
    except UnknownContentsError:
        return ""


_CURRENT: ContextVar[SavedParts | None] = ContextVar("saved parts", default=None)


@contextmanager
def given_parts(parts: SavedParts | None) -> Iterator[None]:
    """Have parts taken from a file while networks are loaded and prepared."""
    token = _CURRENT.set(parts)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_parts() -> SavedParts | None:
    """The parts that may be taken now."""
    return _CURRENT.get()
