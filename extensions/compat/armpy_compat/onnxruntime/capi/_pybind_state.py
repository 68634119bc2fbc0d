"""Names of ONNX Runtime's binding, as its own modules import them."""

from armpy_compat.onnxruntime.capi.onnxruntime_pybind11_state import *  # noqa: F403
