"""A backend that computes right and follows a script of answers, errors, delays and declarations.

Its workloads are CpuRef's. Everything that it is asked is written down in order.

Examples
--------
One that fails to prepare the second time that it is asked, and one that says how fast it is::

    npu = ScriptedBackend("Npu", {"optimize": [right(), raises(BackendError("out of units"))]})
    runtime = runtime_of(npu)                     # of fake_backends; CpuRef is last
    devices = devices_of(npu)                     # of armpy-nnapi's tests; NNAPI's devices

    ScriptedBackend("Npu", operations=[ElementwiseBinary], declared=declaration(
        device_type=DeviceType.GPU, version="1.4", feature_level=28, keeps_programs=True,
        figures=DeviceFigures(tensors={DataType.FLOAT32: PerformanceFigures(0.2, 0.5)})))

What a script may say (the keys are methods; see `METHODS`)::

    {"support": answers(Support.no(ReasonCode.DEVICE, "busy"))}     # always
    {"execute": [sleeps(0.2), raises(BackendError("x")), right()]}  # one each; the last goes on
    {"execute": waits(event)}                                       # then does the right thing
    {"optimize": in_order(sleeps(0.2), raises(BackendError("x")))}  # both in one call
    {"optimize": wrong_shapes()}                                    # of what it compiles
    {"execute": wrong_results()}                                    # every element is one too big
    {"execute": lambda call: print(call.arguments) or call.right()} # whatever else is needed

Its calls::

    npu.methods                                   # ["support", "optimize", "create_workload", ...]
    npu.calls_of("optimize")[0].arguments["request"].preference
    npu.forget()                                  # begins anew

In other processes (isolation, caches) the backend is found as a module in a folder, and appends
what it is asked to a file::

    options = write_scripted(tmp_path / "drivers", "ScriptedBackend('Npu', log=" + repr(path) + ")")
    log_of(path)                                  # ["support", "optimize", ...] of all processes
"""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from armpy.backend import (
    Capabilities,
    Capability,
    DeviceFigures,
    DeviceInfo,
    IBackendContext,
    IBackendInternal,
    ILayerSupport,
    IPrograms,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    OptimizationViews,
    OptionValues,
    PreparationRequest,
    ProgramCheck,
    ProgramFit,
    SavedProgram,
    Support,
    WorkloadInfo,
)
from armpy.execution import RuntimeOptions
from armpy.graph import SubgraphView
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import BackendId, DeviceType
from armpy_testing.backends.dynamic_modules import module_source, write_module
from armpy_testing.backends.fake_backends import (
    FakeFactory,
    Handles,
    Outputs,
    compiled,
    supported,
)

METHODS = {
    "open": "create_backend_context: whether the device is there; arguments: options",
    "support": "is_layer_supported; arguments: operation, inputs, outputs",
    "optimize": "optimize_subgraph_view; arguments: view, request",
    "save": "IPrograms.save; arguments: program, options",
    "check": "IPrograms.check; arguments: about, options",
    "load": "IPrograms.load; arguments: saved",
    "create_factory": "create_workload_factory; arguments: network",
    "create_workload": "arguments: operation, info",
    "execute": "arguments: name (the layer's), inputs, outputs (handles)",
}
"""What can be scripted, and is written down."""


@dataclass(frozen=True)
class Call:
    """One call of a method."""

    method: str  # a key of `METHODS`
    arguments: Mapping[str, Any]  # Any: of many methods
    right: Callable[[], object] = field(repr=False)  # acts and answers rightly
    started_s: float = field(default_factory=time.perf_counter)  # by `time.perf_counter`
    thread: int = field(default_factory=threading.get_ident)  # identity of the calling thread


Step: TypeAlias = Callable[[Call], object]
"""What a call comes to: its answer, or an exception."""

Script: TypeAlias = Mapping[str, Step | Sequence[Step]]
"""By method: one step for all calls, or one after the other, of which the last goes on."""


def right() -> Step:
    """Do the right thing."""
    return lambda call: call.right()


def raises(error: BaseException) -> Step:
    """Raise; a copy each time, as one object would gather the tracebacks of all."""

    def step(_: Call) -> object:
        raise copy(error)

    return step


def answers(value: object) -> Step:
    """Answer this instead, of whatever type it is."""
    return lambda _: value


def sleeps(duration_s: float) -> Step:
    """Do the right thing later."""
    return in_order(lambda _: time.sleep(duration_s), right())


def waits(event: threading.Event, timeout_s: float = 30.0) -> Step:
    """Do the right thing when an event has come; give up after a while, as the test has failed."""

    def step(call: Call) -> object:
        if not event.wait(timeout_s):
            raise TimeoutError(f"the event was not set that {call.method} waits for")
        return call.right()

    return step


