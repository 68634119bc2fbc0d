"""Backends that are wrong on purpose, each in one way."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import numpy as np

from armpy.backend import (
    ILayerSupport,
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
    BinaryOperation,
    Convolution2d,
    ElementwiseBinary,
    FullyConnected,
    PreCompiled,
)
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_testing.backends.dynamic_modules import module_source, write_module
from armpy_testing.backends.fake_backends import (
    CompilingBackend,
    FakeBackend,
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
