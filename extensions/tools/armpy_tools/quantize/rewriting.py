"""Builds the network of integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from armpy.core.dataclass import dataclass
from armpy.errors import ArmpyError
from armpy.graph import Graph, Layer, Rewriter, Value
from armpy.ops.operation import Array, Operation
from armpy.ops.quantizing import Dequantize, Quantize
from armpy.tensor import Quantization, TensorInfo
from armpy.types import DataType
from armpy_tools.quantize import scales as arithmetic
from armpy_tools.quantize.planning import QuantizationPlan, Scales, constant_range, is_real
from armpy_tools.quantize.rules import FILTER_AXIS, Rule

_IO_TYPES = {
    "int8": DataType.QASYMM_S8,
    "uint8": DataType.QASYMM_U8,
    "int16": DataType.QSYMM_S16,
}


@dataclass(slots=True)
class Rewritten:
    """A network of integers, and where the tensors of the float one are in it.

    Parameters
    ----------
    values : dict of Value to Value
        What each tensor of the float graph became; integers where there are both.
    refused : dict of Layer to str
        Layers of the float graph that turned out not to go.
    biases : dict of Layer to ndarray
        The biases that were written, as real numbers.
    """

    graph: Graph
    values: dict[Value, Value]
    refused: dict[Layer, str] = field(default_factory=dict)


class IntegerNetwork:
    """The network of integers under construction: one walk over the float graph.

    Parameters
    ----------
    io : str
        Type of inputs and outputs.
    biases : mapping of Layer to ndarray
        Float biases that take the place of a layer's own.
    """

    def __init__(
        self,
        graph: Graph,
        plan: QuantizationPlan,
        scales: Scales,
        *,
        per_channel: bool = True,
        io: str = "float",
        biases: Mapping[Layer, Array] | None = None,
    ) -> None:
        self._graph = graph
        self._plan = plan
        self._scales = scales
        self._per_channel = per_channel
        self._io = io
        self._biases = biases or {}
        self._rewriter = Rewriter(graph)
        self._reals: dict[Value, Value] = {}
        self._stored: dict[Value, dict[Quantization, Value]] = {}
        self._refused: dict[Layer, str] = {}

    def build(self) -> Rewritten:
        """Walk over the layers."""
        graph = self._graph
        inputs = [self._input(value) for value in graph.inputs]
        self._reals.update((variable.value, variable.value) for variable in graph.variables)
        for layer in graph.layers:
            self._layer(layer)
        outputs = [
            self._output(name, value)
            for name, value in zip(graph.output_names, graph.outputs, strict=True)
        ]
        next_values = [self._real(variable.next_value) for variable in graph.variables]
        values = {
            old: next(iter(by_scale.values())) for old, by_scale in self._stored.items() if by_scale
        }
        values = {**self._reals, **values}
        built = self._rewriter.finish(inputs, outputs, next_values)
        return Rewritten(built, values, self._refused)

    def _input(self, value: Value) -> Value:
        """An input, as the float network has it or of integers."""
        scale = self._scales.of.get(value)
        if self._io == "float" or scale is None or not is_real(value):
            self._reals[value] = value
            return value
        info = self._io_info(TensorInfo(value.info.shape, self._plan.data_type, scale))
        new_value = self._rewriter.value(info, value.name)
        self._stored[value] = {scale: new_value}
        if info.data_type is not self._plan.data_type:
            stored = TensorInfo(None, self._plan.data_type, scale)
            self._stored[value] = {
                scale: self._added(Quantize(), new_value, f"{value.name}_int8", stored)
            }
        return new_value

    def _added(self, operation: Operation, value: Value, name: str, output: TensorInfo) -> Value:
        """The output of a layer that the float network does not have."""
        return self._rewriter.insert(operation, [value], name, [output]).output

    def _io_info(self, info: TensorInfo) -> TensorInfo:
        """The info of an input or output of integers."""
        data_type = _IO_TYPES[self._io]
        scale = info.quantization
        if data_type is DataType.QASYMM_U8 and scale is not None:
            scale = Quantization.per_tensor(scale.scale, scale.zero_point + 128)
        return replace(info, data_type=data_type, quantization=scale)

    def _output(self, name: str, value: Value) -> Value:
        """Return the caller's output for a value of the float network."""
        if self._io == "float" or not is_real(value) or not self._stored.get(value):
            return self._real(value)
        stored = next(iter(self._stored[value].values()))
        info = self._io_info(stored.info)
        if info.data_type is stored.info.data_type:
            return stored
        output = TensorInfo(None, info.data_type, info.quantization)
        return self._added(Quantize(), stored, f"{name}_{self._io}", output)

    def _layer(self, layer: Layer) -> None:
        """Add a layer of integers if the plan says so and it can be, as it is otherwise."""
        rule = self._plan.rules.get(layer)
        if rule is None:
            self._keep(layer)
        elif rule is Rule.READING:
            self._add(layer, [self._any(value) for value in layer.inputs], layer.output_infos)
        else:
            try:
                self._quantized(layer, rule)
            except ArmpyError as error:
                self._refused[layer] = error.failed
                self._keep(layer)

    def _keep(self, layer: Layer) -> None:
        """Add a layer as it is."""
        inputs = [None if value is None else self._real(value) for value in layer.inputs]
        self._add(layer, inputs, layer.output_infos)

    def _add(
        self, layer: Layer, inputs: Sequence[Value | None], outputs: Sequence[TensorInfo]
    ) -> None:
        """Add a layer whose outputs are not integers that stand for real numbers."""
        new_layer = self._rewriter.replace(layer, layer.operation, inputs, outputs)
        self._reals.update(zip(layer.outputs, new_layer.outputs, strict=True))

    def _quantized(self, layer: Layer, rule: Rule) -> None:
        """Add a layer of integers."""
        operation = layer.operation
        if rule is Rule.WEIGHTED:
            inputs = self._weighted_inputs(layer)
        else:
            inputs = [self._operand(layer, rule, value) for value in layer.inputs]
        outputs = [
            TensorInfo(value.info.shape, self._plan.data_type, self._scales.of[value])
            for value in layer.outputs
        ]
        new_layer = self._rewriter.replace(layer, operation, inputs, outputs)
        for value, new in zip(layer.outputs, new_layer.outputs, strict=True):
            self._stored[value] = {self._scales.of[value]: new}

    def _operand(self, layer: Layer, rule: Rule, value: Value | None) -> Value | None:
        """One input of a layer of integers."""
        if value is None or not is_real(value):
            return None if value is None else self._real(value)
        if rule is Rule.JOINING:
            return self._integers(value, self._scales.joined[layer])
        if rule is Rule.KEEPING:  # a second operand is what stands in added elements
            first = layer.inputs[0]
            assert first is not None
            return self._integers(value, self._scales.of[first])
        if value.data is not None:
            return self._integers(
                value, arithmetic.activation_scale(constant_range(value), self._plan.data_type)
            )
        return self._integers(value, self._scales.of[value])

    def _weighted_inputs(self, layer: Layer) -> list[Value | None]:
        """Input, weights and bias of a layer of integers, and what else it has."""
        first = layer.inputs[0]
        weights = layer["weights"]
        assert first is not None
        assert weights.data is not None
        source = self._operand(layer, Rule.WEIGHTED, first)
        assert source is not None
        axis = FILTER_AXIS[layer.operation.name]
        bias = self._biases.get(layer, layer.constant("bias"))
        if bias is None:
            bias = np.zeros(weights.data.shape[axis], np.float32)
        scale = source.info.scale
        chosen = arithmetic.weight_scales(
            weights.data, axis if self._per_channel else None, bias, scale
        )
        return [
            source,
            self._stored_constant(weights.data, chosen, DataType.QSYMM_S8, weights.name),
            self._bias(layer, bias, chosen, scale),
            *(None if value is None else self._real(value) for value in layer.inputs[3:]),
        ]

    def _bias(self, layer: Layer, bias: Array, weights: Quantization, scale: float) -> Value:
        """The bias on the scale of the sums."""
        is_wide = self._plan.data_type is DataType.QSYMM_S16
        data_type = DataType.SIGNED64 if is_wide else DataType.SIGNED32
        sums = [
            float(np.float32(np.float32(scale) * np.float32(weight_scale)))
            for weight_scale in weights.scales
        ]
        chosen = (
            Quantization.per_tensor(sums[0])
            if weights.axis is None
            else Quantization.per_axis(sums, 0)
        )
        own = layer.operand("bias")
        name = f"{layer.name}/bias" if own is None else own.name
        return self._stored_constant(bias, chosen, data_type, name)

    def _stored_constant(
        self, data: Array, scale: Quantization, data_type: DataType, name: str
    ) -> Value:
        """A constant of integers that stand for real numbers."""
        elements = arithmetic.stored(data, scale, data_type)
        return self._rewriter.constant(elements, TensorInfo(None, data_type, scale), name)

    def _integers(self, value: Value, scale: Quantization) -> Value:
        """A tensor as integers of a scale."""
        known = self._stored.setdefault(value, {})
        if scale in known:
            return known[scale]
        data_type = self._plan.data_type
        if value.data is not None:
            known[scale] = self._stored_constant(value.data, scale, data_type, value.name)
            return known[scale]
        source = next(iter(known.values()), None) or self._real(value)
        name = f"{value.name}_quantized" + (f"_{len(known)}" if known else "")
        known[scale] = self._added(Quantize(), source, name, TensorInfo(None, data_type, scale))
        return known[scale]

    def _any(self, value: Value | None) -> Value | None:
        """A tensor as it is there."""
        if value is None:
            return None
        stored = self._stored.get(value)
        return next(iter(stored.values())) if stored else self._real(value)

    def _real(self, value: Value) -> Value:
        """A tensor as real numbers, or as whatever it is if it never was any."""
        if value in self._reals:
            return self._reals[value]
        if value.data is not None:
            return value
        source = next(iter(self._stored[value].values()))
        output = TensorInfo(None, DataType.FLOAT32)
        self._reals[value] = self._added(Dequantize(), source, f"{value.name}_real", output)
        return self._reals[value]
