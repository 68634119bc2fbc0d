"""Faults of compilers that merge, move and take out layers: each is right for other layers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from armpy_reference.factory import ReferenceWorkloadFactory

from armpy.backend import (
    HostTensorHandle,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    OptimizationViews,
    PreparationRequest,
    Substitution,
    WorkloadInfo,
)
from armpy.graph import Layer, SubgraphView, Value
from armpy.ops import (
    Activation,
    ActivationFunction,
    Concat,
    ElementwiseBinary,
    FusedActivation,
    PreCompiled,
    Reshape,
    Slice,
)
from armpy.ops.elementwise import BinaryOperation, ComparisonOperation
from armpy.ops.operation import Array, Operation
from armpy.tensor import TensorInfo
from armpy_testing.backends.fake_backends import FunctionWorkload, Handles, Outputs

from .planting import Planted
from .shapes import Fused

_REFERENCE = ReferenceWorkloadFactory()


Rewrite = Callable[[SubgraphView], Mapping[Layer, Sequence[Layer]]]
"""Gives the layers that a compiler puts in the place of others."""


class Compiler(Fused):
    """Makes one program of a part, after it has rewritten it."""

    def __init__(self, rewrite: Rewrite) -> None:
        super().__init__()
        self._rewrite = rewrite

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        shapes = tuple(value.info.known_shape for value in view.outputs)
        changes = self._rewrite(view)
        layers = [new for layer in view.layers for new in changes.get(layer, (layer,))]
        return OptimizationViews(
            [Substitution.by_operation(view, PreCompiled((view, layers), shapes))]
        )

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return _Programs()

    def get_programs(self) -> None:
        return None


class _Programs(IWorkloadFactory):
    """Runs rewritten parts."""

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        if not isinstance(operation, PreCompiled):
            return _REFERENCE.create_workload(operation, info)
        view, layers = operation.program
        steps = [
            (_REFERENCE.create_workload(layer.operation, _info(layer)), layer) for layer in layers
        ]
        return FunctionWorkload(partial(_run, view, steps))


def _info(layer: Layer) -> WorkloadInfo:
    constants = tuple(None if v is None else v.data for v in layer.inputs)
    return WorkloadInfo(layer.name, layer.input_infos, layer.output_infos, constants)


def _run(
    view: SubgraphView, steps: Sequence[tuple[IWorkload, Layer]], inputs: Handles, outputs: Outputs
) -> None:
    """Run the layers in order, on copies."""
    values: dict[Value, ITensorHandle] = {}

    def handle(value: Value) -> ITensorHandle:
        if value not in values:
            empty = np.empty(value.info.known_shape, value.info.data_type.dtype)
            values[value] = HostTensorHandle(
                value.info, empty if value.data is None else value.data
            )
        return values[value]

    for value, given in zip(view.inputs, inputs, strict=True):
        if given is not None:
            values[value] = HostTensorHandle(value.info, np.array(given.map(write=False)))
            given.unmap()
    for workload, layer in steps:
        operands = [None if v is None else handle(v) for v in layer.inputs]
        workload.execute(operands, [handle(v) for v in layer.outputs])
    for value, target in zip(view.outputs, outputs, strict=True):
        target.map(read=False)[...] = np.asarray(handle(value).map(write=False))
        target.unmap()


# --- Layers in the place of others


Change = Callable[[Layer, Layer], Sequence[Layer] | None]
"""Gives the layers in the place of a second one, from the one that makes its first input."""


def pairs(change: Change) -> Rewrite:
    """Rewrite the second ones of pairs of layers."""

    def rewrite(view: SubgraphView) -> Mapping[Layer, Sequence[Layer]]:
        changes = [(second, change(first, second)) for first, second in _pairs(view)]
        return {layer: new for layer, new in changes if new is not None}

    return rewrite


def _pairs(view: SubgraphView) -> Iterator[tuple[Layer, Layer]]:
    """Layers, each with the ones that make its inputs."""
    for layer in view.layers:
        for value in layer.inputs:
            before = None if value is None else view.producers.get(value)
            if before is not None:
                yield before, layer


def _kind(layer: Layer) -> str:
    """A layer's operation and function: ``Activation:RELU``."""
    attributes = layer.operation.attributes()
    names = ("function", "operation", "algorithm")
    function = next((attributes[name] for name in names if name in attributes), None)
    return f"{layer.operation.name}:{getattr(function, 'name', '')}"


