"""Metadata of an .onnx file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import onnx

from armpy import ModelMetadata, TensorMetadata
from armpy.plugins.hooks.model_file import ModelFile
from armpy_onnx.messages.canonical import decode_texts, initial_names
from armpy_onnx.past_inputs import present_outputs
from armpy_onnx.reading import dimension_name, load_model

_AUTHOR = ("model_author", "author")
_LICENSE = ("model_license", "license")
_CLASSICAL = "ai.onnx.ml"
_PIXEL_RANGE = "Image.NominalPixelRange"

_CONTENTS = {"IMAGE": "image", "AUDIO": "audio"}
"""Contents of tensors, by the denotations of their types."""

_NORMALIZATIONS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "NominalRange_0_255": (0.0, 1.0),
        "Normalized_0_1": (0.0, 255.0),
        "Normalized_1_1": (127.5, 127.5),
    }
)
"""Mean and standard deviation of pixels, by the range that they are to have."""


def read_metadata(file: ModelFile, signature: str | None) -> ModelMetadata:
    """Read the metadata of an .onnx file.

    Parameters
    ----------
    signature : None
        ONNX has no signatures.

    Raises
    ------
    ParserError
        If the file is damaged.

    References
    ----------
    ONNX, MetadataProps.md and TypeDenotation.md.
    """
    model = load_model(file, with_elements=False)
    decode_texts(model)
    graph = model.graph
    properties = {entry.key: entry.value for entry in model.metadata_props}
    author, license_text = _taken(properties, _AUTHOR), _taken(properties, _LICENSE)
    initial = initial_names(graph)
    inputs = [value for value in graph.input if value.name not in initial]
    normalization = _NORMALIZATIONS.get(properties.get(_PIXEL_RANGE, ""))
    outputs = _tensors(graph.output)
    for name, labels in _labels(graph).items():
        outputs[name] = replace(outputs.get(name, TensorMetadata()), **labels)
    tensors = _tensors(inputs, normalization)
    for name, present in present_outputs(graph, initial).items():
        about = tensors.get(name, TensorMetadata())
        tensors[name] = replace(about, properties={"present": present})
    return ModelMetadata(
        graph.name,
        model.doc_string or graph.doc_string,
        str(model.model_version or ""),
        author,
        license_text,
        f"{model.producer_name} {model.producer_version}".strip(),
        tensors,
        outputs,
        properties=properties,
    )


def _labels(graph: onnx.GraphProto) -> dict[str, dict[str, Any]]:
    """Names of columns, as fields of `TensorMetadata`, for outputs that a ZipMap writes."""
    outputs = {value.name for value in graph.output}
    by_output: dict[str, dict[str, Any]] = {}
    for node in graph.node:
        is_map = node.domain == _CLASSICAL and node.op_type == "ZipMap"
        if not is_map or not node.output or node.output[0] not in outputs:
            continue
        listed = {attribute.name: attribute for attribute in node.attribute}
        strings, numbers = (listed.get(f"classlabels_{kind}") for kind in ("strings", "int64s"))
        names = [] if strings is None else [t.decode("utf-8", "replace") for t in strings.strings]
        if not names and numbers is not None:
            names = [str(number) for number in numbers.ints]
        if names:
            by_output[node.output[0]] = {"labels": tuple(names), "label_kind": "axis"}
    return by_output


def _taken(properties: dict[str, str], names: Iterable[str]) -> str:
    """The first property of some names, which is taken out; empty if there is none."""
    values_found = [properties.pop(name) for name in names if name in properties]
    return values_found[0] if values_found else ""


def _tensors(
    values: Iterable[onnx.ValueInfoProto], normalization: tuple[float, float] | None = None
) -> dict[str, TensorMetadata]:
    """Return the metadata of inputs or outputs; images have a normalisation."""
    metadata_by_name: dict[str, TensorMetadata] = {}
    for value in values:
        dims = value.type.tensor_type.shape.dim
        names = tuple(dimension_name(dim) or dim.denotation for dim in dims)
        content = _CONTENTS.get(value.type.denotation, "")
        mean, std = normalization if normalization and content == "image" else (None, None)
        metadata = TensorMetadata(
            description=value.doc_string,
            content=content,
            mean=() if mean is None else (mean,),
            std=() if std is None else (std,),
            dimension_names=names if any(names) else (),
        )
        if metadata != TensorMetadata():
            metadata_by_name[value.name] = metadata
    return metadata_by_name
