"""The properties of a loaded network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType

from armpy.backend import MemorySource
from armpy.compiler import OptimizerOptions
from armpy.core.arguments import check_choice, check_instance, check_whole
from armpy.core.dataclass import dataclass
from armpy.profiling import ProfilingDetails
from armpy.types import BackendId

ON_FAILURE = ("error", "next")
"""What `NetworkProperties.on_failure` can be."""


@dataclass(frozen=True, slots=True)
class NetworkProperties:
    """Properties of loading one network.

    Raises InvalidArgumentError if something is of the wrong type, or has no such value.

    Parameters
    ----------
    model_options : mapping of str to mapping
        Options of scope MODEL by backend id, for this network alone. They come before those of
        `RuntimeOptions.backend_options`.
    input_source, output_source : MemorySource
        Kinds of memory that inputs and outputs are imported from in every call, instead of being
        copied: arrays for `MemorySource.MALLOC`, else an `ExternalMemory`. One that cannot be used
        where it lies is a `MemoryImportError` (`MemoryExportError`), unless its backend knows no
        memory of the kind. UNDEFINED, the default, for arrays of any kind, copied where need be.
    profiling : bool, optional
        Whether executions and steps are measured; None for what `RuntimeOptions.profiling` says.
    profiling_details : ProfilingDetails
        Properties of layers that the profile records beside their times.
    external_memory : bool
        All working memory is what the application makes with `armpy.Model.create_working_memory`.
        Nothing is made at load; executions without such memory, and bound ones, are an error.
    optimizer : OptimizerOptions, optional
        How the network is optimised. Left out, as `RuntimeOptions` says.
    on_failure : {"error", "next"}
        What to do when a backend fails while it executes: raise its `BackendError`, or take its
        layers away from it, for good, and execute again on the next backends. Executions with
        tensors that a device has imported are not executed again.
    memory_limit_bytes : int, optional
        Most working memory and results that one execution of this network may need; None for what
        `RuntimeOptions.memory_limit_bytes` says, which a larger number does not raise.
    max_executions : int, optional
        How many executions of this network run at the same time; None for any number. Further ones
        wait, and can be cancelled or miss their deadlines meanwhile.

    References
    ----------
    Arm NN INetworkProperties, and ModelOptions of OptimizerOptions.
    """

    model_options: Mapping[BackendId, Mapping[str, object]] = field(default_factory=dict)
    input_source: MemorySource = MemorySource.UNDEFINED
    output_source: MemorySource = MemorySource.UNDEFINED
    profiling: bool | None = None
    external_memory: bool = False
    optimizer: OptimizerOptions | None = None
    profiling_details: ProfilingDetails = ProfilingDetails.UNDEFINED
    on_failure: str = "error"
    memory_limit_bytes: int | None = None
    max_executions: int | None = None

    def __post_init__(self) -> None:
        for name, kinds in _KINDS.items():
            check_instance(getattr(self, name), name, *kinds)
        for backend_id, values in self.model_options.items():
            check_instance(values, f"model_options['{backend_id}']", Mapping)
        for name, least in (("memory_limit_bytes", 0), ("max_executions", 1)):
            if getattr(self, name) is not None:
                check_whole(
                    getattr(self, name), name, least=least, failed="the quota cannot be used"
                )
        check_choice(self.on_failure, "on_failure", ON_FAILURE)

    @classmethod
    def checked(cls, given: NetworkProperties | None) -> NetworkProperties:
        """Check the caller's argument; the defaults if there is none.

        Raises InvalidArgumentError if it is something else.
        """
        if given is None:
            return cls()
        check_instance(given, "properties", cls)
        return given


_KINDS: Mapping[str, tuple[type, ...]] = MappingProxyType(
    {
        "model_options": (Mapping,),
        "input_source": (MemorySource,),
        "output_source": (MemorySource,),
        "profiling": (bool, type(None)),
        "profiling_details": (ProfilingDetails,),
        "external_memory": (bool,),
        "optimizer": (OptimizerOptions, type(None)),
        "on_failure": (str,),
    }
)
