"""Correct backends of unusual kinds, which pass the whole conformance kit."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # handles, as `execute` takes them

import numpy as np
from armpy_reference.factory import ReferenceWorkloadFactory

from armpy import ops
from armpy.backend import (
    BackendOption,
    Capabilities,
    Capability,
    DeviceInfo,
    IBackendInternal,
    ICompletion,
    ILayerSupport,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    Numerics,
    OptimizationViews,
    OptionScope,
    OptionValues,
    PreparationRequest,
    ReasonCode,
    Support,
    WorkloadInfo,
)
from armpy.backend.devices import DeviceFigures, PerformanceFigures
from armpy.errors import BackendError
from armpy.graph import SubgraphView
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataLayout, DataType, DeviceType
from armpy_testing.backends.fake_backends import (
    CompilingBackend,
    FakeBackend,
    FakeFactory,
    FunctionWorkload,
    Handles,
    Outputs,
    Step,
    compiled,
)

from ..planted.gauges import BoundedPool, LazyProgram
from ..planted.shapes import Flow, Plain, WithManager
from . import arithmetic
from .memory import (
    MappableDevice,
    PaddedHandle,
    Vectors,
    with_guarded_arenas,
    with_handles,
)

ID = "Unusual"

Question = Callable[[Operation, OperandInfos, Sequence[TensorInfo]], str]
"""Answers why a layer is refused; empty if it is not."""


class Choosing(FakeBackend):
    """Refuses layers by something else than their operations."""

    def __init__(
        self, question: Question, operations: Sequence[type] | None = None, **named: Any
    ) -> None:
        super().__init__(ID, operations, **named)
        self._question = question

    def supports(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        answer = super().supports(operation, inputs, outputs)
        reason = self._question(operation, inputs, outputs) if answer else ""
        return Support.no(ReasonCode.OTHER, reason) if reason else answer


def _other_than(data_type: DataType) -> Question:
    """Refuse tensors of any other type."""

    def question(_: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
        infos = [info for info in (*inputs, *outputs) if info is not None]
        is_other = any(info.data_type is not data_type for info in infos)
        return f"tensors are {data_type.name} here" if is_other else ""

    return question


def _open_shape(_: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """Refuse shapes that are not known."""
    infos = [info for info in (*inputs, *outputs) if info is not None]
    return "" if all(info.is_fully_shaped for info in infos) else "every size is known here"


def _run_time_weights(_: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """Refuse weights and biases that are given at each execution."""
    return (
        "" if all(i is None or i.is_constant for i in inputs[1:]) else "weights are constant here"
    )


def _strided(operation: Operation, *_: object) -> str:
    """Refuse windows that move by more than one element."""
    stride = operation.attributes().get("stride", (1, 1))
    return "" if set(np.ravel(stride)) <= {1} else "windows move by one element"


def _channels_last(operation: Operation, *_: object) -> str:
    """Refuse images with their channels in the last dimension."""
    layout = operation.attributes().get("data_layout")
    return "" if layout is DataLayout.NCHW else "channels come before rows"


def _activated(operation: Operation, *_: object) -> str:
    """Refuse activations that are fused."""
    activation = operation.attributes().get("activation", ops.FusedActivation.NONE)
    return "" if activation is ops.FusedActivation.NONE else "activations are layers"


class KeepsFile(FakeBackend):
    """Keeps a file in the folder that an option names, and in none without it."""

    def __init__(self) -> None:
        super().__init__(ID, (ops.Activation,))

    @property
    def options(self) -> Sequence[BackendOption]:
        return (BackendOption("cache_folder", "", "Folder for plans; empty for none."),)

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        if options["cache_folder"]:
            Path(str(options["cache_folder"]), "plans").write_bytes(b"plans")
        return self


class SizeLimited(FakeBackend):
    """Refuses tensors of more elements than an option of the network says, and fails at others."""

    def __init__(self) -> None:
        super().__init__(ID, (ops.Activation, ops.Reduce))

    @property
    def options(self) -> Sequence[BackendOption]:
        scope = OptionScope.MODEL
        return (BackendOption("max_elements", 256, "Largest tensor.", scope, minimum=1),)

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        question = _larger_than(int(request.model_options["max_elements"]))
        return Choosing(question, self._operations).get_layer_support(request)  # type: ignore[arg-type]  # a tuple

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        question = _larger_than(int(network.model_options["max_elements"]))

        def wrap(step: Step) -> IWorkload:
            if question(step.operation, step.info.inputs, step.info.outputs):
                raise BackendError("a layer that was refused is to be prepared", where=ID)
            return step.right

        return FakeFactory(wrap=wrap)


def _larger_than(most: int) -> Question:
    """Refuse tensors of more elements."""

    def question(_: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
        known = [i for i in (*inputs, *outputs) if i is not None and i.is_fully_shaped]
        is_large = any(info.num_elements > most for info in known)
        return f"more than {most} elements" if is_large else ""

    return question


class ManyOptions(FakeBackend):
    """Options whose defaults say that nothing was given."""

    def __init__(self) -> None:
        super().__init__(ID, (ops.Pad,))

    @property
    def options(self) -> Sequence[BackendOption]:
        return (
            BackendOption("trace_file", "", "File to write to; empty for none."),
            BackendOption("num_cores", 0, "Cores; 0 if the driver chooses.", minimum=0),
            BackendOption("profile", "", "Compiler profile.", OptionScope.MODEL),
            BackendOption("level", 0, "Effort.", OptionScope.MODEL, choices=(0, 1, 2)),
        )

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        assert (options["trace_file"], options["num_cores"]) is not None
        return self

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        assert {"profile", "level"} <= set(network.model_options)
        return super().create_workload_factory(network)


DATA_DEPENDENT: Capabilities = {Capability.DYNAMIC_OUTPUT_SHAPES: True}
"""Declared by backends that give outputs whose shapes the elements decide."""


class FlowOnly(Flow):
    """Takes If and While, and of other operations those that count and compare."""

    def supports(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        if isinstance(operation, (ops.If, ops.While, ops.ElementwiseBinary, ops.Comparison)):
            return super().supports(operation, inputs, outputs)
        return Support.no(ReasonCode.OTHER, "the sequencer runs control flow")


class Declared(Choosing):
    """Declares something of its device."""

    def __init__(
        self,
        devices: Sequence[DeviceInfo],
        operations: Sequence[type] | None = None,
        question: Question = lambda *_: "",
    ) -> None:
        super().__init__(question, operations)
        self._devices = tuple(devices)

    def get_devices(self) -> Sequence[DeviceInfo]:
        return self._devices


_NPU = DeviceType.ACCELERATOR


def _with_figures() -> IBackendInternal:
    """A device that says how fast and how thrifty it is."""
    figures = PerformanceFigures(0.25, 0.1)
    tensors = {DataType.FLOAT32: figures, DataType.QASYMM_S8: PerformanceFigures(0.05, 0.02)}
    device_figures = DeviceFigures(tensors, relaxed_tensor=figures, if_=figures, while_=figures)
    return Declared([DeviceInfo("npu", _NPU, figures=device_figures)], (ops.Softmax,))


class Instances(WithManager):
    """Another instance for each runtime, of a few operations."""

    def __init__(self) -> None:
        super().__init__(operations=(ops.Comparison, ops.Select))

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        return Instances()


Compute = Callable[[Operation, WorkloadInfo, list[Array | None]], Sequence[Array]]


class Arithmetic(Declared):
    """Computes in its own way on arrays."""

    def __init__(
        self, compute: Compute, question: Question, operations: Sequence[type], numerics: Numerics
    ) -> None:
        device = DeviceInfo(device_type=_NPU, numerics=numerics)
        super().__init__([device], operations, question)
        self._compute = compute

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        sources = [None if h is None else h.map(write=False) for h in inputs]
        results = self._compute(step.operation, step.info, sources)
        for handle, array in zip(outputs, results, strict=True):
            handle.map(read=False)[...] = array


class _Queue:
    """A thread, and another one in a process that is forked, which has none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0
        self._thread: ThreadPoolExecutor | None = None

    def submit(self, work: Callable[[Handles, Outputs], None], *handles: Any) -> Future[None]:
        """Let the thread do something after its present work."""
        with self._lock:
            if self._thread is None or self._owner != os.getpid():
                self._owner, self._thread = os.getpid(), ThreadPoolExecutor(1)
            return self._thread.submit(work, *handles)


