"""A cluster without an engine: processes that get batches by pipes, some of which are killed."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np
import numpy.typing as npt

Table = Mapping[str, npt.NDArray[Any]]  # Any: columns of whatever type
Predict = Callable[[Table], dict[str, Any]]

LONGEST_S = 120.0
"""A batch that takes longer hangs."""


def work(predict: Predict, connection: Connection) -> None:
    """Answer batches, as an engine's worker does: columns cannot be written to."""
    while (batch := connection.recv()) is not None:
        for column in batch.values():
            column.setflags(write=False)
        before = {name: column.copy() for name, column in batch.items()}
        answer = predict(batch)
        for name, column in batch.items():
            np.testing.assert_array_equal(column, before[name])
        connection.send(answer)


class FakeCluster:
    """Workers of a predictor.

    `predict`: sent to each worker by pickling it.
    """

    def __init__(self, predict: Predict, num_workers: int) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._predict = predict
        self._workers: dict[Connection, BaseProcess] = {}
        for _ in range(num_workers):
            self._start()

    def _start(self) -> None:
        """Start a worker."""
        own, others = self._context.Pipe()
        process = self._context.Process(target=work, args=(self._predict, others), daemon=True)
        process.start()
        others.close()
        self._workers[own] = process

    def map(self, batches: Sequence[Table], kill: Sequence[int] = ()) -> list[dict[str, Any]]:
        """Answers in order; the worker that gets a batch of `kill` dies of it the first time."""
        answers: dict[int, dict[str, Any]] = {}
        left, killed = list(range(len(batches)))[::-1], set(kill)
        running: dict[Connection, int] = {}
        dead: set[Connection] = set()
        while len(answers) < len(batches):
            for connection, process in [*self._workers.items()]:
                if connection not in running and left:
                    running[connection] = left.pop()
                    connection.send(batches[running[connection]])
                    if running[connection] in killed:
                        killed.discard(running[connection])
                        process.kill()
                        dead.add(connection)  # it may have answered before
            ready = wait([*running], LONGEST_S)
            assert ready, "a worker hangs"
            for connection in [
                connection_ready for connection_ready in running if connection_ready in ready
            ]:
                number = running.pop(connection)
                try:
                    answers[number] = connection.recv()
                except (EOFError, OSError):  # nothing of an answer, or a part of it
                    assert connection in dead, "a worker ended by itself"
                    left.append(number)
                if connection in dead:
                    dead.discard(connection)
                    self._workers.pop(connection).join()
                    connection.close()
                    self._start()
        return [answers[number] for number in range(len(batches))]

    def __enter__(self) -> FakeCluster:
        return self

    def __exit__(self, *exc_info: object) -> None:
        for connection, process in self._workers.items():
            process.kill()
            process.join()
            connection.close()
