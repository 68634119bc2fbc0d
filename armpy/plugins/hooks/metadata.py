"""Metadata: what a model file says of itself, beyond what it takes to run it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TensorMetadata:
    """Metadata of an input or output.

    Parameters
    ----------
    title : str
        What its author calls it; the model knows it by its own name.
    description : str
    content : {"", "features", "image", "bounding boxes", "audio"}
        What its elements are.
    color_space : {"", "RGB", "GRAYSCALE"}
        Of an image.
    mean, std : tuple of float
        Normalisation of an image: elements are ``(pixel - mean) / std``, pixels being 0 to 255;
        one number for all channels, or one for each. Empty if the file says nothing.
    minimum, maximum : tuple of float
        Range that elements have before normalisation; one number, or one for each channel.
    labels : tuple of str
        Names of classes, by index.
    label_kind : {"", "axis", "value"}
        Whether indexes of `labels` are places along the last axis, or elements.
    localized_labels : mapping of str to tuple of str
        The same in other languages, by locale: ``de``.
    dimension_names : tuple of str
    properties : mapping of str to str
        Whatever else there is.
    """

    title: str = ""
    description: str = ""
    content: str = ""
    color_space: str = ""
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    minimum: tuple[float, ...] = ()
    maximum: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()
    label_kind: str = ""
    localized_labels: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    dimension_names: tuple[str, ...] = ()
    properties: Mapping[str, str] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ModelMetadata:
    """Metadata of a model file; empty where it says nothing.

    Parameters
    ----------
    name, description, version, author, license : str
    producer : str
        The program that has written the file.
    inputs, outputs : mapping of str to TensorMetadata
        By the model's names for them; those of which the file says something.
    files : tuple of str
        Names of files that are packed into it. They are a ZIP archive behind the model, which
        `zipfile.ZipFile` opens at the model's path.
    properties : mapping of str to str
        Whatever else there is.

    References
    ----------
    TFLite model metadata, metadata_schema.fbs; ONNX ModelProto and its MetadataProps.
    """

    name: str = ""
    description: str = ""
    version: str = ""
    author: str = ""
    license: str = ""
    producer: str = ""
    inputs: Mapping[str, TensorMetadata] = dataclasses.field(default_factory=dict)
    outputs: Mapping[str, TensorMetadata] = dataclasses.field(default_factory=dict)
    files: tuple[str, ...] = ()
    properties: Mapping[str, str] = dataclasses.field(default_factory=dict)
