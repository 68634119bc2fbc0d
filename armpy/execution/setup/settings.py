"""Settings of a loaded network, from a runtime's options and the network's properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING

from armpy.backend import ICustomAllocator
from armpy.backend.control_flow import DEFAULT_LOOP_TIMEOUT_S
from armpy.compiler import OptimizerOptions
from armpy.compiler.compiled_parts import ArchivedParts
from armpy.core.dataclass import dataclass
from armpy.execution.scheduling.executors import Executors
from armpy.execution.setup.contexts import BackendContexts
from armpy.execution.setup.properties import NetworkProperties
from armpy.plugins.placement import PlacementDecision, PlacementQuestion
from armpy.types import DEFAULT_MEMORY_LIMIT_BYTES, BackendId

if TYPE_CHECKING:
    from armpy.profiling import Profiler

DEFAULT_PROGRAM_CACHE_SIZE = 8
"""How many input shapes a loaded network stays prepared for."""


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """Settings of a loaded network, from a runtime's options and the network's properties."""

    optimizer: OptimizerOptions
    # Number of programs kept; the least recently used one goes first.
    program_cache_size: int = DEFAULT_PROGRAM_CACHE_SIZE
    # Most working memory and results that one execution may need.
    memory_limit_bytes: int = DEFAULT_MEMORY_LIMIT_BYTES
    # The application's, by backend id.
    allocators: Mapping[BackendId, ICustomAllocator] = field(default_factory=dict)
    profiler: Profiler | None = None  # records how long executions and their steps take
    after_run: Callable[[], None] | None = None  # called when an execution has come to its end
    # How long an outermost If or While, with all that it runs, may take if an execution does not
    # say; None for no limit.
    loop_timeout_s: float | None = DEFAULT_LOOP_TIMEOUT_S
    # Run executions that are started and not called.
    executors: Executors = field(default_factory=Executors)
    # As the application gave them.
    properties: NetworkProperties = field(default_factory=NetworkProperties)
    protected_mode: bool = False  # whether the network's tensors are to be seen by no callback
    name: str = ""  # what it is called, for people; may be empty
    saved: ArchivedParts | None = None  # what a compiled model has compiled already
    # {"calls", "rows"}; spread over all backends, see `armpy.RuntimeOptions`.
    spread: str | None = None
    # Decides where layers run; the order of the backends does if left out.
    place: Callable[[PlacementQuestion], PlacementDecision | None] | None = None

    def watched_by(self, contexts: BackendContexts, network_id: int) -> NetworkSettings:
        """The same, with contexts that are notified at the end of an execution."""
        if not contexts:
            return self
        return replace(self, after_run=partial(contexts.after_run, network_id))