def in_order(*steps: Step) -> Step:
    """Take several steps in one call; the last one's answer counts."""

    def step(call: Call) -> object:
        answer = None
        for scripted in steps:
            answer = scripted(call)
        return answer

    return step


def wrong_results() -> Step:
    """Execute, and add one to every element."""

    def step(call: Call) -> object:
        answer = call.right()
        for handle in call.arguments["outputs"]:
            array = handle.map()
            np.add(array, np.ones((), array.dtype), out=array)
            handle.unmap()
        return answer

    return step


@dataclass(frozen=True)
class Declaration:
    """What a scripted backend says of itself; see `declaration`."""

    device_type: DeviceType
    version: str
    feature_level: int
    keeps_programs: bool
    figures: DeviceFigures | None
    capabilities: Capabilities
    supported_extensions: tuple[str, ...]


def declaration(
    *,
    device_type: DeviceType = DeviceType.ACCELERATOR,
    version: str = "1.0",
    feature_level: int = 30,
    keeps_programs: bool = False,
    figures: DeviceFigures | None = None,
    capabilities: Capabilities | None = None,
    supported_extensions: Sequence[str] = (),
) -> Declaration:
    """Say what a backend declares, and whether it has programs that can be kept."""
    usual: Capabilities = {Capability.NON_CONST_WEIGHTS: True}
    known = usual if capabilities is None else capabilities
    names = tuple(supported_extensions)
    return Declaration(device_type, version, feature_level, keeps_programs, figures, known, names)


class ScriptedBackend(IBackendInternal):
    """Does some operations as CpuRef does, unless its script says otherwise.

    `script`: by method, of `METHODS`.
    `operations`: the operations that it supports; by default all of CpuRef's.
    `compiles`: whether it makes one layer of each subgraph. By default if it keeps programs, as
    only compiled parts can be kept.
    `records`: whether calls are kept.
    `log`: a file to which each call's method is appended as a line, for backends in other
    processes.
    `calls`: in order of their beginnings.
    """

    def __init__(
        self,
        backend_id: BackendId = "Scripted",
        script: Script | None = None,
        *,
        operations: Collection[type] | None = None,
        compiles: bool | None = None,
        declared: Declaration | None = None,
        records: bool = True,
        log: str | Path | None = None,
    ) -> None:
        unknown = set(script or {}) - set(METHODS)
        if unknown:
            raise ValueError(f"no methods that can be scripted: {unknown}; there are {[*METHODS]}")
        self._backend_id = backend_id
        self.script: dict[str, Step | Sequence[Step]] = dict(script or {})
        self._operations = operations
        self._declared = declared or declaration()
        self._compiles = self._declared.keeps_programs if compiles is None else compiles
        self._records = records
        self._log = log
        self._lock = threading.Lock()
        self._num_asked: dict[str, int] = {}
        self.calls: list[Call] = []

    @property
    def methods(self) -> list[str]:
        """The methods of all calls, in order."""
        return [call.method for call in self.calls]

    def calls_of(self, method: str) -> list[Call]:
        """The calls of one method, in order."""
        return [call for call in self.calls if call.method == method]

    def forget(self) -> None:
        """Forget all calls, and begin the script anew."""
        with self._lock:
            self.calls.clear()
            self._num_asked.clear()

    def ask(
        self, method: str, right: Callable[[], object], **arguments: object
    ) -> Any:  # Any: a script's answer may be of any type
        """Record a call and follow the script for it."""
        call = Call(method, arguments, right)
        with self._lock:
            if self._records:
                self.calls.append(call)
            index = self._num_asked.get(method, 0)
            self._num_asked[method] = index + 1
        if self._log is not None:
            _append(self._log, method)
        steps = self.script.get(method)
        if steps is None:
            return right()
        if isinstance(steps, Sequence):
            return steps[min(index, len(steps) - 1)](call)
        return steps(call)

    def get_id(self) -> BackendId:
        return self._backend_id

    def get_api_version(self) -> str:
        return "2.8"

    def get_devices(self) -> tuple[DeviceInfo, ...]:
        declared = self._declared
        level, figures = declared.feature_level, declared.figures
        return (DeviceInfo("", declared.device_type, level, figures),)

    @property
    def version(self) -> str:
        return self._declared.version

    @property
    def supported_extensions(self) -> Sequence[str]:
        return self._declared.supported_extensions

    def get_capabilities(self) -> Capabilities:
        return self._declared.capabilities

    def create_backend_context(self, options: OptionValues) -> IBackendContext | None:
        answer: IBackendContext | None = self.ask("open", lambda: None, options=options)
        return answer

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        return _Support(self, self._operations)

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        answer: IWorkloadFactory = self.ask(
            "create_factory", lambda: _Factory(self), network=network
        )
        return answer

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        answer: OptimizationViews = self.ask(
            "optimize", lambda: self._compile(view), view=view, request=request
        )
        return answer

    def get_programs(self) -> IPrograms | None:
        return ScriptedPrograms(self) if self._declared.keeps_programs else None

    def _compile(self, view: SubgraphView) -> OptimizationViews:
        """One layer in a subgraph's place, or the subgraph as it is."""
        if not self._compiles:
            return OptimizationViews(untouched=[view])
        return OptimizationViews(substitutions=[compiled(view)])


