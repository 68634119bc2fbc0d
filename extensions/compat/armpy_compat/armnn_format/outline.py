"""Outline of an .armnn file: its layers and the tensors between them."""

from __future__ import annotations

import math
from collections import defaultdict

from armpy import TensorInfo
from armpy.errors import ParserError
from armpy.ops.operation import located
from armpy.plugins.hooks import FileGraph, FileOperator, FileOutline, FileTensor, ModelFile
from armpy_compat.armnn_format.reading import FileLayer, read_contents
from armpy_compat.armnn_format.tensors import output_infos

_EDGE = ("Input", "Output", "Constant")


def read_outline(file: ModelFile) -> FileOutline:
    """The layers and tensors of an .armnn file, each tensor called as the layer that writes it.

    Raises
    ------
    ParserError
        If the file is damaged.
    """
    try:
        return _outline(file)
    except ParserError as error:
        located(lambda: file.label, error)
        raise


def _outline(file: ModelFile) -> FileOutline:
    contents = read_contents(file.data)
    tensors: list[FileTensor] = []
    places: dict[tuple[int, int], int] = {}
    written: dict[int, list[int]] = defaultdict(list)
    for layer in contents.layers.values():
        slots = layer.base.tables("outputSlots", "output slot") if layer.kind != "Output" else ()
        infos = output_infos(layer.base) if slots else []
        for number, info in enumerate(infos):
            places[layer.index, number] = len(tensors)
            written[layer.index].append(len(tensors))
            name = layer.name if len(infos) == 1 else f"{layer.name}:{number}"
            tensors.append(_tensor(layer, name, info))
    operators = tuple(
        FileOperator(
            layer.kind,
            layer.name,
            tuple(_place(places, layer, source) for source in layer.sources),
            tuple(written[layer.index]),
        )
        for layer in contents.layers.values()
        if layer.kind not in _EDGE
    )
    graph = FileGraph(
        file.stem,
        tuple(tensors),
        operators,
        tuple(_place(places, layer, (layer.index, 0)) for layer in contents.inputs),
        tuple(
            _place(places, layer, source) for layer in contents.outputs for source in layer.sources
        ),
    )
    return FileOutline((graph,))


def _place(places: dict[tuple[int, int], int], layer: FileLayer, source: tuple[int, int]) -> int:
    if source not in places:
        index, slot = source
        raise layer.base.error(f"layer {index}, which it reads, has no output {slot}")
    return places[source]


def _tensor(layer: FileLayer, name: str, info: TensorInfo) -> FileTensor:
    is_constant = layer.kind == "Constant"
    slot = layer.base.tables("outputSlots", "output slot")[0].table("tensorInfo")
    kind = "" if slot is None else slot.enumerator("dataType", "DataType")
    quantization = info.quantization
    count = math.prod(info.known_shape) if info.is_fully_shaped else None
    return FileTensor(
        name,
        info.shape,
        kind or info.data_type.name,
        is_constant,
        is_constant,
        None if count is None else count * info.data_type.size_bytes,
        quantization.scales if quantization else (),
        quantization.zero_points if quantization else (),
        quantization.axis if quantization else None,
    )
