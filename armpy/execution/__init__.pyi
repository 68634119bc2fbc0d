from armpy.execution.calls.execution import Execution as Execution
from armpy.execution.arrays.imported_tensor import ImportedTensor as ImportedTensor
from armpy.execution.arrays.conversion import as_input as as_input
from armpy.execution.arrays.conversion import dequantize_array as dequantize_array
from armpy.execution.arrays.conversion import quantize_array as quantize_array
from armpy.execution.scheduling.stop_signal import deadline_in as deadline_in
from armpy.execution.loaded_network import LoadedNetwork as LoadedNetwork
from armpy.execution.calls.network_memory import NetworkMemory as NetworkMemory
from armpy.execution.setup.options import RuntimeOptions as RuntimeOptions
from armpy.execution.setup.properties import NetworkProperties as NetworkProperties
from armpy.execution.runtime import DeviceSpec as DeviceSpec, Runtime as Runtime
from armpy.execution.arrays.tensor_spec import TensorSpec as TensorSpec

__all__: list[str]