def _are(first: Layer, second: Layer, kinds: tuple[str, str]) -> bool:
    return all(_kind(a).startswith(kind) for a, kind in zip((first, second), kinds, strict=True))


def _source(layer: Layer, index: int = 0) -> Value:
    value = layer.inputs[index]
    assert value is not None
    return value


def _layer(
    operation: Operation, inputs: Sequence[Value | None], like: TensorInfo, output: Value | None
) -> Layer:
    """A layer with an output of a value, or of its own that is stored like another one."""
    if output is None:
        infos = [None if value is None else value.info for value in inputs]
        (info,) = operation.infer(infos, [like.with_shape(None)])
        output = Value(0, info, "")
    return Layer(0, operation.name, operation, tuple(inputs), (output,))


def _copy(value: Value, target: Value) -> Sequence[Layer]:
    """One value's elements as another value."""
    return (_layer(Reshape(target.info.known_shape), (value,), value.info, target),)


def exchanged(*kinds: str) -> Rewrite:
    """The second of two layers comes first."""

    def change(first: Layer, second: Layer) -> Sequence[Layer] | None:
        if not _are(first, second, (kinds[0], kinds[1])) or len(second.outputs) > 1:
            return None
        inputs = [_source(first) if v in first.outputs else v for v in second.inputs]
        like = second.outputs[0].info
        try:
            early = _layer(second.operation, inputs, like, None)
            rest = (early.output, *first.inputs[1:])
            late = _layer(first.operation, rest, like, None)
        except Exception:  # noqa: BLE001 - these shapes do not go together
            return None
        if late.output.info.shape != like.shape:
            return None
        return early, replace(late, outputs=second.outputs)

    return pairs(change)


def cancelled(*kinds: str) -> Rewrite:
    """Two layers that undo each other are taken out, by their shapes."""

    def change(first: Layer, second: Layer) -> Sequence[Layer] | None:
        source, target = _source(first), second.outputs[0]
        is_alike = source.info.shape == target.info.shape
        is_alike &= source.info.data_type is target.info.data_type
        is_pair = _are(first, second, (kinds[0], kinds[1])) and is_alike
        return _copy(source, target) if is_pair and len(second.outputs) == 1 else None

    return pairs(change)


def skipped(*kinds: str) -> Rewrite:
    """The first of two layers is taken for one that changes nothing for the second."""

    def change(first: Layer, second: Layer) -> Sequence[Layer] | None:
        if not _are(first, second, (kinds[0], kinds[1])) or _source(first).data is not None:
            return None
        inputs = tuple(_source(first) if v in first.outputs else v for v in second.inputs)
        return (replace(second, inputs=inputs),)

    return pairs(change)


def merged(kind: str, combine: Callable[[Operation, Operation], Operation]) -> Rewrite:
    """Two layers of a kind become one."""

    def change(first: Layer, second: Layer) -> Sequence[Layer] | None:
        if not _are(first, second, (kind, kind)):
            return None
        try:
            operation = combine(first.operation, second.operation)
            layer = _layer(operation, first.inputs, second.outputs[0].info, None)
        except Exception:  # noqa: BLE001 - these do not go together
            return None
        is_alike = layer.output.info.shape == second.outputs[0].info.shape
        return (replace(layer, outputs=second.outputs),) if is_alike else None

    return pairs(change)


def single(change: Callable[[Layer], Sequence[Layer] | None]) -> Rewrite:
    """Rewrite single layers."""

    def rewrite(view: SubgraphView) -> Mapping[Layer, Sequence[Layer]]:
        changes = {layer: change(layer) for layer in view.layers}
        return {layer: new for layer, new in changes.items() if new is not None}

    return rewrite


def dropped(condition: Callable[[Layer], object]) -> Rewrite:
    """Layers are taken out as if they did nothing."""

    def change(layer: Layer) -> Sequence[Layer] | None:
        is_alike = bool(layer.inputs) and layer.inputs[0] is not None
        is_alike = is_alike and _source(layer).info.shape == layer.outputs[0].info.shape
        return _copy(_source(layer), layer.outputs[0]) if is_alike and condition(layer) else None

    return single(change)


