"""Correct backends of unusual kinds, which pass the whole conformance kit."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any  # handles, as `execute` takes them

import numpy as np
from armpy_reference import ReferenceBackend
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
from ..planted.shapes import Flow, Fused, Plain, WithManager
from . import arithmetic
from .memory import (
    BigEndianHandle,
    BlockedHandle,
    MappableDevice,
    PaddedHandle,
    Vectors,
    with_guarded_arenas,
    with_handles,
)
from .processes import in_child_process

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


def _other_rank(_: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """Refuse outputs of another rank than four."""
    return "" if all(info.rank == 4 for info in outputs) else "images have four dimensions"


def _open_shape(_: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """Refuse shapes that are not known."""
    infos = [info for info in (*inputs, *outputs) if info is not None]
    return "" if all(info.is_fully_shaped for info in infos) else "every size is known here"


def _larger_batch(_: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """Refuse tensors whose first dimension is not 1."""
    infos = [info for info in (*inputs[:1], *outputs) if info is not None]
    is_larger = any(
        info.rank and info.known_shape[0] != 1 for info in infos if info.is_fully_shaped
    )
    return "the batch is always 1" if is_larger else ""


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


def _other_shapes(_: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
    """Refuse operands of different shapes."""
    shapes = {info.shape for info in inputs if info is not None}
    return "" if len(shapes) == 1 else "nothing is broadcast"


def _vectors_drop_nan(
    operation: Operation, info: WorkloadInfo, given: Sequence[Array | None]
) -> list[Array]:
    """Compute maxima in vectors of four that drop NaN, and the rest one by one, which keeps it."""
    results = arithmetic.by_reference(operation, info, given)
    dropped = arithmetic.without_nan(operation, info, given)
    for result, other in zip(results, dropped, strict=True):
        num_in_vectors = result.size // 4 * 4
        result.reshape(-1)[:num_in_vectors] = np.ravel(other)[:num_in_vectors]
    return results


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


def _ending_threads(step: Step, inputs: Handles, outputs: Outputs) -> None:
    """Execute in a thread that ends with the execution."""
    thread = threading.Thread(target=step.right.execute, args=(inputs, outputs))
    thread.start()
    thread.join()


class Hosted(FakeBackend):
    """Runs layers of another backend's, which it makes for each of its networks."""

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return ReferenceBackend().create_workload_factory(network)


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


def _with_devices() -> IBackendInternal:
    """A backend of three devices."""
    kinds = (("gpu", DeviceType.GPU), ("npu", _NPU), ("dsp", DeviceType.OTHER))
    return Declared([DeviceInfo(name, kind) for name, kind in kinds], (ops.Transpose,))


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


Run = Callable[[Step, Handles, Outputs], object]


class Running(FakeBackend):
    """Executes its workloads by a function."""

    def __init__(self, run: Run, operations: Sequence[type] | None = None) -> None:
        super().__init__(ID, operations)
        self._run = run

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        self._run(step, inputs, outputs)


def _in_pool(step: Step, inputs: Handles, outputs: Outputs) -> None:
    """Run in a pool of threads of its own."""
    with ThreadPoolExecutor(2) as pool:
        pool.submit(step.right.execute, inputs, outputs).result()


def _slowly(step: Step, inputs: Handles, outputs: Outputs) -> None:
    """Take 20 ms."""
    time.sleep(0.02)
    step.right.execute(inputs, outputs)


def _logged(step: Step, inputs: Handles, outputs: Outputs) -> None:
    """Write to a log."""
    log = logging.getLogger("vendor.npu")
    log.info("execute %s", [str(handle.info) for handle in outputs])
    step.right.execute(inputs, outputs)
    log.debug("done")


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


class OneLock(FakeBackend):
    """Does one thing at a time."""

    def __init__(self) -> None:
        super().__init__(ID, (ops.Pooling2d,))
        self._lock = threading.RLock()

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        with self._lock:
            return super().get_layer_support(request)

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        with self._lock:
            return super().create_workload_factory(network)

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        with self._lock:
            step.right.execute(inputs, outputs)


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


class ExactPairs(CompilingBackend):
    """Makes one layer of exactly two, and leaves others alone."""

    def __init__(self) -> None:
        super().__init__(ID, (ops.Activation,))

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        if len(view.layers) != 2:
            return OptimizationViews(untouched=[view])
        return OptimizationViews(substitutions=[compiled(view)])


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
    "NonMaxSuppression alone": _only(ops.NonMaxSuppression),
    "Unique alone": _only(ops.Unique),
    "DetectionPostProcess alone": _only(ops.DetectionPostProcess),
    "control flow and what it counts with": FlowOnly,
    "float16 tensors alone": lambda: Choosing(_other_than(_F16)),
    "tensors of at most 256 elements, by option": SizeLimited,
    "rank 4 alone": lambda: Choosing(_other_rank, (ops.Activation, ops.Pad, ops.Pooling2d)),
    "known shapes alone": lambda: Choosing(_open_shape, (ops.Concat, ops.Softmax)),
    "plans again for other sizes": RePlans,
    "rows padded to 64 bytes": lambda: with_handles(PaddedHandle, (ops.Activation, ops.Pad)),
    "channels in blocks of eight": lambda: with_handles(BlockedHandle, (ops.Convolution2d,)),
    "big-endian memory": lambda: with_handles(BigEndianHandle, (ops.ElementwiseUnary, ops.Cast)),
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
    "fuses exactly two layers": ExactPairs,
    "declines every third subgraph": EveryThird,
    "compiles in the first execution": lambda: LazyProgram(operations=(ops.Resize, ops.Prelu)),
    "keeps compiled programs": lambda: Fused(operations=(ops.Convolution2d, ops.Activation)),
    "keeps the last 500 results": lambda: Plain(BoundedPool(500), operations=(ops.ArgMinMax,)),
    "a pool of threads for each execution": lambda: Running(_in_pool, (ops.Quantize,)),
    "a child process": lambda: in_child_process((ops.Activation,)),
    "a queue with fences": Queued,
    "one lock around everything": OneLock,
    "20 ms a call": lambda: Running(_slowly, (ops.LogSoftmax,)),
    "writes a log": lambda: Running(_logged, (ops.Gather, ops.Concat)),
    "figures of time and power": _with_figures,
    "three devices": _with_devices,
    "options that are not set": ManyOptions,
    "an instance for each runtime, with memory to hold": Instances,
    "one object in all roles, of contract 2.0": AllRoles,
    "batches of 1 alone": lambda: Choosing(_larger_batch, (ops.Activation, ops.Softmax)),
    "8-bit tensors alone": lambda: Choosing(_other_than(DataType.QASYMM_S8)),
    "windows that move by one element": lambda: Choosing(_strided, (ops.Pooling2d,)),
    "channels first alone": lambda: Choosing(_channels_last, (ops.Convolution2d, ops.Pooling2d)),
    "no fused activations": lambda: Choosing(
        _activated, (ops.ElementwiseBinary, ops.Convolution2d)
    ),
    "operands of one shape alone": lambda: Choosing(_other_shapes, (ops.ElementwiseBinary,)),
    "vectors that drop NaN, and single elements that keep it, declared": _arithmetic(
        _vectors_drop_nan, _F32, ops.ElementwiseBinary, keeps_nan=False
    ),
    "a file in the folder of an option": KeepsFile,
    "a thread for each execution": lambda: Running(_ending_threads, (ops.Reduce,)),
    "layers of a hosted backend": lambda: Hosted(ID, (ops.Pad, ops.Softmax)),
}
"""By their unusual property."""
