"""Tells what workers are confined to on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from armpy.core.processes.confinement import in_force
from armpy.core.processes.worker import Worker, WorkerSettings
from armpy.errors import DeadObjectError

_TIMEOUT_S = 30.0


class Checker:
    """Says in a worker what is in force."""

    def answer(self, request: object, descriptors: Sequence[int]) -> Mapping[str, object]:
        """What is in force, whatever the request."""
        return in_force()


def find_in_force() -> dict[str, str]:
    """What is in force in a confined worker on this machine, by name, in words.

    Notes
    -----
    Where no worker can be started, the only entry says why.
    """
    try:
        # In a process of its own, as rights that are given up never come back.
        worker = Worker(f"{__name__}:Checker", WorkerSettings(None, confined=True))
    except OSError as error:
        return {"processes": f"none can be started: {error}"}
    try:
        answer = worker.request(None, timeout_s=_TIMEOUT_S)
    except DeadObjectError as error:
        return {"processes": error.failed}
    finally:
        worker.stop()
    return {str(name): str(text) for name, text in answer.items()}