def shared(key: Callable[[Layer], object]) -> Rewrite:
    """Layers are computed once that a key takes for equal."""

    def rewrite(view: SubgraphView) -> Mapping[Layer, Sequence[Layer]]:
        first: dict[object, Layer] = {}
        changes: dict[Layer, Sequence[Layer]] = {}
        for layer in view.layers:
            infos = tuple((info.shape, info.data_type) for info in layer.output_infos)
            kept = first.setdefault((layer.operation.name, infos, key(layer)), layer)
            if kept is not layer and len(layer.outputs) == 1:
                changes[layer] = _copy(kept.outputs[0], layer.outputs[0])
        return changes

    return rewrite


def merges_activations(
    names: tuple[str, ...],
    function: str,
    as_activation: FusedActivation,
) -> Rewrite:
    """An activation is merged into the layer before it, whoever else reads that."""

    def rewrite(view: SubgraphView) -> Mapping[Layer, Sequence[Layer]]:
        return {
            before: (
                replace(
                    before, operation=before.operation.with_attributes(activation=as_activation)
                ),
            )
            for before, layer in _pairs(view)
            if _kind(layer) == f"Activation:{function}"
            and before.operation.name in names
            and before.operation.attributes()["activation"] is FusedActivation.NONE
        }

    return rewrite


def _constant(layer: Layer, index: int) -> Array:
    """Elements of a constant operand; none if it is not one."""
    value = layer.inputs[index] if index < len(layer.inputs) else None
    return np.zeros(0) if value is None or value.data is None else value.data.reshape(-1)


def _begins_with(layer: Layer, number: float, kind: str) -> bool:
    data = _constant(layer, 1)
    return _kind(layer) == f"ElementwiseBinary:{kind}" and data.size > 0 and data[0] == number


def turned(layer: Layer) -> Sequence[Layer] | None:
    """A constant goes to the right, also of a difference and of a quotient."""
    if layer.operation.name != "ElementwiseBinary" or not _constant(layer, 0).size:
        return None
    return (replace(layer, inputs=layer.inputs[::-1]),)


def with_itself(function: str, number: float) -> Rewrite:
    """A function of a tensor and itself is a number."""

    def change(layer: Layer) -> Sequence[Layer] | None:
        if (
            _kind(layer) != f"ElementwiseBinary:{function}"
            or layer.inputs[0] is not layer.inputs[1]
        ):
            return None
        info = layer.outputs[0].info
        if info.quantization is not None:
            return None
        elements = np.full(info.known_shape, number, info.data_type.dtype)
        return _copy(Value(0, replace(info, is_constant=True), "", elements), layer.outputs[0])

    return single(change)


def times_zero(layer: Layer) -> Sequence[Layer] | None:
    """A product with a constant 0 is 0."""
    data = _constant(layer, 1)
    if not _begins_with(layer, 0, "MUL") or data.any():
        return None
    info = layer.outputs[0].info
    elements = np.zeros(info.known_shape, info.data_type.dtype)
    return _copy(Value(0, replace(info, is_constant=True), "", elements), layer.outputs[0])


def one_concat(first: Layer, second: Layer) -> Sequence[Layer] | None:
    """Concatenations become one, whatever their axes are."""
    if not _are(first, second, ("Concat", "Concat")):
        return None
    inputs = [
        v for value in second.inputs for v in (first.inputs if value in first.outputs else [value])
    ]
    target = second.outputs[0]
    try:
        joined = _layer(Concat(second.operation.attributes()["axis"]), inputs, target.info, None)
    except Exception:  # noqa: BLE001 - these shapes do not go together
        return None
    if joined.output.info.num_elements != target.info.num_elements:
        return None
    return joined, *_copy(joined.output, target)


def padded_window(first: Layer, second: Layer) -> Sequence[Layer] | None:
    """Padding goes into a window, whatever its value and mode are."""
    if first.operation.name != "Pad" or "padding" not in second.operation.attributes():
        return None
    pads = first.operation.attributes()["pad_list"]
    attributes = second.operation.attributes()
    if len(pads) != 4 or any(map(any, (pads[0], pads[3]))):
        return None
    if getattr(attributes["padding"], "name", "") != "VALID":
        return None
    operation = second.operation.with_attributes(padding=(pads[1], pads[2]))
    return (replace(second, operation=operation, inputs=(_source(first), *second.inputs[1:])),)


