"""Many clients of a server, each of which holds every answer against what is right."""

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
        Answers that are not what they should be.
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

    given = grpc.InferInput("x", x.shape, np_to_triton_dtype(x.dtype))
    given.set_data_from_numpy(x)
    return client.infer(name, [given], **named).as_numpy("y")


def load_it(
    address: str, seconds: float, ask: Ask, meanwhile: Callable[[], None] | None = None
) -> Outcome:
    """Let all clients ask for some time; `meanwhile` is called again and again."""
    from tritonclient import grpc
    from tritonclient.utils import InferenceServerException

    outcome, lock, until = Outcome(), threading.Lock(), time.monotonic() + seconds

    def work(number: int) -> None:
        with grpc.InferenceServerClient(address) as client:
            turn = 0
            while time.monotonic() < until:
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
    while meanwhile is not None and time.monotonic() < until - 0.5:
        meanwhile()
    for thread in threads:
        thread.join(max(until + 60 - time.monotonic(), 0))
        assert not thread.is_alive(), "a client waits for ever"
    return outcome
