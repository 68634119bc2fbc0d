"""Metadata of .onnx files."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import armpy
from armpy import ModelMetadata, TensorMetadata
from armpy.errors import ParserError


def model_bytes(**properties: str) -> bytes:
    """A model of an image and of something else."""
    text = """<ir_version: 9, opset_import: ["" : 18], producer_name: "torch",
    producer_version: "2", model_version: 3, doc_string: "twice">
    double (float[batch, 3] x, float[1, 3] z) => (float[batch, 3] y) { y = Add (x, z) }"""
    model = onnx.parser.parse_model(text)
    model.graph.input[0].type.denotation = "IMAGE"
    model.graph.output[0].doc_string = "the double"
    onnx.helper.set_model_props(model, properties)
    return bytes(model.SerializeToString())


def test_metadata_of_an_onnx_file_are_read() -> None:
    content = model_bytes(
        model_author="me",
        license="MIT",
        task="none",
        **{"Image.NominalPixelRange": "Normalized_1_1"},
    )
    with armpy.load(content, backends=["CpuRef"]) as model:
        metadata = model.metadata
    assert metadata == ModelMetadata(
        "double",
        "twice",
        "3",
        "me",
        "MIT",
        "torch 2",
        inputs={
            "x": TensorMetadata(
                content="image", mean=(127.5,), std=(127.5,), dimension_names=("batch", "")
            )
        },
        outputs={"y": TensorMetadata(description="the double", dimension_names=("batch", ""))},
        properties={"task": "none", "Image.NominalPixelRange": "Normalized_1_1"},
    )


@pytest.mark.parametrize(
    ("contents", "kind"),
    [
        (b"", "an empty file"),
        (b"<!DOCTYPE html><html></html>", "an HTML or XML page"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a PNG picture"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
    ],
)
def test_a_file_of_another_kind_is_described(contents: bytes, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(contents)
    with pytest.raises(ParserError, match=rf"not an \.onnx file.*{kind}"):
        armpy.load(path)
