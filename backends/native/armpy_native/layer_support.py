"""Layer support of libraries in C: one question about all layers of a network."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armpy.backend import ILayerSupport, ReasonCode, Support
from armpy.errors import ArmpyError
from armpy.frontends.tflite_writer.tflite import layer_model
from armpy.graph import Layer, Value
from armpy.graph.network import Network
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy_native.library import Device, aligned, span_of

_MOST_ANSWERS = 4096


class NativeLayerSupport(ILayerSupport):
    """Asks a library about the layers of one network.

    Parameters
    ----------
    device : Device
    """

    def __init__(self, device: Device) -> None:
        self._device = device

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        """Ask about a layer, unless an equal one has been asked about before."""
        answers = self._device.answers
        question = operation, tuple(inputs), tuple(outputs)
        if question not in answers:
            if len(answers) >= _MOST_ANSWERS:
                answers.clear()
            answers[question] = self._ask_alone(*question)
        return answers[question]

    def _ask_alone(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        """Ask about a network of one layer, whose constants are zeros."""
        if text := _unknown_shape((*inputs, *outputs)):
            return Support.no(ReasonCode.SHAPE, text)
        net = Network("layer")
        values: list[Value | None] = []
        for i, info in enumerate(inputs):
            if info is None:
                values.append(None)
            elif not info.is_constant:
                values.append(net.input(f"input_{i}", info))
            else:
                zeros = np.zeros(info.known_shape, info.data_type.dtype)
                kind, scaling = info.data_type, info.quantization
                values.append(net.constant(zeros, data_type=kind, quantization=scaling))
        try:
            layer = net.add_layer(operation, values, outputs=outputs)
        except ArmpyError as error:
            return Support.no(ReasonCode.OTHER, error.failed)
        return self.are_layers_supported([layer])[0]

    def are_layers_supported(self, layers: Sequence[Layer]) -> list[Support]:
        """Ask about all layers in one model; those that it cannot hold are refused."""
        shapes = [_unknown_shape((*x.input_infos, *x.output_infos)) for x in layers]
        model = layer_model(
            [x for x, text in zip(layers, shapes, strict=True) if not text],
            shares_constants=bool(self._device.library.table.compile_shared),
        )
        graph = aligned(model.content)
        reasons = self._device.supports(span_of(graph), model.num_operators)
        parts = zip(model.problems, model.operators, strict=True)
        answers = []
        for shape in shapes:
            if shape:
                answers.append(Support.no(ReasonCode.SHAPE, shape))
                continue
            problem, operators = next(parts)
            reason = next((reasons[i] for i in operators if reasons[i]), "")
            code = ReasonCode.OTHER if problem else ReasonCode.COMPILATION
            text = problem or reason
            answers.append(Support.no(code, text) if text else Support.yes())
        return answers


def _unknown_shape(infos: OperandInfos) -> str:
    """Why the shapes of a layer cannot be written; empty if they can."""
    for info in infos:
        if info is not None and (not info.is_fully_shaped or 0 in info.known_shape):
            return f"a tensor is {info}; dimensions have to be known and not 0"
    return ""
