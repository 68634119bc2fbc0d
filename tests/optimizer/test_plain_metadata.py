"""Metadata as plain records."""

from __future__ import annotations

import json

import pytest

from armpy.compiler.files.plain import PlainReader, plain
from armpy.errors import ParserError
from armpy.plugins.hooks.metadata import ModelMetadata, TensorMetadata


def test_metadata_of_tensors_are_read_as_they_were_written() -> None:
    tensor = TensorMetadata(description="scores", labels=("cat", "dog"))
    metadata = ModelMetadata(name="pets", outputs={"probability": tensor})
    text = json.dumps(plain(metadata))
    found = PlainReader().read(ModelMetadata, json.loads(text), "metadata")
    assert found == metadata
    assert found.outputs["probability"].labels == ("cat", "dog")


def test_a_list_in_the_place_of_metadata_by_name_is_refused() -> None:
    record = {**json.loads(json.dumps(plain(ModelMetadata()))), "outputs": ["probability"]}
    with pytest.raises(ParserError, match="outputs"):
        PlainReader().read(ModelMetadata, record, "metadata")
