"""Correct backends of unusual kinds, which pass the whole conformance kit."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
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
    ITensorHandle,
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
from armpy.types import DataType, DeviceType
from tests.support import unusual_arithmetic as arithmetic
from tests.support.fake_backends import (
    CompilingBackend,
    FakeBackend,
    compiled,
)
from tests.support.planted_faults import Flow, Fused, Handles, Outputs, Plain, WithManager
from tests.support.planted_growth import BoundedPool, LazyProgram
from tests.support.unusual_memory import (
    BigEndianHandle,
    BlockedHandle,
    MappableDevice,
    PaddedHandle,
    Vectors,
    with_guarded_arenas,
    with_handles,
)
from tests.support.unusual_processes import in_child_process

ID = "Unusual"

Question = Callable[[Operation, OperandInfos, Sequence[TensorInfo]], str]
"""Answers why a layer is refused; empty if it is not."""


class Choosing(FakeBackend):
    """Refuses layers by something else than their operations."""

    def __init__(self, question: Question, operations: Sequence[type] | None = None) -> None:
        super().__init__(ID, operations)
        self._question = question

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        return _Choice(super().get_layer_support(request), self._question)


class _Choice(ILayerSupport):
    """Another answer, unless a question says no."""

    def __init__(self, right: ILayerSupport, question: Question) -> None:
        self._right = right
        self._question = question

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        answer = self._right.is_layer_supported(operation, inputs, outputs)
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


class SizeLimited(FakeBackend):
    """Refuses tensors of more elements than an option of the network says, and fails at others."""

    def __init__(self) -> None:
        super().__init__(ID, (ops.Activation, ops.Reduce))

    @property
    def options(self) -> Sequence[BackendOption]:
        scope = OptionScope.MODEL
        return (BackendOption("max_elements", 256, "Largest tensor.", scope, minimum=1),)

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        most = request.model_options["max_elements"]

        def question(_: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]) -> str:
            known = [i for i in (*inputs, *outputs) if i is not None and i.is_fully_shaped]
            is_large = any(info.num_elements > most for info in known)  # type: ignore[operator]  # an int
            return f"more than {most} elements" if is_large else ""

        return _Choice(super().get_layer_support(request), question)

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        most = network.model_options["max_elements"]
        return _LimitedFactory(super().create_workload_factory(network), int(most))


@dataclass
class _LimitedFactory(IWorkloadFactory):
    right: IWorkloadFactory
    most: int

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        infos = [i for i in (*info.inputs, *info.outputs) if i is not None and i.is_fully_shaped]
        if any(i.num_elements > self.most for i in infos):
            raise BackendError("a layer that was refused is to be prepared", where=ID)
        return self.right.create_workload(operation, info)


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


class DataDependent(FakeBackend):
    """Gives outputs whose shapes the elements decide."""

    def get_capabilities(self) -> Capabilities:
        return {**super().get_capabilities(), Capability.DYNAMIC_OUTPUT_SHAPES: True}


class FlowOnly(Flow):
    """Takes If and While, and of other operations those that count and compare."""

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        return _Choice(super().get_layer_support(request), _no_flow)


def _no_flow(operation: Operation, _: OperandInfos, __: Sequence[TensorInfo]) -> str:
    """Refuse other operations than control flow and what most of its graphs consist of."""
    taken = (ops.If, ops.While, ops.ElementwiseBinary, ops.Comparison)
    return "" if isinstance(operation, taken) else "the sequencer runs control flow"


class Declared(FakeBackend):
    """Declares something of its device."""

    def __init__(
        self, devices: Sequence[DeviceInfo], operations: Sequence[type] | None = None
    ) -> None:
        super().__init__(ID, operations)
        self._devices = tuple(devices)

    def get_devices(self) -> Sequence[DeviceInfo]:
        return self._devices


_NPU = DeviceType.ACCELERATOR


def _with_figures() -> IBackendInternal:
    """A device that says how fast and how thrifty it is."""
    figures = PerformanceFigures(0.25, 0.1)
    tensors = {DataType.FLOAT32: figures, DataType.QASYMM_S8: PerformanceFigures(0.05, 0.02)}
    told = DeviceFigures(tensors, relaxed_tensor=figures, if_=figures, while_=figures)
    return Declared([DeviceInfo("npu", _NPU, figures=told)], (ops.Softmax,))


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
        super().__init__([DeviceInfo(device_type=_NPU, numerics=numerics)], operations)
        self._compute = compute
        self._question = question

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        return _Choice(super().get_layer_support(request), self._question)

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return _ArithmeticFactory(self._compute)


@dataclass
class _ArithmeticFactory(IWorkloadFactory):
    compute: Compute

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        return _ArithmeticWorkload(partial(self.compute, operation, info))


@dataclass
class _ArithmeticWorkload(IWorkload):
    compute: Callable[[list[Array | None]], Sequence[Array]]

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        given = [None if h is None else h.map(write=False) for h in inputs]
        for handle, array in zip(outputs, self.compute(given), strict=True):
            handle.map(read=False)[...] = array


Wrap = Callable[[IWorkload], IWorkload]


class Wrapping(FakeBackend):
    """Executes another backend's workloads in its own way."""

    def __init__(self, wrap: Wrap, operations: Sequence[type] | None = None) -> None:
        super().__init__(ID, operations)
        self._wrap = wrap

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return _WrappingFactory(super().create_workload_factory(network), self._wrap)


