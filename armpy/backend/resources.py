"""Resources of a backend for one loaded network."""

from __future__ import annotations

from dataclasses import field

from armpy.backend.context import IBackendModelContext, IBackendProfilingContext
from armpy.backend.memory.external_memory import MemorySource
from armpy.backend.memory.memory import ICustomAllocator, IMemoryManager
from armpy.backend.options import NO_OPTIONS, OptionValues
from armpy.backend.profiling import IBackendProfiling
from armpy.core.dataclass import dataclass


@dataclass(frozen=True, eq=False, slots=True)
class NetworkResources:
    """Resources of a backend for one loaded network."""

    memory_manager: IMemoryManager | None = None
    """Result of `IBackendInternal.create_memory_manager`."""
    # From a function: before Python 3.12 dataclasses take the mapping for a mutable default.
    model_options: OptionValues = field(default_factory=lambda: NO_OPTIONS)
    """Every declared option of scope MODEL, checked, with defaults."""
    model_context: IBackendModelContext | None = None
    """Result of `IBackendInternal.create_backend_specific_model_context`."""
    allocator: ICustomAllocator | None = None
    """The application's, for all working memory of this network on the backend."""
    profiling: IBackendProfiling | None = None
    """Receiver of measurements of this network; None if it is not profiled."""
    profiling_context: IBackendProfilingContext | None = None
    """Result of `IBackendInternal.create_backend_profiling_context`."""
    # Kinds of memory that the network's inputs and outputs are imported from.
    input_sources: MemorySource = MemorySource.UNDEFINED
    output_sources: MemorySource = MemorySource.UNDEFINED
    relaxed: bool = False  # as of `PreparationRequest`
