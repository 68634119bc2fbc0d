"""Faults of compilers that rewrite graphs, of caches, and of what surrounds a call."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from armpy_reference.factory import ReferenceWorkloadFactory

from armpy.backend import (
    HostTensorHandle,
    ILayerSupport,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    OptimizationViews,
    PreparationRequest,
    ReasonCode,
    Substitution,
    Support,
    WorkloadInfo,
    current_cancellation,
)
from armpy.graph import Layer, SubgraphView, Value
from armpy.ops import (
    Activation,
    ActivationFunction,
    FusedActivation,
    PreCompiled,
    Transpose,
)
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import Priority
from armpy_testing.backends.fake_backends import FunctionWorkload, Handles, Outputs, Step

from .faults import (
    Factory,
    Fault,
    Fused,
    Plain,
    Planted,
    spoil,
    spoil_tensor,
)

_REFERENCE = ReferenceWorkloadFactory()

Alias = dict[Value, Value]
"""Values that a compiler takes for others."""

Operations = dict[Layer, Operation]
"""What it computes in the place of some layers' operations."""


class Rewrite:
    """Nothing rewritten; each fault overrides one of these."""

    def merged(self, view: SubgraphView) -> Operations:
        """Operations in the place of others."""
        return {}

    def removed(self, view: SubgraphView) -> Alias:
        """Outputs that are taken for other values."""
        return {}


class Compiler(Fused):
    """Makes one program of a part, after it has rewritten it."""

    def __init__(self, rewrite: Rewrite) -> None:
        super().__init__()
        self._rewrite = rewrite

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        shapes = tuple(value.info.known_shape for value in view.outputs)
        program = (view, self._rewrite.merged(view), self._rewrite.removed(view))
        return OptimizationViews([Substitution.by_operation(view, PreCompiled(program, shapes))])

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return _Programs()

    def get_programs(self) -> None:
        return None


class _Programs(IWorkloadFactory):
    """Runs rewritten parts."""

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        if not isinstance(operation, PreCompiled):
            return _REFERENCE.create_workload(operation, info)
        view, merged, removed = operation.program
        steps = [
            (_REFERENCE.create_workload(merged.get(layer, layer.operation), _info(layer)), layer)
            for layer in view.layers
        ]
        return FunctionWorkload(partial(_run, view, steps, removed))


def _info(layer: Layer) -> WorkloadInfo:
    constants = tuple(None if v is None else v.data for v in layer.inputs)
    return WorkloadInfo(layer.name, layer.input_infos, layer.output_infos, constants)


def _run(
    view: SubgraphView,
    steps: Sequence[tuple[IWorkload, Layer]],
    removed: Alias,
    inputs: Handles,
    outputs: Outputs,
) -> None:
    """Run the layers in order, on copies."""
    values: dict[Value, ITensorHandle] = {}

    def handle(value: Value) -> ITensorHandle:
        while value in removed:
            value = removed[value]
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
        targets = [_own(value) if value in removed else handle(value) for value in layer.outputs]
        workload.execute([None if v is None else handle(v) for v in layer.inputs], targets)
    for value, target in zip(view.outputs, outputs, strict=True):
        array = np.asarray(handle(value).map(write=False))
        target.map(read=False)[...] = array.reshape(value.info.known_shape)
        target.unmap()


def _own(value: Value) -> ITensorHandle:
    """Memory for a result."""
    array = np.empty(value.info.known_shape, value.info.data_type.dtype)
    return HostTensorHandle(value.info, array)


def _constant_handle(value: Value) -> ITensorHandle:
    """A handle on a constant's elements."""
    assert value.data is not None
    return HostTensorHandle(value.info, value.data)


def _pairs(view: SubgraphView) -> Iterator[tuple[Layer, Layer]]:
    """Layers, each with the one that makes its first input."""
    for layer in view.layers:
        before = view.producers.get(layer.inputs[0]) if layer.inputs and layer.inputs[0] else None
        if before is not None:
            yield before, layer


def _function(layer: Layer) -> str:
    attributes = layer.operation.attributes()
    return str(getattr(attributes.get("function", attributes.get("operation")), "name", ""))


@dataclass
class MergesActivations(Rewrite):
    """An activation is merged into the layer before it, whoever else reads that."""

    names: tuple[str, ...]
    functions: tuple[str, ...] = ("RELU",)
    as_activation: FusedActivation = FusedActivation.RELU

    def merged(self, view: SubgraphView) -> Operations:
        return {
            before: before.operation.with_attributes(activation=self.as_activation)
            for before, layer in _pairs(view)
            if layer.operation.name == "Activation"
            and _function(layer) in self.functions
            and before.operation.name in self.names
            and before.operation.attributes()["activation"] is FusedActivation.NONE
        }