class Queued(FakeBackend):
    """A device with a queue and fences, which does one thing after the other."""

    def __init__(self) -> None:
        super().__init__(ID, (ops.ElementwiseBinary, ops.Gather))
        self._queue = _Queue()

    def wrap(self, step: Step) -> IWorkload:
        queue = self._queue

        class Workload(IWorkload):
            def execute(self, inputs: Handles, outputs: Outputs) -> None:
                queue.submit(step.right.execute, inputs, outputs).result()

            def enqueue(self, inputs: Handles, outputs: Outputs) -> ICompletion:
                return _Fence(queue.submit(step.right.execute, inputs, outputs))

        return Workload()


@dataclass
class _Fence(ICompletion):
    command: Future[None]

    def wait(self, timeout_s: float | None = None) -> bool:
        try:
            self.command.result(timeout_s)
        except TimeoutError:
            return False
        return True


class RePlans(FakeBackend):
    """Plans a layer again whenever the sizes of its tensors change."""

    def __init__(self) -> None:
        operations = (ops.Activation, ops.Concat, ops.Unique)
        super().__init__(ID, operations, capabilities=DATA_DEPENDENT)

    def wrap(self, step: Step) -> IWorkload:
        lock = threading.Lock()
        plan: list[tuple[object, IWorkload]] = []

        def execute(inputs: Handles, outputs: Outputs) -> None:
            shapes = tuple(None if h is None else h.info.shape for h in inputs)
            with lock:
                if not plan or plan[0][0] != shapes:
                    factory = ReferenceWorkloadFactory()
                    plan[:] = [(shapes, factory.create_workload(step.operation, step.info))]
                workload = plan[0][1]
            workload.execute(inputs, outputs)

        return FunctionWorkload(execute)


