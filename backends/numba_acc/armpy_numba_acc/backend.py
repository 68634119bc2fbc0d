"""NumbaAcc: the backend that compiles."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache

from armpy import __version__
from armpy.backend import (
    BackendOption,
    Capabilities,
    Capability,
    DeviceFigures,
    DeviceInfo,
    IBackendCache,
    IBackendInternal,
    IBackendProfiling,
    IBackendProfilingContext,
    ICustomAllocator,
    ILayerSupport,
    IPrograms,
    IWorkloadFactory,
    MemorySource,
    NetworkResources,
    Numerics,
    OptimizationViews,
    OptionValues,
    PreparationRequest,
    Substitution,
    Support,
    requested_tuning,
)
from armpy.errors import BackendCapabilityError
from armpy.graph import Graph, Layer, SubgraphView
from armpy.ops import If, PreCompiled, While
from armpy.ops.operation import OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import BackendId, DeviceType
from armpy_numba_acc.machine.compiler import missing_compiler
from armpy_numba_acc.machine.device_figures import device_figures
from armpy_numba_acc.machine.processors.features import this_processor
from armpy_numba_acc.options import (
    OPTIONS,
    ResolvedOptions,
    built_in_figures,
    chosen_isa,
    figures_in_force,
    known_figures,
    matrix_unit_state,
)
from armpy_numba_acc.passes.support import support, support_of_constants
from armpy_numba_acc.program.limits import GivenBackError
from armpy_numba_acc.runtime.factory import ProgramFactory
from armpy_numba_acc.runtime.machine import judge_figures
from armpy_numba_acc.runtime.profiling import NumbaProfilingContext, recorder_of
from armpy_numba_acc.store.programs import compiled_program
from armpy_numba_acc.store.settings import disk_entries, machine_entries

_log = logging.getLogger("armpy.NumbaAcc")


class NumbaLayerSupport(ILayerSupport):
    """Supports what can be lowered."""

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        """Return whether there is a lowering that takes the layer."""
        return support(operation, inputs, outputs)

    def is_layer_supported_in(self, layer: Layer, graph: Graph) -> Support:
        """Return whether the layer's constants are numbers that programs do not flush to zero."""
        return support_of_constants(layer)


class NumbaBackend(IBackendInternal):
    """Compiles whole regions of a network to native code."""

    def get_id(self) -> BackendId:
        """``"NumbaAcc"``."""
        return "NumbaAcc"

    def get_api_version(self) -> str:
        """The version of the contract that it is written for."""
        return "2.8"

    def get_devices(self) -> Sequence[DeviceInfo]:
        """A processor with compiled code."""
        numerics = Numerics(flushes_subnormals=True)
        return (DeviceInfo(device_type=DeviceType.CPU_COMPILED, numerics=numerics),)

    def get_typical_figures(self, device: str) -> DeviceFigures | None:
        """Those measured on processors with the same instructions."""
        return device_figures(this_processor())

    @property
    def version(self) -> str:
        """That of the distribution it comes with."""
        return __version__

    @property
    def options(self) -> Sequence[BackendOption]:
        """Threads and the instruction set of each network."""
        return OPTIONS

    def get_caches(self) -> Sequence[IBackendCache]:
        """Compiled kernels and packed networks, and the machine's figures, if any are kept."""
        return tuple(entries for entries in (disk_entries(), machine_entries()) if entries)

    def get_programs(self) -> IPrograms:
        """Return the object that writes programs into compiled models, and reads them."""
        # Few processes have such files.
        from armpy_numba_acc.files import NumbaPrograms  # noqa: PLC0415

        return NumbaPrograms()

    def get_capabilities(self) -> Capabilities:
        """Weights that are computed, too; executions that can be stopped; the machine's figures."""
        return {
            Capability.NON_CONST_WEIGHTS: True,
            Capability.CANCELLABLE_EXECUTION: True,
            Capability.LOOP_TIMEOUT: True,
            Capability.OWN_CACHE: True,
            Capability.TRACED_SIZES: True,
            "UpdatesInPlace": True,
            "Machine": known_figures(),
            "BuiltInFigures": built_in_figures(),
            "FiguresInForce": figures_in_force(),
            "MatrixUnit": matrix_unit_state(),
            "Compiler": missing_compiler() or "Numba and LLVM",
        }

    def get_diagnosis(self) -> list[str]:
        """Lines about the compiler, the instruction set and packs."""
        # Only the doctor asks.
        from armpy_numba_acc.runtime.described_kernels import described_kernels  # noqa: PLC0415

        return [*described_kernels(chosen_isa)]

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        """Support as the lowerings say."""
        return NumbaLayerSupport()

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        """A factory for compiled regions; it measures them if the network is profiled."""
        settings = ResolvedOptions.of(network.model_options)
        return ProgramFactory(
            settings.isa,
            recorder_of(network),
            network.allocator,
            settings.model,
            settings.num_threads,
        )

    def use_custom_memory_allocator(self, allocator: ICustomAllocator) -> bool:
        """Programs' memory is taken from any allocator of memory that the processor sees."""
        if allocator.memory_source is not MemorySource.DMA_BUF_PROTECTED:
            return True
        text = "it runs on the host, which does not map protected memory"
        raise BackendCapabilityError(text, where=self.get_id())

    def create_backend_profiling_context(
        self, options: OptionValues, profiling: IBackendProfiling
    ) -> IBackendProfilingContext:
        """Measures every command of a network."""
        return NumbaProfilingContext()

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        """Put one program in the place of the region."""
        views = OptimizationViews()
        if reason := missing_compiler():
            _warn_once(reason)
            views.fail(view, reason)
            return views
        if any(isinstance(layer.operation, If | While) for layer in view.layers):
            # Few networks have control flow.
            from armpy_numba_acc.lowering.nested_graphs import refusal_of_region  # noqa: PLC0415

            if reason := refusal_of_region(view):
                views.fail(view, reason)
                return views
        settings = ResolvedOptions.of(request.model_options)
        if (tuning := requested_tuning()) is not None:
            # Only tuning needs them.
            from armpy_numba_acc.tuning import figures, region  # noqa: PLC0415

            if settings.model.is_measured:
                judge_figures(figures.compared_figures)
                settings = ResolvedOptions.of(request.model_options)
            region.tune_region(view, settings.isa, settings.num_threads, tuning, settings.model)
        try:
            program = compiled_program(view, settings.isa, settings.num_threads, settings.model)
        except GivenBackError as error:
            return _without(view, error)
        shapes = tuple(value.info.known_shape for value in view.outputs)
        views.substitutions.append(
            Substitution.by_operation(view, PreCompiled(program, shapes, program.arena_bytes))
        )
        return views


@cache
def _warn_once(reason: str) -> None:
    """Say that everything will be slow."""
    _log.warning("NumbaAcc takes no layers: %s", reason)


def _without(view: SubgraphView, error: GivenBackError) -> OptimizationViews:
    """The answer that gives one layer back; the rest is offered again."""
    chosen = [layer for layer in view.layers if layer.id == error.layer.id]
    if not chosen:  # the layer stands for others
        raise error
    views = OptimizationViews()
    views.fail(view.part(chosen), str(error))
    others = [layer for layer in view.layers if layer is not chosen[0]]
    if others:
        views.untouched.append(view.part(others))
    return views
