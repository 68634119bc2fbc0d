"""Metadata of .tflite files: the fields read, and the handling of damage."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy import ModelMetadata, TensorMetadata
from armpy.errors import ParserError
from armpy.model import ModelOrigin
from armpy.plugins import BackendRegistry
from armpy.plugins.hooks.model_file import open_model_file
from armpy_testing.models.tflite_metadata import (
    AUDIO,
    AXIS_LABELS,
    BERT,
    BOXES,
    CALIBRATION,
    FEATURES,
    IMAGE,
    NORMALIZATION,
    REGEX,
    RGB,
    SENTENCE_PIECE,
    THRESHOLD,
    VALUE_LABELS,
    VOCABULARY,
    Fields,
    metadata_bytes,
    packed,
)
from armpy_testing.models.tflite_writer import TfliteModel

IMAGE_INPUT: Fields = {
    0: "picture",
    1: "what to look at",
    2: ["batch", "height", "width", "channel"],
    3: {0: IMAGE, 1: {0: RGB}},
    4: [{0: NORMALIZATION, 1: {0: [1.0, 2.0, 3.0], 1: [4.0, 5.0, 6.0]}}],
    5: {0: [255.0], 1: [0.0]},
}
SCORES: Fields = {
    0: "scores",
    3: {0: FEATURES, 1: {}},
    6: [
        {0: "notes.txt", 2: np.int8(1)},
        {0: "labels.txt", 2: AXIS_LABELS},
        {0: "labels_de.txt", 2: AXIS_LABELS, 3: "de"},
    ],
}
WHOLE: Fields = {
    0: "classifier",
    1: "separates cats from dogs",
    2: "v7",
    3: [{2: [IMAGE_INPUT], 3: [SCORES]}],
    4: "its author",
    5: "Apache-2.0",
    7: "1.3.0",
}
LABELS = {"labels.txt": "cat\n dog \n", "labels_de.txt": "Katze\r\nHund"}


def model_bytes(
    metadata: Fields | bytes = WHOLE, files: Mapping[str, str | bytes] = LABELS
) -> bytes:
    """A model from an image to scores of two classes."""
    model = TfliteModel(description="written here")
    graph = model.subgraph()
    x, y = graph.tensor("x", (1, 1, 1, 3)), graph.tensor("y", (1, 1, 1, 3))
    graph.operator("RELU", [x], [y])
    graph.inputs(x)
    graph.outputs(y)
    model.signature("serve", {"image": x}, {"answer": y, "same": y})
    model.metadata("min_runtime_version", b"1.5.0" + bytes(11))
    model.metadata(
        "TFLITE_METADATA", metadata if isinstance(metadata, bytes) else metadata_bytes(metadata)
    )
    return model.to_bytes() + (packed(files) if files else b"")


MOST_DIRECTORY_BYTES = 1 << 20
MOST_FILE_BYTES = 16 << 20


def read(source: bytes | Path) -> ModelMetadata:
    return ModelOrigin.find(open_model_file(source), source, BackendRegistry()).metadata(None)


def read_tensor(fields: Fields, files: Mapping[str, str | bytes] = LABELS) -> TensorMetadata:
    """The findings of an output with metadata in the file."""
    return read(model_bytes({3: [{3: [fields]}]}, files)).outputs["y"]


def test_a_models_metadata_use_its_names_of_tensors() -> None:
    with armpy.load(model_bytes(), backends=["CpuRef"]) as model:
        metadata = model.metadata
        assert model.metadata is metadata
        by_signature = model.signature("serve").metadata
    assert (metadata.name, metadata.description) == ("classifier", "separates cats from dogs")
    assert (metadata.version, metadata.author, metadata.license) == (
        "v7",
        "its author",
        "Apache-2.0",
    )
    assert (metadata.producer, metadata.files) == ("written here", tuple(LABELS))
    assert metadata.properties == {
        "least version of TensorFlow Lite": "1.5.0",
        "least version of a metadata parser": "1.3.0",
    }
    assert metadata.inputs == {
        "x": TensorMetadata(
            title="picture",
            description="what to look at",
            content="image",
            color_space="RGB",
            mean=(1.0, 2.0, 3.0),
            std=(4.0, 5.0, 6.0),
            minimum=(0.0,),
            maximum=(255.0,),
            dimension_names=("batch", "height", "width", "channel"),
        )
    }
    scores = TensorMetadata(
        title="scores",
        content="features",
        labels=("cat", "dog"),
        label_kind="axis",
        localized_labels={"de": ("Katze", "Hund")},
    )
    assert metadata.outputs == {"y": scores}
    assert list(by_signature.inputs) == ["image"]
    assert by_signature.outputs == {"answer": scores, "same": scores}


def test_a_file_without_metadata_has_empty_ones() -> None:
    model = TfliteModel(description="")
    graph = model.subgraph()
    x, y = graph.tensor("x", (1,)), graph.tensor("y", (1,))
    graph.operator("RELU", [x], [y])
    graph.inputs(x)
    graph.outputs(y)
    assert read(model.to_bytes()) == ModelMetadata()


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        (
            CALIBRATION,
            {0: np.int8(2), 1: np.float32(0.25)},
            {"score transformation": "INVERSE_LOGISTIC", "default score": "0.25"},
        ),
        (THRESHOLD, {0: np.float32(0.5)}, {"score threshold": "0.5"}),
        (
            BERT,
            {0: [{0: "vocab.txt", 2: VOCABULARY}]},
            {"tokenizer": "BERT", "vocabulary": "vocab.txt"},
        ),
        (
            SENTENCE_PIECE,
            {0: [{0: "pieces"}], 1: [{0: "vocab.txt"}]},
            {"tokenizer": "SentencePiece", "tokenizer model": "pieces", "vocabulary": "vocab.txt"},
        ),
        (
            REGEX,
            {0: r"[^\w]+", 1: [{0: "a.txt"}, {0: "b.txt"}]},
            {
                "tokenizer": "regular expression",
                "delimiter": r"[^\w]+",
                "vocabulary": "a.txt, b.txt",
            },
        ),
        (np.uint8(99), {}, {}),
    ],
)
def test_other_process_units_are_properties(
    kind: np.uint8, options: Fields, expected: dict[str, str]
) -> None:
    assert read_tensor({4: [{0: kind, 1: options}]}).properties == expected


@pytest.mark.parametrize(
    ("kind", "held", "content", "properties"),
    [
        (
            AUDIO,
            {0: np.uint32(16000), 1: np.uint32(1)},
            "audio",
            {"sample rate": "16000 Hz", "audio channels": "1"},
        ),
        (
            BOXES,
            {1: np.int8(1), 2: np.int8(1)},
            "bounding boxes",
            {"boxes": "BOUNDARIES", "box coordinates": "PIXEL", "order of box coordinates": ""},
        ),
    ],
)
def test_contents_have_properties(
    kind: np.uint8, held: Fields, content: str, properties: dict[str, str]
) -> None:
    metadata = read_tensor({3: {0: kind, 1: held}})
    assert (metadata.content, metadata.properties) == (content, properties)


def test_labels_of_elements_are_distinguished_from_those_of_an_axis() -> None:
    metadata = read_tensor({6: [{0: "labels.txt", 2: VALUE_LABELS}]})
    assert (metadata.labels, metadata.label_kind) == (("cat", "dog"), "value")


def test_compressed_labels_are_read_and_a_mark_of_byte_order_is_none_of_them() -> None:
    content = model_bytes(files={}) + packed(
        {**LABELS, "labels.txt": b"\xef\xbb\xbfcat\ndog"}, zipfile.ZIP_DEFLATED
    )
    assert read(content).outputs["y"].labels == ("cat", "dog")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (model_bytes(b"too"), "TFLITE_METADATA: the metadata is damaged.*M001"),
        (model_bytes(metadata_bytes(WHOLE, b"M002")), "M002"),
        (model_bytes(metadata_bytes(WHOLE)[:64]), "the file is damaged"),
        (model_bytes(files={}), "'labels.txt'.*has no file of this name.*no archive"),
        (model_bytes()[:-1], "packed files: the archive of packed files is cut short"),
        (model_bytes()[:-100], "packed files: the archive of packed files is cut short"),
        (model_bytes(files={"other.txt": ""}), "'labels.txt'.*Expected other.txt"),
        (
            model_bytes(files={**LABELS, "labels.txt": b"\xff\xfe\xff"}),
            "'labels.txt'.*not UTF-8 text",
        ),
        (
            model_bytes(
                {3: [{2: [{0: "image", 4: [{0: NORMALIZATION, 1: {0: [1.0], 1: [0.0]}}]}]}]}
            ),
            r"input 0 'image': the normalisation's std contains 0",
        ),
        (
            model_bytes({3: [{2: [{4: [{0: NORMALIZATION, 1: {0: [1.0]}}]}]}]}),
            r"input 0: the normalisation's mean or std has the wrong length.*std \(\)",
        ),
        (model_bytes({3: [{2: [{5: {1: [np.inf]}}]}]}), "input 0: Min holds numbers"),
    ],
)
def test_damage_is_reported_and_the_model_runs_all_the_same(content: bytes, message: str) -> None:
    with armpy.load(content, backends=["CpuRef"]) as model:
        with pytest.raises(ParserError, match=message):
            _ = model.metadata
        assert np.array_equal(model(np.full((1, 1, 1, 3), 2, np.float32)), np.full((1, 1, 1, 3), 2))


def test_labels_that_unpack_to_too_much_are_refused() -> None:
    content = model_bytes(files={}) + packed(
        {**LABELS, "labels.txt": bytes(MOST_FILE_BYTES + 1)}, zipfile.ZIP_DEFLATED
    )
    assert len(content) < MOST_FILE_BYTES / 100
    with pytest.raises(ParserError, match=r"'labels.txt'.*too large"):
        read(content)


def test_many_lists_of_labels_are_limited_together() -> None:
    files: list[Fields] = [{0: "labels.txt", 2: AXIS_LABELS, 3: str(number)} for number in range(3)]
    content = model_bytes({3: [{3: [{6: files}]}]}, {}) + packed(
        {"labels.txt": bytes(MOST_FILE_BYTES // 2)}, zipfile.ZIP_DEFLATED
    )
    with pytest.raises(ParserError, match="labels are too long"):
        read(content)


def test_an_archive_with_a_large_directory_is_refused() -> None:
    archive = bytearray(packed(LABELS))
    end = archive.rindex(b"PK\x05\x06")
    entries = MOST_DIRECTORY_BYTES // 46 + 1
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\x01\x02", *[0] * 18)
    tail = struct.pack(
        "<4s4H2LH", b"PK\x05\x06", 0, 0, entries % 65536, entries % 65536, entries * 46, 0, 0
    )
    with pytest.raises(ParserError, match="directory is too large"):
        read(model_bytes(files={}) + bytes(archive[:end]) + entry * entries + tail)


def test_mutated_metadata_give_metadata_or_a_parser_error() -> None:
    content = model_bytes()
    start = content.index(b"M001") - 4
    generator = np.random.default_rng(0)
    errors = 0
    for _ in range(300):
        changed = bytearray(content)
        for _ in range(generator.integers(1, 4)):
            changed[generator.integers(start, len(content))] = generator.integers(256)
        try:
            read(bytes(changed))
        except ParserError:  # any other error fails the test
            errors += 1
    assert 20 < errors < 280
