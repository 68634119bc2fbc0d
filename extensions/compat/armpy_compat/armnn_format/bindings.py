"""Binding ids: the numbers by which programs of Arm NN name inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping

from armpy import TensorInfo
from armpy.core.dataclass import dataclass
from armpy.errors import ParserError
from armpy.ops.operation import located
from armpy.plugins.hooks import ModelFile, ModelSource, open_model_file
from armpy_compat.armnn_format.reading import FileContents, FileLayer, read_contents
from armpy_compat.armnn_format.tensors import output_infos


@dataclass(frozen=True, slots=True)
class ArmnnBinding:
    """An input or output of an .armnn file."""

    name: str
    """Name that the network of the file has for it."""
    binding_id: int
    info: TensorInfo
    """Type and shape that the file describes."""


@dataclass(frozen=True, slots=True)
class ArmnnBindings:
    """Inputs and outputs of an .armnn file, in its order."""

    inputs: tuple[ArmnnBinding, ...]
    outputs: tuple[ArmnnBinding, ...]


def read_bindings(source: ModelSource) -> ArmnnBindings:
    """The inputs and outputs of an .armnn file with their binding ids.

    Parameters
    ----------
    source : path or bytes
        The file.

    Raises
    ------
    ParserError
        If the file is damaged, or cannot be read.
    """
    file = open_model_file(source)
    try:
        contents = read_contents(file.data)
        return ArmnnBindings(
            tuple(
                ArmnnBinding(layer.name, layer.binding_id, _info(layer, 0))
                for layer in contents.inputs
            ),
            tuple(_output(layer, contents) for layer in contents.outputs),
        )
    except ParserError as error:
        located(lambda: file.label, error)
        raise


def describe(file: ModelFile) -> Mapping[str, str]:
    """Facts of an .armnn file for `armpy inspect`."""
    contents = read_contents(file.data)
    schemes = contents.versions
    return {
        "layers": str(len(contents.layers)),
        "schemes": (
            f"binding ids {schemes.binding_ids}, weights layout {schemes.weights_layout}, "
            f"constants as inputs {schemes.constants_as_inputs}"
        ),
    }


def _output(layer: FileLayer, contents: FileContents) -> ArmnnBinding:
    """An output, described by the layer that it reads."""
    if len(layer.sources) != 1 or layer.sources[0][0] not in contents.layers:
        raise layer.base.error("an output reads one layer")
    source, slot = layer.sources[0]
    return ArmnnBinding(layer.name, layer.binding_id, _info(contents.layers[source], slot))


def _info(layer: FileLayer, slot: int) -> TensorInfo:
    infos = output_infos(layer.base)
    if slot >= len(infos):
        raise layer.base.error(f"it has no output slot {slot}")
    return infos[slot]
