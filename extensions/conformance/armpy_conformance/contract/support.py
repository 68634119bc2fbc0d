"""Rules about what a backend answers when it is asked about layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from armpy.backend import OptionScope, PreparationRequest, ReasonCode, Support
from armpy.backend.options import default_options
from armpy.core.dataclass import dataclass
from armpy.graph import Layer
from armpy.graph.network import Network
from armpy.ops.operation import Operation
from armpy.plugins import BackendProxy
from armpy.tensor import Shape, TensorInfo
from armpy.types import DataType
from armpy_conformance.backend_under_test import BackendUnderTest, specialized
from armpy_conformance.cases import sample_cases
from armpy_conformance.contract.case import check
from armpy_conformance.description import describe

_STRIDE = 7
"""Every seventh case is asked about: enough to meet every operation."""


def asked_layers() -> list[Layer]:
    """Layers of many kinds."""
    return [layer for case in sample_cases()[::_STRIDE] for layer in specialized(case).layers]


def answers_have_reasons(subject: BackendUnderTest) -> None:
    """Each answer is a `Support`, and a no says why, in words and as a code."""
    for layer in asked_layers():
        answer = subject.raw_support(layer)
        where = f"the answer about {describe(layer.operation)}"
        check(isinstance(answer, Support), f"{where} is {answer!r}, not a Support")
        if isinstance(answer, Support) and not answer:
            check(
                isinstance(answer.text, str) and answer.text.strip(),
                f"{where} is a no without a reason",
            )
            check(
                isinstance(answer.code, ReasonCode),
                f"{where} has the code {answer.code!r}, which is not a ReasonCode",
            )


def answers_do_not_change(subject: BackendUnderTest) -> None:
    """The same question has the same answer, after other questions and from another instance."""
    layers = asked_layers()
    first = {layer: subject.raw_support(layer) for layer in layers}
    _check_same(first, {layer: subject.raw_support(layer) for layer in reversed(layers)})
    another = subject.another_instance()
    if another is not None:
        support = BackendProxy(another).get_layer_support(PreparationRequest())
        answers = {
            layer: support.is_layer_supported(
                layer.operation, layer.input_infos, layer.output_infos
            )
            for layer in layers
        }
        _check_same(first, answers)


def _check_same(first: Mapping[Layer, object], second: Mapping[Layer, object]) -> None:
    """Raise a `ViolationError` unless each layer has the same answer twice."""
    for layer, answer in first.items():
        check(
            answer == second[layer],
            f"the answer about {describe(layer.operation)} changes: {answer!r}, then "
            f"{second[layer]!r}",
        )


def open_shapes_are_answered(subject: BackendUnderTest) -> None:
    """A layer whose dimensions are not known yet gets an answer, not an exception."""
    options = default_options(subject.backend.options, OptionScope.MODEL)
    support = subject.raw_backend.get_layer_support(PreparationRequest(options))
    for layer in asked_layers():
        answer = support.is_layer_supported(
            layer.operation,
            [None if info is None else _opened(info) for info in layer.input_infos],
            [_opened(info) for info in layer.output_infos],
        )
        check(
            isinstance(answer, Support),
            f"the answer about {describe(layer.operation)} with open dimensions is {answer!r}",
        )


def _opened(info: TensorInfo) -> TensorInfo:
    """The same without its dimensions."""
    return info.with_shape((None,) * len(info.shape or ()))


@dataclass(frozen=True, slots=True)
class _NeverHeardOf(Operation):
    """An operation that no backend knows."""

    def infer_shapes(self, inputs: Sequence[TensorInfo]) -> tuple[Shape | None, ...]:
        return (inputs[0].shape,)


def unknown_operations_are_refused(subject: BackendUnderTest) -> None:
    """An operation that the backend cannot know gets a no."""
    net = Network("unknown")
    x = net.input("x", TensorInfo((2, 3), DataType.FLOAT32))
    net.output("y", net.add(_NeverHeardOf(), x, name="unknown"))
    (layer,) = net.build().layers
    answer = subject.raw_support(layer)
    check(
        isinstance(answer, Support) and not answer,
        f"an unknown operation is answered with {answer!r}",
    )
