"""PyArmNN 24.02, answered by armpy; see docs/how_to/run_pyarmnn_programs.md."""

from armpy_compat.pyarmnn._version import (
    GetMajorVersion as GetMajorVersion,
    GetMinorVersion as GetMinorVersion,
    GetVersion as GetVersion,
    __arm_ml_version__ as __arm_ml_version__,
    __version__ as __version__,
)
from armpy_compat.pyarmnn.options.backend_options import (
    BackendId as BackendId,
    BackendOption as BackendOption,
    BackendOptions as BackendOptions,
)
from armpy_compat.pyarmnn.constants import *
from armpy_compat.pyarmnn.descriptors.layer_descriptors import *
from armpy_compat.pyarmnn.running.device_spec import IDeviceSpec as IDeviceSpec
from armpy_compat.pyarmnn.layers import (
    IConnectableLayer as IConnectableLayer,
    IInputSlot as IInputSlot,
    IOutputSlot as IOutputSlot,
)
from armpy_compat.pyarmnn.descriptors.lstm_params import (
    LstmInputParams as LstmInputParams,
    QuantizedLstmInputParams as QuantizedLstmInputParams,
)
from armpy_compat.pyarmnn.network import INetwork as INetwork
from armpy_compat.pyarmnn.running.optimized_network import (
    IOptimizedNetwork as IOptimizedNetwork,
    Optimize as Optimize,
)
from armpy_compat.pyarmnn.options.optimizer_options import OptimizerOptions as OptimizerOptions
from armpy_compat.pyarmnn.parsers import (
    ICaffeParser as ICaffeParser,
    IDeserializer as IDeserializer,
    IOnnxParser as IOnnxParser,
    ITfLiteParser as ITfLiteParser,
    ITfParser as ITfParser,
    TfLiteParserOptions as TfLiteParserOptions,
)
from armpy_compat.pyarmnn.tensors.permutation_vector import PermutationVector as PermutationVector
from armpy_compat.pyarmnn.running.profiler import IProfiler as IProfiler
from armpy_compat.pyarmnn.running.profiling_data import (
    ProfilerData as ProfilerData,
    get_profiling_data as get_profiling_data,
)
from armpy_compat.pyarmnn.quantization import dequantize as dequantize, quantize as quantize
from armpy_compat.pyarmnn.running.runtime import IRuntime as IRuntime
from armpy_compat.pyarmnn.options.runtime_options import (
    CreationOptions as CreationOptions,
    ExternalProfilingOptions as ExternalProfilingOptions,
    INetworkProperties as INetworkProperties,
)
from armpy_compat.pyarmnn.tensors.tensor_info import (
    TensorInfo as TensorInfo,
    TensorShape as TensorShape,
)
from armpy_compat.pyarmnn.tensors import (
    ConstTensor as ConstTensor,
    Tensor as Tensor,
    make_input_tensors as make_input_tensors,
    make_output_tensors as make_output_tensors,
    workload_tensors_to_ndarray as workload_tensors_to_ndarray,
)
from armpy_compat.pyarmnn.descriptors.views import (
    ConcatDescriptor as ConcatDescriptor,
    CreateDescriptorForConcatenation as CreateDescriptorForConcatenation,
    SplitterDescriptor as SplitterDescriptor,
)

ARMNN_VERSION = GetVersion()

__all__ = [name for name, value in sorted(globals().items()) if callable(value) and name[0] != "_"]
