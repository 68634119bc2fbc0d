"""Run one ONNX operator on ONNX Runtime, an engine that armpy's results are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

Array = npt.NDArray[Any]  # Any: every element type occurs

OPSET = 19
"""Version of ONNX's operators."""


def onnx_or_skip() -> None:
    """Skip the calling module's tests where onnx or onnxruntime is not installed."""
    pytest.importorskip("onnx", reason="onnx is not installed")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


def run_onnx(
    operator: str,
    inputs: Sequence[Array | None],
    *,
    outputs: Sequence[str] = ("output",),
    domain: str = "",
    **attributes: Any,  # Any: attribute values of many types
) -> list[Array]:
    """Run one operator and return its outputs.

    Parameters
    ----------
    operator : str
    inputs : sequence of (ndarray or None)
        None for an optional one that is left out.
    outputs : sequence of str
        Names of the outputs; empty for one that is not asked for.
    domain : str
        Of the operator; empty for ONNX's own.
    **attributes
        Those that are None are left out.
    """
    import onnx
    import onnxruntime

    helper = onnx.helper
    named = {f"input_{i}": array for i, array in enumerate(inputs) if array is not None}
    node = helper.make_node(
        operator,
        [f"input_{i}" if array is not None else "" for i, array in enumerate(inputs)],
        list(outputs),
        domain=domain,
        **{name: value for name, value in attributes.items() if value is not None},
    )
    graph = helper.make_graph(
        [node],
        "operator",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for name, a in named.items()
        ],
        [helper.make_empty_tensor_value_info(name) for name in outputs if name],
    )
    opsets = [helper.make_opsetid("", OPSET)]
    if domain:
        opsets.append(helper.make_opsetid(domain, 1))
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return [np.asarray(output) for output in session.run(None, named)]
