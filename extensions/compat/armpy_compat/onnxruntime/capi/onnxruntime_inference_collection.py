"""Classes of sessions and values, as programs import them from this module."""

from armpy_compat.onnxruntime.devices import OrtDevice
from armpy_compat.onnxruntime.devices import device_type_number as get_ort_device_type
from armpy_compat.onnxruntime.enumerations import OrtDeviceVendorId
from armpy_compat.onnxruntime.inference_session import InferenceSession, Session
from armpy_compat.onnxruntime.io_binding import IOBinding
from armpy_compat.onnxruntime.model_compiler import ModelCompiler
from armpy_compat.onnxruntime.ort_value import OrtValue, copy_tensors
from armpy_compat.onnxruntime.providers import check_and_normalize_provider_args
from armpy_compat.onnxruntime.sparse_tensor import SparseTensor

__all__ = [
    "IOBinding",
    "InferenceSession",
    "ModelCompiler",
    "OrtDevice",
    "OrtDeviceVendorId",
    "OrtValue",
    "Session",
    "SparseTensor",
    "check_and_normalize_provider_args",
    "copy_tensors",
    "get_ort_device_type",
]