@dataclass
class _WrappingFactory(IWorkloadFactory):
    right: IWorkloadFactory
    wrap: Wrap

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        return self.wrap(self.right.create_workload(operation, info))


@dataclass
class _InPool(IWorkload):
    """Runs each execution in a pool of threads of its own."""

    right: IWorkload

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        with ThreadPoolExecutor(2) as pool:
            pool.submit(self.right.execute, inputs, outputs).result()


@dataclass
class _Slow(IWorkload):
    """Takes 20 ms."""

    right: IWorkload

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        time.sleep(0.02)
        self.right.execute(inputs, outputs)


@dataclass
class _Logged(IWorkload):
    """Writes each execution to a log."""

    right: IWorkload

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        log = logging.getLogger("vendor.npu")
        log.info("execute %s", [str(handle.info) for handle in outputs])
        self.right.execute(inputs, outputs)
        log.debug("done")


class _Queue:
    """A thread, and another one in a process that is forked, which has none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0
        self._thread: ThreadPoolExecutor | None = None

    def submit(self, work: Callable[[Handles, Outputs], None], *handles: Any) -> Future[None]:
        """Let the thread do something after what it has to do already."""
        with self._lock:
            if self._thread is None or self._owner != os.getpid():
                self._owner, self._thread = os.getpid(), ThreadPoolExecutor(1)
            return self._thread.submit(work, *handles)


@dataclass
class _Queued(IWorkload):
    """Runs on a thread that does one thing after the other."""

    queue: _Queue
    right: IWorkload

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        self.queue.submit(self.right.execute, inputs, outputs).result()

    def enqueue(self, inputs: Handles, outputs: Outputs) -> ICompletion:
        return _Fence(self.queue.submit(self.right.execute, inputs, outputs))


@dataclass
class _Fence(ICompletion):
    command: Future[None]

    def wait(self, timeout_s: float | None = None) -> bool:
        try:
            self.command.result(timeout_s)
        except TimeoutError:
            return False
        return True


def _queued() -> IBackendInternal:
    """A device with a queue and fences."""
    return Wrapping(partial(_Queued, _Queue()), (ops.ElementwiseBinary, ops.Gather))


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
            factory = super().create_workload_factory(network)
            return _WrappingFactory(factory, partial(_Locked, self._lock))


@dataclass
class _Locked(IWorkload):
    lock: AbstractContextManager[object]
    right: IWorkload

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        with self.lock:
            self.right.execute(inputs, outputs)


class RePlans(FakeBackend):
    """Plans a layer again whenever the sizes of its tensors change."""

    def __init__(self) -> None:
        super().__init__(ID, (ops.Activation, ops.Concat, ops.Unique))

    def get_capabilities(self) -> Capabilities:
        return {**super().get_capabilities(), Capability.DYNAMIC_OUTPUT_SHAPES: True}

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return _PlanningFactory()


class _PlanningFactory(IWorkloadFactory):
    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        return _Planning(operation, info)


class _Planning(IWorkload):
    """A workload with a plan for the sizes of the last execution."""

    def __init__(self, operation: Operation, info: WorkloadInfo) -> None:
        self._operation = operation
        self._info = info
        self._lock = threading.Lock()
        self._plan: tuple[object, IWorkload] | None = None

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        shapes = tuple(None if h is None else h.info.shape for h in inputs)
        with self._lock:
            if self._plan is None or self._plan[0] != shapes:
                factory = ReferenceWorkloadFactory()
                self._plan = shapes, factory.create_workload(self._operation, self._info)
            plan = self._plan[1]
        plan.execute(inputs, outputs)


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
        is_sum = operation == ops.ElementwiseBinary(ops.BinaryOperation.ADD)
        if is_sum and outputs[0].data_type is DataType.FLOAT32:
            return Support.yes()
        return Support.no(ReasonCode.OPERATION, f"{operation.name} is no sum of float32")

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        one, other = (handle.map(write=False) for handle in inputs if handle is not None)
        with np.errstate(all="ignore"):
            np.add(one, other, out=outputs[0].map(read=False))


def _only(*operations: type) -> Callable[[], IBackendInternal]:
    """A backend of a few operations."""
    return lambda: DataDependent(ID, operations)


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
    "a pool of threads for each execution": lambda: Wrapping(_InPool, (ops.Quantize,)),
    "a child process": lambda: in_child_process((ops.Activation,)),
    "a queue with fences": _queued,
    "one lock around everything": OneLock,
    "20 ms a call": lambda: Wrapping(_Slow, (ops.LogSoftmax,)),
    "writes a log": lambda: Wrapping(_Logged, (ops.Gather, ops.Concat)),
    "figures of time and power": _with_figures,
    "three devices": _with_devices,
    "options that are not set": ManyOptions,
    "an instance for each runtime, with memory to hold": Instances,
    "one object in all roles, of contract 2.0": AllRoles,
}
"""By what is unusual about them."""
