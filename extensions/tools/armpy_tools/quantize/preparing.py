"""The float graph that is quantised: constants folded, activations and factors within layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from armpy.compiler import Evaluator, OptimizerOptions, specialize
from armpy.compiler.passes.pipeline import run_passes
from armpy.errors import InvalidArgumentError
from armpy.execution import Runtime
from armpy.graph import Graph, Layer, Rewriter, Value
from armpy.ops.activation_layers import Activation, ActivationFunction
from armpy.ops.activations import FusedActivation
from armpy.plugins import BackendProxy
from armpy.tensor import Quantization, TensorInfo
from armpy.types import REFERENCE_BACKEND_ID, DataType
from armpy_tools.quantize.planning import is_real
from armpy_tools.quantize.rules import FILTER_AXIS

_FUSED = {
    (ActivationFunction.RELU, None): FusedActivation.RELU,
    (ActivationFunction.BOUNDED_RELU, (6.0, 0.0)): FusedActivation.RELU6,
    (ActivationFunction.BOUNDED_RELU, (1.0, -1.0)): FusedActivation.RELU1,
}

_CLAMPING = frozenset(
    (
        *("Convolution2d", "DepthwiseConvolution2d", "ElementwiseBinary", "FullyConnected"),
        *("Pooling2d", "TransposeConvolution2d"),
    )
)
"""Operations that can clamp their outputs themselves."""

_PASSES = {
    # These make operations of several that neither integers nor other files have.
    "join_attention": False,
    "join_written_out": False,
    "fold_batch_norm": True,
}


def prepared_graph(
    graph: Graph,
    runtime: Runtime,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    *,
    keep_open: bool = False,
) -> Graph:
    """A graph with as few float layers as it can be computed with.

    Parameters
    ----------
    graph : Graph
        As a front-end makes it.
    runtime : Runtime
        Whose backends decide what passes may do.
    shapes : mapping of str to tuple of int, optional
        Shapes of inputs that the graph leaves open.
    keep_open : bool
        Whether open dimensions stay open where `shapes` does not say them; the passes that need
        every shape do not run then. Otherwise they become those of the default shape, or 1.

    Raises
    ------
    InvalidArgumentError
        If there is no such input, or a shape does not fit.
    """
    by_name = dict(shapes or {})
    names = [value.name for value in graph.inputs]
    for name in by_name:
        if name not in names:
            raise InvalidArgumentError(
                "there is no such input",
                where="shapes",
                expected=" or ".join(f"'{known}'" for known in names),
                actual=f"'{name}'",
            )
    bound = [by_name.get(value.name) for value in graph.inputs]
    if not keep_open:
        bound = [
            _shape_of(graph, index) if shape is None else shape for index, shape in enumerate(bound)
        ]
    reference = BackendProxy(runtime.registry.get(REFERENCE_BACKEND_ID))
    known = specialize(graph, bound, evaluator=Evaluator(reference))
    if known.is_fully_shaped:
        known = run_passes(known, runtime.backends, OptimizerOptions(passes=_PASSES))
    return fuse_activations(with_real_weights(known))


def with_real_weights(graph: Graph) -> Graph:
    """Let layers that compute with floats have their weights and biases as float32, too.

    Notes
    -----
    Files whose weights alone are small hold them as integers, or as float16.
    """
    rewriter = Rewriter(graph)
    changed = False
    for layer in graph.layers:
        weights = layer.operand("weights") if layer.operation.name in FILTER_AXIS else None
        source = layer.inputs[0] if layer.inputs else None
        is_float = source is not None and source.info.data_type is DataType.FLOAT32
        if weights is None or not is_float or weights.data is None or is_real(weights):
            rewriter.keep(layer)
            continue
        scales = weights.info.quantization or Quantization.per_tensor(1.0)
        elements = weights.data
        numbers = scales.dequantize(elements) if weights.info.data_type.is_quantized else elements
        info = TensorInfo(weights.info.shape, DataType.FLOAT32)
        constant = rewriter.constant(numbers.astype(np.float32), info, weights.name)
        inputs: list[Value | None] = []
        for value in layer.inputs:
            if value is weights:
                inputs.append(constant)
            else:
                inputs.append(None if value is None else rewriter.mapped(value))
        rewriter.replace(layer, layer.operation, inputs)
        changed = True
    return rewriter.finish() if changed else graph


def _shape_of(graph: Graph, index: int) -> tuple[int, ...] | None:
    """The shape that an input is bound to; None if its rank is not known."""
    default, shape = graph.default_shapes[index], graph.inputs[index].info.shape
    if default is not None or shape is None:
        return default
    return tuple(1 if size is None else size for size in shape)


def fuse_activations(graph: Graph) -> Graph:
    """Let layers clamp their outputs themselves where only a clamp reads these."""
    rewriter = Rewriter(graph)
    clamps: set[Layer] = set()
    for layer in graph.layers:
        clamp = _clamp_after(graph, layer)
        if layer in clamps:
            continue
        if clamp is None:
            rewriter.keep(layer)
            continue
        clamps.add(clamp)
        operation = layer.operation.with_attributes(activation=_fused(clamp))
        inputs = [None if value is None else rewriter.mapped(value) for value in layer.inputs]
        output = clamp.outputs[0]
        new_layer = rewriter.replace(
            replace(layer, outputs=(output,)), operation, inputs, [output.info], [layer, clamp]
        )
        rewriter.alias(output, new_layer.outputs[0])
    return rewriter.finish() if clamps else graph


def _clamp_after(graph: Graph, layer: Layer) -> Layer | None:
    """The only reader of a layer's output, if it is a clamp that the layer can do itself."""
    operation = layer.operation
    if operation.name not in _CLAMPING or operation.extension:
        return None
    if operation.attributes()["activation"] is not FusedActivation.NONE:
        return None
    if len(layer.outputs) != 1 or layer.output in graph.result_set:
        return None
    if layer.output.info.data_type is not DataType.FLOAT32:
        return None
    readers: Sequence[Layer] = graph.consumers.get(layer.output, ())
    return readers[0] if len(readers) == 1 and _fused(readers[0]) is not None else None


def _fused(layer: Layer) -> FusedActivation | None:
    """The clamp that a layer is."""
    operation = layer.operation
    if not isinstance(operation, Activation):
        return None
    is_bounded = operation.function is ActivationFunction.BOUNDED_RELU
    bounds = (operation.a, operation.b) if is_bounded else None
    return _FUSED.get((operation.function, bounds))
