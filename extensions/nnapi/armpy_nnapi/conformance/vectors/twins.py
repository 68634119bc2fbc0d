"""Signed twins: examples of unsigned quantised tensors with signed ones in their place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from armpy.ops.operation import Array
from armpy.ops.tolerance import EXACT, OFF_BY_ONE, compare
from armpy_nnapi.codes import OperandCode, OperationCode
from armpy_nnapi.compile.compilation import Compilation
from armpy_nnapi.conformance.vectors.example import Example
from armpy_nnapi.description.model_description import ModelDescription, Operand, Subgraph
from armpy_nnapi.devices import Device, DeviceManager
from armpy_nnapi.model.model import Model

_UNSIGNED, _SIGNED = OperandCode.TENSOR_QUANT8_ASYMM, OperandCode.TENSOR_QUANT8_ASYMM_SIGNED
_OFFSET = 128
"""Difference between the stored numbers of a twin."""

WITHOUT_TWIN = frozenset(
    {
        OperationCode.CAST,  # takes stored numbers, whatever they stand for
        OperationCode.HASHTABLE_LOOKUP,  # has an unsigned tensor of truth values
        OperationCode.LSH_PROJECTION,  # hashes bytes
        OperationCode.PAD_V2,  # has a stored number in an int32 scalar
        OperationCode.QUANTIZED_16BIT_LSTM,  # has no signed form
    }
)
"""Operations that mean something else by signed tensors.

References
----------
Android's ``hasQuant8CoupledOperands`` in the VTS of neuralnetworks 1.3.
"""


ROUNDED_AS_STORED = frozenset({OperationCode.MAXIMUM, OperationCode.MINIMUM, OperationCode.SELECT})
"""Operations that round halves away from zero with the zero point added: numbers of other sign.

References
----------
NNAPI's reference, ``requantize``.
"""


def has_signed_twin(example: Example) -> bool:
    """Return whether operations of an example read or write unsigned quantised tensors."""
    graphs = (example.model.main, *example.model.referenced)
    nodes = [(graph, node) for graph in graphs for node in graph.operations]
    if example.expects_failure or example.multinomial_tolerance:
        return False
    if any(node.type in WITHOUT_TWIN for _, node in nodes):
        return False
    return any(
        graph.operands[index].type == _UNSIGNED
        for graph, node in nodes
        for index in (*node.inputs, *node.outputs)
    )


def signed_twin(example: Example) -> Example:
    """The example with stored numbers that are less by 128, as are the zero points.

    Parameters
    ----------
    example : Example
        Example that `has_signed_twin` confirms.
    """
    main = example.model.main
    referenced = tuple(map(_signed_graph, example.model.referenced))
    model: ModelDescription = replace(
        example.model, main=_signed_graph(main), referenced=referenced
    )
    return replace(
        example,
        name=f"{example.name}_signed",
        model=model,
        inputs=_signed_arrays(main, main.inputs, example.inputs),
        outputs=_signed_arrays(main, main.outputs, example.outputs),
        feature_level=30,
    )


def signed_elements(elements: Array) -> Array:
    """Stored uint8 as the int8 of the twin."""
    return (elements.astype(np.int16) - _OFFSET).astype(np.int8)


def _signed_graph(graph: Subgraph) -> Subgraph:
    return replace(graph, operands=tuple(map(_signed_operand, graph.operands)))


def _signed_operand(operand: Operand) -> Operand:
    if operand.type != _UNSIGNED:
        return operand
    data = operand.data
    if data is not None:
        data = signed_elements(np.frombuffer(data, np.uint8)).tobytes()
    return replace(operand, type=_SIGNED, zero_point=operand.zero_point - _OFFSET, data=data)


def _signed_arrays(
    graph: Subgraph, indexes: Sequence[int], arrays: Sequence[Array | None]
) -> tuple[Array | None, ...]:
    """Inputs or outputs as they are in the twin."""
    return tuple(
        array
        if array is None or graph.operands[index].type != _UNSIGNED
        else signed_elements(array)
        for index, array in zip(indexes, arrays, strict=True)
    )


def twin_difference(manager: DeviceManager, devices: Sequence[Device], example: Example) -> str:
    """Describe the difference of a signed twin that is not 128 less than the example.

    Returns
    -------
    str
        Empty if all outputs are equal up to that.

    Raises
    ------
    NnapiError
        If the example or its twin fails.

    Notes
    -----
    Exactly equal, but for `ROUNDED_AS_STORED`, which may be one apart.
    """
    twin = signed_twin(example)
    right, signed = (
        _outputs(manager, devices, side.model, side.inputs) for side in (example, twin)
    )
    main = example.model.main
    is_exact = ROUNDED_AS_STORED.isdisjoint(node.type for node in main.operations)
    wanted = _signed_arrays(main, main.outputs, right)
    for position, (expected, actual) in enumerate(zip(wanted, signed, strict=True)):
        if expected is None:
            continue
        tolerance = EXACT if is_exact else OFF_BY_ONE
        difference = compare(expected, actual, twin.output_operand(position).info, tolerance)
        if difference is not None:
            return f"output {position} is not the unsigned one less 128: {difference}"
    return ""


def _outputs(
    manager: DeviceManager,
    devices: Sequence[Device],
    description: ModelDescription,
    inputs: Sequence[Array | None],
) -> list[Array]:
    model = Model.from_description(description, manager)
    compilation = Compilation.create_for_devices(model, list(devices))
    compilation.finish()
    return list(compilation(*inputs))
