"""The layers of an .armnn file and their connections, checked."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import ClassVar

from armpy.core.dataclass import dataclass
from armpy.errors import ParserError
from armpy.plugins.hooks.flatbuffers import Ledger, Schema, TableReader
from armpy_compat.armnn_format.schema import ARMNN_SCHEMA

_IDENTIFIER_END = 8
_SLOT_SHIFT = 32
_BINDABLE = ("Input", "Output")
_LARGEST_NAME = 1024


class ArmnnTable(TableReader):
    """One table of an .armnn file."""

    schema: ClassVar[Schema] = ARMNN_SCHEMA

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Versions:
    """Schemes of a file, each 0 in files of old versions of Arm NN and 1 in newer ones."""

    binding_ids: int
    """Version of the binding ids: with 0, the graph lists its inputs and outputs by layer index;
    with 1, by binding id.
    """
    weights_layout: int
    """Version of the weights' layout: with 0, weights of depthwise convolutions are (M, I, H, W);
    with 1, (1, H, W, I * M).
    """
    constants_as_inputs: int
    """Version of constants: with 0, weights and biases are fields of their layer; with 1, inputs.
    """


@dataclass(frozen=True, slots=True)
class FileLayer:
    """One layer as the file holds it."""

    kind: str
    """Kind of the layer, without the ending: ``Convolution2d``."""
    index: int
    """Number of the layer in the file, by which connections refer to it."""
    name: str
    """Unique among inputs, outputs or other layers; made of the kind and of the binding id or index
    where the file has none.
    """
    table: TableReader
    base: TableReader
    sources: tuple[tuple[int, int], ...]
    """Index of the layer and number of its output slot for each input slot."""
    binding_id: int
    """Binding id of inputs and outputs; 0 for other layers."""


@dataclass(frozen=True, slots=True)
class FileContents:
    """Layers of a file by index, and its inputs and outputs in order."""

    versions: Versions
    layers: Mapping[int, FileLayer]
    inputs: tuple[FileLayer, ...]
    outputs: tuple[FileLayer, ...]


def read_contents(data: memoryview) -> FileContents:
    """Read the layers of a file.

    Raises
    ------
    ParserError
        If the file is damaged, or two layers have one index.
    """
    root = _root(data)
    layers: dict[int, FileLayer] = {}
    names: set[tuple[str, str]] = set()
    for number, item in enumerate(root.tables("layers", "layer")):
        layer = _read_layer(item, number, names)
        if layer.index in layers:
            raise layer.base.error(f"another layer has the index {layer.index}, too")
        layers[layer.index] = layer
    versions = _versions(root)
    return FileContents(
        versions,
        layers,
        _bound(root, "inputIds", "Input", layers, versions),
        _bound(root, "outputIds", "Output", layers, versions),
    )


def looks_like_armnn(data: memoryview) -> bool:
    """Recognise a file without the identifier, as Arm NN writes them, by its structure."""
    if len(data) < _IDENTIFIER_END:
        return False
    try:
        root = ArmnnTable(data, *_root_place(data))
        layers = root.tables("layers", "layer")
        kinds = [layers[number].union_kind("layer") for number in range(min(len(layers), 3))]
        return len(layers) > 1 and "" not in kinds and len(root.vector("outputIds")) > 0
    except ParserError:
        return False


def in_topological_order(layers: Mapping[int, FileLayer]) -> list[FileLayer]:
    """Sort layers so that each follows those that it reads.

    Raises
    ------
    ParserError
        If a layer reads one that does not exist, or layers read each other.
    """
    readers: dict[int, list[int]] = {index: [] for index in layers}
    waiting: dict[int, int] = {}
    for index, layer in layers.items():
        needed = {source for source, _ in layer.sources}
        waiting[index] = len(needed)
        for source in needed:
            if source not in layers:
                raise layer.base.error(f"it reads layer {source}, which does not exist")
            readers[source].append(index)
    ready = [index for index, count in waiting.items() if not count]
    ordered: list[FileLayer] = []
    for index in ready:  # it grows meanwhile
        ordered.append(layers[index])
        for reader in readers[index]:
            waiting[reader] -= 1
            if not waiting[reader]:
                ready.append(reader)
    if len(ordered) < len(layers):
        # Outputs wait, too, without being part of the cycle.
        left = [layers[index] for index, count in waiting.items() if count]
        left.sort(key=lambda layer: layer.kind == "Output")
        raise left[0].base.error("the layers form a cycle")
    return ordered


def _root_place(data: memoryview) -> tuple[int, str, Ledger, str]:
    (position,) = struct.unpack_from("<I", data)
    return position, "SerializedGraph", Ledger(len(data)), ""


def _root(data: memoryview) -> TableReader:
    """The root table; Arm NN's own writer leaves the identifier out."""
    if len(data) < _IDENTIFIER_END:
        raise ParserError(
            "not an .armnn file",
            expected=f"at least {_IDENTIFIER_END} bytes",
            actual=str(len(data)),
        )
    return ArmnnTable(data, *_root_place(data))


