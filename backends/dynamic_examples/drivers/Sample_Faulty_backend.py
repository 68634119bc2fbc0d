r"""A driver that fails on request, for tests that applications survive drivers.

Without a word it computes right, and passes the conformance kit. With the option ``faults`` or,
in its absence, the environment variable ``ARMPY_SAMPLE_FAULTS``, it goes wrong where that says::

    armpy conformance crash --backend SampleFaulty \
        --dynamic-backends-path backends/dynamic_examples/drivers \
        --backend-option SampleFaulty.faults=execute=segfault:2
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from armpy.backend import (
    BackendOption,
    DeviceInfo,
    IBackendContext,
    IBackendInternal,
    ILayerSupport,
    IPrograms,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    OptimizationViews,
    OptionValues,
    PreparationRequest,
    ReasonCode,
    SavedProgram,
    Support,
    WorkloadInfo,
)
from armpy.errors import BackendCapabilityError
from armpy.graph import SubgraphView
from armpy.ops import PreCompiled
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import BackendId, DeviceType

from .Sample_common import Faults, Floats, Program, SamplePrograms, SampleSupport, views_of

BACKEND_ID = "SampleFaulty"
VARIABLE = "ARMPY_SAMPLE_FAULTS"
NOTHING: Any = None  # Any: an answer of the wrong type, on purpose


def get_backend_id() -> str:
    """First entry point."""
    return BACKEND_ID


def get_version() -> str:
    """Second entry point."""
    return "2.0"


def backend_factory() -> IBackendInternal:
    """Third entry point; options are not known yet, so the variable alone counts."""
    faults = Faults(os.environ.get(VARIABLE, ""))
    faults.happen("load")
    return FaultyBackend(faults)


class FaultyBackend(IBackendInternal):
    """Compiles subgraphs into programs, unless something is to go wrong."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def get_id(self) -> BackendId:
        """Name of the backend."""
        return BACKEND_ID

    def get_api_version(self) -> str:
        """The version of the contract that it is written for."""
        return "2.0"

    @property
    def version(self) -> str:
        """Of the driver."""
        return "1.0.0"

    def get_devices(self) -> Sequence[DeviceInfo]:
        """As an accelerator it is asked before all others."""
        return (DeviceInfo(device_type=DeviceType.ACCELERATOR),)

    @property
    def options(self) -> Sequence[BackendOption]:
        """The planted fault."""
        text = f"What goes wrong, as execute=abort:3; what {VARIABLE} says if empty."
        return (BackendOption("faults", "", text),)

    def for_runtime(self, options: OptionValues) -> IBackendInternal:
        """A driver that goes by the runtime's option."""
        text = str(options["faults"])
        return type(self)(Faults(text)) if text else self

    def create_backend_context(self, options: OptionValues) -> IBackendContext | None:
        """Look whether the device is there."""
        self._faults.happen("open")
        return FaultyContext(self._faults)

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        """What can be compiled."""
        return FaultySupport(self._faults)

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        """Make what runs programs."""
        return FaultyFactory(self._faults)

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        """Compile the subgraph."""
        lies = self._faults.happen("optimize")
        if "none" in lies:
            return NOTHING  # type: ignore[no-any-return]  # on purpose
        if "drop" in lies:
            return OptimizationViews()
        shapes = _shapes_of(view, are_wider="shapes" in lies)
        return views_of(view, Program.compile(view), shapes)

    def get_programs(self) -> IPrograms:
        """Keep programs, or not."""
        return FaultyPrograms(self._faults)


class FaultyPrograms(SamplePrograms):
    """Writes programs down and reads them, or not."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def save(self, program: object, options: OptionValues) -> SavedProgram | None:
        """Write a program down."""
        lies = self._faults.happen("save")
        if "none" in lies:
            return None
        saved = super().save(program, options)
        if saved is not None and "garbage" in lies:
            return SavedProgram(saved.about, {"garbage": b"garbage"})
        return saved

    def load(self, saved: SavedProgram) -> Program:
        """Read a program."""
        if "none" in self._faults.happen("restore"):
            return NOTHING  # type: ignore[no-any-return]  # on purpose
        return super().load(saved)


def _shapes_of(view: SubgraphView, *, are_wider: bool) -> list[tuple[int, ...]]:
    """Shapes of a subgraph's outputs, too wide on demand."""
    shapes = [value.info.known_shape for value in view.outputs]
    if are_wider:
        return [(shape[0] + 1, *shape[1:]) if shape else (2,) for shape in shapes]
    return shapes


class FaultyContext(IBackendContext):
    """Context that fails when the runtime closes."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def close(self) -> None:
        """Close the device."""
        self._faults.happen("close")


class FaultySupport(ILayerSupport):
    """Answers as `SampleSupport`, or not."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        """Whether one layer can run."""
        lies = self._faults.happen("support")
        if "none" in lies:
            return NOTHING  # type: ignore[no-any-return]  # on purpose
        if "refuse" in lies:
            return Support.no(ReasonCode.DEVICE, "the device wants nothing")
        return SampleSupport().is_layer_supported(operation, inputs, outputs)


class FaultyFactory(IWorkloadFactory):
    """Prepares programs, or not."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        """The workload of a layer that `FaultyBackend` has made."""
        if "none" in self._faults.happen("prepare"):
            return NOTHING  # type: ignore[no-any-return]  # on purpose
        if not isinstance(operation, PreCompiled):
            raise BackendCapabilityError("layers are compiled first", where=BACKEND_ID)
        return FaultyWorkload(operation.program, self._faults)


class FaultyWorkload(IWorkload):
    """Runs a program, or not."""

    def __init__(self, program: Program, faults: Faults) -> None:
        self._program = program
        self._faults = faults

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        """Compute the outputs, and spoil them if that is asked for."""
        sources = [handle for handle in inputs if handle is not None]
        arrays = [handle.map(write=False) for handle in sources]
        first = next((float(array.flat[0]) for array in arrays if array.size), None)
        lies = self._faults.happen("execute", first)
        results = [handle.map(read=False) for handle in outputs]
        if "unwritten" not in lies:
            self._program.run(arrays, results)
        _spoil(lies, arrays, results)
        for handle in (*sources, *outputs):
            handle.unmap()


def _spoil(lies: set[str], inputs: Sequence[Floats], outputs: Sequence[Floats]) -> None:
    """Add one to outputs, make them NaN, or write to an input whatever it says about that."""
    for output in outputs:
        if "wrong" in lies:
            np.add(output, 1, out=output)
        if "nan" in lies:
            output[...] = np.nan
    for array in inputs:
        if "inputs" in lies and array.flags.writeable:
            array[...] = 0
