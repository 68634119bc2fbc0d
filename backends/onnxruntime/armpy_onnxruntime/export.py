"""Writes a subgraph as an ONNX model."""

from __future__ import annotations

from armpy.graph import SubgraphView
from armpy_onnxruntime.converters import CONVERTERS
from armpy_onnxruntime.writer import ModelWriter


def export_model(view: SubgraphView) -> bytes:
    """A subgraph as an ONNX model.

    Parameters
    ----------
    view : SubgraphView
        All its layers are supported.

    Returns
    -------
    bytes
        Model whose inputs and outputs are those of the view, in order and with armpy's axes.
    """
    writer = ModelWriter()
    for value in view.inputs:
        writer.add_input(value)
    for layer in view.layers:
        CONVERTERS[type(layer.operation)](writer, layer)
    return writer.finish(view.outputs)
