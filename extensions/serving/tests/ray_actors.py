"""Actors that tests watch and kill: each leaves its process's number in a folder."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from armpy_serving.ray.data import ActorPredictor


class WatchedPredictor(ActorPredictor):
    """A predictor that takes a while for each batch, and says where it runs."""

    def __init__(self, model: Any, arguments: Mapping[str, Any], folder: Path, pause_s: float):
        super().__init__(model, arguments)
        self._pause_s = pause_s
        (folder / str(os.getpid())).touch()

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        time.sleep(self._pause_s)
        answers = super().__call__(batch)
        return {**answers, "pid": np.full(len(batch["id"]), os.getpid())}


class Killer:
    """Kills one of the processes in a folder every so often, while a block runs."""

    def __init__(self, folder: Path, every_s: float) -> None:
        self._folder, self._every_s = folder, every_s
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self.killed: list[int] = []

    def _work(self) -> None:
        """Kill the one that was killed longest ago, or never."""
        while not self._ends.wait(self._every_s):
            for name in sorted(self._folder.iterdir(), key=lambda path: path.stat().st_mtime_ns):
                name.unlink()
                with suppress(ProcessLookupError):
                    os.kill(int(name.name), signal.SIGKILL)
                    self.killed.append(int(name.name))
                    break

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._ends.set()
        self._thread.join()
