"""Everything that a backend's author imports; the contract of `BACKEND_API_VERSION`."""

from armpy.backend.caches import CacheEntry, IBackendCache, cache_directory
from armpy.backend.capabilities import (
    Capabilities,
    Capability,
    PerformanceFigures,
    has_capability,
    has_matching_capability,
)
from armpy.backend.context import (
    IBackendContext,
    IBackendModelContext,
    IBackendProfilingContext,
    Measurement,
)
from armpy.backend.extension import (
    CreateOperation,
    Extension,
    ExtensionOperand,
    ExtensionOperandType,
    ExtensionOperation,
)
from armpy.backend.interface import BACKEND_API_VERSION, IBackendInternal
from armpy.backend.layer_support import ILayerSupport, ReasonCode, Support
from armpy.backend.memory import DefaultAllocator, ICustomAllocator, IMemoryManager, MemorySource
from armpy.backend.memory_strategy import IMemoryOptimizerStrategy, MemBin, MemBlock, PackingType
from armpy.backend.optimization_views import OptimizationViews, Substitution
from armpy.backend.options import NO_OPTIONS, BackendOption, OptionScope, OptionValue, OptionValues
from armpy.backend.progress import (
    Progress,
    ProgressCallback,
    report_progress,
    watch_progress,
)
from armpy.backend.tensor_handle import DynamicTensorHandle, HostTensorHandle, ITensorHandle
from armpy.backend.tensor_handle_factory import (
    HOST_FACTORY_ID,
    HostTensorHandleFactory,
    ITensorHandleFactory,
    TensorHandleFactoryRegistry,
)
from armpy.backend.tuning import (
    TunedChoice,
    TuningRequest,
    TuningResult,
    request_tuning,
    requested_tuning,
)
from armpy.backend.workload import ALIGNMENT_BYTES, IWorkload, IWorkloadFactory, WorkloadInfo

__all__ = [
    "ALIGNMENT_BYTES",
    "BACKEND_API_VERSION",
    "HOST_FACTORY_ID",
    "NO_OPTIONS",
    "BackendOption",
    "CacheEntry",
    "Capabilities",
    "Capability",
    "CreateOperation",
    "DefaultAllocator",
    "DynamicTensorHandle",
    "Extension",
    "ExtensionOperand",
    "ExtensionOperandType",
    "ExtensionOperation",
    "HostTensorHandle",
    "HostTensorHandleFactory",
    "IBackendCache",
    "IBackendContext",
    "IBackendInternal",
    "IBackendModelContext",
    "IBackendProfilingContext",
    "ICustomAllocator",
    "ILayerSupport",
    "IMemoryManager",
    "IMemoryOptimizerStrategy",
    "ITensorHandle",
    "ITensorHandleFactory",
    "IWorkload",
    "IWorkloadFactory",
    "Measurement",
    "MemBin",
    "MemBlock",
    "MemorySource",
    "OptimizationViews",
    "OptionScope",
    "OptionValue",
    "OptionValues",
    "PackingType",
    "PerformanceFigures",
    "Progress",
    "ProgressCallback",
    "ReasonCode",
    "Substitution",
    "Support",
    "TensorHandleFactoryRegistry",
    "TunedChoice",
    "TuningRequest",
    "TuningResult",
    "WorkloadInfo",
    "cache_directory",
    "has_capability",
    "has_matching_capability",
    "report_progress",
    "request_tuning",
    "requested_tuning",
    "watch_progress",
]
