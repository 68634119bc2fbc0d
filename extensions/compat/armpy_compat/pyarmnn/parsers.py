"""Parsers: model files into networks, with the ids of inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from armpy.graph import Graph
from armpy.plugins.hooks import FileOutline
from armpy_compat.armnn_format.bindings import read_bindings
from armpy_compat.pyarmnn.conversion import runtime_errors
from armpy_compat.pyarmnn.fields import flag
from armpy_compat.pyarmnn.network import INetwork
from armpy_compat.pyarmnn.parsed_model import ParsedModel, existing_file, positions
from armpy_compat.pyarmnn.swig import SwigObject
from armpy_compat.pyarmnn.tensors.tensor_info import TensorInfo

Binding = tuple[int, TensorInfo]
"""Id and description of an input or output."""

_NO_LAYER = "The {side} layer '{name}' does not exist"
_NO_BINDING = "No {side} binding found for layer:{name}"


class TfLiteParserOptions(SwigObject):
    """Options of `ITfLiteParser`.

    ``m_StandInLayerForUnsupported`` makes StandIn layers of operators that armpy does not have.
    ``m_InferAndValidate`` changes nothing: armpy infers shapes in any case.
    """

    m_StandInLayerForUnsupported = flag()
    m_InferAndValidate = flag()


class ITfLiteParser(SwigObject):
    """Parser of .tflite files.

    Parameters
    ----------
    options : TfLiteParserOptions, optional
    """

    def __init__(self, options: TfLiteParserOptions | None = None) -> None:
        self._stands_in = options is not None and options.m_StandInLayerForUnsupported
        self._model: ParsedModel | None = None

    def CreateNetworkFromBinaryFile(self, graphFile: str) -> INetwork:
        """Parse a file.

        Raises
        ------
        RuntimeError
            If there is no such file, it is damaged, or has operators that armpy does not have.
        """
        path = existing_file(graphFile, "ITfLiteParser_CreateNetworkFromBinaryFile")
        if not Path(path).exists():
            raise RuntimeError(f"Cannot find the file ({path}) errorCode: generic:2")
        options = {"stand_in_for_unsupported": True} if self._stands_in else None
        self._model = ParsedModel.read(path, "tflite", _tensor_indexes, options)
        return INetwork.of_model(self._model)

    def GetSubgraphCount(self) -> int:
        """Return 1: the main subgraph, which runs the others."""
        return 0 if self._model is None else 1

    def GetSubgraphInputTensorNames(self, subgraphId: int) -> tuple[str, ...]:
        """Return the names of the inputs.

        Raises
        ------
        RuntimeError
            If there is no such subgraph.
        """
        return tuple(self._checked("GetSubgraphInputTensorNames", subgraphId).input_ids)

    def GetSubgraphOutputTensorNames(self, subgraphId: int) -> tuple[str, ...]:
        """Return the names of the outputs.

        Raises
        ------
        RuntimeError
            If there is no such subgraph.
        """
        return tuple(self._checked("GetSubgraphOutputTensorNames", subgraphId).output_ids)

    def GetNetworkInputBindingInfo(self, subgraphId: int, name: str) -> Binding:
        """Return the id and description of an input.

        Raises
        ------
        RuntimeError
            If there is no such subgraph or input.
        """
        model = self._checked("GetNetworkInputBindingInfo", subgraphId)
        if name not in model.input_ids:
            _no_binding("input", subgraphId, name, model.input_ids)
        return model.input_ids[name], model.input_info(name)

    def GetNetworkOutputBindingInfo(self, subgraphId: int, name: str) -> Binding:
        """Return the id and description of an output.

        Raises
        ------
        RuntimeError
            If there is no such subgraph or output.
        """
        model = self._checked("GetNetworkOutputBindingInfo", subgraphId)
        if name not in model.output_ids:
            _no_binding("output", subgraphId, name, model.output_ids)
        return model.output_ids[name], model.output_info(name)

    def _checked(self, method: str, subgraph: int) -> ParsedModel:
        if self._model is None or subgraph != 0:
            raise RuntimeError(
                f"{method} was called with an invalid subgraph index. subgraph:{subgraph}"
            )
        return self._model


class IOnnxParser(SwigObject):
    """Parser of .onnx files, which needs the package armpy-onnx."""

    def __init__(self) -> None:
        self._model: ParsedModel | None = None

    def CreateNetworkFromBinaryFile(self, graphFile: str) -> INetwork:
        """Parse a file.

        Raises
        ------
        RuntimeError
            If there is no such file, it is damaged, or has operators that armpy does not have.
        """
        path = existing_file(graphFile, "IOnnxParser_CreateNetworkFromBinaryFile")
        if not Path(path).exists():
            raise RuntimeError("Invalid (null) filename")
        self._model = ParsedModel.read(path, "onnx", positions)
        return INetwork.of_model(self._model)

    def GetNetworkInputBindingInfo(self, name: str) -> Binding:
        """Return the id and description of an input.

        Raises
        ------
        RuntimeError
            If there is none of that name.
        """
        return _binding(self._model, name, "input", _NO_LAYER)

    def GetNetworkOutputBindingInfo(self, name: str) -> Binding:
        """Return the id and description of an output.

        Raises
        ------
        RuntimeError
            If there is none of that name.
        """
        return _binding(self._model, name, "output", _NO_LAYER)


class IDeserializer(SwigObject):
    """Parser of .armnn files, which Arm NN's serialiser writes."""

    def __init__(self) -> None:
        self._model: ParsedModel | None = None

    def CreateNetworkFromBinary(self, graphFile: str) -> INetwork:
        """Parse a file.

        Raises
        ------
        RuntimeError
            If there is no such file, it is damaged, or has layers that armpy does not have.
        """
        path = existing_file(graphFile, "IDeserializer_CreateNetworkFromBinary")
        if not Path(path).exists():
            raise RuntimeError(f"Cannot read the file {path}")
        with runtime_errors():
            bindings = read_bindings(path)
        ids = [
            [binding.binding_id for binding in side] for side in (bindings.inputs, bindings.outputs)
        ]
        self._model = ParsedModel.read(path, "armnn", lambda *_: (ids[0], ids[1]))
        return INetwork.of_model(self._model)

    def GetNetworkInputBindingInfo(self, layerId: int, name: str) -> Binding:
        """Return the id and description of an input; `layerId` is not used.

        Raises
        ------
        RuntimeError
            If there is none of that name.
        """
        return _binding(self._model, name, "input", _NO_BINDING)

    def GetNetworkOutputBindingInfo(self, layerId: int, name: str) -> Binding:
        """Return the id and description of an output; `layerId` is not used.

        Raises
        ------
        RuntimeError
            If there is none of that name.
        """
        return _binding(self._model, name, "output", _NO_BINDING)


