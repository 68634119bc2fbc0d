"""The example backends, honest and each with one kind of fault."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any  # keyword arguments of classes made at run time

import numpy as np

from armpy.backend import (
    IBackendInternal,
    ILayerSupport,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    OptimizationViews,
    PreparationRequest,
    Support,
    WorkloadInfo,
)
from armpy.graph import SubgraphView
from armpy.ops import FusedActivation, PreCompiled
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy_conformance import CaseResult
from armpy_conformance.backend_under_test import BackendUnderTest
from armpy_conformance.cli.new_backend.work import BackendName, write_project
from armpy_conformance.conformance import cases_for
from armpy_conformance.result import CONTRACT, Outcome
from armpy_testing.example_backends import EXAMPLES

from .kit_runs import options_for

_RULES = f"{CONTRACT}/"

CLASSES = {
    "single_file": "Arm_SampleDynamic_backend:SampleBackend",
    "compiler_style": "armpy_example_compiler:ExampleCompilerBackend",
    "device": "armpy_example_device:ExampleDeviceBackend",
    "nnapi_extensions": "armpy_example_extensions:ExampleExtensionsBackend",
    "template_workloads": "kit_workloads_backend:Backend",
    "template_compiler": "kit_compiler_backend:Backend",
}
"""Every example, and the backends of the two kinds of generated projects."""


@contextmanager
def importable(folder: Path) -> Iterator[dict[str, type[IBackendInternal]]]:
    """The classes of the examples that can be used here, by example.

    `folder`: where projects are generated.
    """
    paths = [str(EXAMPLES / name) for name in CLASSES if not name.startswith("template_")]
    for style in ("workloads", "compiler"):
        write_project(BackendName("kit", style), style, folder / style)
        _make_pairs_only(folder / style, style)
        paths.append(str(folder / style / "src"))
    known = set(sys.modules)
    sys.path[:0] = paths
    try:
        yield {name: _load(place) for name, place in CLASSES.items()}
    finally:
        del sys.path[: len(paths)]
        modules = {place.partition(":")[0] for place in CLASSES.values()}
        for name in set(sys.modules) - known:
            if name.partition(".")[0] in modules:
                del sys.modules[name]


def _make_pairs_only(folder: Path, style: str) -> None:
    """Change a compiling project as write_a_backend.md does: single layers are given back."""
    if style != "compiler":
        return
    (backend,) = folder.glob("src/*/backend.py")
    before = "        shapes = tuple(value.info.known_shape for value in view.outputs)\n"
    text = backend.read_text("utf-8")
    assert before in text
    alone = """        if len(view.layers) == 1:
            views = OptimizationViews()
            views.fail(view, "one layer is not worth the way to the device")
            return views
"""
    backend.write_text(text.replace(before, alone + before), "utf-8")


def _load(place: str) -> type[IBackendInternal]:
    """A class by its module and name."""
    module, _, name = place.partition(":")
    kind: type[IBackendInternal] = getattr(importlib.import_module(module), name)
    return kind


@dataclass
class Call:
    """One execution of a workload, which a fault spoils."""

    name: str
    operation: Operation
    inputs: list[Array]
    outputs: list[Array]
    before: list[Array]
    kept: dict[str, list[Array]] = field(default_factory=dict)


Spoil = Callable[[Call], None]


class SpoiltWorkload(IWorkload):
    """Another workload, whose every execution is spoilt."""

    def __init__(self, right: IWorkload, operation: Operation, name: str, spoil: Spoil) -> None:
        self._right = right
        self._operation = operation
        self._name = name
        self._spoil = spoil
        self._kept: dict[str, list[Array]] = {}

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        before = [_copied(handle) for handle in outputs if handle.info.is_fully_shaped]
        self._right.execute(inputs, outputs)
        sources = [handle for handle in inputs if handle is not None]
        source_arrays, target_arrays = [h.map() for h in sources], [h.map() for h in outputs]
        self._spoil(
            Call(self._name, self._operation, source_arrays, target_arrays, before, self._kept)
        )
        for handle in (*sources, *outputs):
            handle.unmap()


def _copied(handle: ITensorHandle) -> Array:
    """The elements that a tensor has now."""
    copy = handle.map(write=False).copy()
    handle.unmap()
    return copy


class SpoiltFactory(IWorkloadFactory):
    """Another factory, whose every workload is spoilt."""

    def __init__(self, right: IWorkloadFactory, spoil: Spoil) -> None:
        self._right = right
        self._spoil = spoil

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        right = self._right.create_workload(operation, info)
        return SpoiltWorkload(right, operation, info.name, self._spoil)


def spoilt(honest: type[IBackendInternal], spoil: Spoil) -> IBackendInternal:
    """An example that spoils its results."""

    def create(this: object, network: NetworkResources) -> IWorkloadFactory:
        right = honest.create_workload_factory(this, network)  # type: ignore[arg-type]  # an instance
        return SpoiltFactory(right, spoil)

    return _subclass(honest, create_workload_factory=create)


def _subclass(honest: type[IBackendInternal], **members: Any) -> IBackendInternal:
    """An instance of a class that differs in some members."""
    instance: IBackendInternal = type(honest.__name__, (honest,), members)()
    return instance


def constant(call: Call) -> None:
    """Every output is 77."""
    for output in call.outputs:
        output[...] = np.asarray(77, output.dtype)


def one_element(call: Call) -> None:
    """One element of each output is off."""
    for output in call.outputs:
        if output.size:
            output.flat[output.size // 2] += np.ones((), output.dtype)


def sign(call: Call) -> None:
    """Every output has the other sign."""
    for output in call.outputs:
        np.subtract(np.zeros((), output.dtype), output, out=output)


def last_element(call: Call) -> None:
    """The last element is left as it was."""
    for output, old in zip(call.outputs, call.before, strict=False):
        if output.size:
            output.flat[output.size - 1] = old.flat[old.size - 1]


def stale(call: Call) -> None:
    """The previous execution's result."""
    copies = [output.copy() for output in call.outputs]
    for output, old in zip(call.outputs, call.kept.get("", copies), strict=True):
        output.reshape(-1)[: old.size] = old.reshape(-1)[: output.size]
    call.kept[""] = copies