@dataclass
class Cancels(Rewrite):
    """Two layers are taken out as if the second one undid the first."""

    first: str
    second: str
    condition: Callable[[Layer, Layer], object] = lambda _, __: True

    def removed(self, view: SubgraphView) -> Alias:
        return {
            layer.outputs[0]: before.inputs[0]
            for before, layer in _pairs(view)
            if before.inputs[0] is not None
            and (before.operation.name, layer.operation.name) == (self.first, self.second)
            and layer.outputs[0].info.shape == before.inputs[0].info.shape
            and self.condition(before, layer)
        }


@dataclass
class Skips(Rewrite):
    """A layer is taken out as if it did nothing."""

    name: str
    condition: Callable[[Layer], object]
    operand: int = 0

    def removed(self, view: SubgraphView) -> Alias:
        alias: Alias = {}
        for layer in view.layers:
            if layer.operation.name != self.name or not self.condition(layer):
                continue
            value = layer.inputs[self.operand]
            if value is not None and value.info.shape == layer.outputs[0].info.shape:
                alias[layer.outputs[0]] = value
        return alias


@dataclass
class Shares(Rewrite):
    """Layers are computed once that a key takes for equal."""

    key: Callable[[Layer], object]

    def removed(self, view: SubgraphView) -> Alias:
        first: dict[object, Value] = {}
        alias: Alias = {}
        for layer in view.layers:
            infos = tuple(map(str, (*layer.input_infos, *layer.output_infos)))
            key = (repr(layer.operation), infos, self.key(layer))
            kept = first.setdefault(key, layer.outputs[0])
            if kept is not layer.outputs[0]:
                alias[layer.outputs[0]] = kept
        return alias


def _constant(layer: Layer, index: int) -> Array:
    """Elements of a constant operand; none if it is not one."""
    value = layer.inputs[index] if index < len(layer.inputs) else None
    return np.zeros(0) if value is None or value.data is None else value.data.reshape(-1)


def _begins_with(layer: Layer, index: int, number: float, function: str) -> bool:
    data = _constant(layer, index)
    return _function(layer) == function and data.size > 0 and bool(data[0] == number)


class Deletes(Fused):
    """Says of a single layer that it does nothing."""

    def __init__(self, condition: Callable[[Layer], object]) -> None:
        super().__init__()
        self._condition = condition

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        if len(view.layers) == 1 and len(view.inputs) == 1:
            layer = view.layers[0]
            is_alike = view.inputs[0].info.shape == view.outputs[0].info.shape
            if is_alike and self._condition(layer):
                return OptimizationViews(deleted=[view])
        return super().optimize_subgraph_view(view, request)


_WEIGHTED = ("Convolution2d", "DepthwiseConvolution2d", "FullyConnected", "TransposeConvolution2d")
_ADD, _MUL, _DIV = "ADD", "MUL", "DIV"

_REWRITES: Mapping[str, Callable[[], Rewrite]] = {
    "relu-into-a-sum": lambda: MergesActivations(("ElementwiseBinary",)),
    "relu-into-weighted": lambda: MergesActivations(_WEIGHTED),
    "relu6-as-relu": lambda: MergesActivations(_WEIGHTED, ("BOUNDED_RELU",)),
    "leaky-relu-as-relu": lambda: MergesActivations(("ElementwiseBinary",), ("LEAKY_RELU",)),
    "reverses-cancel": lambda: Cancels("ReverseV2", "ReverseV2"),
    "blocks-cancel": lambda: Cancels("DepthToSpace", "SpaceToDepth"),
    "padding-cut": lambda: Cancels("Pad", "Slice"),
    "negations-cancel": lambda: Cancels("ElementwiseUnary", "ElementwiseUnary"),
    "activations-cancel": lambda: Cancels(
        "Activation", "Activation", lambda a, b: _function(b) == "RELU" and _function(a) == "TANH"
    ),
    "square-transpose-skipped": lambda: Skips("Transpose", lambda _: True),
    "reverse-skipped-in-company": lambda: Skips(
        "ReverseV2", lambda layer: layer.operation.attributes()["axes"] == (0,)
    ),
    "times-one-by-its-first-element": lambda: Skips(
        "ElementwiseBinary", lambda layer: _begins_with(layer, 1, 1, _MUL)
    ),
    "plus-zero-by-its-first-element": lambda: Skips(
        "ElementwiseBinary", lambda layer: _begins_with(layer, 1, 0, _ADD)
    ),
    "divided-by-one-first-element": lambda: Skips(
        "ElementwiseBinary", lambda layer: _begins_with(layer, 1, 1, _DIV)
    ),
    "zero-minus": lambda: Skips(
        "ElementwiseBinary", lambda layer: _begins_with(layer, 0, 0, "SUB"), 1
    ),
    "one-divided": lambda: Skips(
        "ElementwiseBinary", lambda layer: _begins_with(layer, 0, 1, _DIV), 1
    ),
    "power-one": lambda: Skips(
        "ElementwiseBinary", lambda layer: _begins_with(layer, 1, 1, "POWER")
    ),
    "second-clamp-skipped": lambda: Skips(
        "Activation",
        lambda layer: layer.operation == Activation(ActivationFunction.BOUNDED_RELU, 1.0, -1.0),
    ),
    "equal-layers-of-any-order": lambda: Shares(
        lambda layer: tuple(sorted(v.name for v in layer.inputs if v is not None))
    ),
    "equal-layers-of-any-constants": lambda: Shares(
        lambda layer: tuple(v.name for v in layer.inputs if v is not None and v.data is None)
    ),
    "equal-layers-of-any-inputs": lambda: Shares(lambda layer: None),
}