def ICaffeParser() -> NoReturn:
    """Refuse: Caffe's models have no parser, in Arm NN since 21.05."""
    raise RuntimeError(
        "Your ArmNN library instance does not support Caffe models parser functionality. "
    )


def ITfParser() -> NoReturn:
    """Refuse: TensorFlow's graphs have no parser, in Arm NN since 21.05."""
    raise RuntimeError(
        "Your ArmNN library instance does not support TF models parser functionality. "
    )


def _tensor_indexes(
    outline: FileOutline | None, graph: Graph
) -> tuple[Sequence[int], Sequence[int]]:
    """Ids of Arm NN's parser: the tensor's index in the file, then 8 bits for the subgraph."""
    if outline is None:
        return positions(outline, graph)
    main = outline.graphs[0]
    return [index << 8 for index in main.inputs], [index << 8 for index in main.outputs]


def _no_binding(side: str, subgraph: int, name: str, names: object) -> NoReturn:
    quoted = "".join(f"'{known}' " for known in names)  # type: ignore[attr-defined]  # a mapping
    raise RuntimeError(
        f"No {side} binding found for subgraph:{subgraph} and name:{name}."
        f" Possible {side}s are: [{quoted}]"
    )


def _binding(model: ParsedModel | None, name: str, side: str, missing: str) -> Binding:
    """An input or output by its name; RuntimeError with the text `missing` if there is none."""
    is_input = side == "input"
    ids: Mapping[str, int] = {}
    if model is not None:
        ids = model.input_ids if is_input else model.output_ids
    if model is None or name not in ids:
        raise RuntimeError(missing.format(side=side, name=name))
    return ids[name], model.input_info(name) if is_input else model.output_info(name)
