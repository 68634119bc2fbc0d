"""Backends whose declarations cannot be true, or do not fit each other, each in one way."""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any  # members of any type

from armpy.backend import (
    BackendOption,
    Capability,
    DeviceFigures,
    DeviceInfo,
    IBackendInternal,
    ILayerSupport,
    PerformanceFigures,
    PreparationRequest,
    ReasonCode,
    Support,
)
from armpy.graph import Layer
from armpy.ops import Activation, ElementwiseBinary, Softmax
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType, DeviceType
from armpy_testing.backends.fake_backends import FakeBackend

from .faults import Planted

OPERATIONS = (Activation, ElementwiseBinary, Softmax)

_IDENTITY = "contract/identity/"
_SUPPORT = "contract/support/"


def saying(**members: object) -> Callable[[], IBackendInternal]:
    """Make a backend with other methods, or properties, than a right one."""
    return lambda: type("Saying", (FakeBackend,), dict(members))("Planted", OPERATIONS)


def _always(value: object) -> Callable[..., object]:
    """A method with one answer."""
    return lambda *_: value


def _in_turn(*values: object) -> Callable[..., object]:
    """A method with one answer after the other."""
    answers = itertools.cycle(values)
    return lambda *_: next(answers)


def _by_thread(here: object, elsewhere: object) -> Callable[..., object]:
    """A method with another answer in other threads than the main one."""
    return lambda *_: here if threading.current_thread() is threading.main_thread() else elsewhere


def _device(**named: Any) -> Callable[..., object]:
    """A method that lists one device."""
    return _always((DeviceInfo("npu", DeviceType.ACCELERATOR, **named),))


def _figures(time: float, power: float = 1.0) -> DeviceFigures:
    """Figures of float32."""
    return DeviceFigures({DataType.FLOAT32: PerformanceFigures(time, power)})


