"""Run a .tflite file through LiteRT, the engine that armpy's results are compared with."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest


def litert_or_skip() -> ModuleType:
    """Return `ai_edge_litert.interpreter`, or skip the calling test where it is not installed."""
    module: ModuleType = pytest.importorskip(
        "ai_edge_litert.interpreter", reason="ai-edge-litert is not installed"
    )
    return module


def run_litert(
    model_bytes: bytes,
    inputs: Sequence[npt.NDArray[np.generic]],
    *,
    reference: bool = True,
    xnnpack: bool = False,
    invocations: int = 1,
) -> list[npt.NDArray[Any]]:
    """Run a model and return its outputs.

    Parameters
    ----------
    model_bytes : bytes
        A .tflite file.
    inputs : sequence of ndarray
        One per model input, in the file's order and of its data type; an input is resized to its
        array's shape.
    reference : bool
        Whether to use LiteRT's reference kernels or its optimised ones.
    xnnpack : bool
        Whether to run LiteRT as it comes: XNNPACK where it can, optimised kernels elsewhere;
        `reference` has no effect.
    invocations : int
        How often to run with the same inputs. Variable tensors start at zero and keep their values
        in between.

    Returns
    -------
    list of ndarray
        The outputs of the last invocation, in the file's order.

    Raises
    ------
    ValueError
        If LiteRT does not accept the file or an input.
    RuntimeError
        If LiteRT cannot prepare or run the model.

    Notes
    -----
    The reference kernels are built with assertions on, and a violated one ends the process: SOFTMAX
    on int8 does that when the sum of the exponentials, each relative to the largest, reaches 512.

    Reference kernels requantise CONV_2D and DEPTHWISE_CONV_2D with gemmlowp's double rounding,
    first half up, then half away from zero, and FULLY_CONNECTED with one rounding half away from
    zero; optimised ones round half up both times; XNNPACK rounds once in float32, half to even. So
    the three differ by one in a small share of the values, and by more after several layers.
    """
    interpreter = _interpreter(model_bytes, reference, xnnpack)
    details = interpreter.get_input_details()
    if len(details) != len(inputs):
        raise ValueError(f"wrong number of inputs. Expected {len(details)}; got {len(inputs)}")
    for detail, value in zip(details, inputs, strict=True):
        if tuple(detail["shape"]) != value.shape:
            interpreter.resize_tensor_input(detail["index"], value.shape)
    interpreter.allocate_tensors()
    for _ in range(invocations):
        # An input's memory may be reused for other tensors while the model runs.
        for detail, value in zip(details, inputs, strict=True):
            interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
    return [
        np.array(interpreter.get_tensor(detail["index"]))
        for detail in interpreter.get_output_details()
    ]


# Any: ai-edge-litert is untyped
def _interpreter(model_bytes: bytes, reference: bool, xnnpack: bool) -> Any:
    """Return LiteRT's interpreter for the file, on one thread so that results repeat."""
    litert = litert_or_skip()
    kernels = "BUILTIN_REF" if reference else "BUILTIN_WITHOUT_DEFAULT_DELEGATES"
    resolver = litert.OpResolverType["BUILTIN" if xnnpack else kernels]
    return litert.Interpreter(
        model_content=model_bytes, experimental_op_resolver_type=resolver, num_threads=1
    )
