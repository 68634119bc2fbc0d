"""Builds a described model as an application does: with the methods of `armpy_nnapi.Model`."""

from __future__ import annotations

from armpy_nnapi.description.model_description import Lifetime, ModelDescription, Operand, Subgraph
from armpy_nnapi.description.operand_type import OperandType
from armpy_nnapi.devices import DeviceManager
from armpy_nnapi.model.model import Model


def build_model(description: ModelDescription, manager: DeviceManager | None = None) -> Model:
    """Build and finish a model.

    Parameters
    ----------
    description : ModelDescription
        Operands of lifetime SUBGRAPH stand for referenced graphs that do not refer to
        themselves.

    Raises
    ------
    NnapiError
        If a method refuses its arguments.
    """
    models: dict[int, Model] = {}
    return _build(description.main, description, models, manager)


def _build(
    graph: Subgraph,
    description: ModelDescription,
    models: dict[int, Model],
    manager: DeviceManager | None,
) -> Model:
    """Build one graph, and first those that it refers to."""
    model = Model(manager)
    for operand in graph.operands:
        index = model.add_operand(
            OperandType(operand.type, operand.dimensions, operand.scale, operand.zero_point)
        )
        if operand.subgraph is not None:
            number = operand.subgraph
            if number not in models:
                inner = description.referenced[number]
                models[number] = _build(inner, description, models, manager)
            model.set_operand_value_from_model(index, models[number])
        _give_value(model, index, operand)
    for node in graph.operations:
        model.add_operation(node.type, node.inputs, node.outputs)
    model.identify_inputs_and_outputs(graph.inputs, graph.outputs)
    if description.relaxed:
        model.relax_computation_float32_to_float16()
    model.finish()
    return model


def _give_value(model: Model, index: int, operand: Operand) -> None:
    """Set what an operand holds, and its scales per channel."""
    if operand.channel_quant is not None:
        quant = operand.channel_quant
        model.set_operand_symm_per_channel_quant_params(index, quant.scales, quant.channel_dim)
    if operand.lifetime is Lifetime.NO_VALUE:
        model.set_operand_value(index, None)
    elif operand.lifetime.is_constant:
        model.set_operand_value(index, operand.data)
