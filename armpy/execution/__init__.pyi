from armpy.execution.calls.execution import Execution as Execution
from armpy.execution.arrays.imported_tensor import ImportedTensor as ImportedTensor
from armpy.execution.loaded_network import LoadedNetwork as LoadedNetwork
from armpy.execution.calls.network_memory import NetworkMemory as NetworkMemory
from armpy.execution.setup.options import RuntimeOptions as RuntimeOptions
from armpy.execution.setup.properties import NetworkProperties as NetworkProperties
from armpy.execution.runtime import DeviceSpec as DeviceSpec, Runtime as Runtime
from armpy.execution.arrays.tensor_spec import TensorSpec as TensorSpec

__all__: list[str]
