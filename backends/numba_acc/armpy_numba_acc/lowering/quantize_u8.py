"""Quantize from float32 to bytes, by multiplications."""

from __future__ import annotations

import numpy as np

from armpy.graph import Layer
from armpy.ops import Quantize
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_numba_acc.lowering.operands import expect
from armpy_numba_acc.machine import calls
from armpy_numba_acc.machine.isa import Isa
from armpy_numba_acc.packing.quantized import QUANTIZED_TYPES, scale_of, zero_point_of
from armpy_numba_acc.program.emitter import Emitter


def is_quick(isa: Isa, source: TensorInfo, output: TensorInfo) -> bool:
    """Return whether floats can be multiplied in the place of being divided.

    1 by the scale must be as exact as any float32, and there must be a register of bytes.
    """
    if source.data_type is not DataType.FLOAT32 or output.data_type not in QUANTIZED_TYPES:
        return False
    return (
        2.0**-100 < float(scale_of(output)) < 2.0**100 and output.num_elements >= isa.vector_bytes
    )


def emit_quick(emit: Emitter, layer: Layer) -> None:
    """Add the command of a layer whose tensors are as `is_quick` wants them."""
    value, output = layer["input"], layer.output
    target, flip = emit.flipped_target(output)
    scale = scale_of(output.info)
    call = calls.QuantizeU8(
        source=emit.source(value),
        target=target,
        count=output.info.num_elements,
        zero_point=zero_point_of(output.info),
        flip=flip,
        to_even=int(expect(layer.operation, Quantize).rounds_to_even),
        scale=float(scale),
        inverse=float(np.float32(1) / scale),
    )
    emit(call, layer.name)