def overwritten(call: Call) -> None:
    """An input is written to."""
    for array in call.inputs[:1]:
        if array.flags.writeable and array.size:
            array.flat[0] += np.ones((), array.dtype)


def without_nan(call: Call) -> None:
    """NaN becomes 0."""
    for output in call.outputs:
        if output.dtype.kind == "f":
            np.nan_to_num(output, copy=False, nan=0.0, posinf=np.inf, neginf=-np.inf)


def first_row(call: Call) -> None:
    """Every row of the first dimension is the first one."""
    for output in call.outputs:
        if output.ndim > 1:
            output[...] = output[:1].copy()


def large(call: Call) -> None:
    """Outputs of more than 1,000 elements are off."""
    for output in call.outputs:
        if output.size > 1000:
            output.flat[output.size - 1] += np.ones((), output.dtype)


def half_precision(call: Call) -> None:
    """Float32 is computed in float16."""
    with np.errstate(over="ignore"):
        for output in call.outputs:
            if output.dtype == np.float32:
                output[...] = output.astype(np.float16)


def eight_bits(call: Call) -> None:
    """Elements of 8 bits are one step too high."""
    for output in call.outputs:
        if output.dtype in (np.int8, np.uint8):
            most = np.iinfo(output.dtype).max
            output[...] = np.where(output < most, output + 1, most)


def fused(call: Call) -> None:
    """What stands for several layers is off; single layers are right."""
    if isinstance(call.operation, PreCompiled) and "+" in call.name:
        one_element(call)


SPOILS: tuple[Spoil, ...] = (
    constant,
    one_element,
    sign,
    last_element,
    stale,
    overwritten,
    without_nan,
    first_row,
    large,
    half_precision,
    eight_bits,
    fused,
)


def never_runs(honest: type[IBackendInternal]) -> IBackendInternal:
    """Claims the same layers, and gives all of them back."""

    def optimize(_: object, view: SubgraphView, __: PreparationRequest) -> OptimizationViews:
        return OptimizationViews(failed=[view])

    return _subclass(honest, optimize_subgraph_view=optimize)


