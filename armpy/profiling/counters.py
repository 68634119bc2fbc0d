"""Counters of a profile: what backends count."""

from __future__ import annotations

import math
import threading
import time
from dataclasses import replace

from armpy.backend import Counter, CounterKind
from armpy.core.dataclass import dataclass
from armpy.errors import InvalidArgumentError

MAX_SAMPLES = 100_000
"""Changes of counters that are kept for traces; the values themselves go on."""


@dataclass(frozen=True, slots=True)
class CounterValue:
    """Value of a backend's counter."""

    backend: str
    name: str
    unit: str
    kind: CounterKind
    description: str
    value: float = 0.0
    """Sum since the profile was cleared, or, of a gauge, the last value."""


@dataclass(frozen=True, slots=True)
class CounterSample:
    """The value that a counter has had from a moment on."""

    backend: str
    name: str
    time_us: float
    """Time by the clock of `time.perf_counter`."""
    value: float


class Counters:
    """The counters of all backends of one network; several threads may add to them."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], CounterValue] = {}
        self._samples: list[CounterSample] = []
        # Of both: backends add from threads of their own.
        self._lock = threading.Lock()

    def declare(self, backend: str, counter: Counter) -> None:
        """Announce a counter; once more is not a mistake, if it is the same.

        Raises
        ------
        InvalidArgumentError
            If it cannot be used, or there is another one of that name.
        """
        value = _declared(backend, counter)
        with self._lock:
            known = self._values.setdefault((backend, value.name), value)
        if replace(known, value=0.0) != value:
            raise InvalidArgumentError(
                "another counter of this name was declared",
                where=f"counter '{counter.name}'",
                expected=_described(known),
                actual=_described(value),
            )

    def add(self, backend: str, name: str, value: float) -> None:
        """Add to a counter of kind TOTAL, or set one of kind GAUGE.

        Raises
        ------
        InvalidArgumentError
            If no such counter was declared, or the value is not a finite number.
        """
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not math.isfinite(value):
            raise InvalidArgumentError(
                "a counter's value is not a finite number",
                where=f"counter {name!r}",
                expected="a finite number",
                actual=repr(value),
            )
        number = float(value)
        key = (backend, name)
        with self._lock:
            known = self._values.get(key)
            if known is None:
                names = [n for b, n in self._values if b == backend]
                raise InvalidArgumentError(
                    "no such counter was declared",
                    where=f"counter {name!r}",
                    expected=", ".join(map(repr, names)) or "declare_counter before",
                )
            if known.kind is CounterKind.TOTAL:
                number += known.value
            self._values[key] = replace(known, value=number)
            if len(self._samples) < MAX_SAMPLES:
                sample = CounterSample(backend, name, 1e6 * time.perf_counter(), number)
                self._samples.append(sample)

    @property
    def values(self) -> tuple[CounterValue, ...]:
        """Every counter, in order of declaration."""
        with self._lock:
            return tuple(self._values.values())

    @property
    def samples(self) -> tuple[CounterSample, ...]:
        """Every change, in order of time."""
        with self._lock:
            return tuple(self._samples)

    def clear(self) -> None:
        """Let totals begin with 0 again."""
        with self._lock:
            self._samples.clear()
            for key, known in self._values.items():
                if known.kind is CounterKind.TOTAL:
                    self._values[key] = replace(known, value=0.0)


def _declared(backend: str, counter: Counter) -> CounterValue:
    """Return a backend's declarations, in plain types."""
    texts = (counter.name, counter.unit, counter.description)
    if not all(isinstance(text, str) for text in texts):
        raise InvalidArgumentError(
            "the counter's name, unit or description is not text",
            where=f"counter {counter.name!r}",
            expected="texts",
            actual=", ".join(map(repr, texts)),
        )
    if not counter.name:
        raise InvalidArgumentError(
            "the counter has no name", where="counter ''", expected="a name that is not empty"
        )
    if not isinstance(counter.kind, CounterKind):
        raise InvalidArgumentError(
            "the counter's kind is unknown",
            where=f"counter {counter.name!r}",
            expected="a CounterKind",
            actual=repr(counter.kind),
        )
    # Plain texts: a subclass would bring code of the backend's along.
    name, unit, description = map(str.__str__, texts)
    return CounterValue(backend, name, unit, counter.kind, description)


def _described(value: CounterValue) -> str:
    return f"{value.kind.value} of unit {value.unit!r}, {value.description!r}"
