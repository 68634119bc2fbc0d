"""Everything that a backend's author imports."""

from armpy.backend.interface import (
    BACKEND_API_VERSION,
    IBackendContext,
    IBackendInternal,
    IMemoryManager,
)
from armpy.backend.layer_support import ILayerSupport, ReasonCode, Support
from armpy.backend.optimization_views import OptimizationViews, Substitution
from armpy.backend.tensor_handle import HostTensorHandle, ITensorHandle
from armpy.backend.workload import ALIGNMENT_BYTES, IWorkload, IWorkloadFactory, WorkloadInfo

__all__ = [
    "ALIGNMENT_BYTES",
    "BACKEND_API_VERSION",
    "HostTensorHandle",
    "IBackendContext",
    "IBackendInternal",
    "ILayerSupport",
    "IMemoryManager",
    "ITensorHandle",
    "IWorkload",
    "IWorkloadFactory",
    "OptimizationViews",
    "ReasonCode",
    "Substitution",
    "Support",
    "WorkloadInfo",
]