_DELETED: Mapping[str, tuple[str, Callable[[Layer], object]]] = {
    "relu": ("contract/alike/", lambda layer: _function(layer) == "RELU"),
    "square-transpose": ("Transpose/", lambda layer: isinstance(layer.operation, Transpose)),
    "reverse": ("ReverseV2/", lambda layer: layer.operation.name == "ReverseV2"),
    "requantizing": (
        "Quantize/",
        lambda layer: (
            layer.operation.name == "Quantize"
            and layer.input_infos[0] is not None
            and layer.input_infos[0].data_type is layer.output_infos[0].data_type
        ),
    ),
    "round": ("ElementwiseUnary/", lambda layer: _function(layer) == "ROUND"),
    "times-one": ("pattern/", lambda layer: _begins_with(layer, 1, 1, _MUL)),
}
"""Layers that are deleted, and the cases that find it."""


# --- Caches that find by too little


@dataclass
class Keeps(Fault):
    """Prepared layers are found by a key that leaves something out."""

    key: Callable[[Operation, WorkloadInfo], object]

    def __post_init__(self) -> None:
        self._kept: dict[object, IWorkload] = {}

    def wrap(self, step: Step) -> IWorkload:
        _, operation, info = step
        return self._kept.setdefault(self.key(operation, info), step.right)


def _shapes(info: WorkloadInfo) -> tuple[object, ...]:
    return tuple((i.shape, i.data_type) for i in (*info.inputs, *info.outputs) if i is not None)


def _digest(info: WorkloadInfo, part: slice) -> tuple[bytes | None, ...]:
    """Digests of a part of each constant's bytes."""
    return tuple(
        None if c is None else hashlib.sha256(c.tobytes()[part]).digest() for c in info.constants
    )


_KEYS: Mapping[str, Callable[[Operation, WorkloadInfo], object]] = {
    "by-first-bytes": lambda op, info: (
        repr(op),
        str(info.inputs),
        str(info.outputs),
        _digest(info, slice(8)),
    ),
    "by-all-but-the-last-bytes": lambda op, info: (
        repr(op),
        str(info.inputs),
        str(info.outputs),
        _digest(info, slice(None, -4)),
    ),
    "by-shapes-and-bytes": lambda op, info: (repr(op), _shapes(info), _digest(info, slice(None))),
    "by-name-and-bytes": lambda op, info: (
        op.name,
        str(info.inputs),
        str(info.outputs),
        _digest(info, slice(None)),
    ),
}


@dataclass
class After(Fault):
    """Executions are wrong that a condition on their number chooses."""

    is_wrong: Callable[[int], bool]

    def wrap(self, step: Step) -> IWorkload:
        count = 0

        def execute(inputs: Handles, outputs: Outputs) -> None:
            nonlocal count
            count += 1
            step.right.execute(inputs, outputs)
            if self.is_wrong(count):
                spoil_tensor(outputs[0])

        return FunctionWorkload(execute)


class _ForArrays(FunctionWorkload):
    """A workload with a function for arrays."""

    def __init__(self, step: Step, function: Callable[[Step, Sequence[Array]], None]) -> None:
        super().__init__(step.right.execute)
        self._step = step
        self._own = function

    def for_arrays(self) -> Callable[[Sequence[Array]], object]:
        return partial(self._own, self._step)


@dataclass
class WithArrays(Fault):
    """Executes on arrays in another way than on tensors."""

    function: Callable[[Step, Sequence[Array]], None]

    def wrap(self, step: Step) -> IWorkload:
        return _ForArrays(step, self.function)


