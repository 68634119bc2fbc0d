"""Backends that are wrong on purpose, each in one way."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from armpy.backend import (
    HostTensorHandle,
    ILayerSupport,
    IWorkload,
    OptimizationViews,
    PreparationRequest,
    ReasonCode,
    Support,
)
from armpy.execution import RuntimeOptions
from armpy.graph import Layer, SubgraphView
from armpy.ops import (
    Activation,
    ActivationFunction,
    ArgMinMax,
    ArgMinMaxFunction,
    BinaryOperation,
    Convolution2d,
    ElementwiseBinary,
    FullyConnected,
    PreCompiled,
    TransposeConvolution2d,
)
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_testing.backends.dynamic_modules import module_source, write_module
from armpy_testing.backends.fake_backends import (
    CompilingBackend,
    FakeBackend,
    FakeFactory,
    Handles,
    Outputs,
    Step,
)

Tamper = Callable[[Operation, list[Array], list[Array]], None]
"""Spoils inputs or outputs after the right answer was computed."""

OPERATIONS = (ElementwiseBinary, Activation)
"""What it supports unless told otherwise."""


class Tampering(FakeBackend):
    """Spoils its results."""

    def __init__(self, tamper: Tamper, operations: Collection[type] | None = OPERATIONS) -> None:
        super().__init__("Liar", operations)
        self._tamper = tamper

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        step.right.execute(inputs, outputs)
        sources = [handle.map() for handle in inputs if handle is not None]
        self._tamper(step.operation, sources, [handle.map() for handle in outputs])


def adds_one(_: Operation, __: list[Array], outputs: list[Array]) -> None:
    """Make every output wrong."""
    for output in outputs:
        np.add(output, np.ones((), output.dtype), out=output)


class KeepsConstants(FakeBackend):
    """Finds converted constants by shapes and types, whatever their elements are."""

    def __init__(self) -> None:
        super().__init__("Liar", (TransposeConvolution2d,))
        self._kept: dict[str, tuple[Array | None, ...]] = {}

    def wrap(self, step: Step) -> IWorkload:
        _, operation, info = step
        key = repr((operation, info.inputs, info.outputs, [c is None for c in info.constants]))
        constants = self._kept.setdefault(key, info.constants)
        return FakeFactory().create_workload(operation, replace(info, constants=constants))


def gives_nan(_: Operation, __: list[Array], outputs: list[Array]) -> None:
    """Make one element NaN."""
    if outputs[0].dtype.kind == "f" and outputs[0].size:
        outputs[0].flat[0] = np.nan


def drops_nan(_: Operation, __: list[Array], outputs: list[Array]) -> None:
    """Make numbers of NaN, as maxima and clamps do whose comparisons are false."""
    for output in outputs:
        if output.dtype.kind == "f":
            np.copyto(output, np.zeros((), output.dtype), where=np.isnan(output))


def spreads_nan(_: Operation, inputs: list[Array], outputs: list[Array]) -> None:
    """Make NaN of the first element if there is one in the input, as zeros times it do."""
    if np.isnan(inputs[0]).any() and outputs[0].size:
        outputs[0].flat[0] = np.nan


def passes_over_nan(operation: Operation, inputs: list[Array], outputs: list[Array]) -> None:
    """Look for the best of the other elements, as comparisons do that are false."""
    assert isinstance(operation, ArgMinMax)
    if inputs[0].dtype.kind == "f":
        is_max = operation.function is ArgMinMaxFunction.MAX
        values = np.where(np.isnan(inputs[0]), -np.inf if is_max else np.inf, inputs[0])
        axis = operation.axis or 0
        outputs[0][...] = values.argmax(axis) if is_max else values.argmin(axis)


def integers_of_nan_are_lowest(_: Operation, inputs: list[Array], outputs: list[Array]) -> None:
    """Make the lowest integer of NaN, as conversions of x86 do."""
    if inputs[0].dtype.kind == "f" and outputs[0].dtype.kind in "iu":
        outputs[0][np.isnan(inputs[0])] = np.iinfo(outputs[0].dtype).min


def nan_equals(_: Operation, inputs: list[Array], outputs: list[Array]) -> None:
    """Say the opposite of pairs with NaN, as negated comparisons do."""
    if all(array.dtype.kind == "f" for array in inputs):
        outputs[0][...] ^= np.isnan(inputs[0]) | np.isnan(inputs[1])


def wrong_maxima(operation: Operation, _: list[Array], outputs: list[Array]) -> None:
    """Make what MAXIMUM gives wrong."""
    if operation == ElementwiseBinary(BinaryOperation.MAXIMUM):
        for output in outputs:
            np.add(output, np.asarray(50, output.dtype), out=output)


def ends_at_maxima(operation: Operation, _: list[Array], __: list[Array]) -> None:
    """End the process when a maximum has been computed."""
    if operation == ElementwiseBinary(BinaryOperation.MAXIMUM):
        os._exit(3)


def write_liar(folder: Path, how: str) -> RuntimeOptions:
    """Write a module with a backend 'Liar', for processes that find it by options.

    `folder`: made if it is not there.
    `how`: an expression that makes the backend, of `Tampering` and `lying_backends`.
    """
    factory = f"""
    def backend_factory():
        from {__package__} import lying_backends
        from {__package__}.lying_backends import Tampering
        return {how}
    """
    write_module(folder, "Test_Liar_backend", module_source("Liar", extra=factory))
    return RuntimeOptions(dynamic_backends_path=folder)


def changes_inputs(_: Operation, inputs: list[Array], __: list[Array]) -> None:
    """Write to an input, whatever it says about that."""
    view = inputs[0].view()
    if view.flags.writeable and view.size:
        view.flat[0] += np.ones((), view.dtype)


class Unfinished(FakeBackend):
    """Leaves the last element of each output as it finds it."""

    def __init__(self) -> None:
        super().__init__("Liar", OPERATIONS)

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        whole = [np.empty_like(handle.map()) for handle in outputs]
        handles = [HostTensorHandle(o.info, a) for o, a in zip(outputs, whole, strict=True)]
        step.right.execute(inputs, handles)
        for handle, array in zip(outputs, whole, strict=True):
            handle.map().flat[:-1] = array.flat[:-1]


class OnlyOnce:
    """Tampers from the second execution of a network on."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, operation: Operation, inputs: list[Array], outputs: list[Array]) -> None:
        self.runs += 1
        if self.runs % 2 == 0:
            adds_one(operation, inputs, outputs)


