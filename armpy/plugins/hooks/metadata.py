"""Metadata: a model file's description of itself, beyond the data needed to run it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from armpy.core.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class TensorMetadata:
    """Metadata of an input or output."""

    title: str = ""
    """Author's name for the tensor, beside the name in the model."""
    description: str = ""
    content: str = ""
    """Description of the elements."""
    color_space: str = ""
    """Colour space of an image."""
    # Normalisation of an image: elements are ``(pixel - mean) / std``, pixels being 0 to 255;
    # one number for all channels, or one for each. Empty if the file says nothing.
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    # Range that elements have before normalisation; one number, or one for each channel.
    minimum: tuple[float, ...] = ()
    maximum: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()
    """Names of classes, by index."""
    label_kind: str = ""
    """Whether indexes of `labels` are places along the last axis, or elements."""
    localized_labels: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    """Labels in other languages, by locale: ``de``."""
    dimension_names: tuple[str, ...] = ()
    properties: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Whatever else there is."""


@dataclass(frozen=True, slots=True)
class ModelMetadata:
    """Metadata of a model file; empty where it says nothing.

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
    """The program that has written the file."""
    # By the model's names for them; those of which the file says something.
    inputs: Mapping[str, TensorMetadata] = dataclasses.field(default_factory=dict)
    outputs: Mapping[str, TensorMetadata] = dataclasses.field(default_factory=dict)
    files: tuple[str, ...] = ()
    """Names of files that are packed into it. They are a ZIP archive after the model, which
    `zipfile.ZipFile` opens at the model's path.
    """
    properties: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Whatever else there is."""