class ScriptedPrograms(IPrograms):
    """Writes subgraphs down as pickles, which its backend of the same version takes."""

    def __init__(self, backend: ScriptedBackend) -> None:
        self._backend = backend

    def save(self, program: object, options: OptionValues) -> SavedProgram | None:
        answer: SavedProgram | None = self._backend.ask(
            "save", lambda: self._written(program), program=program, options=options
        )
        return answer

    def check(self, about: Mapping[str, object], options: OptionValues) -> ProgramCheck:
        answer: ProgramCheck = self._backend.ask(
            "check", lambda: self._fit(about), about=about, options=options
        )
        return answer

    def load(self, saved: SavedProgram) -> object:
        return self._backend.ask(
            "load", lambda: pickle.loads(bytes(saved.parts["layers"])), saved=saved
        )

    @property
    def _maker(self) -> dict[str, object]:
        """Notes on who has made a program."""
        return {"maker": self._backend.get_id(), "version": self._backend.version}

    def _written(self, program: object) -> SavedProgram:
        """A pickle, which is code, and all constants' bytes beside it."""
        assert isinstance(program, SubgraphView)
        values = [value for layer in program.layers for value in layer.inputs if value is not None]
        constants = b"".join(value.data.tobytes() for value in values if value.data is not None)
        parts = {"layers": pickle.dumps(program), "constants": constants}
        return SavedProgram(self._maker, parts, ("layers",))

    def _fit(self, about: Mapping[str, object]) -> ProgramCheck:
        """Accepted if the same backend has made it."""
        if about == self._maker:
            return ProgramCheck(ProgramFit.ACCEPTED)
        return ProgramCheck(ProgramFit.REBUILD, f"{about!r} is not {self._maker!r}")


class _Support(ILayerSupport):
    """Takes what its backend does, of the shapes and types that CpuRef takes."""

    def __init__(self, backend: ScriptedBackend, operations: Collection[type] | None) -> None:
        self._backend = backend
        self._operations = operations

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        backend_id = self._backend.get_id()
        answer: Support = self._backend.ask(
            "support",
            lambda: supported(backend_id, self._operations, operation, inputs, outputs),
            operation=operation,
            inputs=inputs,
            outputs=outputs,
        )
        return answer


class _Factory(IWorkloadFactory):
    """Makes CpuRef's workloads, and one for compiled layers."""

    def __init__(self, backend: ScriptedBackend) -> None:
        self._backend = backend

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        answer: IWorkload = self._backend.ask(
            "create_workload", lambda: self._right(operation, info), operation=operation, info=info
        )
        return answer

    def _right(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        """The workload, which asks its backend before it runs."""
        workload = FakeFactory().create_workload(operation, info)
        return _Workload(self._backend, workload, info.name)


class _Workload(IWorkload):
    """Executes as the script says."""

    def __init__(self, backend: ScriptedBackend, workload: IWorkload, name: str) -> None:
        self._backend = backend
        self._workload = workload
        self._name = name

    def execute(self, inputs: Handles, outputs: Outputs) -> None:
        self._backend.ask(
            "execute",
            lambda: self._workload.execute(inputs, outputs),
            name=self._name,
            inputs=inputs,
            outputs=outputs,
        )


def _append(path: str | Path, line: str) -> None:
    """Append a line to a file that other processes append to, in one write."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)


def log_of(path: str | Path) -> list[str]:
    """The methods that backends of any process have appended to a file."""
    file = Path(path)
    return file.read_text().split() if file.exists() else []


def write_scripted(folder: Path, how: str, backend_id: BackendId = "Npu") -> RuntimeOptions:
    """Write a module with a scripted backend, for processes that find it by options.

    `folder`: made if it is not there.
    `how`: an expression that makes the backend, with all names of this module.
    `backend_id`: as in the expression.
    """
    factory = f"""
    def backend_factory():
        from armpy_testing.backends import scripted_backend
        return eval({how!r}, dict(vars(scripted_backend)))
    """
    write_module(folder, f"Test_{backend_id}_backend", module_source(backend_id, extra=factory))
    return RuntimeOptions(dynamic_backends_path=folder)