class Stale:
    """Returns the previous execution's result, if that was of the same shape and type."""

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], list[Array]] = {}

    def __call__(self, operation: Operation, inputs: list[Array], outputs: list[Array]) -> None:
        key = (operation, *((output.shape, output.dtype) for output in outputs))
        copies = [output.copy() for output in outputs]
        for output, old in zip(outputs, self._kept.get(key, copies), strict=True):
            output[...] = old
        self._kept[key] = copies


class Crowded:
    """Tampers while two threads execute at once."""

    def __init__(self) -> None:
        self._inside = 0
        self._lock = threading.Lock()

    def __call__(self, operation: Operation, inputs: list[Array], outputs: list[Array]) -> None:
        with self._lock:
            self._inside += 1
        crowded = False
        for _ in range(200):
            crowded = crowded or self._inside > 1
            threading.Event().wait(1e-5)
        with self._lock:
            self._inside -= 1
        if crowded:
            adds_one(operation, inputs, outputs)


class Answering(FakeBackend):
    """Answers questions about support as a function says."""

    def __init__(self, answer: Callable[[Operation], object]) -> None:
        super().__init__("Liar")
        self._answer = answer

    def supports(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        return self._answer(operation)  # type: ignore[return-value]  # of any type, on purpose


def refusing(text: str, code: ReasonCode | None = ReasonCode.OPERATION) -> FakeBackend:
    """A backend that takes nothing."""
    return Answering(lambda _: Support(False, code, text))


class GivesBack(FakeBackend):
    """Says yes, and gives every layer back when it is to compile it."""

    reason = "single layers are not worth it"

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        return given_back(view, self.reason)


def given_back(view: SubgraphView, reason: str = GivesBack.reason) -> OptimizationViews:
    """The answer that nothing of a part is compiled."""
    views = OptimizationViews()
    views.fail(view, reason)
    return views


class Pairs(CompilingBackend):
    """Compiles two connected layers and more; gives single ones back."""

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        if len(view.layers) == 1:
            return given_back(view)
        return super().optimize_subgraph_view(view, request)


class WeightedRelu(CompilingBackend):
    """Takes float32 Convolution2d and FullyConnected with the RELU after them, none of them alone.

    With `is_wrong`, all that it computes is 1 too large.
    """

    def __init__(self, backend_id: str = "Liar", *, is_wrong: bool = False) -> None:
        super().__init__(backend_id)
        self._is_wrong = is_wrong

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        return _WeightedReluSupport()

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        step.right.execute(inputs, outputs)
        for handle in outputs:
            handle.map()[...] += self._is_wrong


class _WeightedReluSupport(ILayerSupport):
    """Layer support of `WeightedRelu`."""

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        return Support.no(ReasonCode.OPERATION, "no RELU follows")

    def are_layers_supported(self, layers: Sequence[Layer]) -> Sequence[Support]:
        weighted = {
            layer.outputs[0]
            for layer in layers
            if isinstance(layer.operation, Convolution2d | FullyConnected)
            and layer.output_infos[0].data_type is DataType.FLOAT32
        }
        relu = {
            layer.inputs[0]
            for layer in layers
            if layer.operation == Activation(ActivationFunction.RELU)
        }
        refusal = Support.no(ReasonCode.OPERATION, "no RELU follows")
        return [
            Support.yes() if {layer.inputs[0], layer.outputs[0]} & weighted & relu else refusal
            for layer in layers
        ]


class WrongWhenFused(CompilingBackend):
    """Computes right layer by layer, and wrong when layers are merged into one."""

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        step.right.execute(inputs, outputs)
        if isinstance(step.operation, PreCompiled):
            for handle in outputs:
                output = handle.map()
                output.flat[0] += np.asarray(50, output.dtype)

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        if len(view.layers) == 1 or len(view.outputs) > 1:
            return OptimizationViews(untouched=[view])
        return super().optimize_subgraph_view(view, request)


def adds_one_to_signed(_: Operation, __: list[Array], outputs: list[Array]) -> None:
    """Make outputs of int8 one too large."""
    adds_one(_, __, [output for output in outputs if output.dtype == np.int8])


def adds_one_to_unsigned(_: Operation, __: list[Array], outputs: list[Array]) -> None:
    """Make outputs of uint8 one too large."""
    adds_one(_, __, [output for output in outputs if output.dtype == np.uint8])
