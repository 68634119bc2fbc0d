"""Writes a graph as a .tflite file."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from armpy.core.dataclass import dataclass
from armpy.errors import ArmpyError, InvalidArgumentError, UnimplementedError
from armpy.frontends.tflite.metadata import METADATA_NAME, stored_metadata
from armpy.frontends.tflite.packed_files import PackedFiles
from armpy.frontends.tflite.reader import read_model
from armpy.frontends.tflite_writer.operators import write_layer
from armpy.frontends.tflite_writer.writer import TfliteWriter
from armpy.graph import Graph, Layer, SubgraphView, Value
from armpy.ops.operation import Array
from armpy.store.owned_files import replacing


@dataclass(frozen=True, slots=True)
class Extras:
    """Metadata and packed files of a model file, beside its network."""

    # By name: normalisation and names of tensors in ``TFLITE_METADATA``.
    metadata: Mapping[str, bytes] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)  # packed after it: labels


def read_extras(path: str | os.PathLike[str]) -> Extras:
    """Read a .tflite file's parts beside its network, except converters' own notes.

    Raises
    ------
    ParserError
        If the file is damaged.
    """
    content = memoryview(Path(path).read_bytes())
    metadata = stored_metadata(read_model(content))
    packed = PackedFiles(content)
    return Extras(
        {name: metadata[name] for name in metadata if name == METADATA_NAME},
        {name: packed.read(name) for name in packed.names},
    )


def write_tflite(
    graph: Graph,
    path: str | os.PathLike[str],
    about: str = "armpy",
    extras: Extras | None = None,
) -> int:
    """Write a graph as a .tflite file, which appears whole or not at all.

    Parameters
    ----------
    graph : Graph
        Constants folded.
    about : str
        The file's description.
    extras : Extras, optional
        What else the file is to hold.

    Returns
    -------
    int
        Bytes of the file.

    Raises
    ------
    UnimplementedError
        If TFLite has no operator for a layer, or the graph keeps state; it names the layer.
    InvalidArgumentError
        If the file cannot be written.
    """
    content = tflite_bytes(graph, about, extras)
    try:
        with replacing(path) as file:
            file.write(content)
    except OSError as error:
        raise InvalidArgumentError(
            f"the file cannot be written: {error}", where=os.fspath(path)
        ) from error
    return len(content)


def tflite_bytes(graph: Graph, about: str = "armpy", extras: Extras | None = None) -> bytes:
    """A graph as the contents of a .tflite file; errors as of `write_tflite`."""
    if graph.variables:
        raise UnimplementedError(
            "a network that keeps state cannot be written as .tflite",
            where=f"variable '{graph.variables[0].value.name}'",
            fix="Write a compiled model: NAME.armpy",
        )
    inputs = {value.name: value for value in graph.inputs}
    outputs = dict(zip(graph.output_names, graph.outputs, strict=True))
    extras = extras or Extras()
    content = _content(TfliteWriter(), graph.layers, inputs, outputs, about, extras.metadata)
    if not extras.files:
        return content
    packed = io.BytesIO(content)
    with zipfile.ZipFile(packed, "a", zipfile.ZIP_DEFLATED) as archive:
        for name, data in extras.files.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return packed.getvalue()


def view_bytes(view: SubgraphView) -> bytes:
    """A part of a graph as the contents of a .tflite file; errors as of `write_tflite`.

    Its inputs and outputs are those of the view, in order, named by their number.
    """
    return _view_content(TfliteWriter(), view)


def view_bytes_and_constants(view: SubgraphView) -> tuple[bytes, dict[int, Array]]:
    """As `view_bytes`, with empty buffers for large constants, and these by buffer number."""
    writer = TfliteWriter(shares_constants=True)
    return _view_content(writer, view), writer.shared


def _view_content(writer: TfliteWriter, view: SubgraphView) -> bytes:
    """The contents of a file with the layers of a view."""
    inputs = {f"input_{i}": value for i, value in enumerate(view.inputs)}
    outputs = {f"output_{i}": value for i, value in enumerate(view.outputs)}
    return _content(writer, view.layers, inputs, outputs, "armpy", {})


@dataclass(frozen=True, slots=True)
class LayerModel:
    """A .tflite file of the layers that can be written, to ask an engine about each of them."""

    content: bytes
    num_operators: int
    operators: Sequence[range]
    """Indexes of each layer's operators."""
    problems: Sequence[str]
    """Why each layer cannot be written; empty where it can."""


def layer_model(layers: Sequence[Layer], *, shares_constants: bool = False) -> LayerModel:
    """Write the layers of a network that can be written, as a file with nameless tensors.

    Parameters
    ----------
    layers : sequence of Layer
        In the network's order.
    shares_constants : bool
        As for `TfliteWriter`.
    """
    writer = TfliteWriter(has_names=False, shares_constants=shares_constants)
    operators, problems = [], []
    for layer in layers:
        first, problem = writer.num_operators, ""
        try:
            write_layer(writer, layer)
        except ArmpyError as error:
            problem = error.failed
            writer.remove_operators(first)
        operators.append(range(first, writer.num_operators))
        problems.append(problem)
    # Tensors of the others can be of types that the format lacks.
    whole = [layer for layer, problem in zip(layers, problems, strict=True) if not problem]
    written = {value for layer in whole for value in layer.outputs}
    read = {value for layer in whole for value in layer.inputs if value is not None}
    sources = {value.name: writer.value(value) for value in read - written if value.data is None}
    results = {value.name: writer.value(value) for value in written - read}
    content = writer.file(sources, results, "armpy")
    return LayerModel(content, writer.num_operators, operators, problems)


def _content(
    writer: TfliteWriter,
    layers: Iterable[Layer],
    inputs: Mapping[str, Value],
    outputs: Mapping[str, Value],
    about: str,
    metadata: Mapping[str, bytes],
) -> bytes:
    """The contents of a file with one subgraph."""
    sources = {name: writer.value(value, name) for name, value in inputs.items()}
    for name, value in outputs.items():
        writer.value(value, name)
    for layer in layers:
        write_layer(writer, layer)
    results = {name: writer.value(value) for name, value in outputs.items()}
    return writer.file(sources, results, about, metadata)
