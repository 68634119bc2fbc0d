"""What a driver does wrong, on command: where, how, and which time."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from armpy.errors import BackendError, InvalidArgumentError

EATEN_BYTES = 1 << 30
"""Most that ``eat`` takes before it gives up: enough for a limit, too little for a machine."""


def _raise(_: str) -> None:
    raise BackendError("the device reports a failure", where="SampleFaulty")


def _raise_other(where: str) -> None:
    raise ZeroDivisionError(f"a mistake of the driver in {where!r}")


def _segfault(_: str) -> None:
    ctypes.string_at(0)


def _lose_a_process(_: str) -> None:
    """Start a process of the driver's own, which ends by a fault, and go on."""
    print("a process of the driver ends", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-c", "import os; os.abort()"], check=False)


def _kill(_: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _hang(_: str) -> None:
    while True:
        time.sleep(60)


def _eat(_: str) -> None:
    """Take memory and use it, until there is no more or it is enough."""
    pieces = []
    for _number in range(EATEN_BYTES >> 24):
        pieces.append(np.ones(1 << 24, np.uint8))
    raise MemoryError(f"{len(pieces)} pieces of 16 MiB were not enough")


DISASTERS: dict[str, Callable[[str], object]] = {
    "raise": _raise,
    "raise_other": _raise_other,
    "abort": lambda _: os.abort(),
    "segfault": _segfault,
    "child": _lose_a_process,
    "exit": lambda _: os._exit(0),
    "kill": _kill,
    "hang": _hang,
    "slow": lambda _: time.sleep(0.2),
    "eat": _eat,
}
"""By name: what can happen anywhere."""

LIES = {
    "support": ("refuse", "none"),
    "optimize": ("shapes", "drop", "none"),
    "prepare": ("none",),
    "save": ("none", "garbage"),
    "restore": ("none",),
    "execute": ("wrong", "nan", "unwritten", "inputs"),
}
"""Errors of the driver itself on request, by place."""

PLACES = ("load", "open", "support", "optimize", "prepare", "execute", "save", "restore", "close")
"""Where something can go wrong, in the order in which they come."""


@dataclass(eq=False, slots=True)
class Fault:
    """One thing that goes wrong."""

    place: str
    kind: str
    number: int = 0  # which time alone, counted from 1; 0 for always
    value: float | None = None  # only if the first element that is executed on is this
    num_asked: int = 0


class Faults:
    """The faults of a driver.

    Parameters
    ----------
    text : str
        ``place=kind`` with commas between: ``execute=abort`` is every execution,
        ``execute=abort:3`` the third one of the process, ``execute=abort@7`` those on inputs that
        begin with 7.

    Raises
    ------
    InvalidArgumentError
        If there is no such place or kind.
    """

    def __init__(self, text: str = "") -> None:
        self._lock = threading.Lock()
        self._faults = [_fault(part) for part in text.replace(" ", "").split(",") if part]

    def happen(self, place: str, value: float | None = None) -> set[str]:
        """Let disasters happen; returns the other faults that are due."""
        kinds = self._due(place, value)
        for kind in sorted(kinds & set(DISASTERS)):
            DISASTERS[kind](place)
        return kinds - set(DISASTERS)

    def _due(self, place: str, value: float | None) -> set[str]:
        """The kinds whose turn it is."""
        due = set()
        with self._lock:
            for fault in self._faults:
                if fault.place != place or fault.value not in (None, value):
                    continue
                fault.num_asked += 1
                if fault.number in (0, fault.num_asked):
                    due.add(fault.kind)
        return due


def _fault(part: str) -> Fault:
    place, _, rest = part.partition("=")
    rest, _, value = rest.partition("@")
    kind, _, number = rest.partition(":")
    allowed = (*DISASTERS, *LIES.get(place, ()))
    try:
        fault = Fault(place, kind, int(number or 0), float(value) if value else None)
    except ValueError:
        fault = None
    if fault is None or place not in PLACES or kind not in allowed or fault.number < 0:
        raise InvalidArgumentError(
            "the driver cannot fail like that",
            where="faults",
            expected=f"one of {', '.join(PLACES)}, an equals sign, and one of {', '.join(allowed)}",
            actual=repr(part),
        )
    return fault
