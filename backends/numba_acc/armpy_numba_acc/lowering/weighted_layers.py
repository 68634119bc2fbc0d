"""Convolutions and matrix products: which way of several a layer is lowered."""

from __future__ import annotations

from armpy.graph import Layer
from armpy.ops import Convolution3d
from armpy.types import DataType
from armpy_numba_acc.lowering.computed_weights import lower_computed
from armpy_numba_acc.lowering.dynamic_range import lower_dynamic, with_real_operands
from armpy_numba_acc.lowering.grouped import lower_grouped
from armpy_numba_acc.lowering.relaxing import is_bfloat16_product
from armpy_numba_acc.lowering.tiles import BF16, F32
from armpy_numba_acc.lowering.vector_matrix import lower_vector, multiplies_vector
from armpy_numba_acc.lowering.weighted_checks import WIDE, has_computed_weights, is_dynamic
from armpy_numba_acc.lowering.weighted_i16 import lower_i16
from armpy_numba_acc.lowering.weighted_real import lower_real
from armpy_numba_acc.lowering.weighted_sums import lower_sums
from armpy_numba_acc.lowering.weighted_u8 import lower_u8
from armpy_numba_acc.program.emitter import Emitter
from armpy_numba_acc.program.fusion import CONVOLUTIONS


def lower_weighted(emit: Emitter, layer: Layer) -> None:
    """Lower by the input's type, by whether filters see all channels, and whether once only."""
    source, weights = layer["input"].info, layer["weights"].info
    is_convolution = isinstance(layer.operation, CONVOLUTIONS)
    if has_computed_weights(layer.input_infos):
        lower_computed(emit, layer)
    elif is_convolution and source.known_shape[-1] != weights.known_shape[-1]:
        lower_grouped(emit, layer)
    elif layer.output.info.data_type is DataType.SIGNED32:
        lower_sums(emit, layer)
    elif source.data_type is WIDE:
        lower_i16(emit, layer)
    elif is_dynamic(layer.input_infos) and isinstance(layer.operation, Convolution3d):
        lower_real(emit, with_real_operands(emit, layer), F32)
    elif is_dynamic(layer.input_infos):
        lower_dynamic(emit, layer)
    elif emit.isa.is_relaxed and is_bfloat16_product(emit.choices, layer):
        lower_real(emit, layer, BF16)
    elif multiplies_vector(layer):
        lower_vector(emit, layer)
    elif source.data_type is DataType.FLOAT32:
        lower_real(emit, layer, F32)
    else:
        lower_u8(emit, layer)
