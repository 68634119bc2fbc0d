"""Metadata of a .tflite file: descriptions, normalisation, and labels packed after the model.

References
----------
TFLite model metadata: the buffer ``TFLITE_METADATA``, and associated files in a ZIP archive that is
appended to the file.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from armpy.core.flatbuffers.reader import Ledger, Schema, TableReader
from armpy.errors import ParserError
from armpy.frontends.tflite.metadata_schema import ENUMERATIONS, TABLES
from armpy.frontends.tflite.packed_files import MOST_FILE_BYTES, PackedFiles
from armpy.frontends.tflite.reader import read_model
from armpy.frontends.tflite.signatures import choose_signature, signature_edge, tensor_edge
from armpy.frontends.tflite.tensors import Tensors, check_external_data, stored_bytes
from armpy.ops.operation import located
from armpy.plugins.hooks.metadata import ModelMetadata, TensorMetadata
from armpy.plugins.hooks.model_file import ModelFile
from armpy.types import DEFAULT_MEMORY_LIMIT_BYTES

METADATA_NAME = "TFLITE_METADATA"
_RUNTIME = "min_runtime_version"
_IDENTIFIER = b"M001"
_HEAD_BYTES = 8

_CONTENTS = {
    "FeatureProperties": "features",
    "ImageProperties": "image",
    "BoundingBoxProperties": "bounding boxes",
    "AudioProperties": "audio",
}

_LABELS = {"TENSOR_AXIS_LABELS": "axis", "TENSOR_VALUE_LABELS": "value"}


class _MetadataTable(TableReader):
    """A table of metadata."""

    schema: ClassVar[Schema] = Schema(TABLES, ENUMERATIONS)

    __slots__ = ()


def read_metadata(
    file: ModelFile,
    signature: str | None,  # the signature whose names inputs and outputs have
) -> ModelMetadata:
    """Read the metadata of a .tflite file.

    Raises
    ------
    ParserError
        If the metadata, or a file of labels, is damaged, or bytes after the model are cut short.
    """
    try:
        return _read(file, signature)
    except ParserError as error:
        located(lambda: file.label, error)
        raise


def _read(file: ModelFile, signature: str | None) -> ModelMetadata:
    model = read_model(file.data)
    check_external_data(model.tables("Buffers", "buffer"))
    stored = stored_metadata(model)
    packed = PackedFiles(file.data)
    table = _root(stored[METADATA_NAME]) if METADATA_NAME in stored else None
    runtime = stored.get(_RUNTIME, b"").rstrip(b"\0").decode("utf-8", "replace")
    properties = {"least version of TensorFlow Lite": runtime} if runtime else {}
    producer = model.text("Description")
    if table is None:
        return ModelMetadata(producer=producer, files=packed.names, properties=properties)
    index, inputs, outputs = _edges(model, signature)
    labels = _LabelFiles(packed)
    subgraphs = table.tables("SubgraphMetadata", "metadata of subgraph")
    subgraph = subgraphs[index] if index < len(subgraphs) else None
    parser_version = table.text("MinParserVersion")
    if parser_version:
        properties["least version of a metadata parser"] = parser_version
    return ModelMetadata(
        table.text("Name"),
        table.text("Description"),
        table.text("Version"),
        table.text("Author"),
        table.text("License"),
        producer,
        inputs=_tensors(subgraph, "InputTensorMetadata", "input", inputs, labels),
        outputs=_tensors(subgraph, "OutputTensorMetadata", "output", outputs, labels),
        files=packed.names,
        properties=properties,
    )


def stored_metadata(model: TableReader) -> dict[str, bytes]:
    """The metadata that armpy knows, by name."""
    buffers = model.tables("Buffers", "buffer")
    entries: dict[str, bytes] = {}
    for table in model.tables("Metadata", "metadata"):
        name = table.text("Name")
        if name in (METADATA_NAME, _RUNTIME) and name not in entries:
            stored = stored_bytes(buffers, table)
            model.charge(stored.nbytes)
            entries[name] = stored.tobytes()
    return entries


def _root(content: bytes) -> _MetadataTable:
    """The root table of metadata."""
    if len(content) < _HEAD_BYTES or content[4:_HEAD_BYTES] != _IDENTIFIER:
        raise ParserError(
            "the metadata is damaged",
            where=METADATA_NAME,
            expected=f"'{_IDENTIFIER.decode()}' in bytes 4 to 7",
            actual=repr(content[4:_HEAD_BYTES]),
        )
    (position,) = struct.unpack_from("<I", content)
    return _MetadataTable(
        memoryview(content), position, "ModelMetadata", Ledger(len(content)), METADATA_NAME
    )


def _edges(
    model: TableReader, signature: str | None
) -> tuple[int, list[list[str]], list[list[str]]]:
    """The subgraph that is called, and the names of each of its inputs and outputs."""
    chosen = None if signature is None else choose_signature(model, signature)
    index = 0 if chosen is None else chosen.subgraph
    subgraph = model.tables("Subgraphs", "subgraph")[index]
    tensors = Tensors(
        subgraph.tables("Tensors", "tensor"),
        model.tables("Buffers", "buffer"),
        DEFAULT_MEMORY_LIMIT_BYTES,
    )
    edges = []
    for field in ("Inputs", "Outputs"):
        plain = edge = tensor_edge(subgraph, field, tensors)
        if chosen is not None:
            names = chosen.inputs if field == "Inputs" else chosen.outputs
            edge = signature_edge(subgraph, field, names, f"signature '{chosen.name}'")
        edges.append([[name for name, tensor in edge if tensor == own] for _, own in plain])
    return index, edges[0], edges[1]


class _LabelFiles:
    """Lists of labels, of which all together are no longer than one file may be."""

    def __init__(self, packed: PackedFiles) -> None:
        self._packed = packed
        self._left_bytes = MOST_FILE_BYTES

    def read(self, name: str) -> tuple[str, ...]:
        """The lines of a file."""
        content = self._packed.read(name)
        self._left_bytes -= len(content)
        if self._left_bytes < 0:
            raise ParserError(
                "the labels are too long",
                where=f"packed file '{name}'",
                expected=f"at most {MOST_FILE_BYTES} bytes together",
            )
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ParserError(
                "the labels are not UTF-8 text", where=f"packed file '{name}'"
            ) from error
        return tuple(line.strip() for line in text.rstrip().split("\n"))


def _tensors(
    subgraph: TableReader | None, field: str, kind: str, names: list[list[str]], labels: _LabelFiles
) -> dict[str, TensorMetadata]:
    """Return the metadata of inputs or outputs, which are in the subgraph's order."""
    by_name: dict[str, TensorMetadata] = {}
    tables = () if subgraph is None else subgraph.tables(field, f"metadata of {kind}")
    for called, table in zip(names, tables, strict=False):
        metadata = _tensor(table, labels)
        by_name.update(dict.fromkeys(called, metadata))
    return by_name


