"""Capabilities that a layer requires of a backend, which is not asked about it without them."""

from __future__ import annotations

from armpy.backend import (
    Capability,
    IBackendInternal,
    ReasonCode,
    Support,
    has_matching_capability,
)
from armpy.graph import Layer
from armpy.ops.convolution import Convolution2d, DepthwiseConvolution2d
from armpy.ops.dense import FullyConnected
from armpy.ops.transpose_convolution import TransposeConvolution2d

_WEIGHTED = (Convolution2d, DepthwiseConvolution2d, TransposeConvolution2d, FullyConnected)


def missing_capability(backend: IBackendInternal, layer: Layer) -> Support | None:
    """The refusal of what a backend has to have an extension or a capability for."""
    supported = backend.supported_extensions if layer.operation.required_extensions else ()
    missing = [name for name in layer.operation.required_extensions if name not in supported]
    if missing:
        text = f"it does not have the vendor extension {' and '.join(missing)}"
        return Support.no(ReasonCode.EXTENSION, text)
    if has_strings(layer):
        capability = Capability.STRINGS
        if not has_matching_capability(capability, True, backend.get_capabilities()):
            text = f"it reads or writes tensors of strings; the backend lacks {capability}"
            return Support.no(ReasonCode.DATA_TYPE, text)
    if is_dynamic(layer):
        capability = Capability.DYNAMIC_OUTPUT_SHAPES
        if not has_matching_capability(capability, True, backend.get_capabilities()):
            text = f"the outputs' shapes depend on values; it lacks {capability}"
            return Support.no(ReasonCode.SHAPE, text)
    return _missing_weights_capability(backend, layer)


def has_strings(layer: Layer) -> bool:
    """Return whether a layer reads or writes tensors of strings."""
    infos = (*layer.input_infos, *layer.output_infos)
    return any(info is not None and info.data_type.is_string for info in infos)


def is_dynamic(layer: Layer) -> bool:
    """Return whether a layer's workload determines the shapes of its outputs."""
    inputs = [info for info in layer.input_infos if info is not None]
    return (
        layer.operation.has_data_dependent_outputs
        and all(info.is_fully_shaped for info in inputs)
        and not all(info.is_fully_shaped for info in layer.output_infos)
        # An operand that decides becomes an attribute later, and then the shapes are known.
        and not any(
            value is not None and layer.operation.decides(index)
            for index, value in enumerate(layer.inputs)
        )
    )


def _missing_weights_capability(backend: IBackendInternal, layer: Layer) -> Support | None:
    """The refusal of weights that are computed, by a backend that takes constants only."""
    if not isinstance(layer.operation, _WEIGHTED):
        return None
    names = [
        layer.operation.input_name(index)
        for index, value in enumerate(layer.inputs[1:3], start=1)
        if value is not None and value.data is None
    ]
    capabilities = backend.get_capabilities()
    if not names or has_matching_capability(Capability.NON_CONST_WEIGHTS, True, capabilities):
        return None
    text = f"{' and '.join(names)} are not constant; it lacks {Capability.NON_CONST_WEIGHTS}"
    return Support.no(ReasonCode.CONSTANT, text)
