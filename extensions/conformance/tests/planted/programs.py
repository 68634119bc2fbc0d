"""Faults of compilers that rewrite graphs, and of programs in files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial

import numpy as np
from armpy_reference.factory import ReferenceWorkloadFactory

from armpy.backend import (
    HostTensorHandle,
    IPrograms,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    OptimizationViews,
    OptionValues,
    PreparationRequest,
    ProgramCheck,
    ProgramFit,
    SavedProgram,
    Substitution,
    WorkloadInfo,
)
from armpy.errors import BackendCapabilityError, BackendError
from armpy.graph import Layer, SubgraphView, Value
from armpy.ops import (
    FusedActivation,
    PreCompiled,
)
from armpy.ops.operation import Array, Operation
from armpy.store.digests import digest_of
from armpy.tensor import TensorInfo
from armpy.types import Priority
from armpy_testing.backends.fake_backends import FunctionWorkload, Handles, Outputs

from .executions import After
from .planting import Planted
from .shapes import Factory, Fault, Fused, Programs, spoil

# --- Rewritten graphs


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


_REWRITES: Mapping[str, Callable[[], Rewrite]] = {
    "relu6-as-relu": lambda: MergesActivations(_WEIGHTED, ("BOUNDED_RELU",)),
    "times-one-by-its-first-element": lambda: Skips(
        "ElementwiseBinary", lambda layer: _begins_with(layer, 1, 1, "MUL")
    ),
    "equal-layers-of-any-constants": lambda: Shares(
        lambda layer: tuple(v.name for v in layer.inputs if v is not None and v.data is None)
    ),
}


_DELETED: Mapping[str, tuple[str, Callable[[Layer], object]]] = {
    "reverse": ("ReverseV2/", lambda layer: layer.operation.name == "ReverseV2"),
}
"""Layers that are deleted, and the cases that find it."""


# --- Programs


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


# --- Programs in files


@dataclass
class Forgets(Fault):
    """An attribute is at its default when a program comes from a file."""

    operation_name: str
    attribute: str

    def operation(self, operation: Operation, how: str) -> Operation:
        if how != "loaded" or operation.name != self.operation_name:
            return operation
        (default,) = (f.default for f in fields(operation) if f.name == self.attribute)  # type: ignore[arg-type]  # subclasses are dataclasses
        return operation.with_attributes(**{self.attribute: default})


@dataclass
class Fractions(Fault):
    """Fractions among attributes are lost when a program is compiled, or comes from a file."""

    how: str
    digits: int  # that are kept

    def operation(self, operation: Operation, how: str) -> Operation:
        floats = {k: v for k, v in operation.attributes().items() if isinstance(v, float)}
        if how != self.how or not floats:
            return operation
        changed = {k: round(v, self.digits) if np.isfinite(v) else v for k, v in floats.items()}
        try:
            return operation.with_attributes(**changed)
        except Exception:  # noqa: BLE001 - 0 is not allowed there
            return operation


class SpentPrograms(Programs):
    """A program that was written down lacks its weights afterwards."""

    def save(self, program: object, options: OptionValues) -> SavedProgram | None:
        saved = super().save(program, options)
        SPENT.add(id(program))
        return saved


SPENT: set[int] = set()
"""Programs that were written down."""


class Spent(Fault):
    """Such programs compute something else."""

    def program(self, view: SubgraphView, values: dict[Value, Array]) -> None:
        if id(view) in SPENT:
            spoil(values[view.outputs[0]])


class MixesUp(Programs):
    """Gives the first program of the same shapes, whatever its constants are."""

    def load(self, saved: SavedProgram) -> object:
        wanted = self.kept[int(str(saved.about["number"]))]
        return next(program for program in self.kept if _infos(program) == _infos(wanted)), "loaded"


def _infos(program: object) -> list[TensorInfo]:
    """What a program reads and writes."""
    assert isinstance(program, SubgraphView)
    return [value.info for value in (*program.inputs, *program.outputs)]


class SaysNoReason(Programs):
    """Refuses programs without a word."""

    def check(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        return super().check(about, options)._replace(reason="")


class RefusesItsOwn(Programs):
    """Takes no program from a file."""

    def load(self, saved: SavedProgram) -> object:
        raise BackendCapabilityError("no file is good enough", where="Planted")


class WritesText(Programs):
    """Gives text where bytes belong."""

    def save(self, program: object, options: OptionValues) -> SavedProgram | None:
        return SavedProgram({}, {"code": "text"})  # type: ignore[dict-item]  # the fault


class Gullible(Programs):
    """Accepts any program."""

    def check(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        return ProgramCheck(ProgramFit.ACCEPTED)


class WithPrograms(Fused):
    """A backend with other programs."""

    def __init__(self, programs: Programs, fault: Fault | None = None) -> None:
        super().__init__(fault)
        self.programs = programs

    def get_programs(self) -> IPrograms | None:
        return self.programs


class CompilesOnce(Fused):
    """Compiles nothing again that it has written into a file."""

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        digest = digest_of(view)
        if any(digest == digest_of(kept) for kept in self.programs.kept):
            self.compile_again(view)
        return super().optimize_subgraph_view(view, request)

    def compile_again(self, view: SubgraphView) -> None:
        """Refuse a program."""
        raise BackendError("it is in its files already")


class WrongTheSecondTime(CompilesOnce):
    """Makes another program where it has written one into a file."""

    def __init__(self) -> None:
        super().__init__(Spent())

    def compile_again(self, view: SubgraphView) -> None:
        SPENT.add(id(view))


PROGRAM_FAULTS: dict[str, Planted] = {
    **{f"graphs/{name}": Planted("pattern/", Compiler, make) for name, make in _REWRITES.items()},
    **{
        f"deleted/{name}": Planted(area, partial(Deletes, condition))
        for name, (area, condition) in _DELETED.items()
    },
    "saved/convolution": Planted(
        "contract/compiled/every-attribute-comes-back",
        Fused,
        lambda: Forgets("Convolution2d", "activation"),
        "from a compiled model",
    ),
    "saved/patterns": Planted(
        "contract/compiled/patterns-come-back",
        Fused,
        lambda: Forgets("Convolution2d", "activation"),
        "from a compiled model",
    ),
    "compiled/once": Planted(
        "contract/compiled/parts-that-cannot-be-used-are-compiled-anew",
        CompilesOnce,
        said="it is in its files already",
    ),
    "compiled/wrong-the-second-time": Planted(
        "contract/compiled/parts-that-cannot-be-used-are-compiled-anew",
        WrongTheSecondTime,
        said="when its files are damaged, the output",
    ),
    "blind-program/spent": Planted(
        "contract/compiled/kept-parts-compute-the-same",
        lambda: WithPrograms(SpentPrograms(), Spent()),
    ),
    "compiled/refuses-its-own": Planted(
        "contract/compiled/kept-parts-compute-the-same",
        lambda: WithPrograms(RefusesItsOwn()),
        said="could not be loaded.*no file is good enough",
    ),
    "compiled/writes-text": Planted(
        "contract/compiled/kept-parts-compute-the-same",
        lambda: WithPrograms(WritesText()),
        said="the part 'code' is 'text', neither bytes",
    ),
    "compiled/mixes-up": Planted(
        "contract/compiled/saved-programs-compute-the-same",
        lambda: WithPrograms(MixesUp()),
        said="when it comes from a compiled model, the output",
    ),
    "compiled/says-no-reason": Planted(
        "contract/compiled/saved-programs-compute-the-same",
        lambda: WithPrograms(SaysNoReason()),
        said="check gives no reason for refusing",
    ),
    "blind-program/gullible": Planted(
        "contract/compiled/saved-programs-compute-the-same", lambda: WithPrograms(Gullible())
    ),
    "calls/low-priority": Planted(
        "contract/calls/networks-of-every-priority-are-alike",
        lambda: Prepared(lambda request: request.priority is Priority.LOW),
    ),
    "calls/relaxed": Planted(
        "contract/calls/relaxed-answers-are-as-good-as-float16",
        lambda: Prepared(lambda request: request.relaxed),
    ),
    "attributes/fractions-compiled": Planted(
        "contract/alike/layers-differ-in-one-attribute", Fused, lambda: Fractions("compiled", 0)
    ),
    "attributes/fractions-loaded": Planted(
        "contract/compiled/every-attribute-comes-back", Fused, lambda: Fractions("loaded", 0)
    ),
}
"""By class and name."""