def _tensor(table: TableReader, labels: _LabelFiles) -> TensorMetadata:
    title = table.text("Name")
    if title:
        table.where = f"{table.where} '{title}'"
    properties: dict[str, str] = {}
    content, color_space = _content(table.table("Content"), properties)
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    for unit in table.tables("ProcessUnits", "process unit"):
        kind = unit.union_kind("Options")
        options = unit.union("Options", kind) if kind else unit
        if kind == "NormalizationOptions":
            mean, std = _normalization(options, table)
        elif kind in _UNITS:
            properties.update(_UNITS[kind](options))
    stats = table.table("Stats")
    by_locale, label_kind = _labels(table, labels)
    own = by_locale.pop("", None) or next(iter(by_locale.values()), ())
    return TensorMetadata(
        title,
        table.text("Description"),
        content,
        color_space,
        mean,
        std,
        () if stats is None else _reals(stats, "Min", table),
        () if stats is None else _reals(stats, "Max", table),
        own,
        label_kind,
        by_locale,
        tuple(table.texts("DimensionNames")),
        properties,
    )


def _content(content: TableReader | None, properties: dict[str, str]) -> tuple[str, str]:
    """Return the kind of elements, and the colour space of an image; other properties are added."""
    kind = "" if content is None else content.union_kind("ContentProperties")
    if content is None or not kind:
        return "", ""
    if kind == "FeatureProperties":
        return _CONTENTS[kind], ""
    held = content.union("ContentProperties", kind)
    color_space = ""
    if kind == "ImageProperties":
        color_space = held.enumerator("ColorSpace", "ColorSpaceType")
    elif kind == "AudioProperties":
        properties["sample rate"] = f"{held.integer('SampleRate')} Hz"
        properties["audio channels"] = str(held.integer("Channels"))
    else:
        order = ", ".join(map(str, held.numbers("Index")))
        properties["boxes"] = held.enumerator("Type", "BoundingBoxType")
        properties["box coordinates"] = held.enumerator("CoordinateType", "CoordinateType")
        properties["order of box coordinates"] = order
    return _CONTENTS[kind], "" if color_space == "UNKNOWN" else color_space


