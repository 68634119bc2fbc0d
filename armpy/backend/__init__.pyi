from armpy.backend.caches import (
    CacheEntry as CacheEntry,
    CacheUse as CacheUse,
    GroupedCacheEntry as GroupedCacheEntry,
    IBackendCache as IBackendCache,
    model_name as model_name,
    report_cache_use as report_cache_use,
)
from armpy.backend.cancellation import (
    Cancellation as Cancellation,
    cancellable as cancellable,
    current_cancellation as current_cancellation,
)
from armpy.backend.capabilities import (
    Capabilities as Capabilities,
    Capability as Capability,
    has_capability as has_capability,
    has_matching_capability as has_matching_capability,
)
from armpy.backend.context import (
    IBackendContext as IBackendContext,
    IBackendModelContext as IBackendModelContext,
    IBackendProfilingContext as IBackendProfilingContext,
    LayerMeasurement as LayerMeasurement,
    Measurement as Measurement,
)
from armpy.backend.control_flow import (
    control_flow_time_left_s as control_flow_time_left_s,
    loop_timeout_s as loop_timeout_s,
)
from armpy.backend.devices import (
    DeviceFigures as DeviceFigures,
    DeviceInfo as DeviceInfo,
    Numerics as Numerics,
    PerformanceFigures as PerformanceFigures,
)
from armpy.backend.hosting.engine import (
    IEngineBackend as IEngineBackend,
    IEngineProgram as IEngineProgram,
    IEnginePrograms as IEnginePrograms,
)
from armpy.backend.memory.device_memory import (
    DeviceMemoryRequest as DeviceMemoryRequest,
    IDeviceMemory as IDeviceMemory,
    MemoryRole as MemoryRole,
)
from armpy.backend.extension import (
    OEM_EXTENSION as OEM_EXTENSION,
    OEM_OPERATION_ID as OEM_OPERATION_ID,
    CreateOperation as CreateOperation,
    Extension as Extension,
    ExtensionOperand as ExtensionOperand,
    ExtensionOperandType as ExtensionOperandType,
    ExtensionOperation as ExtensionOperation,
)
from armpy.backend.memory.external_memory import (
    ExternalMemory as ExternalMemory,
    MemorySource as MemorySource,
)
from armpy.backend.interface import (
    BACKEND_API_VERSION as BACKEND_API_VERSION,
    IBackendInternal as IBackendInternal,
)
from armpy.backend.layer_support import (
    ILayerSupport as ILayerSupport,
    ReasonCode as ReasonCode,
    Support as Support,
)
from armpy.backend.memory.memory import (
    ALIGNMENT_BYTES as ALIGNMENT_BYTES,
    DefaultAllocator as DefaultAllocator,
    ICustomAllocator as ICustomAllocator,
    IMemoryManager as IMemoryManager,
)
from armpy.backend.memory.memory_strategy import (
    IMemoryOptimizerStrategy as IMemoryOptimizerStrategy,
    MemBin as MemBin,
    MemBlock as MemBlock,
    PackingType as PackingType,
)
from armpy.backend.optimization_views import (
    OptimizationViews as OptimizationViews,
    Substitution as Substitution,
)
from armpy.backend.options import (
    NO_OPTIONS as NO_OPTIONS,
    BackendOption as BackendOption,
    OptionScope as OptionScope,
    OptionValue as OptionValue,
    OptionValues as OptionValues,
)
from armpy.backend.memory.packed_view import packed_view as packed_view
from armpy.backend.preparation import (
    PreparationRequest as PreparationRequest,
    postpone_compilation as postpone_compilation,
)
from armpy.backend.cancellation import current_priority as current_priority
from armpy.backend.profiling import (
    Counter as Counter,
    CounterKind as CounterKind,
    IBackendProfiling as IBackendProfiling,
)
from armpy.backend.programs import (
    IPrograms as IPrograms,
    ProgramCheck as ProgramCheck,
    ProgramFit as ProgramFit,
    SavedKernels as SavedKernels,
    SavedProgram as SavedProgram,
)
from armpy.backend.progress import (
    Progress as Progress,
    ProgressCallback as ProgressCallback,
    report_progress as report_progress,
    watch_progress as watch_progress,
)
from armpy.backend.resources import NetworkResources as NetworkResources
from armpy.backend.memory.tensor_handle import (
    DynamicTensorHandle as DynamicTensorHandle,
    HostTensorHandle as HostTensorHandle,
    ITensorHandle as ITensorHandle,
)
from armpy.backend.resizable import IResizableProgram as IResizableProgram
from armpy.backend.memory.tensor_handle_factory import (
    HOST_FACTORY_ID as HOST_FACTORY_ID,
    MOST_ALIGNMENT_BYTES as MOST_ALIGNMENT_BYTES,
    HostTensorHandleFactory as HostTensorHandleFactory,
    ITensorArena as ITensorArena,
    ITensorHandleFactory as ITensorHandleFactory,
    Lifetime as Lifetime,
    TensorHandleFactoryRegistry as TensorHandleFactoryRegistry,
)
from armpy.backend.timing import (
    ExecutionTiming as ExecutionTiming,
    current_timing as current_timing,
    timed_by as timed_by,
)
from armpy.core.system_trace import trace_section as trace_section
from armpy.core.vlog import is_vlog_on as is_vlog_on, vlog as vlog
from armpy.backend.tuning import (
    TunedChoice as TunedChoice,
    TuningRequest as TuningRequest,
    TuningResult as TuningResult,
    request_tuning as request_tuning,
    requested_tuning as requested_tuning,
)
from armpy.backend.workload import (
    ICompletion as ICompletion,
    IWorkload as IWorkload,
    IWorkloadFactory as IWorkloadFactory,
    WorkloadInfo as WorkloadInfo,
)

__all__: list[str]
from armpy.core.file_ownership import cache_directory as cache_directory