class Refusing(FakeBackend):
    """Refuses layers of float16, or all that are not of some operations, with other words."""

    def __init__(self, answer: Callable[[Support], Support], *, halves: bool = True) -> None:
        super().__init__("Planted", OPERATIONS)
        self._answer = answer
        self._refuses_halves = halves

    def supports(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        right = super().supports(operation, inputs, outputs)
        is_half = any(info.data_type is DataType.FLOAT16 for info in outputs)
        if right and is_half and self._refuses_halves:
            return self._answer(Support.no(ReasonCode.DATA_TYPE, "float16 is not supported"))
        return right if right or self._refuses_halves else self._answer(right)


def _code(code: object, *, halves: bool = True) -> Callable[[], IBackendInternal]:
    """A backend that refuses with a code."""

    def answer(right: Support) -> Support:
        return Support(False, code, right.text)  # type: ignore[arg-type]  # some are of no type

    return lambda: Refusing(answer, halves=halves)


class _ManyAnswers(ILayerSupport):
    """Answers about many layers in another way than about one."""

    def __init__(self, right: ILayerSupport, change: Callable[[list[Support]], object]) -> None:
        self._right = right
        self._change = change

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        return self._right.is_layer_supported(operation, inputs, outputs)

    def are_layers_supported(self, layers: Sequence[Layer]) -> Sequence[Support]:
        answers = [*self._right.are_layers_supported(layers)]
        return self._change(answers)  # type: ignore[return-value]  # wrong on purpose


class Many(FakeBackend):
    """Changes its answers about many layers."""

    def __init__(self, change: Callable[[list[Support]], object]) -> None:
        super().__init__("Planted", OPERATIONS)
        self._change = change

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        return _ManyAnswers(super().get_layer_support(request), self._change)


def _identity(said: str, **members: object) -> Planted:
    """A fault in what a backend says of itself."""
    return Planted(_IDENTITY, saying(**members), said)


_OPTION = BackendOption("level", 1, "Effort.", minimum=0)

DECLARATION_FAULTS: dict[str, Planted] = {
    "declared/version-of-words": _identity("version", version="release 3 of May"),
    "declared/version-of-lines": _identity("version", version="3.1\n"),
    "declared/version-changes": _identity("version", version=property(_in_turn("1.0", "1.1"))),
    "declared/contract-of-three-numbers": _identity("", get_api_version=_always("2.5.1")),
    "declared/contract-without-minor": _identity("", get_api_version=_always("2")),
    "declared/device-of-control-characters": _identity(
        "is called", get_devices=_always((DeviceInfo("npu\x07"),))
    ),
    "declared/device-with-blanks": _identity(
        "is called", get_devices=_always((DeviceInfo(" npu"),))
    ),
    "declared/level-of-the-driver": _identity(
        "feature level", get_devices=_device(feature_level=3)
    ),
    "declared/level-of-tomorrow": _identity("feature level", get_devices=_device(feature_level=35)),
    "declared/time-in-microseconds": _identity(
        "exec_time", get_devices=_device(figures=_figures(25_000.0))
    ),
    "declared/speed-for-time": _identity(
        "get_typical_figures", get_typical_figures=_always(_figures(1e6))
    ),
    "declared/no-time": _identity("exec_time", get_devices=_device(figures=_figures(0.0))),
    "declared/negative-power": _identity(
        "power_usage", get_devices=_device(figures=_figures(0.5, -1.0))
    ),
    "declared/infinite-time": _identity(
        "exec_time", get_devices=_device(figures=_figures(math.inf))
    ),
    "declared/time-is-nan": _identity("exec_time", get_devices=_device(figures=_figures(math.nan))),
    "declared/figures-in-nanoseconds": _identity(
        "exec_time", get_typical_figures=_always(_figures(1e-9))
    ),
    "declared/negative-memory": _identity("get_free_memory", get_free_memory=_always(-1)),
    "declared/memory-of-all-bits": _identity("get_free_memory", get_free_memory=_always(2**64 - 1)),
    "declared/memory-in-gigabytes": _identity("get_free_memory", get_free_memory=_always(7.5)),
    "declared/memory-now-and-then": _identity("then", get_free_memory=_in_turn(1 << 30, None)),
    "declared/capability-of-text": _identity(
        "Expected bool", get_capabilities=_always({Capability.NON_CONST_WEIGHTS: "yes"})
    ),
    "declared/capability-of-1": _identity(
        "Expected bool", get_capabilities=_always({Capability.NON_CONST_WEIGHTS: 1})
    ),
    "declared/capability-in-snake-case": _identity(
        "to be written", get_capabilities=_always({"non_const_weights": True})
    ),
    "declared/capability-of-a-list": _identity(
        "Expected", get_capabilities=_always({"Formats": ["NHWC"]})
    ),
    "declared/capabilities-by-thread": _identity(
        "in another thread",
        get_capabilities=_by_thread({Capability.NON_CONST_WEIGHTS: True}, {}),
    ),
    "declared/devices-by-thread": _identity(
        "in another thread",
        get_devices=_by_thread((DeviceInfo("npu"),), (DeviceInfo("cpu"),)),
    ),
    "declared/options-by-thread": _identity(
        "in another thread", options=property(_by_thread((), (_OPTION,)))
    ),
    "declared/operation-for-type": Planted(_SUPPORT, _code(ReasonCode.OPERATION), "is taken with"),
    "declared/quantization-for-type": Planted(
        _SUPPORT, _code(ReasonCode.QUANTIZATION), "no tensor is quantised"
    ),
    "declared/extension-for-type": Planted(
        _SUPPORT, _code(ReasonCode.EXTENSION), "it is of no extension"
    ),
    "declared/execution-for-type": Planted(
        _SUPPORT, _code(ReasonCode.EXECUTION), "nothing was prepared"
    ),
    "declared/preparation-for-operation": Planted(
        _SUPPORT, _code(ReasonCode.PREPARATION, halves=False), "nothing was prepared"
    ),
    "declared/number-for-code": Planted(_SUPPORT, _code(7), "not a ReasonCode"),
    "declared/text-for-code": Planted(_SUPPORT, _code("data_type"), "not a ReasonCode"),
    "declared/address-in-the-reason": Planted(
        _SUPPORT,
        lambda: Refusing(lambda right: Support.no(ReasonCode.DATA_TYPE, f"asked {object()!r}")),
        "changes",
    ),
    "declared/blank-reason": Planted(
        _SUPPORT,
        lambda: Refusing(lambda right: Support.no(ReasonCode.DATA_TYPE, " ")),
        "without a reason",
    ),
    "declared/answers-cut-off": Planted(_SUPPORT, lambda: Many(lambda a: a[:16]), "answers about"),
    "declared/answers-sorted": Planted(
        _SUPPORT, lambda: Many(lambda answers: sorted(answers, key=bool)), "are_layers_supported"
    ),
    "declared/answers-for-all": Planted(
        _SUPPORT, lambda: Many(lambda answers: [Support.yes() for _ in answers][:1]), "answers"
    ),
    "declared/answers-are-truth-values": Planted(
        _SUPPORT,
        lambda: Many(lambda answers: [bool(answer) for answer in answers]),
        "answers False",
    ),
    "declared/one-no-for-all": Planted(
        _SUPPORT,
        lambda: Many(
            lambda answers: (
                [Support.no(ReasonCode.OTHER, "part of the network is refused") for _ in answers]
            )
        ),
        "is_layer_supported takes it",
    ),
}
"""By name."""
