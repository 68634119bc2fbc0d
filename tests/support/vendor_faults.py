"""Faults that vendors make, in backends of five shapes, made up before the kit was tried on them."""

from __future__ import annotations

from collections.abc import Callable

from armpy.backend import IBackendInternal
from tests.support.planted_faults import Fault, Plain
from tests.support.vendor_devices import DEVICES
from tests.support.vendor_engine import ENGINE
from tests.support.vendor_loops import LOOPS
from tests.support.vendor_numbers import NUMBERS
from tests.support.vendor_programs import INT8, PROGRAMS, fused


def plain(make: Callable[[], Fault]) -> Callable[[], Plain]:
    return lambda: Plain(make())


SHAPES: dict[str, dict[str, Callable[[], IBackendInternal]]] = {
    "plain": {name: plain(make) for name, make in NUMBERS.items()},
    "fused": {**{name: fused(make) for name, make in INT8.items()}, **PROGRAMS},
    "engine": dict(ENGINE),
    "device": dict(DEVICES),
    "flow": dict(LOOPS),
}
"""By shape and name, what makes a backend with the fault."""
