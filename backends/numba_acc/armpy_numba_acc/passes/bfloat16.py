"""bfloat16 storage: finds tensors that relaxed float32 keeps in it inside a region.

Notes
-----
What products read has to be bfloat16 anyway. Where those who write and read a tensor can do with
it, it is never stored otherwise, which halves the memory that layers without products wait for.
Small tensors that no product reads cost nothing and stay as exact as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from armpy.graph import Layer, SubgraphView, Value
from armpy.ops.convolution import Convolution2d, DepthwiseConvolution2d
from armpy.ops.dense import FullyConnected
from armpy.ops.movement import Pad
from armpy.ops.reduction import Reduce, ReduceOperation
from armpy.types import DataType
from armpy_numba_acc.lowering.padding import pads_with_zeros
from armpy_numba_acc.lowering.real_functions import has_expression
from armpy_numba_acc.lowering.relaxing import is_bfloat16_product
from armpy_numba_acc.passes.chains import ElementwiseChain
from armpy_numba_acc.passes.joining import find_joins
from armpy_numba_acc.program.choices import Choices
from armpy_numba_acc.program.fusion import Fusion

_LEAST_ELEMENTS = 4096
"""Of a tensor that is kept as bfloat16 although no product reads it."""


def find_bfloat16(
    view: SubgraphView,
    choices: Choices,
    fusions: Mapping[Layer, Fusion],
    chains: Mapping[Layer, ElementwiseChain],
) -> frozenset[Value]:
    """Tensors that are written as bfloat16.

    Parameters
    ----------
    fusions, chains
        Layers that are computed together.
    """
    absorbed = {layer for fusion in fusions.values() for layer in fusion.absorbed}
    unwritten = absorbed | {layer for chain in chains.values() for layer in chain.layers[:-1]}
    exact = {*view.outputs, *find_joins(view)}
    values_found = set()
    for layer in view.layers:
        if layer in unwritten or not _can_write(choices, layer):
            continue
        output = fusions[layer].output if layer in fusions else layer.output
        readers = view.consumers.get(output, ())
        are_fit = all(reader in absorbed or _can_read(choices, reader) for reader in readers)
        if readers and are_fit and output not in exact and _is_worthwhile(choices, output, readers):
            values_found.add(output)
    return frozenset(values_found)


def _can_read(choices: Choices, layer: Layer) -> bool:
    """Return whether a layer can read bfloat16 in the place of float32."""
    operation = layer.operation
    if isinstance(operation, Reduce):
        is_float = layer.output.info.data_type is DataType.FLOAT32
        return is_float and operation.operation in (ReduceOperation.SUM, ReduceOperation.MEAN)
    return _can_write(choices, layer)


def _can_write(choices: Choices, layer: Layer) -> bool:
    """Return whether a layer can read and write bfloat16 in the place of float32."""
    infos = [info for info in (*layer.input_infos, *layer.output_infos) if info is not None]
    if any(info.data_type is not DataType.FLOAT32 for info in (infos[0], infos[-1])):
        return False
    operation = layer.operation
    if isinstance(operation, Convolution2d | FullyConnected):
        return is_bfloat16_product(choices, layer)
    if isinstance(operation, DepthwiseConvolution2d):
        return infos[0].known_shape[3] in (1, infos[-1].known_shape[3])
    if isinstance(operation, Pad):
        return pads_with_zeros(layer)
    return has_expression(operation)


def _is_worthwhile(choices: Choices, value: Value, readers: Sequence[Layer]) -> bool:
    """Return whether a tensor is better kept as bfloat16."""
    if any(is_bfloat16_product(choices, layer) and layer.inputs[0] is value for layer in readers):
        return True
    return value.info.num_elements >= _LEAST_ELEMENTS
