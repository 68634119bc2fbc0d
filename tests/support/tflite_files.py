"""What the front-end for .tflite files reads, before any backend is asked."""

from __future__ import annotations

from typing import Any

from armpy.frontends.tflite import TfliteSignature, parse_tflite, signatures
from armpy.frontends.tflite.operators import CONVERTERS
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.plugins.hooks.model_file import ModelSource
from armpy_testing.models.tflite_writer import TfliteModel


def network_of(
    model: TfliteModel | ModelSource,
    **options: Any,  # Any: a signature's name or a limit in bytes
) -> Network:
    """The network that a file is parsed to; `options` are those of `parse_tflite`."""
    return parse_tflite(_source(model), **options)


def parsed(
    model: TfliteModel | ModelSource,
    **options: Any,  # Any: as above
) -> Graph:
    """The graph of `network_of`."""
    return network_of(model, **options).build()


def signatures_of(model: TfliteModel | ModelSource) -> dict[str, TfliteSignature]:
    """The signatures of a file by name."""
    return signatures(_source(model))


def known_operators() -> set[str]:
    """Names of the builtin operators that become layers."""
    return set(CONVERTERS)


def _source(model: TfliteModel | ModelSource) -> ModelSource:
    """The content of a model that a test has written; a source as it is."""
    return model.to_bytes() if isinstance(model, TfliteModel) else model