def _versions(root: TableReader) -> Versions:
    table = root.table("featureVersions")
    if table is None:
        return Versions(0, 0, 0)
    return Versions(
        table.integer("bindingIdsScheme"),
        table.integer("weightsLayoutScheme"),
        table.integer("constantTensorsAsInputs"),
    )


def _read_layer(item: TableReader, number: int, names: set[tuple[str, str]]) -> FileLayer:
    """Read what all kinds of layers have."""
    union = item.union_kind("layer")
    if not union:
        raise item.error("the layer is of a kind that the schema of Arm NN 24.02 does not have")
    kind = union.removesuffix("Layer")
    table = item.union("layer", union)
    base, binding_id = table.table("base"), 0
    if base is not None and kind in _BINDABLE:
        binding_id = base.integer("layerBindingId")
        base = base.table("base")
    if base is None:
        raise item.error("the file is damaged: the layer has no base")
    index, own_name = base.integer("index"), base.text("layerName")
    number_in_name = binding_id if kind in _BINDABLE else index
    name = own_name[:_LARGEST_NAME] or f"{kind.lower()}_{number_in_name}"
    group = kind if kind in _BINDABLE else ""
    if (group, name) in names:
        name = f"{name}:{index}"
    names.add((group, name))
    for part in (table, base):
        part.where = f"layer {number} {kind} '{name}'"
    sources = tuple(_source(slot, base) for slot in base.tables("inputSlots", "input slot"))
    return FileLayer(kind, index, name, table, base, () if kind == "Input" else sources, binding_id)


def _source(slot: TableReader, base: TableReader) -> tuple[int, int]:
    """The output slot that an input slot is connected to."""
    connection = slot.integer("connection")
    if connection < 0:
        raise base.error(f"{slot.where} is not connected")
    return connection & ((1 << _SLOT_SHIFT) - 1), connection >> _SLOT_SHIFT


def _bound(
    root: TableReader,
    field: str,
    kind: str,
    layers: Mapping[int, FileLayer],
    versions: Versions,
) -> tuple[FileLayer, ...]:
    """The input or output layers that the graph lists."""
    known = [layer for layer in layers.values() if layer.kind == kind]
    if versions.binding_ids:
        by_id = {layer.binding_id: layer for layer in known}
        noun = "binding id"
    else:
        by_id = {layer.index: layer for layer in known}
        noun = "index"
    numbers: Sequence[int] = root.numbers(field)
    for number in numbers:
        if number not in by_id:
            raise root.error(f"{field} names an {kind} layer of {noun} {number}, which is missing")
    if len(set(numbers)) < len(numbers):
        raise root.error(f"{field} names a layer twice")
    return tuple(by_id[number] for number in numbers)