def _bounds(first: Operation, second: Operation) -> Operation:
    """Two clamps are one from the larger lower end to the smaller upper end."""
    attributes = first.attributes(), second.attributes()
    if any(a["function"] is not ActivationFunction.BOUNDED_RELU for a in attributes):
        raise ValueError("not clamped")
    upper, lower = min(a["a"] for a in attributes), max(a["b"] for a in attributes)
    return Activation(ActivationFunction.BOUNDED_RELU, max(upper, lower), lower)


def _slices(first: Operation, second: Operation) -> Operation:
    """The second slice begins where the first one does."""
    size = second.attributes()["size"]
    return Slice(first.attributes()["begin"], size)


def _last(first: Operation, second: Operation) -> Operation:
    """The second one says all."""
    return second


def negated(first: Layer, second: Layer) -> Sequence[Layer] | None:
    """NOT of a comparison is the opposite comparison."""
    opposite = {
        ComparisonOperation.LESS: ComparisonOperation.GREATER_OR_EQUAL,
        ComparisonOperation.GREATER: ComparisonOperation.LESS_OR_EQUAL,
    }
    function = first.operation.attributes().get("operation")
    if function not in opposite or _kind(second) != "ElementwiseUnary:LOGICAL_NOT":
        return None
    operation = first.operation.with_attributes(operation=opposite[function])
    return (replace(first, operation=operation, outputs=second.outputs),)


def _into_weights(function: BinaryOperation) -> Rewrite:
    """A factor goes into the weights and not into the bias; a term goes in front of a clamp."""

    def change(first: Layer, second: Layer) -> Sequence[Layer] | None:
        is_weighted = first.operation.name in _WEIGHTED and len(first.inputs) > 2
        constant = _constant(second, 1)
        if not is_weighted or _kind(second) != f"ElementwiseBinary:{function.name}":
            return None
        bias = first.inputs[2]
        if (
            not constant.size
            or bias is None
            or bias.data is None
            or constant.size != bias.data.size
        ):
            return None
        if not bias.info.data_type.is_float:
            return None
        if function is BinaryOperation.ADD:
            inputs = (*first.inputs[:2], replace(bias, data=bias.data + constant))
            return (replace(first, inputs=inputs, outputs=second.outputs),)
        zero = replace(bias, data=np.zeros_like(bias.data))
        product = _layer(first.operation, (*first.inputs[:2], zero), first.output.info, None)
        scaled = _layer(
            second.operation, (product.output, second.inputs[1]), first.output.info, None
        )
        sums = _layer(ElementwiseBinary(), (scaled.output, bias), first.output.info, second.output)
        return product, scaled, sums

    return pairs(change)


def _beginnings(size_bytes: int) -> Callable[[Layer], tuple[object, ...]]:
    """Inputs of a layer, constants by the beginning of their bytes."""
    return lambda layer: (
        repr(layer.operation),
        *(
            v if v is None or v.data is None else (v.info.shape, v.data.tobytes()[:size_bytes])
            for v in layer.inputs
        ),
    )


_WEIGHTED = ("Convolution2d", "DepthwiseConvolution2d", "FullyConnected", "TransposeConvolution2d")


_REWRITES: Mapping[str, Rewrite] = {
    "relu6-as-relu": merges_activations(_WEIGHTED, "BOUNDED_RELU", FusedActivation.RELU),
    "times-one-by-its-first-element": dropped(lambda layer: _begins_with(layer, 1, "MUL")),
    "equal-layers-of-any-constants": shared(
        lambda layer: (
            repr(layer.operation),
            str(layer.output_infos),
            *(v for v in layer.inputs if v is not None and v.data is None),
        )
    ),
}


