"""Preparation request: what an application wants of a network that a backend prepares, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field

from armpy.backend.options import NO_OPTIONS, OptionValues
from armpy.core.dataclass import dataclass
from armpy.errors import CompilationPostponedError
from armpy.graph import SubgraphView
from armpy.types import BackendId, Preference, Priority


@dataclass(frozen=True, eq=False, slots=True)
class PreparationRequest:
    """Request to prepare a network or a part of it: options, preference, priority, deadline.

    References
    ----------
    NNAPI ``IDevice::prepareModel_1_3``, ``relaxComputationFloat32toFloat16``.
    """

    # From a function: before Python 3.12 dataclasses take the mapping for a mutable default.
    model_options: OptionValues = field(default_factory=lambda: NO_OPTIONS)
    """Every declared option of scope MODEL, checked, with defaults."""
    preference: Preference = Preference.ORDER
    """Goal that the application prefers; ORDER if it names none."""
    priority: Priority = Priority.MEDIUM  # of the network's executions against those of others
    deadline_s: float | None = None
    """Time, by `time.perf_counter`, when the layers go to the next backend; None for no limit."""
    relaxed: bool = False
    """Whether float32 may be computed with the range and precision of float16.
    """


# In the context: backends compile deep inside of preparations, and other threads load, too.
_IS_POSTPONED: ContextVar[bool] = ContextVar("compilation is postponed", default=False)


@contextmanager
def postponed_compilation(postpones: bool = True) -> Iterator[None]:
    """Have backends postpone compilations in a block; for the core."""
    token = _IS_POSTPONED.set(postpones)
    try:
        yield
    finally:
        _IS_POSTPONED.reset(token)


def are_compilations_postponed() -> bool:
    """Return whether backends are to postpone compilations; for the core."""
    return _IS_POSTPONED.get()


LOOK_UP: ContextVar[Callable[[SubgraphView], tuple[bool, bytes]]] = ContextVar(
    "whether a part has a saved program that fits, and the digest of all that its compilation "
    "depends on, if that is known",
    default=lambda _: (False, b""),
)

KEEP_MODEL: ContextVar[Callable[[BackendId, str, bytes], None] | None] = ContextVar(
    "what keeps a model that an engine is about to get, by the id of its backend and the ending of "
    "its file's name",
    default=None,
)


def postpone_compilation(backend_id: BackendId, what: str, *, is_kept: bool) -> None:
    """Postpone a long compilation, if the caller does not wait for it.

    A backend calls it when it has looked for a stored program, has not found it, and would begin to
    compile. The core runs the layers on other backends then, and has the network prepared again
    in the background. Of backends that keep nothing themselves, the core does it.

    Parameters
    ----------
    what : str
        Name of what is compiled, for people: ``7 kernels``.
    is_kept : bool
        Whether what another process of the user's compiles is found by this one.

    Raises
    ------
    CompilationPostponedError
        If it is to be left for later; the backend lets it pass.
    """
    if _IS_POSTPONED.get():
        error = CompilationPostponedError(f"{what} would have to be compiled", where=backend_id)
        error.backend_id, error.is_kept = backend_id, is_kept
        raise error
