from armpy.runtime.execution import Execution as Execution
from armpy.runtime.imported_tensor import ImportedTensor as ImportedTensor
from armpy.runtime.loaded_network import LoadedNetwork as LoadedNetwork
from armpy.runtime.model import Model as Model
from armpy.runtime.network_memory import NetworkMemory as NetworkMemory
from armpy.runtime.options import RuntimeOptions as RuntimeOptions
from armpy.runtime.properties import NetworkProperties as NetworkProperties
from armpy.runtime.runtime import DeviceSpec as DeviceSpec, Runtime as Runtime
from armpy.runtime.tensor_spec import TensorSpec as TensorSpec

__all__: list[str]