def _normalization(
    options: TableReader, tensor: TableReader
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation, each one number or one for each channel."""
    mean, std = _reals(options, "Mean", tensor), _reals(options, "Std", tensor)
    counts = {len(mean), len(std)} - {1}
    if len(counts) > 1 or 0 in counts or 0 in std:
        raise tensor.error(
            "the normalisation's std contains 0"
            if 0 in std
            else "the normalisation's mean or std has the wrong length",
            expected="mean and std of one number, or one for each channel, std not 0",
            actual=f"mean {mean}, std {std}",
        )
    return mean, std


def _reals(table: TableReader, field: str, tensor: TableReader) -> tuple[float, ...]:
    """Finite numbers."""
    numbers = tuple(float(number) for number in table.numbers(field))
    if not np.all(np.isfinite(numbers)):
        raise tensor.error(f"{field} holds numbers that are not finite", actual=str(numbers))
    return numbers


def _labels(table: TableReader, labels: _LabelFiles) -> tuple[dict[str, tuple[str, ...]], str]:
    """Labels by locale, and what their indexes are; the first kind that there is."""
    by_locale: dict[str, tuple[str, ...]] = {}
    kind = ""
    for file in table.tables("AssociatedFiles", "associated file"):
        file_kind = _LABELS.get(file.enumerator("Type", "AssociatedFileType"), "")
        if file_kind and file_kind == (kind or file_kind):
            kind = file_kind
            by_locale.setdefault(file.text("Locale"), labels.read(file.text("Name")))
    return by_locale, kind


def _calibration(options: TableReader) -> Iterator[tuple[str, str]]:
    kind = options.enumerator("ScoreTransformation", "ScoreTransformationType")
    yield "score transformation", kind
    yield "default score", f"{options.real('DefaultScore'):g}"


def _threshold(options: TableReader) -> Iterator[tuple[str, str]]:
    """Below which score an answer does not count."""
    yield "score threshold", f"{options.real('GlobalScoreThreshold'):g}"


def _bert(options: TableReader) -> Iterator[tuple[str, str]]:
    """BERT's tokenizer."""
    yield "tokenizer", "BERT"
    yield "vocabulary", _names(options, "VocabFile")


def _sentence_piece(options: TableReader) -> Iterator[tuple[str, str]]:
    """SentencePiece's tokenizer."""
    yield "tokenizer", "SentencePiece"
    yield "tokenizer model", _names(options, "SentencePieceModel")
    yield "vocabulary", _names(options, "VocabFile")


def _regex(options: TableReader) -> Iterator[tuple[str, str]]:
    """A tokenizer that splits at matches of a regular expression."""
    yield "tokenizer", "regular expression"
    yield "delimiter", options.text("DelimRegexPattern")
    yield "vocabulary", _names(options, "VocabFile")


def _names(options: TableReader, field: str) -> str:
    """Names of associated files."""
    return ", ".join(file.text("Name") for file in options.tables(field, "associated file"))


_UNITS: Mapping[str, Callable[[TableReader], Iterator[tuple[str, str]]]] = MappingProxyType(
    {
        "ScoreCalibrationOptions": _calibration,
        "ScoreThresholdingOptions": _threshold,
        "BertTokenizerOptions": _bert,
        "SentencePieceTokenizerOptions": _sentence_piece,
        "RegexTokenizerOptions": _regex,
    }
)
"""Properties that other process units describe, by the name of their options."""
