"""The user's interrupt stops the application wherever a backend's code is running."""

from __future__ import annotations

import functools
import signal
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from armpy.backend import (
    IBackendContext,
    OptimizationViews,
    PreparationRequest,
)
from armpy.execution import Runtime
from armpy.graph import SubgraphView
from armpy.model import Model
from armpy_testing.backends.fake_backends import (
    CountingManager,
    FakeBackend,
    Handles,
    Outputs,
    Step,
    runtime_of,
)
from armpy_testing.models.networks import chain, diamond, floats

X = floats(-1, 0, 2, 5)


def send_at_once() -> None:
    """The user presses the keys now."""
    signal.raise_signal(signal.SIGINT)


def send_from_another_thread() -> None:
    """The user presses the keys while Python code is running."""
    threading.Timer(0.05, signal.raise_signal, (signal.SIGINT,)).start()
    end = time.monotonic() + 30
    while time.monotonic() < end:
        sum(range(100))


SENDERS = pytest.mark.parametrize("send", [send_at_once, send_from_another_thread])


def python_handler(number: int, frame: object) -> None:
    raise KeyboardInterrupt("from the application's handler")


class Application:
    """Handles the interrupt itself, with a raise statement."""

    def on_interrupt(self, number: int, frame: object) -> None:
        raise KeyboardInterrupt("from the application's method")


@pytest.fixture(
    params=[
        signal.default_int_handler,
        python_handler,
        Application().on_interrupt,
        functools.partial(python_handler),
    ],
    ids=["default", "function", "method", "partial"],
    autouse=True,
)
def handler(request: pytest.FixtureRequest) -> Iterator[None]:
    before = signal.signal(signal.SIGINT, request.param)
    yield
    signal.signal(signal.SIGINT, before)


class InterruptedBackend(FakeBackend):
    """Runs something in the place of its own work, once."""

    def __init__(self, place: str, what: Callable[[], None], **given: CountingManager) -> None:
        super().__init__("Busy", **given)  # type: ignore[arg-type]  # names of parameters
        self._place = place
        self._what = what

    def at(self, place: str) -> None:
        """Run it if this is the place."""
        if place == self._place:
            self._place = ""
            self._what()

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        self.at("optimize_subgraph")
        return super().optimize_subgraph_view(view, request)

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        try:
            self.at("execute")
        finally:  # what a careful backend would do
            step.right.execute(inputs, outputs)

    def create_backend_context(self, options: object) -> IBackendContext:
        return _Context(self)


class _Context(IBackendContext):
    def __init__(self, backend: InterruptedBackend) -> None:
        self._backend = backend

    def after_enqueue_workload(self, network_id: int) -> None:
        self._backend.at("after_enqueue_workload")


@SENDERS
@pytest.mark.parametrize("place", ["execute", "after_enqueue_workload"])
def test_the_users_interrupt_leaves_an_execution_and_the_model_works_afterwards(
    place: str, send: Callable[[], None]
) -> None:
    manager = CountingManager()
    model = Model(chain(), runtime_of(InterruptedBackend(place, send, memory_manager=manager)))
    with pytest.raises(KeyboardInterrupt):
        model(X)
    assert manager.held == 0
    np.testing.assert_array_equal(model(X), X + 3)


@SENDERS
def test_the_users_interrupt_leaves_the_loading_of_a_network(send: Callable[[], None]) -> None:
    runtime = runtime_of(InterruptedBackend("optimize_subgraph", send))
    with pytest.raises(KeyboardInterrupt):
        runtime.load_network(diamond())
    network = runtime.load_network(diamond())
    assert runtime.enqueue_workload(network, {"x": X})["y"].tolist() == [1, 1, 9, 21]


@SENDERS
def test_the_users_interrupt_leaves_the_making_of_a_runtime(send: Callable[[], None]) -> None:
    class Slow(FakeBackend):
        def create_backend_context(self, options: object) -> None:
            send()

    with pytest.raises(KeyboardInterrupt):
        runtime_of(Slow())
    assert isinstance(runtime_of(FakeBackend()), Runtime)


class OutOfTimeError(BaseException):
    """What an application's handler raises."""


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="there is no such signal here")
@pytest.mark.parametrize("kind", [OutOfTimeError, SystemExit, TimeoutError])
@pytest.mark.parametrize("place", ["optimize_subgraph", "execute"])
def test_what_a_handler_of_any_signal_raises_is_the_applications(
    place: str, kind: type[BaseException]
) -> None:
    def on_alarm(number: int, frame: object) -> None:
        raise kind("time is up")

    before = signal.signal(signal.SIGALRM, on_alarm)
    try:
        runtime = runtime_of(
            InterruptedBackend(place, functools.partial(signal.raise_signal, signal.SIGALRM))
        )
        with pytest.raises(kind, match="time is up"):
            Model(chain(), runtime)(X)
        np.testing.assert_array_equal(Model(chain(), runtime)(X), X + 3)
    finally:
        signal.signal(signal.SIGALRM, before)
