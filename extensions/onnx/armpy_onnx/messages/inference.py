"""Types and shapes of a model's tensors, by the `onnx` package in a process of its own.

Notes
-----
The package's inference is native code, which some valid models end with a segmentation fault:
those with LabelEncoder, DictVectorizer or RegexFullMatch behind a tensor of unknown type.
"""

from __future__ import annotations

import json
import logging
import math
import subprocess
import sys

import onnx

_LOG = logging.getLogger(__name__)

_MOST_ELEMENTS = 1024
"""Maximum size of constants whose elements are handed over: those of others say nothing about
shapes.
"""

_TIMEOUT_S = 60

_CHILD = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
import onnx
model = onnx.load_model_from_string(sys.stdin.buffer.read())
sys.stdout.buffer.write(onnx.shape_inference.infer_shapes(model).SerializeToString())
"""


def inferred_graph(model: onnx.ModelProto) -> onnx.GraphProto | None:
    """The graph of a model with inferred types and shapes; None if inference fails.

    Parameters
    ----------
    model : onnx.ModelProto
        Stays as it is.

    Returns
    -------
    onnx.GraphProto or None
        Without the elements of large initializers. Names that the package makes up for open
        dimensions are left out.

    Notes
    -----
    A failure, which also may be the end of the other process, is logged at level DEBUG.
    """
    if not sys.executable:  # an embedded interpreter
        return None
    command = [sys.executable, "-I", "-c", _CHILD, json.dumps(sys.path)]
    try:
        done = subprocess.run(
            command,
            input=_without_large_constants(model).SerializeToString(),
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=True,
        )
        graph = onnx.load_model_from_string(done.stdout).graph
    # Whatever the library raises for a large message, besides errors of the other process.
    except Exception as error:  # noqa: BLE001
        _LOG.debug("no shapes have been inferred: %s", error)
        return None
    for value in (*graph.value_info, *graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param.startswith("unk__"):
                dim.ClearField("dim_param")
    return graph


def _without_large_constants(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model whose large initializers are described only."""
    graph = model.graph
    light = onnx.ModelProto(
        ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions
    )
    light.graph.name = graph.name
    light.graph.node.extend(graph.node)
    light.graph.input.extend(graph.input)
    light.graph.output.extend(graph.output)
    light.graph.value_info.extend(graph.value_info)
    for tensor in graph.initializer:
        if math.prod(tensor.dims) <= _MOST_ELEMENTS:
            light.graph.initializer.append(tensor)
        else:
            light.graph.value_info.append(
                onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            )
    return light
