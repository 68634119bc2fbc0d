from armpy import ops as ops
from armpy.backend.external_memory import (
    ExternalMemory as ExternalMemory,
    MemorySource as MemorySource,
)
from armpy.backend.progress import watch_progress as watch_progress
from armpy.batching.batcher import Batcher as Batcher
from armpy.batching.statistics import BatcherStatistics as BatcherStatistics
from armpy.caching.settings import CompilationCaching as CompilationCaching
from armpy.errors import (
    ArmpyError as ArmpyError,
    BackendCapabilityError as BackendCapabilityError,
    BackendError as BackendError,
    BackendUnavailableError as BackendUnavailableError,
    DeadObjectError as DeadObjectError,
    ExecutionCancelledError as ExecutionCancelledError,
    ExecutionTimeoutError as ExecutionTimeoutError,
    GraphValidationError as GraphValidationError,
    InvalidArgumentError as InvalidArgumentError,
    LayerValidationError as LayerValidationError,
    MemoryExportError as MemoryExportError,
    MemoryImportError as MemoryImportError,
    MemoryLimitError as MemoryLimitError,
    MemoryValidationError as MemoryValidationError,
    NnapiError as NnapiError,
    ParserError as ParserError,
    PreparationTimeoutError as PreparationTimeoutError,
    PluginError as PluginError,
    QueueFullError as QueueFullError,
    UnimplementedError as UnimplementedError,
    UnsupportedOperatorError as UnsupportedOperatorError,
)
from armpy.hooks.metadata import (
    ModelMetadata as ModelMetadata,
    TensorMetadata as TensorMetadata,
)
from armpy.isolation.limits import IsolationLimits as IsolationLimits
from armpy.isolation.status import IsolationStatus as IsolationStatus
from armpy.loading import load as load
from armpy.network import Network as Network
from armpy.optimizer.optimized import OptimizedNetwork as OptimizedNetwork
from armpy.optimizer.options import OptimizerOptions as OptimizerOptions
from armpy.optimizer.placement import Alternative as Alternative, Placement as Placement
from armpy.runtime.execution import Execution as Execution
from armpy.plugins.discovery import backend_registry as backend_registry
from armpy.plugins.registry import BackendRegistry as BackendRegistry
from armpy.optimizing import optimize as optimize
from armpy.quantizing.options import QuantizeOptions as QuantizeOptions
from armpy.quantizing.making import QuantizedModel as QuantizedModel, quantize as quantize
from armpy.quantizing.report import QuantizeReport as QuantizeReport
from armpy.runtime.device_memory import allocate_memory as allocate_memory
from armpy.runtime.debugging import DebugValue as DebugValue
from armpy.runtime.imported_tensor import ImportedTensor as ImportedTensor
from armpy.runtime.model import Model as Model
from armpy.runtime.network_memory import NetworkMemory as NetworkMemory
from armpy.runtime.options import RuntimeOptions as RuntimeOptions
from armpy.runtime.properties import NetworkProperties as NetworkProperties
from armpy.runtime.runtime import DeviceSpec as DeviceSpec, Runtime as Runtime
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
