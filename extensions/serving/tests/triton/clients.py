"""Many clients of a server, each of which checks every answer."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

CLIENTS = 32

Array = np.ndarray[Any, Any]


@dataclass
class Outcome:
    """What became of all requests.

    Parameters
    ----------
    right : int
    errors : Counter of str
        By text.
    wrong : list of str
        Wrong answers.
    """

    right: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


Ask = Callable[[Any, int, int], bool]
"""Asks once, given a client, its number and how often it has asked: whether the answer is right."""


def infer(client: Any, name: str, x: Array, **named: Any) -> Any:
    """Ask a model with an input ``x`` for its ``y``."""
    from tritonclient import grpc
    from tritonclient.utils import np_to_triton_dtype

    tensor = grpc.InferInput("x", x.shape, np_to_triton_dtype(x.dtype))
    tensor.set_data_from_numpy(x)
    return client.infer(name, [tensor], **named).as_numpy("y")


LIMIT_S = 180.0  # for what a test waits for under load, on a busy machine
LEAST = 100  # right answers


def load_it(
    address: str,
    seconds: float,
    ask: Ask,
    meanwhile: Callable[[], None] | None = None,
    is_enough: Callable[[Outcome], bool] = lambda outcome: outcome.right >= LEAST,
) -> Outcome:
    """Let all clients send requests.

    Parameters
    ----------
    address : str
        Of the server's gRPC port.
    seconds : float
        How long the clients send requests at least.
    ask : Ask
    meanwhile : callable, optional
        Called again and again while the clients send requests.
    is_enough : callable, optional
        Whether the test has seen what it waits for; the clients go on until it has, or until an
        answer is wrong.

    Raises
    ------
    AssertionError
        It has not been seen within `LIMIT_S`, or a client does not end.
    """
    from tritonclient import grpc
    from tritonclient.utils import InferenceServerException

    outcome, lock, is_over = Outcome(), threading.Lock(), threading.Event()
    begin_s = time.monotonic()

    def work(number: int) -> None:
        with grpc.InferenceServerClient(address) as client:
            turn = 0
            while not is_over.is_set():
                turn += 1
                try:
                    is_right = ask(client, number, turn)
                except InferenceServerException as error:
                    with lock:
                        outcome.errors[f"{error.status()}: {error.message()}"] += 1
                    time.sleep(0.01)
                    continue
                with lock:
                    outcome.right += is_right
                    if not is_right:
                        outcome.wrong.append(f"client {number}, turn {turn}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        while not outcome.wrong:
            passed_s = time.monotonic() - begin_s
            if passed_s >= seconds and is_enough(outcome):
                break
            assert passed_s < seconds + LIMIT_S, f"not enough in {passed_s:.0f} s: {outcome}"
            if meanwhile is None:
                time.sleep(0.05)
            else:
                meanwhile()
    finally:
        is_over.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "a client waits for ever"
    return outcome
