from armpy import ops as ops
from armpy.backend.memory.external_memory import (
    ExternalMemory as ExternalMemory,
    MemorySource as MemorySource,
)
from armpy.backend.progress import watch_progress as watch_progress
from armpy.store.settings import CompilationCaching as CompilationCaching
from armpy.errors import (
    ArmpyError as ArmpyError,
    BackendCapabilityError as BackendCapabilityError,
    BackendError as BackendError,
    BackendUnavailableError as BackendUnavailableError,
    CompilationPostponedError as CompilationPostponedError,
    DeadObjectError as DeadObjectError,
    DeviceNotFoundError as DeviceNotFoundError,
    ExecutionCancelledError as ExecutionCancelledError,
    ExecutionTimeoutError as ExecutionTimeoutError,
    GraphValidationError as GraphValidationError,
    InvalidArgumentError as InvalidArgumentError,
    LayerValidationError as LayerValidationError,
    MemoryExportError as MemoryExportError,
    MemoryImportError as MemoryImportError,
    MemoryLimitError as MemoryLimitError,
    MemoryQuotaError as MemoryQuotaError,
    MemoryValidationError as MemoryValidationError,
    ParserError as ParserError,
    PreparationTimeoutError as PreparationTimeoutError,
    PluginError as PluginError,
    ModelNotFoundError as ModelNotFoundError,
    ModelUnavailableError as ModelUnavailableError,
    QueueFullError as QueueFullError,
    UnimplementedError as UnimplementedError,
    UnsupportedOperatorError as UnsupportedOperatorError,
)
from armpy.plugins.hooks.metadata import (
    ModelMetadata as ModelMetadata,
    TensorMetadata as TensorMetadata,
)
from armpy.plugins.isolation.limits import IsolationLimits as IsolationLimits
from armpy.plugins.isolation.limits import IsolationStatus as IsolationStatus
from armpy.model.load import load as load
from armpy.model.archive.checking import FileCheck as FileCheck, FileFit as FileFit, check as check
from armpy.graph.network import Network as Network
from armpy.compiler.optimized import OptimizedNetwork as OptimizedNetwork
from armpy.compiler.options import OptimizerOptions as OptimizerOptions
from armpy.compiler.placement import Placement as Placement
from armpy.execution.calls.execution import Execution as Execution
from armpy.plugins.placement import Alternative as Alternative
from armpy.plugins.registry import backend_registry as backend_registry
from armpy.plugins.registry import BackendRegistry as BackendRegistry
from armpy.execution.optimize import optimize as optimize
from armpy.model.device_memory import allocate_memory as allocate_memory
from armpy.execution.wrappers.debugging import DebugValue as DebugValue
from armpy.execution.arrays.imported_tensor import ImportedTensor as ImportedTensor
from armpy.model.model import Model as Model
from armpy.execution.calls.network_memory import NetworkMemory as NetworkMemory
from armpy.execution.setup.options import RuntimeOptions as RuntimeOptions
from armpy.execution.setup.properties import NetworkProperties as NetworkProperties
from armpy.execution.runtime import DeviceSpec as DeviceSpec, Runtime as Runtime
from armpy.tensor import Quantization as Quantization, TensorInfo as TensorInfo
from armpy.types import (
    BackendId as BackendId,
    DataLayout as DataLayout,
    DataType as DataType,
    DeviceType as DeviceType,
    Preference as Preference,
    Priority as Priority,
)

__all__: list[str]
__version__: str
