"""Health of served models: whether requests can be answered, and on which backends."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager

from armpy import IsolationStatus, Model
from armpy.core.dataclass import dataclass
from armpy.errors import (
    ArmpyError,
    BackendUnavailableError,
    DeadObjectError,
    GraphValidationError,
    InvalidArgumentError,
    LayerValidationError,
)
from armpy_serving.contents import Array
from armpy_serving.status import status_of

IDLE_S = 30.0
"""Time without an answer after which a model is tried when its health is requested."""

STATEFUL_RETRY_S = 10.0
"""Time after which a model with state is called healthy again: only a request can try it."""

_WAIT_S = 0.5
"""Time that a trial is waited for: servers' clients ask for readiness with time limits of 1 s."""

_log = logging.getLogger("armpy_serving")


@dataclass(frozen=True, slots=True)
class HealthRules:
    """Rules by which a model counts as able to answer."""

    hang_s: float = 30.0
    """Time after which an unanswered request, or a trial, counts as hanging."""
    needs_compiled: bool = False
    """Whether a model is unhealthy while it is compiled in the background."""


def check_model(model: object, where: str) -> None:
    """Check that an object is a model; InvalidArgumentError, which names `where`, if it is not."""
    if not isinstance(model, Model):
        raise InvalidArgumentError(
            "there is no model to run",
            where=where,
            expected="what armpy.load gave",
            actual=type(model).__name__,
        )


class ModelHealth:
    """Decides whether a model can answer: by its latest answers, else by a run with zeros.

    Used by several threads.

    Notes
    -----
    A request that fails by the server's fault starts a trial when the health is requested next, and
    so does a model that has answered nothing for `IDLE_S`. Trials run beside requests, one at a
    time, and end after `HealthRules.hang_s`, with which an isolated backend that hangs is replaced.
    A model with state (LSTM, SVDF) is not tried, as a run would change it.
    """

    def __init__(self, model: Model, rules: HealthRules | None = None) -> None:
        self.model = model
        self._rules = rules or HealthRules()
        self._lock = threading.Lock()
        self._running: dict[int, float] = {}  # begin of each run, by its number
        self._number = 0
        self._answered_s = time.monotonic()
        self._failure = ""
        self._failed_s = 0.0
        self._trial: Future[dict[str, Array]] | None = None

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Note how a run of the model ends, and when it has begun."""
        with self._lock:
            self._number += 1
            number = self._number
            self._running[number] = time.monotonic()
        error: BaseException | None = None
        try:
            yield
        except BaseException as raised:
            error = raised
            raise
        finally:
            del self._running[number]
            self._ended(error)

    def problem(self, wait_s: float = _WAIT_S) -> str:
        """Reason why requests cannot be answered; empty if they can, as far as is known.

        Parameters
        ----------
        wait_s : float
            Time to wait for a trial that is needed; without its end, what was known before counts.
        """
        if self.model.is_closed:
            return "the model is closed"
        now_s = time.monotonic()
        running_s = now_s - min([*self._running.values()], default=now_s)
        if running_s > self._rules.hang_s:
            return f"a request has been running for {running_s:.0f} s"
        if self._rules.needs_compiled and (reason := _why_not_compiled(self.model)):
            return reason
        if self._failure or now_s - self._answered_s > IDLE_S:
            self._try(wait_s)
        return self._failure

    def _try(self, wait_s: float) -> None:
        """Run the model with zeros, unless that is under way."""
        if has_state(self.model):
            if time.monotonic() - self._failed_s > STATEFUL_RETRY_S:
                self._failure = ""
            return
        with self._lock:
            trial = self._trial
            if trial is None:
                try:
                    trial = self.model.start(zero_inputs(self.model), deadline_s=self._rules.hang_s)
                except ArmpyError as error:
                    self._note(error, trial=True)
                    return
                self._trial = trial
                trial.add_done_callback(self._tried)
        try:
            trial.exception(wait_s)
        except TimeoutError:
            return
        self._tried(trial)  # callbacks come after those who wait

    def _tried(self, trial: Future[dict[str, Array]]) -> None:
        """Note the end of a trial."""
        if self._trial is trial:
            self._trial = None
        error = trial.exception()
        # Inputs that the model refuses show that it works: sizes of open dimensions are guesses.
        self._note(
            None if error is not None and status_of(error).http == 400 else error, trial=True
        )

    def _ended(self, error: BaseException | None) -> None:
        """Note the end of a request's run."""
        if error is None or is_fault(error):
            self._note(error)

    def _note(self, error: BaseException | None, *, trial: bool = False) -> None:
        """Keep what is known of the model now."""
        now_s = time.monotonic()
        if error is None:
            self._answered_s, self._failure = now_s, ""
            return
        about = "a trial has failed" if trial else "a request has failed"
        self._failed_s, self._failure = now_s, f"{about}: {error}"