def _on_arrays(step: Step, arrays: Sequence[Array], *, is_wrong: bool) -> None:
    """Execute on arrays; the last element is left out if it is wrong."""
    infos = [info for info in (*step.info.inputs, *step.info.outputs) if info is not None]
    handles = [HostTensorHandle(i, a) for i, a in zip(infos, arrays, strict=True)]
    count = len(step.info.outputs)
    step.right.execute(handles[:-count], handles[-count:])
    if is_wrong:
        spoil(np.asarray(arrays[-1]))


class InTime(Fault):
    """Wrong where an execution has a deadline."""

    def wrap(self, step: Step) -> IWorkload:
        def execute(inputs: Handles, outputs: Outputs) -> None:
            step.right.execute(inputs, outputs)
            cancellation = current_cancellation()
            if cancellation is not None and cancellation.deadline_s is not None:
                spoil_tensor(outputs[0])

        return FunctionWorkload(execute)


class Prepared(Fused):
    """Programs are wrong for some requests."""

    def __init__(self, is_wrong: Callable[[PreparationRequest], bool]) -> None:
        super().__init__()
        self._is_wrong = is_wrong
        self._was_wrong = False

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        self._was_wrong = self._is_wrong(request)
        return super().optimize_subgraph_view(view, request)

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return Factory(After(lambda _: True) if self._was_wrong else Fault())


class ManyLayers(Plain):
    """Answers questions about many layers in another way than single ones."""

    def __init__(self, answer: Callable[[list[Support]], list[Support]]) -> None:
        super().__init__()
        self._answer_all = answer

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        return _ManyLayers(self)

    def answers(self, layers: Sequence[Layer]) -> list[Support]:
        """The answers about layers."""
        right = [self.supports(x.operation, x.input_infos, x.output_infos) for x in layers]
        return self._answer_all(right)

    def supports(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        if isinstance(operation, Activation):
            return Support.no(ReasonCode.OPERATION, "no activations")
        return super().supports(operation, inputs, outputs)


class _ManyLayers(ILayerSupport):
    """Layer support of `ManyLayers`."""

    def __init__(self, backend: ManyLayers) -> None:
        self._backend = backend

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        return self._backend.supports(operation, inputs, outputs)

    def are_layers_supported(self, layers: Sequence[Layer]) -> Sequence[Support]:
        return self._backend.answers(layers)


_PATTERNS, _CONTENTS, _CALLS = "pattern/", "contract/contents/", "contract/calls/"
_SUPPORT = "contract/support/"

GRAPH_FAULTS: dict[str, Planted] = {
    **{
        f"graphs/{name}": Planted(_PATTERNS, lambda make=make: Compiler(make()))  # type: ignore[misc]
        for name, make in _REWRITES.items()
    },
    **{
        f"deleted/{name}": Planted(area, lambda condition=condition: Deletes(condition))  # type: ignore[misc]
        for name, (area, condition) in _DELETED.items()
    },
    **{
        f"caches/{name}": Planted(_CONTENTS, lambda key=key: Plain(Keeps(key)))  # type: ignore[misc]
        for name, key in _KEYS.items()
    },
    "executions/third": Planted(_CONTENTS, lambda: Plain(After(lambda n: n == 3))),
    "executions/thirtieth": Planted(_CONTENTS, lambda: Plain(After(lambda n: n == 30))),
    "executions/from-the-tenth": Planted(_CONTENTS, lambda: Fused(After(lambda n: n > 9))),
    "arrays/wrong": Planted(
        _CONTENTS, lambda: Plain(WithArrays(partial(_on_arrays, is_wrong=True)))
    ),
    "arrays/nothing-written": Planted(
        _CONTENTS, lambda: Plain(WithArrays(lambda step, arrays: None))
    ),
    "calls/deadline": Planted(_CALLS, lambda: Plain(InTime())),
    "calls/low-priority": Planted(
        _CALLS, lambda: Prepared(lambda request: request.priority is Priority.LOW)
    ),
    "calls/high-priority": Planted(
        _CALLS, lambda: Prepared(lambda request: request.priority is Priority.HIGH)
    ),
    "calls/relaxed": Planted(_CALLS, lambda: Prepared(lambda request: request.relaxed)),
    "questions/one-less": Planted(_SUPPORT, lambda: ManyLayers(lambda answers: answers[:32])),
    "questions/shifted": Planted(
        _SUPPORT, lambda: ManyLayers(lambda answers: answers[1:] + answers[:1])
    ),
    "questions/reversed": Planted(_SUPPORT, lambda: ManyLayers(lambda answers: answers[::-1])),
    "questions/first-for-all": Planted(
        _SUPPORT, lambda: ManyLayers(lambda answers: answers[:1] * len(answers))
    ),
}
"""By class and name."""
