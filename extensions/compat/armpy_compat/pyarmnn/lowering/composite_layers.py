"""Layers of many operands: LSTM, and the choice of boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from armpy import ops
from armpy.graph import Value
from armpy_compat.pyarmnn.lowering.lowered_layer import LoweredLayer, Lowering

_OPERANDS: Mapping[str, str] = {
    "input_to_input_weights": "m_InputToInputWeights",
    "input_to_forget_weights": "m_InputToForgetWeights",
    "input_to_cell_weights": "m_InputToCellWeights",
    "input_to_output_weights": "m_InputToOutputWeights",
    "recurrent_to_input_weights": "m_RecurrentToInputWeights",
    "recurrent_to_forget_weights": "m_RecurrentToForgetWeights",
    "recurrent_to_cell_weights": "m_RecurrentToCellWeights",
    "recurrent_to_output_weights": "m_RecurrentToOutputWeights",
    "cell_to_input_weights": "m_CellToInputWeights",
    "cell_to_forget_weights": "m_CellToForgetWeights",
    "cell_to_output_weights": "m_CellToOutputWeights",
    "input_gate_bias": "m_InputGateBias",
    "forget_gate_bias": "m_ForgetGateBias",
    "cell_bias": "m_CellBias",
    "output_gate_bias": "m_OutputGateBias",
    "projection_weights": "m_ProjectionWeights",
    "projection_bias": "m_ProjectionBias",
    "input_layer_norm_weights": "m_InputLayerNormWeights",
    "forget_layer_norm_weights": "m_ForgetLayerNormWeights",
    "cell_layer_norm_weights": "m_CellLayerNormWeights",
    "output_layer_norm_weights": "m_OutputLayerNormWeights",
}
"""armpy's operands of LSTMs, and the members of the parameters that hold them."""


def _operands(
    lowered: LoweredLayer, operation: type[ops.Operation], states: Mapping[str, Value]
) -> list[Value | None]:
    """Operands in armpy's order: the input, constants of the layer, and states."""
    found: list[Value | None] = []
    for operand in operation.inputs:
        if operand.name == "input":
            found.append(lowered.inputs[0])
        elif operand.name in states:
            found.append(states[operand.name])
        else:
            found.append(lowered.tensor(_OPERANDS[operand.name]))
    return found


def _lstm(lowered: LoweredLayer) -> Sequence[Value]:
    """One step; the scratch buffer, the first output, is what armpy makes of it."""
    d = lowered.descriptor
    operation = ops.Lstm(
        activation=ops.RecurrentActivation(d.m_ActivationFunc),
        cell_clip=d.m_ClippingThresCell,
        projection_clip=d.m_ClippingThresProj,
    )
    states = {"output_state_in": lowered.inputs[1], "cell_state_in": lowered.inputs[2]}
    return lowered.results(operation, _operands(lowered, ops.Lstm, states))


def _quantized_lstm(lowered: LoweredLayer) -> Sequence[Value]:
    """One step; inputs are input, cell state and output state, outputs the two states."""
    states = {"cell_state_in": lowered.inputs[1], "output_state_in": lowered.inputs[2]}
    operands = _operands(lowered, ops.QuantizedLstm, states)
    return lowered.results(ops.QuantizedLstm(), operands)


def _detection_post_process(lowered: LoweredLayer) -> Sequence[Value]:
    d = lowered.descriptor
    operation = ops.DetectionPostProcess(
        max_detections=d.m_MaxDetections,
        max_classes_per_detection=d.m_MaxClassesPerDetection,
        detections_per_class=d.m_DetectionsPerClass,
        nms_score_threshold=d.m_NmsScoreThreshold,
        nms_iou_threshold=d.m_NmsIouThreshold,
        num_classes=d.m_NumClasses,
        use_regular_nms=d.m_UseRegularNms,
        scale_y=d.m_ScaleY,
        scale_x=d.m_ScaleX,
        scale_h=d.m_ScaleH,
        scale_w=d.m_ScaleW,
    )
    return lowered.results(operation, [*lowered.inputs, lowered.tensor("anchors")])


COMPOSITE_LAYERS: Mapping[str, Lowering] = {
    "DetectionPostProcess": _detection_post_process,
    "Lstm": _lstm,
    "QuantizedLstm": _quantized_lstm,
}
"""How layers of many operands are made, by kind."""
