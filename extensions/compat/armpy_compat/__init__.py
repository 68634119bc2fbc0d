"""Programs written for PyArmNN, LiteRT or ONNX Runtime, run by armpy unchanged.

Each function makes the modules of one engine importable from armpy, in this process. Nothing is
imported by the call itself, so that it costs nothing in `sitecustomize`.
"""

from armpy_compat.module_aliases import install_aliases

__all__ = ["install_as_onnxruntime", "install_as_pyarmnn", "install_as_tflite_runtime"]


def install_as_pyarmnn() -> None:
    """Answer `import pyarmnn` with `armpy_compat.pyarmnn`.

    Raises
    ------
    ImportError
        If another `pyarmnn` is already imported.
    """
    install_aliases(
        {
            "pyarmnn": "armpy_compat.pyarmnn",
            "pyarmnn._version": "armpy_compat.pyarmnn._version",
            "pyarmnn._quantization": "armpy_compat.pyarmnn",
            "pyarmnn._quantization.quantize_and_dequantize": "armpy_compat.pyarmnn.quantization",
            "pyarmnn._tensor": "armpy_compat.pyarmnn.tensors",
            "pyarmnn._tensor.const_tensor": "armpy_compat.pyarmnn.tensors.const_tensor",
            "pyarmnn._tensor.tensor": "armpy_compat.pyarmnn.tensors.tensor",
            "pyarmnn._tensor.workload_tensors": "armpy_compat.pyarmnn.tensors.workload_tensors",
            "pyarmnn._utilities": "armpy_compat.pyarmnn",
            "pyarmnn._utilities.profiling_helper": "armpy_compat.pyarmnn.running.profiling_data",
            "pyarmnn._generated": "armpy_compat.pyarmnn.generated",
            "pyarmnn._generated.pyarmnn": "armpy_compat.pyarmnn.generated",
            "pyarmnn._generated.pyarmnn_deserializer": "armpy_compat.pyarmnn.generated",
            "pyarmnn._generated.pyarmnn_onnxparser": "armpy_compat.pyarmnn.generated",
            "pyarmnn._generated.pyarmnn_tfliteparser": "armpy_compat.pyarmnn.generated",
            "pyarmnn._generated.pyarmnn_version": "armpy_compat.pyarmnn._version",
        }
    )


def install_as_tflite_runtime() -> None:
    """Answer imports of `tflite_runtime` and `ai_edge_litert` with `armpy_compat.litert`.

    Raises
    ------
    ImportError
        If one of them is already imported.
    """
    install_aliases(
        {
            "tflite_runtime": "armpy_compat.litert",
            "tflite_runtime.interpreter": "armpy_compat.litert.interpreter",
            "ai_edge_litert": "armpy_compat.litert",
            "ai_edge_litert.interpreter": "armpy_compat.litert.interpreter",
        }
    )


def install_as_onnxruntime() -> None:
    """Answer `import onnxruntime` with `armpy_compat.onnxruntime`.

    Raises
    ------
    ImportError
        If another `onnxruntime` is already imported.
    """
    modules = (
        "",
        ".capi",
        ".capi._pybind_state",
        ".capi.onnxruntime_inference_collection",
        ".capi.onnxruntime_pybind11_state",
    )
    install_aliases({f"onnxruntime{name}": f"armpy_compat.onnxruntime{name}" for name in modules})
