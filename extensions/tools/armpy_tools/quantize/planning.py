"""Decides which layers are quantised, which stay float and why, and which tensors share a scale."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field

from armpy.core.dataclass import dataclass
from armpy.errors import Argument, InvalidArgumentError
from armpy.graph import Graph, Layer, Value
from armpy.ops.dense import BatchMatMul
from armpy.ops.movement import Pad
from armpy.profiling import short_names
from armpy.tensor import Quantization
from armpy.types import DataType
from armpy_tools.quantize.rules import Rule, fixed_scale, moves_only, rule_of
from armpy_tools.quantize.scales import Range, activation_scale

_MOST_NEAR = 5
_ASKED = "asked to stay float"
_NO_RULE = "has no integer form"
_ALONE = "moves tensors between float layers"


@dataclass(frozen=True, slots=True)
class QuantizationPlan:
    """Plan of quantising each layer.

    Parameters
    ----------
    data_type : DataType
        Of the activations.
    rules : mapping of Layer to Rule
        The layers that are quantised.
    refused : mapping of Layer to str
        Why others stay as they are. Layers that compute with no floats are in neither.
    """

    data_type: DataType
    rules: Mapping[Layer, Rule]
    refused: Mapping[Layer, str]

    @property
    def observed(self) -> list[Value]:
        """Tensors whose ranges have to be known: those that quantised layers read or write."""
        observed: dict[Value, None] = {}
        for layer in self.rules:
            for value in (*real_inputs(layer), *layer.outputs):
                if is_real(value) and value.data is None:
                    observed[value] = None
        return list(observed)


def is_real(value: Value) -> bool:
    """Return whether a tensor holds float32."""
    return value.info.data_type is DataType.FLOAT32


def real_inputs(layer: Layer) -> list[Value]:
    """The tensors of float32 that a layer reads."""
    return [value for value in layer.inputs if value is not None and is_real(value)]


def whole_names(graph: Graph, names: Collection[str]) -> tuple[str, ...]:
    """The layers that are to stay float, by their names or the short ones that reports print.

    Raises
    ------
    InvalidArgumentError
        If one is not there, naming those that are alike.
    """
    shorts = short_names(layer.name for layer in graph.layers)
    known = {short: name for name, short in shorts.items()} | {name: name for name in shorts}
    for name in names:
        if name not in known:
            near = [short for whole, short in shorts.items() if name.lower() in whole.lower()]
            near += difflib.get_close_matches(name, shorts.values(), _MOST_NEAR, 0.3)
            expected = list(dict.fromkeys(near))[:_MOST_NEAR] or list(shorts.values())[:_MOST_NEAR]
            raise InvalidArgumentError(
                "there is no such layer",
                argument=Argument("keep_float"),
                expected=", ".join(map(repr, expected)) + ", or another layer's name",
                actual=repr(name),
                fix="See the report of a first try, which can list all layers",
            )
    return tuple(known[name] for name in names)


def make_plan(
    graph: Graph, data_type: DataType, keep_float: Collection[str] = ()
) -> QuantizationPlan:
    """Decide how each layer is quantised.

    Parameters
    ----------
    graph : Graph
        Constants folded.
    data_type : DataType
        Of the activations: QASYMM_S8 or QSYMM_S16.
    keep_float : collection of str
        Names of layers.
    """
    rules: dict[Layer, Rule] = {}
    refused: dict[Layer, str] = {}
    for layer in graph.layers:
        if not real_inputs(layer):
            if any(map(is_real, layer.outputs)):
                refused[layer] = "makes real numbers of others"
            continue
        rule = rule_of(layer, data_type)
        reason = _ASKED if layer.name in keep_float else _refusal(layer, rule)
        if rule is None or reason:
            refused[layer] = reason or _NO_RULE
        else:
            rules[layer] = rule
    _leave_islands(graph, rules, refused)
    return QuantizationPlan(data_type, rules, refused)


def _refusal(layer: Layer, rule: Rule | None) -> str:
    """Why a layer of a rule cannot follow it; empty if it can."""
    if rule is None:
        return ""
    values = [value for value in layer.inputs if value is not None]
    if rule is Rule.READING:
        return ""
    if not all(is_real(value) for value in layer.outputs) or not is_real(values[0]):
        return "its inputs and outputs are not all float32"
    if rule is Rule.WEIGHTED:
        if layer.constant("weights") is None or not is_real(layer["weights"]):
            return "its weights are not float32 constants"
        bias = layer.operand("bias")
        if bias is not None and (bias.data is None or not is_real(bias)):
            return "its bias is not a float32 constant"
    if isinstance(layer.operation, BatchMatMul) and values[0].data is not None:
        return "its first matrix is constant"
    if isinstance(layer.operation, Pad) and layer.operation.pad_value != 0:
        return "it pads with another number than 0"
    return ""


def _leave_islands(graph: Graph, rules: dict[Layer, Rule], refused: dict[Layer, str]) -> None:
    """Let layers that only move tensors, and have float layers around them, stay float."""
    wanted: set[Value] = set()
    for layer in reversed(graph.layers):
        rule = rules.get(layer)
        if rule is None or rule is Rule.READING:
            continue
        passes_on = rule in (Rule.KEEPING, Rule.JOINING)
        if not passes_on or any(value in wanted for value in layer.outputs):
            wanted.update(real_inputs(layer))
    dequantized: set[Value] = set()
    for layer in graph.layers:
        rule = rules.get(layer)
        if rule is None:
            continue
        is_needed = not wanted.isdisjoint(layer.outputs) or not dequantized.isdisjoint(layer.inputs)
        if rule is Rule.READING:
            if dequantized.isdisjoint(layer.inputs):
                del rules[layer]
        elif rule in (Rule.KEEPING, Rule.JOINING) and not is_needed:
            del rules[layer]
            refused[layer] = _ALONE
        else:
            dequantized.update(layer.outputs)


@dataclass(slots=True)
class Scales:
    """The scale of every tensor that is quantised.

    Parameters
    ----------
    of : dict of Value to Quantization
        Of what layers write, and graph inputs.
    joined : dict of Layer to Quantization
        The one scale of all that a JOINING layer reads and writes.
    """

    of: dict[Value, Quantization] = field(default_factory=dict)
    joined: dict[Layer, Quantization] = field(default_factory=dict)


def choose_scales(graph: Graph, plan: QuantizationPlan, ranges: Mapping[Value, Range]) -> Scales:
    """The scale of each tensor that quantised layers read or write.

    Parameters
    ----------
    ranges : mapping of Value to Range
        Of the tensors that `plan` observes.

    Notes
    -----
    What only a joining layer reads is written with its scale at once, so that nothing has to be
    rescaled; the scale comes from the range of all that is joined.
    """
    wishes = _wishes(graph, plan, ranges)
    scales = Scales()

    def own(value: Value) -> Quantization:
        return activation_scale(wishes.get(value) or ranges[value], plan.data_type)

    for value in graph.sources:
        if value in ranges:
            scales.of[value] = own(value)
    for layer in graph.layers:
        rule = plan.rules.get(layer)
        if rule is Rule.READING:
            continue
        if rule is Rule.FIXED:
            scales.of[layer.output] = fixed_scale(layer, plan.data_type)
        elif rule is Rule.KEEPING:
            source = real_inputs(layer)[0]
            if source.data is not None:
                scales.of[source] = activation_scale(constant_range(source), plan.data_type)
            scales.of.update(dict.fromkeys(layer.outputs, scales.of[source]))
        elif rule is Rule.JOINING:
            extent = wishes.get(layer.output) or _joined_range(layer, ranges)
            scales.joined[layer] = activation_scale(extent, plan.data_type)
            scales.of[layer.output] = scales.joined[layer]
        else:
            scales.of.update({value: own(value) for value in layer.outputs if value in ranges})
    return scales


def _wishes(
    graph: Graph, plan: QuantizationPlan, ranges: Mapping[Value, Range]
) -> dict[Value, Range]:
    """Ranges that the only readers of tensors would have them quantised for."""
    wishes: dict[Value, Range] = {}
    for layer in reversed(graph.layers):
        rule = plan.rules.get(layer)
        read: Sequence[Value] = ()
        if rule is Rule.JOINING:
            extent = wishes.get(layer.output) or _joined_range(layer, ranges)
            read = real_inputs(layer)
        elif rule is Rule.KEEPING and moves_only(layer) and layer.output in wishes:
            extent = wishes[layer.output]
            read = real_inputs(layer)[:1]
        for value in read:
            if len(graph.consumers[value]) == 1 and value not in graph.result_set:
                wishes[value] = extent
    return wishes


def _joined_range(layer: Layer, ranges: Mapping[Value, Range]) -> Range:
    """The range of all that a layer joins."""
    extent = ranges[layer.output]
    for value in real_inputs(layer):
        if value in ranges:
            extent = extent.joined(ranges[value])
        elif value.data is not None:
            extent = extent.joined(constant_range(value))
    return extent


def constant_range(value: Value) -> Range:
    """The range of a constant's elements."""
    assert value.data is not None
    if not value.data.size:
        return Range(0.0, 0.0)
    return Range(float(value.data.min()), float(value.data.max()))