def is_fault(error: BaseException) -> bool:
    """Return whether an error is a fault of the backend or server, which others may meet, too."""
    is_gone = isinstance(error, (DeadObjectError, BackendUnavailableError))
    return is_gone or status_of(error).http == 500


def has_state(model: Model) -> bool:
    """Return whether runs change the model's variables."""
    return not model.is_light and bool(model.graph.variables)


def zero_inputs(model: Model) -> dict[str, Array]:
    """Inputs of zeros in the default shapes; open dimensions without a default are 1."""
    pairs = zip(model.inputs, model.default_shapes, strict=True)
    return {
        spec.name: spec.data_type.zeros(shape or [size or 1 for size in spec.shape or ()])
        for spec, shape in pairs
    }


def run_ahead(model: Model) -> bool:
    """Run a model once, so that no request waits for a preparation; return whether it could be.

    It is run with zeros, unless that would change its variables. `Model.warm_up` would also wait
    for what is compiled in the background.
    """
    if has_state(model):
        return False
    try:
        model.run(zero_inputs(model))
    except (InvalidArgumentError, LayerValidationError, GraphValidationError) as error:
        # Layers do not take what the file leaves open at its smallest.
        _log.info("'%s' was not run ahead of requests: %s", model.title, error)
        return False
    return True


def _why_not_compiled(model: Model) -> str:
    """Reason why a model does not run its compiled code yet; empty if it does."""
    compilation = None if model.placement is None else model.placement.compilation
    if compilation is None or compilation.state == "done":
        return ""
    return str(compilation)


@dataclass(frozen=True, slots=True)
class BackendShare:
    """Share of a model's layers that run on a backend."""

    backend: str
    share: float  # 0 to 1


@dataclass(frozen=True, slots=True)
class BackendUse:
    """Backends of a model: the intended one, and those that run its layers."""

    intended: str
    """Most preferred backend."""
    shares: tuple[BackendShare, ...]
    fallback_share: float
    """Share of the layers that run elsewhere than intended; without those that placement by cost
    has put elsewhere."""


def backend_use(model: Model) -> BackendUse | None:
    """Where a model's layers run; None while it is closed, or not prepared for any shapes."""
    placement = None if model.is_closed else model.placement
    if placement is None:
        return None
    layers = placement.layers_by_backend
    total = sum(layers.values())
    if not total:
        return None
    if not model.is_light:
        intended = model.runtime.backends[0].get_id()
    elif placement.fallbacks and placement.refusals:
        intended = placement.refusals[0].backend
    else:
        intended = next(iter(layers))
    elsewhere = placement.fallbacks
    if placement.basis == "order":
        elsewhere = total - layers.get(intended, 0)
    shares = {intended: 0, **layers}
    return BackendUse(
        str(intended),
        tuple(BackendShare(str(name), count / total) for name, count in shares.items()),
        elsewhere / total,
    )


@dataclass(frozen=True, slots=True)
class BackendFailures:
    """Failures of an isolated backend's processes."""

    backend: str
    count: int
    quarantine_left_s: float


def backend_failures(models: Sequence[Model]) -> list[BackendFailures]:
    """Failures of each isolated backend of some models, closed ones left out."""
    by_backend: dict[str, list[IsolationStatus]] = {}
    for model in models:
        if not (model.is_closed or model.is_light):
            for name, status in model.runtime.isolation.items():
                by_backend.setdefault(str(name), []).append(status)
    return [
        BackendFailures(
            name,
            sum(status.num_failures for status in all_of_it),
            max(status.quarantine_left_s for status in all_of_it),
        )
        for name, all_of_it in by_backend.items()
    ]
