"""PyArmNN 24.02, answered by armpy; see docs/how_to/run_pyarmnn_programs.md."""

from armpy_compat.pyarmnn._version import (
    GetMajorVersion as GetMajorVersion,
    GetMinorVersion as GetMinorVersion,
    GetVersion as GetVersion,
    __arm_ml_version__ as __arm_ml_version__,
    __version__ as __version__,
)
from armpy_compat.pyarmnn.backend_options import (
    BackendId as BackendId,
    BackendOption as BackendOption,
    BackendOptions as BackendOptions,
)
from armpy_compat.pyarmnn.constants import *
from armpy_compat.pyarmnn.descriptors import *
from armpy_compat.pyarmnn.lstm_params import (
    LstmInputParams as LstmInputParams,
    QuantizedLstmInputParams as QuantizedLstmInputParams,
)
from armpy_compat.pyarmnn.optimizer_options import OptimizerOptions as OptimizerOptions
from armpy_compat.pyarmnn.permutation_vector import PermutationVector as PermutationVector
from armpy_compat.pyarmnn.quantization import dequantize as dequantize, quantize as quantize
from armpy_compat.pyarmnn.runtime_options import (
    CreationOptions as CreationOptions,
    ExternalProfilingOptions as ExternalProfilingOptions,
    INetworkProperties as INetworkProperties,
)
from armpy_compat.pyarmnn.tensor_info import TensorInfo as TensorInfo, TensorShape as TensorShape
from armpy_compat.pyarmnn.tensors import (
    ConstTensor as ConstTensor,
    Tensor as Tensor,
    make_input_tensors as make_input_tensors,
    make_output_tensors as make_output_tensors,
    workload_tensors_to_ndarray as workload_tensors_to_ndarray,
)
from armpy_compat.pyarmnn.views import (
    ConcatDescriptor as ConcatDescriptor,
    CreateDescriptorForConcatenation as CreateDescriptorForConcatenation,
    SplitterDescriptor as SplitterDescriptor,
)

ARMNN_VERSION = GetVersion()

__all__ = [name for name, value in sorted(globals().items()) if callable(value) and name[0] != "_"]