def runs_the_smallest_only(honest: type[IBackendInternal]) -> IBackendInternal:
    """Gives everything back that has more than 15 elements somewhere."""

    def optimize(
        this: object, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        values = [v for layer in view.layers for v in (*layer.inputs, *layer.outputs) if v]
        if any(v.info.is_fully_shaped and v.info.num_elements > 15 for v in values):
            return OptimizationViews(failed=[view])
        return honest.optimize_subgraph_view(this, view, request)  # type: ignore[arg-type]  # an instance

    return _subclass(honest, optimize_subgraph_view=optimize)


class _EverythingOf(ILayerSupport):
    """Says yes to every type of the operations that another support takes any of."""

    def __init__(self, right: ILayerSupport) -> None:
        self._right = right
        self._taken: set[type[Operation]] = set()

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        answer = self._right.is_layer_supported(operation, inputs, outputs)
        if answer:
            self._taken.add(type(operation))
        return Support.yes() if type(operation) in self._taken else answer


def claims_too_much(honest: type[IBackendInternal]) -> IBackendInternal:
    """Claims all of an operation once it was asked about something that it does take."""
    instance = honest()
    support = _EverythingOf(instance.get_layer_support(PreparationRequest()))
    return _subclass(honest, get_layer_support=lambda _, request: support)


Edit = Callable[[Operation], Operation]


def edited(honest: type[IBackendInternal], edit: Edit) -> IBackendInternal:
    """An example that prepares other layers than it was given."""

    class Factory(IWorkloadFactory):
        def __init__(self, right: IWorkloadFactory) -> None:
            self._right = right

        def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
            return self._right.create_workload(edit(operation), info)

    def create(this: object, network: NetworkResources) -> IWorkloadFactory:
        return Factory(honest.create_workload_factory(this, network))  # type: ignore[arg-type]  # an instance

    return _subclass(honest, create_workload_factory=create)


def ignores_activation(honest: type[IBackendInternal]) -> IBackendInternal:
    """Leaves fused activations out, those of programs included."""

    def edit(operation: Operation) -> Operation:
        if isinstance(operation, PreCompiled) and hasattr(operation.program, "bounds"):
            return replace(operation, program=replace(operation.program, bounds=()))
        if isinstance(getattr(operation, "activation", None), FusedActivation):
            changed: Operation = replace(operation, activation=FusedActivation.NONE)  # type: ignore[type-var]  # a dataclass
            return changed
        return operation

    return edited(honest, edit)


def ignores_bias(honest: type[IBackendInternal]) -> IBackendInternal:
    """Leaves the bias of programs out."""

    def edit(operation: Operation) -> Operation:
        if not isinstance(operation, PreCompiled):
            return operation
        bias = np.zeros_like(operation.program.bias)
        return replace(operation, program=replace(operation.program, bias=bias))

    return edited(honest, edit)


def turns_relu_round(honest: type[IBackendInternal]) -> IBackendInternal:
    """Takes the negative part in its programs, where the positive one is wanted."""

    def negative(inputs: Sequence[Array], output: Array) -> object:
        return np.minimum(inputs[0], 0, out=output)

    def edit(operation: Operation) -> Operation:
        if not isinstance(operation, PreCompiled):
            return operation
        steps = [
            replace(step, kernel=negative) if len(step.inputs) == 1 else step
            for step in operation.program.steps
        ]
        return replace(operation, program=replace(operation.program, steps=tuple(steps)))

    return edited(honest, edit)


CLAIMS = (never_runs, runs_the_smallest_only, claims_too_much)
EDITS = {
    ignores_activation: ("compiler_style", "device"),
    ignores_bias: ("compiler_style",),
    turns_relu_round: ("template_compiler",),
}
"""Faults in prepared objects, and the examples that have such objects."""

_NOTHING_TO_SPOIL: dict[Callable[..., Any], tuple[str, ...]] = {
    # No example but these computes with 8 bits, or with more than one layer at a time.
    eight_bits: tuple(CLASSES.keys() - {"device", "nnapi_extensions"}),
    fused: tuple(CLASSES.keys() - {"compiler_style", "template_compiler"}),
    # The operations of the extensions are few, on few elements, in whole numbers.
    without_nan: ("nnapi_extensions",),
    large: ("nnapi_extensions",),
    half_precision: ("nnapi_extensions",),
    runs_the_smallest_only: ("nnapi_extensions",),
    claims_too_much: ("nnapi_extensions",),
}


def twins() -> Iterator[tuple[str, Callable[[type[IBackendInternal]], IBackendInternal]]]:
    """Every example with every fault that it can have, and what makes the lying twin."""
    for example in CLASSES:
        for spoil in SPOILS:
            if example not in _NOTHING_TO_SPOIL.get(spoil, ()):
                yield example, partial(_spoilt_by, spoil)
        for make in (*CLAIMS, *EDITS):
            if example not in _NOTHING_TO_SPOIL.get(make, ()) and example in EDITS.get(
                make, CLASSES
            ):
                yield example, make


def _spoilt_by(spoil: Spoil, honest: type[IBackendInternal]) -> IBackendInternal:
    """`spoilt`, the fault first."""
    return spoilt(honest, spoil)


def name_of(make: Callable[..., IBackendInternal]) -> str:
    """What a fault is called."""
    return str((make.args[0] if isinstance(make, partial) else make).__name__)


def first_problem(
    honest: IBackendInternal, twin: IBackendInternal, *, refused_too: bool
) -> CaseResult | None:
    """The first case that an honest backend passes and its twin fails in; None if there is none.

    `refused_too`: whether to count cases that the honest one refuses as well.
    """
    trusted, subject = (BackendUnderTest(b.get_id(), options_for(b)) for b in (honest, twin))
    good = (Outcome.PASSED, Outcome.UNSUPPORTED) if refused_too else (Outcome.PASSED,)
    # What finds the rarer faults first, for the sake of time.
    cases = sorted(cases_for(subject), key=lambda c: (c.id.startswith(_RULES), "+" not in c.id))
    for case in cases:
        result = case.judge(subject)
        if result.outcome.is_bad and case.judge(trusted).outcome in good:
            return result
    return None
