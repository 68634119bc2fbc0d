"""Backends whose declarations and answers cannot be true, or do not fit each other."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from armpy.backend import (
    BackendOption,
    Capability,
    DeviceFigures,
    DeviceInfo,
    IBackendInternal,
    ILayerSupport,
    OptionValues,
    PerformanceFigures,
    PreparationRequest,
    ReasonCode,
    Support,
)
from armpy.errors import BackendError, InvalidArgumentError
from armpy.graph import Layer
from armpy.ops import Activation, Convolution2d, ElementwiseBinary, Softmax
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType, DeviceType
from armpy_testing.backends.fake_backends import FakeBackend

from .planting import Planted
from .shapes import Plain

OPERATIONS = (Activation, ElementwiseBinary, Softmax)


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


_OPTION = BackendOption("level", 1, "Effort.", minimum=0)


class KnownShapesOnly(Plain):
    """Counts elements that it does not know."""

    def supports(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        for info in inputs:
            if info is not None:
                assert info.num_elements >= 0  # which asks for every dimension
        return super().supports(operation, inputs, outputs)


class Tired(Plain):
    """Refuses convolutions from the 40th question about one on."""

    def __init__(self) -> None:
        super().__init__()
        self._asked = count()

    def supports(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        if isinstance(operation, Convolution2d) and next(self._asked) >= 40:
            return Support.no(ReasonCode.DEVICE, "no contexts are left")
        return super().supports(operation, inputs, outputs)


class Renamed(FakeBackend):
    """Calls itself otherwise once it was asked about a layer."""

    was_asked = False

    def get_id(self) -> str:
        return "Planted2" if self.was_asked else "Planted"

    def get_devices(self) -> Sequence[DeviceInfo]:
        self.was_asked = True
        return super().get_devices()


class PrefersNothing(Plain):
    """Prefers a factory of tensors that it never registers."""

    def get_handle_factory_preferences(self) -> Sequence[str]:
        return ["Planted/pinned", *super().get_handle_factory_preferences()]


class Unusable(Plain):
    """Declares a choice that it does not know."""

    @property
    def options(self) -> Sequence[BackendOption]:
        return (BackendOption("mode", "fast", "How.", choices=("fast", "exact")),)

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        if options["mode"] == "exact":
            raise InvalidArgumentError("mode = 'exact' is unknown")
        return self


class UnusableEnd(Plain):
    """Declares a range whose end it does not take."""

    @property
    def options(self) -> Sequence[BackendOption]:
        return (BackendOption("level", 1, "Effort.", minimum=0, maximum=9),)

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        if options["level"] == 9:
            raise BackendError("no such level")
        return self


class TakesAnything(Plain):
    """Says yes to operations that it does not know."""

    def supports(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        return Support.yes()


DECLARATION_FAULTS: dict[str, Planted] = {
    "blind-declared/prefers-nothing": Planted(
        "contract/identity/preferences-can-be-met", PrefersNothing, said="Planted/pinned"
    ),
    "blind-declared/unusable": Planted("contract/options/choices-are-accepted", Unusable),
    "blind-declared/unusable-end": Planted("contract/options/choices-are-accepted", UnusableEnd),
    "blind-answer/tired": Planted("contract/support/answers-do-not-change", Tired),
    "declared/renamed": Planted(
        "contract/identity/id-is-constant", Renamed, said="Expected 'Planted'; got"
    ),
    "declared/takes-anything": Planted(
        "contract/support/unknown-operations-are-refused",
        TakesAnything,
        said="an unknown operation is answered",
    ),
    "declared/version-of-words": Planted(
        "contract/identity/versions-can-be-compared",
        saying(version="release 3 of May"),
        said="version",
    ),
    "declared/version-of-lines": Planted(
        "contract/identity/versions-can-be-compared", saying(version="3.1\n"), said="version"
    ),
    "declared/version-changes": Planted(
        "contract/identity/properties-are-constant",
        saying(version=property(_in_turn("1.0", "1.1"))),
        said="version",
    ),
    "declared/device-of-control-characters": Planted(
        "contract/identity/devices-can-be",
        saying(get_devices=_always((DeviceInfo("npu\x07"),))),
        said="is called",
    ),
    "declared/level-of-the-driver": Planted(
        "contract/identity/devices-can-be",
        saying(get_devices=_device(feature_level=3)),
        said="feature level",
    ),
    "declared/time-in-microseconds": Planted(
        "contract/identity/figures-are-plausible",
        saying(get_devices=_device(figures=_figures(25_000.0))),
        said="exec_time",
    ),
    "declared/negative-power": Planted(
        "contract/identity/figures-are-plausible",
        saying(get_devices=_device(figures=_figures(0.5, -1.0))),
        said="power_usage",
    ),
    "declared/figures-in-nanoseconds": Planted(
        "contract/identity/figures-are-plausible",
        saying(get_typical_figures=_always(_figures(1e-9))),
        said="exec_time",
    ),
    "declared/negative-memory": Planted(
        "contract/identity/free-memory-is-plausible",
        saying(get_free_memory=_always(-1)),
        said="get_free_memory",
    ),
    "declared/memory-in-gigabytes": Planted(
        "contract/identity/free-memory-is-plausible",
        saying(get_free_memory=_always(7.5)),
        said="get_free_memory",
    ),
    "declared/memory-now-and-then": Planted(
        "contract/identity/free-memory-is-plausible",
        saying(get_free_memory=_in_turn(1 << 30, None)),
        said="then",
    ),
    "declared/diagnosis-of-a-text": Planted(
        "contract/identity/diagnosis-is-lines",
        saying(get_diagnosis=_always("driver 3.1")),
        said="Expected a list",
    ),
    "declared/diagnosis-of-several-lines": Planted(
        "contract/identity/diagnosis-is-lines",
        saying(get_diagnosis=_always(["driver 3.1\nfirmware 7"])),
        said="Expected one line",
    ),
    "declared/endless-diagnosis": Planted(
        "contract/identity/diagnosis-is-lines",
        saying(get_diagnosis=_always(["driver 3.1"] * 1000)),
        said="1000 lines",
    ),
    "declared/capability-of-1": Planted(
        "contract/identity/capabilities-are-of-their-types",
        saying(get_capabilities=_always({Capability.NON_CONST_WEIGHTS: 1})),
        said="Expected bool",
    ),
    "declared/capability-in-snake-case": Planted(
        "contract/identity/capabilities-are-of-their-types",
        saying(get_capabilities=_always({"non_const_weights": True})),
        said="to be written",
    ),
    "declared/capability-of-a-list": Planted(
        "contract/identity/capabilities-are-of-their-types",
        saying(get_capabilities=_always({"Formats": ["NHWC"]})),
        said="Expected",
    ),
    "declared/capabilities-by-thread": Planted(
        "contract/identity/threads-get-the-same-facts",
        saying(get_capabilities=_by_thread({Capability.NON_CONST_WEIGHTS: True}, {})),
        said="in another thread",
    ),
    "declared/devices-by-thread": Planted(
        "contract/identity/threads-get-the-same-facts",
        saying(get_devices=_by_thread((DeviceInfo("npu"),), (DeviceInfo("cpu"),))),
        said="in another thread",
    ),
    "declared/options-by-thread": Planted(
        "contract/identity/threads-get-the-same-facts",
        saying(options=property(_by_thread((), (_OPTION,)))),
        said="in another thread",
    ),
    "declared/operation-for-type": Planted(
        "contract/support/codes-fit-their-refusals",
        _code(ReasonCode.OPERATION),
        said="is taken with",
    ),
    "declared/quantization-for-type": Planted(
        "contract/support/codes-fit-their-refusals",
        _code(ReasonCode.QUANTIZATION),
        said="no tensor is quantised",
    ),
    "declared/preparation-for-operation": Planted(
        "contract/support/codes-fit-their-refusals",
        _code(ReasonCode.PREPARATION, halves=False),
        said="nothing was prepared",
    ),
    "declared/number-for-code": Planted(
        "contract/support/answers-have-reasons", _code(7), said="not a ReasonCode"
    ),
    "declared/address-in-the-reason": Planted(
        "contract/support/answers-do-not-change",
        lambda: Refusing(lambda right: Support.no(ReasonCode.DATA_TYPE, f"asked {object()!r}")),
        said="changes",
    ),
    "declared/blank-reason": Planted(
        "contract/support/answers-have-reasons",
        lambda: Refusing(lambda right: Support.no(ReasonCode.DATA_TYPE, " ")),
        said="without a reason",
    ),
    "declared/answers-cut-off": Planted(
        "contract/support/many-answers-are-as-many-and-in-order",
        lambda: Many(lambda a: a[:16]),
        said="answers about",
    ),
    "declared/answers-sorted": Planted(
        "contract/support/many-answers-are-as-many-and-in-order",
        lambda: Many(lambda answers: sorted(answers, key=bool)),
        said="are_layers_supported",
    ),
    "declared/answers-are-truth-values": Planted(
        "contract/support/many-answers-are-as-many-and-in-order",
        lambda: Many(lambda answers: [bool(answer) for answer in answers]),
        said="answers False",
    ),
    "support/known-shapes-only": Planted(
        "contract/support/open-shapes-are-answered", KnownShapesOnly, said="Error"
    ),
    "options/undescribed": Planted(
        "contract/options/are-described",
        saying(options=property(_always((BackendOption("depth", 1, " "),)))),
        said="the option 'depth' has no help",
    ),
}
"""By class and name."""