class EveryThird(CompilingBackend):
    """Compiles two of three subgraphs, and declines the others."""

    def __init__(self) -> None:
        super().__init__(ID, (ops.ElementwiseUnary,))
        self._num_offered = 0

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        self._num_offered += 1
        if self._num_offered % 3:
            return OptimizationViews(substitutions=[compiled(view)])
        return OptimizationViews(untouched=[view])


class AllRoles(IBackendInternal, ILayerSupport, IWorkloadFactory, IWorkload):
    """One object in all roles, for sums of float32."""

    def get_id(self) -> str:
        return ID

    def get_api_version(self) -> str:
        return "2.0"

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        return self

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return self

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        return self

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        if operation != ops.ElementwiseBinary(ops.BinaryOperation.ADD):
            return Support.no(ReasonCode.OPERATION, f"{operation.name} is no sum")
        if outputs[0].data_type is not DataType.FLOAT32:
            return Support.no(ReasonCode.DATA_TYPE, "sums are of float32")
        return Support.yes()

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        first, other = (handle.map(write=False) for handle in inputs if handle is not None)
        with np.errstate(all="ignore"):
            np.add(first, other, out=outputs[0].map(read=False))


def _only(*operations: type) -> Callable[[], IBackendInternal]:
    """A backend of a few operations."""
    return lambda: FakeBackend(ID, operations, capabilities=DATA_DEPENDENT)


def _arithmetic(
    compute: Compute, data_type: DataType, *operations: type, **numerics: bool
) -> Callable[[], IBackendInternal]:
    """A backend that computes tensors of one type in its own way."""
    question = _other_than(data_type)
    return lambda: Arithmetic(compute, question, operations, Numerics(**numerics))


_F16, _F32 = DataType.FLOAT16, DataType.FLOAT32

UNUSUAL: Mapping[str, Callable[[], IBackendInternal]] = {
    "Unique alone": _only(ops.Unique),
    "control flow and what it counts with": FlowOnly,
    "float16 tensors alone": lambda: Choosing(_other_than(_F16)),
    "tensors of at most 256 elements, by option": SizeLimited,
    "known shapes alone": lambda: Choosing(_open_shape, (ops.Concat, ops.Softmax)),
    "constant weights alone": lambda: Choosing(
        _run_time_weights, (ops.Convolution2d, ops.FullyConnected)
    ),
    "Cast alone": _only(ops.Cast),
    "plans again for other sizes": RePlans,
    "rows padded to 64 bytes": lambda: with_handles(PaddedHandle, (ops.Activation, ops.Pad)),
    "arenas with guard bytes": lambda: with_guarded_arenas((ops.Reduce, ops.Transpose)),
    "vectors of 128 bytes": Vectors,
    "imports and exports device memory": MappableDevice,
    "computes in float64": _arithmetic(
        arithmetic.doubles, _F32, ops.ElementwiseBinary, ops.Softmax, ops.BatchMatMul
    ),
    "sums in float16, declared": _arithmetic(
        arithmetic.half_sums, _F16, ops.FullyConnected, sums_float16=True
    ),
    "no subnormal numbers, declared": _arithmetic(
        arithmetic.flushed,
        _F32,
        ops.ElementwiseBinary,
        ops.ElementwiseUnary,
        flushes_subnormals=True,
    ),
    "maxima without NaN, declared": _arithmetic(
        arithmetic.without_nan, _F32, ops.ElementwiseBinary, keeps_nan=False
    ),
    "declines every third subgraph": EveryThird,
    "compiles in the first execution": lambda: LazyProgram(operations=(ops.Resize, ops.Prelu)),
    "keeps the last 500 results": lambda: Plain(BoundedPool(500), operations=(ops.ArgMinMax,)),
    "a queue with fences": Queued,
    "figures of time and power": _with_figures,
    "options that are not set": ManyOptions,
    "an instance for each runtime, with memory to hold": Instances,
    "one object in all roles, of contract 2.0": AllRoles,
    "a file in the folder of an option": KeepsFile,
}
"""By their unusual property."""
