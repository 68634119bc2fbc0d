"""Programs written for PyArmNN, LiteRT or ONNX Runtime, run by armpy unchanged.

Each function makes the modules of one engine importable from armpy, in this process. Nothing is
imported by the call itself, so that it costs nothing in `sitecustomize`.
"""

from importlib.util import find_spec

from armpy_compat.module_aliases import install_aliases

__all__ = [
    "install",
    "install_as_onnxruntime",
    "install_as_pyarmnn",
    "install_as_tensorflow",
    "install_as_tflite_runtime",
]

_LITERT = "armpy_compat.litert"
_LITERT_MODULES = (
    ("interpreter", "interpreter"),
    ("compiled_model", "compiled_model"),
    ("hardware_accelerator", "hardware_accelerator"),
    ("tensor_buffer", "tensor_buffer"),
    ("environment", "environment"),
    ("options", "options"),
    ("cpu_options", "options"),
    ("gpu_options", "options"),
    ("cpu_kernel_mode", "options"),
)
"""Modules of ai_edge_litert, and the ones of `armpy_compat.litert` that answer."""


def install(*, with_absent: bool = True) -> None:
    """Answer imports of the engines below with armpy's modules.

    Parameters
    ----------
    with_absent : bool
        Whether engines that are not installed are answered although others are. Programs that
        choose their model by the engines that they find may then choose another one.

    Raises
    ------
    ImportError
        If one of them is already imported.

    Notes
    -----
    TensorFlow is answered only where no engine is installed: programs may use more of it than
    `tf.lite`, or look whether it is there. Call `install_as_tensorflow` for those that do not.
    """
    engines = {"onnxruntime", "tflite_runtime", "ai_edge_litert", "pyarmnn", "tensorflow"}
    installed = {name for name in engines if find_spec(name) is not None}
    answered = engines if with_absent or not installed else installed
    if installed:
        answered -= {"tensorflow"}
    if "onnxruntime" in answered:
        install_as_onnxruntime()
    for name in ("tflite_runtime", "ai_edge_litert"):
        if name in answered:
            install_aliases(_litert_aliases(name))
    if "pyarmnn" in answered:
        install_as_pyarmnn()
    if "tensorflow" in answered:
        install_as_tensorflow()


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
    install_aliases({**_litert_aliases("tflite_runtime"), **_litert_aliases("ai_edge_litert")})


def _litert_aliases(engine: str) -> dict[str, str]:
    """Modules of `tflite_runtime` or `ai_edge_litert`, and armpy's that answer."""
    if engine == "tflite_runtime":
        return {engine: _LITERT, f"{engine}.interpreter": f"{_LITERT}.interpreter"}
    modules = {f"{engine}.{name}": f"{_LITERT}.{target}" for name, target in _LITERT_MODULES}
    return {engine: _LITERT, **modules}


def install_as_tensorflow() -> None:
    """Answer `import tensorflow` with `armpy_compat.litert.tensorflow`, which has `lite` alone.

    For programs that use TensorFlow for `tf.lite.Interpreter` only; anything else is an
    AttributeError that names this function.

    Raises
    ------
    ImportError
        If TensorFlow is already imported.
    """
    lite, interpreter = f"{_LITERT}.tensorflow.lite", f"{_LITERT}.interpreter"
    install_aliases(
        {
            "tensorflow": f"{_LITERT}.tensorflow",
            "tensorflow.lite": lite,
            "tensorflow.lite.python": lite,
            "tensorflow.lite.python.interpreter": interpreter,
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
