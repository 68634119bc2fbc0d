"""Resources of a backend for one loaded network."""

from __future__ import annotations

from dataclasses import dataclass, field

from armpy.backend.context import IBackendModelContext, IBackendProfilingContext
from armpy.backend.memory.external_memory import MemorySource
from armpy.backend.memory.memory import ICustomAllocator, IMemoryManager
from armpy.backend.options import NO_OPTIONS, OptionValues
from armpy.backend.profiling import IBackendProfiling


@dataclass(frozen=True, eq=False, slots=True)
class NetworkResources:
    """Resources of a backend for one loaded network.

    Parameters
    ----------
    memory_manager : IMemoryManager, optional
        What `IBackendInternal.create_memory_manager` returned.
    model_options : mapping of str to value
        Every declared option of scope MODEL, checked; its default where the caller gave none.
    model_context : IBackendModelContext, optional
        What `IBackendInternal.create_backend_specific_model_context` returned.
    allocator : ICustomAllocator, optional
        The application's, for all working memory of this network on the backend.
    profiling : IBackendProfiling, optional
        Where measurements of this network go; None if it is not profiled.
    profiling_context : IBackendProfilingContext, optional
        What `IBackendInternal.create_backend_profiling_context` returned.
    input_sources, output_sources : MemorySource
        Kinds of memory that the network's inputs and outputs are imported from.
    relaxed : bool
        As of `PreparationRequest`.
    """

    memory_manager: IMemoryManager | None = None
    # From a function: before Python 3.12 dataclasses take the mapping for a mutable default.
    model_options: OptionValues = field(default_factory=lambda: NO_OPTIONS)
    model_context: IBackendModelContext | None = None
    allocator: ICustomAllocator | None = None
    profiling: IBackendProfiling | None = None
    profiling_context: IBackendProfilingContext | None = None
    input_sources: MemorySource = MemorySource.UNDEFINED
    output_sources: MemorySource = MemorySource.UNDEFINED
    relaxed: bool = False