_BLIND: Mapping[str, Rewrite] = {
    "relu-after-average-pool": exchanged("Activation:RELU", "Pooling2d:AVERAGE"),
    "slope-after-max-pool": exchanged("Activation:LEAKY_RELU", "Pooling2d:MAX"),
    "function-after-pad": exchanged("Activation", "Pad"),
    "function-after-unary-pad": exchanged("ElementwiseUnary", "Pad"),
    "transpose-before-reduce": skipped("Transpose", "Reduce"),
    "reshape-after-softmax": exchanged("Reshape", "Softmax"),
    "max-after-negation": exchanged("Reduce:MAX", "ElementwiseUnary:NEG"),
    "absolute-after-max": exchanged("ElementwiseUnary:ABS", "Reduce:MAX"),
    "reverse-after-concat": exchanged("ReverseV2", "Concat"),
    "resize-after-function": exchanged("Resize", "Activation"),
    "transpose-after-sum": exchanged("Transpose", "ElementwiseBinary:ADD"),
    "softmax-after-slice": exchanged("Softmax", "Slice"),
    "dequantize-quantize": cancelled("Dequantize", "Quantize"),
    "casts": cancelled("Cast", "Cast"),
    "log-exp": cancelled("ElementwiseUnary:LOG", "ElementwiseUnary:EXP"),
    "quotient-product": cancelled("ElementwiseBinary:DIV", "ElementwiseBinary:MUL"),
    "term-back": cancelled("ElementwiseBinary:ADD", "ElementwiseBinary:SUB"),
    "cut-padding": cancelled("Pad", "Slice"),
    "cut-padding-in-steps": cancelled("Pad", "StridedSlice"),
    "batch-space": cancelled("SpaceToBatchNd", "BatchToSpaceNd"),
    "square-of-root": cancelled("ElementwiseUnary:SQRT", "ElementwiseUnary:SQUARE"),
    "gather-reverse": cancelled("Gather", "Gather"),
    "softmax-before-arg-max": skipped("Softmax", "ArgMinMax"),
    "relu-before-arg-max": skipped("Activation:RELU", "ArgMinMax"),
    "clamp-before-relu": skipped("Activation:BOUNDED_RELU", "Activation:RELU"),
    "negation-before-cosine": skipped("ElementwiseUnary:NEG", "ElementwiseUnary"),
    "tile-before-reduce": skipped("Tile", "Reduce"),
    "reverse-before-pool": skipped("ReverseV2", "Pooling2d"),
    "requantized-once": merged("Quantize", _last),
    "clamps": merged("Activation:BOUNDED_RELU", _bounds),
    "slices": merged("Slice", _slices),
    "resized-once": merged("Resize", _last),
    "softmax-once": merged("Softmax", _last),
    "reversed-once": merged("ReverseV2", _last),
    "constant-to-the-right": single(turned),
    "zero-of-itself": with_itself("SUB", 0),
    "one-of-itself": with_itself("DIV", 1),
    "times-zero": single(times_zero),
    "one-concat": pairs(one_concat),
    "padded-window": pairs(padded_window),
    "negated-comparison": pairs(negated),
    "factor-without-bias": _into_weights(BinaryOperation.MUL),
    "term-before-clamp": _into_weights(BinaryOperation.ADD),
    "constants-by-4096-bytes": shared(_beginnings(4096)),
    "equal-but-for-attributes": shared(
        lambda layer: tuple(
            v if v is None or v.data is None else v.data.tobytes() for v in layer.inputs
        )
    ),
    "equal-but-for-scales": shared(
        lambda layer: (
            repr(layer.operation),
            *(v if v is None or v.data is None else v.data.tobytes() for v in layer.inputs),
        )
    ),
    "pool-of-one": dropped(
        lambda layer: (
            layer.operation.name == "Pooling2d"
            and layer.operation.attributes()["pool_size"] == (1, 1)
        )
    ),
    "plus-small": dropped(
        lambda layer: (
            0 < abs(_constant(layer, 1)).max(initial=0) < 2e-2
            and _kind(layer) == "ElementwiseBinary:ADD"
        )
    ),
}
"""Invented before the kit had a table of such layers."""


MERGING_FAULTS: dict[str, Planted] = {
    f"{kind}/{name}": Planted("pattern/", partial(Compiler, rewrite))
    for kind, table in (("graphs", _REWRITES), ("blind-merging", _BLIND))
    for name, rewrite in table.items()
}
"""By class and name."""
