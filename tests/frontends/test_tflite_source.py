"""Sources of a .tflite model's bytes, and messages about other files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from armpy.errors import InvalidArgumentError, ParserError
from armpy_testing.models.tflite_writer import TfliteModel
from armpy_testing.systems import NEEDS_REPLACEABLE_FILES
from tests.support.tflite_files import network_of, parsed, signatures_of


def constant_model() -> bytes:
    """A model that hands out a constant."""
    model = TfliteModel()
    graph = model.subgraph()
    graph.outputs(graph.tensor("c", (2, 2), "FLOAT32", data=[[1, 2], [3, 4]]))
    return model.to_bytes()


def test_constants_of_a_file_are_read_only_views_of_its_mapping(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(constant_model())
    data = parsed(path).outputs[0].data
    assert data is not None
    assert not data.flags.owndata
    assert not data.flags.writeable
    np.testing.assert_array_equal(data, [[1, 2], [3, 4]])


@NEEDS_REPLACEABLE_FILES
def test_constants_outlive_the_file_and_the_network(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(constant_model())
    data = parsed(str(path)).outputs[0].data
    path.unlink()
    np.testing.assert_array_equal(data, [[1, 2], [3, 4]])


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ParserError, match=r"nowhere\.tflite: no such file"):
        network_of(tmp_path / "nowhere.tflite")


def test_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParserError, match=r"not a model file.*got a directory"):
        network_of(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_named_pipe_is_refused_and_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ParserError, match=r"not a model file.*got no regular file"):
        network_of(tmp_path / "pipe")


def test_path_with_a_nul_character_is_refused() -> None:
    with pytest.raises(ParserError, match=r"cannot be read"):
        network_of("a\0b")


def test_path_that_is_too_long_is_refused() -> None:
    # Windows looks for the file all the same.
    with pytest.raises(ParserError, match=r"cannot be read|no such file"):
        network_of("a" * 10_000)


def test_empty_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.tflite"
    path.touch()
    with pytest.raises(ParserError, match=r"Got an empty file|got an empty file"):
        network_of(path)


@pytest.mark.parametrize("source", [None, 5, [1, 2], 2.5])
def test_anything_but_a_path_or_bytes_is_an_argument_error(source: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"cannot be read"):
        network_of(source)  # type: ignore[arg-type]  # the point of the test


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"PK\x03\x04aaaaaaaa", "a zip archive"),
        (b"\x89HDF\r\n\x1a\naaaa", "an HDF5 file"),
        (b"\x1f\x8b\x08aaaaaaa", "a gzip archive"),
        (b"GGUF\x03\0\0\0\0", "a GGUF file"),
        (b"\x80\x02}q\0\0\0\0\0", "a Python pickle"),
        (b"\x08\x08\x12\x07pytorch", "an ONNX file"),
        (b"\x1c\0\0\0ORTM\0\0\0\0", "ONNX Runtime's own format"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
        (b"<!DOCTYPE html><html>", "an HTML or XML page"),
        (b"not a model at all\n", "text"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a PNG picture, which is an input"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "a JPEG picture"),
        (b"BM\x36\0\x0c\0\0\0\0\0", "a BMP picture"),
        (b"\x93NUMPY\x01\0v\0", "an array of NumPy"),
        (b"\0\1\2", "a file of 3 bytes"),
        (b"\x1c\0\0\0TFL2\0\0\0\0", "b'TFL2'"),
    ],
)
def test_wrong_file_is_described(head: bytes, kind: str) -> None:
    with pytest.raises(ParserError, match=rf"not a .tflite file.*{kind}"):
        network_of(head)


def test_errors_in_a_file_name_it(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(b"PK\x03\x04aaaaaaaa")
    with pytest.raises(ParserError, match=r"model\.tflite: not a"):
        signatures_of(path)


@pytest.mark.parametrize("version", [0, 2, 4])
def test_other_schema_versions_are_refused(version: int) -> None:
    model = TfliteModel(version=version)
    model.subgraph()
    with pytest.raises(ParserError, match=rf"schema version.*Expected 3; got {version}"):
        network_of(model)


def test_importing_armpy_does_not_import_the_schema() -> None:
    code = "import sys, armpy; sys.exit('tflite' in sys.modules or 'flatbuffers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
