"""The options of a runtime."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from types import NoneType

from armpy.backend import ICustomAllocator, IMemoryOptimizerStrategy
from armpy.backend.control_flow import DEFAULT_LOOP_TIMEOUT_S
from armpy.compiler import OptimizerOptions
from armpy.core.arguments import (
    MOST_THREADS,
    check_choice,
    check_instance,
    check_positive,
    check_several,
    check_whole,
)
from armpy.core.dataclass import dataclass
from armpy.execution.scheduling.loop_timeout import check_loop_timeout
from armpy.execution.setup.settings import DEFAULT_PROGRAM_CACHE_SIZE
from armpy.plugins import BackendRegistry, PluginOptions
from armpy.plugins.isolation.limits import Isolation, IsolationLimits, check_isolation
from armpy.store.archive.signing import KeySource, trusted_keys
from armpy.store.archive.trust import CODE_CHOICES, TRUSTED
from armpy.store.settings import CompilationCaching
from armpy.types import DEFAULT_MEMORY_LIMIT_BYTES, BackendId, Preference

BACKENDS_VARIABLE = "ARMPY_BACKENDS"
"""Environment variable with backend ids in order of preference, comma separated."""


@dataclass(frozen=True, slots=True)
class RuntimeOptions:
    """Options of a `Runtime`.

    Parameters
    ----------
    backends : sequence of str, optional
        Ids in order of preference; None for every installed backend in armpy's own order
        (accelerators, GPUs, compiled CPU, reference). ``ARMPY_BACKENDS`` (comma separated)
        takes the place of None.
    on_fallback : {"allow", "warn", "error"}
        What to do when a layer does not run on the first preferred backend.
    num_threads : int, optional
        For backends that have threads of their own. CpuRef has none: NumPy's matrix
        products use as many as NumPy's library is set to (``OPENBLAS_NUM_THREADS``).
    program_cache_size : int
        Number of input shapes that a loaded network stays prepared for.
    memory_limit_bytes : int
        Most working memory and results that one execution may need.
    backend_options : mapping of str to mapping
        Options by backend id; each is checked against the backend's declarations.
    dynamic_backends_path : path or sequence of paths
        Absolute directories with modules named ``<vendor>_<name>_backend``. Left empty,
        ``ARMPY_DYNAMIC_BACKENDS_PATH`` says it.
    trust_insecure_paths : bool
        Load modules also from directories and files that other users can change.
    trust_file : path, optional
        Allow-list of backends and their hashes; ``ARMPY_TRUST_FILE`` if left out.
    probe : bool
        Import every candidate in a child process first.
    probe_timeout_s : float
        Time limit of a candidate's import, in seconds.
    custom_allocators : mapping of str to ICustomAllocator
        What working memory of these backends is taken from; a backend that cannot is left
        out.
    protected_mode : bool
        Use only backends with the capability ProtectedContentAllocation and a custom
        allocator of protected memory, and map no tensor: inputs and outputs are imported protected
        memory. Networks whose tensors the host would have to see or copy are not loaded.
    memory_strategies : mapping of str to (str or IMemoryOptimizerStrategy)
        Packing of the working memory of these backends.
    loop_timeout_s : float, optional
        How long control flow may take, in seconds; None for no limit. Each If or While that lies
        in no other one has that long for itself and all that it runs, however deep. The first 32
        networks that have to be prepared meanwhile take no time of it.
    profiling : bool
        Measure every execution and step; see `Runtime.get_profiler`.
    registry : BackendRegistry, optional
        Use this one (see `armpy.backend_registry`) instead of looking for backends; the options
        that say where they come from do not count then.
    execution_threads : int, optional
        How many executions that were started, and not called, run at the same time; None for
        as many as there are processors, 2 to 4.
    preference : Preference
        What decides where layers run; see `OptimizerOptions`.
    affinity : mapping of str to str
        By layer name or pattern, the only backend that may run these layers; see
        `OptimizerOptions`.
    spread : {"calls", "rows"}, optional
        Have each backend prepare every network whole, the others as fallbacks for layers that it
        lacks; each execution goes to the backend that is expected to answer first, by measured
        speed. A backend that fails loses its executions to the others. Not for networks with
        variables, imported memory, or working memory of the application. With "rows", executions
        that come alone are divided along the first dimension, whose rows must not depend on each
        other.
    caching : CompilationCaching
        Where compiled parts of networks are kept, for backends that keep any: in armpy's cache
        directory, unless it says otherwise.
    isolation : {"process", "none"} or mapping of str to these, optional
        Whether backends live in processes of their own; of a mapping, by backend id. See
        docs/how_to/isolation.md.
    isolation_limits : IsolationLimits
        What such processes may take, and when they are given up.
    trusted_keys : sequence of (path, str or bytes)
        Ed25519 public keys whose holders' compiled models may bring code, wherever they come from:
        PEM files, texts ``ed25519:BASE64``, or 32 bytes each. Held as bytes.
    code : {"trusted", "signed", "never"}
        Whose code in compiled models is used: that of files in places that no other user can write,
        and of files that a trusted key has signed; of the latter alone; or none, so that networks
        are compiled from the graphs in the files. See docs/how_to/safe_loading.md.
    """

    backends: Sequence[BackendId] | None = None
    on_fallback: str = "allow"
    num_threads: int | None = None
    program_cache_size: int = DEFAULT_PROGRAM_CACHE_SIZE
    memory_limit_bytes: int = DEFAULT_MEMORY_LIMIT_BYTES
    backend_options: Mapping[BackendId, Mapping[str, object]] = field(default_factory=dict)
    dynamic_backends_path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = ()
    trust_insecure_paths: bool = False
    trust_file: str | os.PathLike[str] | None = None
    probe: bool = False
    probe_timeout_s: float = 10.0
    custom_allocators: Mapping[BackendId, ICustomAllocator] = field(default_factory=dict)
    protected_mode: bool = False
    memory_strategies: Mapping[BackendId, str | IMemoryOptimizerStrategy] = field(
        default_factory=dict
    )
    loop_timeout_s: float | None = DEFAULT_LOOP_TIMEOUT_S
    profiling: bool = False
    registry: BackendRegistry | None = None
    execution_threads: int | None = None
    preference: Preference = Preference.ORDER
    isolation: Isolation = None
    isolation_limits: IsolationLimits = field(default_factory=IsolationLimits)
    caching: CompilationCaching = field(default_factory=CompilationCaching)
    trusted_keys: Sequence[KeySource] = ()
    code: str = TRUSTED
    affinity: Mapping[str, BackendId] = field(default_factory=dict)
    spread: str | None = None

    def __post_init__(self) -> None:
        checked = self.optimizer_options()  # raises if there is no such choice
        # The class is frozen, and a choice may be given by its text.
        object.__setattr__(self, "preference", checked.preference)
        for name in ("probe", "profiling", "protected_mode", "trust_insecure_paths"):
            check_instance(getattr(self, name), f"RuntimeOptions.{name}", bool)
        check_instance(self.registry, "RuntimeOptions.registry", BackendRegistry, NoneType)
        limits = "RuntimeOptions.isolation_limits"
        check_instance(self.isolation_limits, limits, IsolationLimits)
        check_instance(self.caching, "RuntimeOptions.caching", CompilationCaching)
        check_choice(self.spread, "spread", (None, "calls", "rows"))
        check_loop_timeout(self.loop_timeout_s)
        check_isolation(self.isolation)
        check_choice(self.code, "code", CODE_CHOICES)
        # Read now: changing a key's file later does not change what this runtime trusts.
        object.__setattr__(self, "trusted_keys", trusted_keys(self.trusted_keys))
        failed = "the program cache cannot have this size"
        check_whole(self.program_cache_size, "program_cache_size", least=1, failed=failed)
        check_whole(self.memory_limit_bytes, "memory_limit_bytes")
        for name in ("num_threads", "execution_threads"):
            if getattr(self, name) is not None:
                failed = "the number of threads cannot be used"
                check_whole(getattr(self, name), name, least=1, most=MOST_THREADS, failed=failed)
        check_positive(self.probe_timeout_s, "probe_timeout_s")
        self._check_entries("backend_options", Mapping)
        self._check_entries("custom_allocators", ICustomAllocator)
        self._check_entries("memory_strategies", str, IMemoryOptimizerStrategy)
        if self.backends is not None:
            check_several(self.backends, "backends", "a sequence of ids", str)

    def _check_entries(self, name: str, *kinds: type) -> None:
        """Check the types of what an option gives for each backend."""
        check_instance(getattr(self, name), name, Mapping)
        for backend_id, entry in getattr(self, name).items():
            check_instance(entry, f"{name}['{backend_id}']", *kinds)

    def optimizer_options(self) -> OptimizerOptions:
        """Return how networks are optimised that do not say it themselves."""
        return OptimizerOptions(
            self.on_fallback,
            preference=self.preference,
            caching=self.caching,
            affinity=self.affinity,
        )

    def plugin_options(self) -> PluginOptions:
        """Those of the options about sources of backends and trust."""
        return PluginOptions(
            dynamic_backends_path=self.dynamic_backends_path,
            trust_insecure_paths=self.trust_insecure_paths,
            trust_file=self.trust_file,
            probe=self.probe,
            probe_timeout_s=self.probe_timeout_s,
        )


def backend_preferences(chosen: Sequence[BackendId] | None) -> list[BackendId] | None:
    """The caller's preferences, else those of the environment, else None."""
    if chosen is not None:
        return list(chosen)
    names = [name.strip() for name in os.environ.get(BACKENDS_VARIABLE, "").split(",")]
    return [name for name in names if name] or None
