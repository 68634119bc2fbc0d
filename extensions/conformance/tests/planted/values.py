"""Backends whose arithmetic, attributes or options are wrong in ways that single cases hide."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from armpy.backend import (
    BackendOption,
    IBackendInternal,
    IWorkload,
    IWorkloadFactory,
    Lifetime,
    NetworkResources,
    OptionValues,
)
from armpy.ops.operation import Array, Operation
from armpy.tensor import TensorInfo
from armpy_testing.backends.fake_backends import Step

from ..breaking_memory import DeviceArena, with_arenas
from .faults import (
    SAVED,
    Call,
    Factory,
    Fault,
    Fused,
    Plain,
    Planted,
    spoil,
)

_ALIKE = "contract/alike/layers"
_OPTIONS = "contract/alike/runtimes"
_SOAK = "contract/lifecycle/executions-go-on"
_ARENAS = "contract/arenas/"
_ATTRIBUTES = ("axis", "beta", "a", "function", "operation", "stride", "half_pixel_centers")


class OneRowTooSmall(DeviceArena):
    """Plans one row too few for the first tensor, which the second one begins in."""

    def create_tensor_handle(self, info: TensorInfo, lifetime: Lifetime, offset_bytes: int):  # type: ignore[no-untyped-def]
        row_bytes = info.size_bytes // max(info.known_shape[0], 1) if info.known_shape else 0
        return super().create_tensor_handle(info, lifetime, max(0, offset_bytes - row_bytes))


# --- Sums and roundings


class SumsFloat16(Fault):
    """Sums of float16 are rounded at each step, and the device does not declare it."""

    def after(self, call: Call) -> None:
        first, name = call.inputs[0], call.operation.name
        if first is None or first.dtype != np.float16 or call.outputs[0].dtype != np.float16:
            return
        with np.errstate(all="ignore"):
            if name == "FullyConnected" and first.ndim == 2:
                self._multiply(call, first)
            elif name == "Reduce" and call.operation.attributes()["operation"].name == "SUM":
                self._sum(call, first)

    def _multiply(self, call: Call, first: Array) -> None:
        """Add product after product."""
        weights = call.inputs[1]
        total = np.zeros(call.outputs[0].shape, np.float16)
        for k in range(first.shape[1]):
            total += (first[:, k : k + 1] * weights[:, k]).astype(np.float16)  # type: ignore[index]
        bias = call.inputs[2] if len(call.inputs) > 2 else None
        if call.operation.attributes()["activation"].name == "NONE":
            call.outputs[0][...] = total if bias is None else total + bias

    def _sum(self, call: Call, first: Array) -> None:
        """Add element after element."""
        axes = call.operation.attributes()["axes"] or range(first.ndim)
        moved = np.moveaxis(first, tuple(axes), tuple(range(len(tuple(axes)))))
        total = np.zeros(moved.shape[len(tuple(axes)) :], np.float16)
        for part in moved.reshape(-1, *total.shape):
            total += part
        call.outputs[0][...] = total.reshape(call.outputs[0].shape)


@dataclass
class Quantizes(Fault):
    """Halves are rounded otherwise when real or stored numbers are quantised."""

    rounds: Callable[[Array], Array]  # rounds to whole numbers
    of_stored: bool  # whether it is stored numbers, or real ones

    def after(self, call: Call) -> None:
        read, result = call.infos[0], call.results[0]
        if call.operation.name != "Quantize" or read is None or call.inputs[0] is None:
            return
        is_stored = read.quantization is not None
        if is_stored is not self.of_stored or call.operation.attributes()["rounds_to_even"]:
            return
        quantization = result.quantization
        if quantization is None or len(quantization.scales) != 1:
            return
        real = call.inputs[0].astype(np.float64)
        if read.quantization is not None:
            if len(read.quantization.scales) != 1:
                return
            zero_points = read.quantization.zero_points or (0,)
            real = (real - zero_points[0]) * np.float32(read.quantization.scales[0])
        low, high = result.data_type.integer_range
        with np.errstate(all="ignore"):
            steps = real / np.float32(quantization.scales[0])
            rounded = self.rounds(np.nan_to_num(steps, posinf=1e6, neginf=-1e6))
            call.outputs[0][...] = np.clip(
                rounded + (quantization.zero_points or (0,))[0], low, high
            )


def _up(steps: Array) -> Array:
    """Halves up."""
    return np.floor(steps + 0.5)


def _away(steps: Array) -> Array:
    """Halves away from zero."""
    return np.copysign(np.floor(np.abs(steps) + 0.5), steps)


# --- Attributes and options


class IgnoresAttributes(Fault):
    """Prepares a layer once for all layers of its kind that read the same."""

    def __init__(self) -> None:
        self._made: dict[object, IWorkload] = {}

    def wrap(self, step: Step) -> IWorkload:
        _, operation, info = step
        if any(array is not None for array in info.constants):
            return step.right
        return self._made.setdefault((operation.name, info.inputs, info.outputs), step.right)


@dataclass
class EqualLayers(Fault):
    """A compiler takes layers for equal that differ in one attribute."""

    attribute: str
    _first: dict[object, object] = field(default_factory=dict)

    def operation(self, operation: Operation, how: str) -> Operation:
        attributes = operation.attributes()
        if how != "compiled" or self.attribute not in attributes:
            return operation
        others = tuple((k, repr(v)) for k, v in attributes.items() if k != self.attribute)
        key = (operation.name, others)
        first = self._first.setdefault(key, attributes[self.attribute])
        return operation.with_attributes(**{self.attribute: first})


@dataclass
class Fractions(Fault):
    """Fractions among attributes are lost when a program is compiled, or comes from a file."""

    how: str
    digits: int  # that are kept

    def operation(self, operation: Operation, how: str) -> Operation:
        floats = {k: v for k, v in operation.attributes().items() if isinstance(v, float)}
        if how != self.how or not floats:
            return operation
        changed = {k: round(v, self.digits) if np.isfinite(v) else v for k, v in floats.items()}
        try:
            return operation.with_attributes(**changed)
        except Exception:  # noqa: BLE001 - 0 is not allowed there
            return operation


class LastOptionWins(Plain):
    """Looks at the options of the runtime that was made last."""

    now = False

    def __init__(self, is_exact: bool = False) -> None:
        super().__init__()
        self._is_exact = is_exact

    @property
    def options(self) -> Sequence[BackendOption]:
        return (BackendOption("exact", False, "Whether sums are exact."),)

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        LastOptionWins.now = bool(options["exact"])
        return LastOptionWins(LastOptionWins.now)

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        planned = self._is_exact

        class Planned(Fault):
            def after(self, call: Call) -> None:
                if planned is not LastOptionWins.now:
                    spoil(call.outputs[0])

        return Factory(Planned())


# --- Once in a while


@dataclass
class Once(Fault):
    """Something happens in one of many executions."""

    period: int
    action: Callable[[Call], object]
    _count: int = 0

    def after(self, call: Call) -> None:
        self._count += 1
        if self._count % self.period == 0:
            self.action(call)


VALUE_FAULTS: dict[str, Planted] = {
    "arenas/one-row-too-small": Planted(_ARENAS, lambda: with_arenas(OneRowTooSmall)),
    "numerics/float16-products": Planted(
        "FullyConnected/", lambda: Plain(SumsFloat16()), "elements are wrong"
    ),
    "numerics/float16-sums": Planted("Reduce/", lambda: Plain(SumsFloat16())),
    "halves/quantize-up": Planted("Quantize/", lambda: Plain(Quantizes(_up, of_stored=False))),
    "halves/quantize-to-even": Planted(
        "Quantize/", lambda: Plain(Quantizes(np.rint, of_stored=False))
    ),
    "halves/requantize-away": Planted("Quantize/", lambda: Plain(Quantizes(_away, of_stored=True))),
    "halves/requantize-to-even": Planted(
        "Quantize/", lambda: Plain(Quantizes(np.rint, of_stored=True))
    ),
    "alike/attributes-ignored": Planted(
        _ALIKE, lambda: Plain(IgnoresAttributes()), "differ in one attribute"
    ),
    **{
        f"alike/equal-but-for-{attribute}": Planted(
            _ALIKE, partial(lambda name: Fused(EqualLayers(name)), attribute)
        )
        for attribute in _ATTRIBUTES
    },
    "attributes/fractions-compiled": Planted(_ALIKE, lambda: Fused(Fractions("compiled", 0))),
    "attributes/fractions-loaded": Planted(SAVED, lambda: Fused(Fractions("loaded", 0))),
    "options/last-runtime-wins": Planted(_OPTIONS, LastOptionWins, "with two runtimes"),
    "soak/wrong-once": Planted(
        _SOAK,
        lambda: Plain(Once(600, lambda call: spoil(call.outputs[0]))),
        "in execution 600",
        soak=1000,
    ),
    "soak/stalls-once": Planted(
        _SOAK, lambda: Plain(Once(400, lambda _: time.sleep(1.0))), "The median", soak=500
    ),
}
"""By name."""
