"""Layers that a program has connected, as the converters of .armnn files read layers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from armpy import DataLayout, DataType, Network, TensorInfo
from armpy.errors import ParserError
from armpy.graph import Value
from armpy.ops.operation import Array
from armpy_compat.armnn_format.layer import ArmnnLayer, LayerTable
from armpy_compat.armnn_format.schema import ARMNN_SCHEMA
from armpy_compat.pyarmnn import constants
from armpy_compat.pyarmnn.conversion import to_armpy
from armpy_compat.pyarmnn.descriptors.views import ConcatDescriptor, SplitterDescriptor
from armpy_compat.pyarmnn.layers import IConnectableLayer
from armpy_compat.pyarmnn.tensors import ConstTensor

_Choice = TypeVar("_Choice")

_MEMBERS: Mapping[str, str] = {
    "activationFunction": "m_Function",
    "argMinMaxFunction": "m_Function",
    "transposeWeightsMatrix": "m_TransposeWeightMatrix",
}
"""Members of descriptors that are not called as the field of the file is."""

_EIGHT_BITS = (DataType.QASYMM_U8, DataType.QASYMM_S8)


class MemberTable:
    """Members of a descriptor, and constants of a layer, by the names of .armnn files.

    Parameters
    ----------
    where : str
        The layer, for messages.
    members : object
        The descriptor, or None.
    tensors : mapping of str to ConstTensor
    """

    def __init__(
        self, where: str, members: object, tensors: Mapping[str, ConstTensor | None]
    ) -> None:
        self.where = where
        self._members = members
        self.tensors = tensors

    def table(self, field: str) -> LayerTable | None:
        """The same members and constants, which are one table here."""
        return self

    def tables(self, field: str, kind: str) -> Iterable[LayerTable]:
        """The views of a concatenation or a split."""
        members = self._members
        if field == "viewSizes" and isinstance(members, SplitterDescriptor):
            views = members.whole_sizes()
        else:
            assert isinstance(members, ConcatDescriptor | SplitterDescriptor)
            views = members.whole_origins()
        return [_View(self.where, view) for view in views]

    def integer(self, field: str) -> int:
        """A whole number."""
        if isinstance(self._members, ConcatDescriptor):
            return self._members.GetConcatAxis()
        return int(self._member(field))

    def real(self, field: str) -> float:
        """A real number."""
        return float(self._member(field))

    def flag(self, field: str) -> bool:
        """A truth value."""
        return bool(self._member(field))

    def numbers(self, field: str) -> list[Any]:  # Any: whole or real
        """A list of numbers; pairs one after the other."""
        numbers: list[Any] = []  # as above
        for item in self._member(field):
            numbers.extend(item if isinstance(item, tuple) else (item,))
        return numbers

    def choice(self, field: str, choices: Mapping[int, _Choice], kind: str) -> _Choice:
        """The choice for an enumerator, whose number in files may be another one."""
        name = _NAMES[kind].get(number := self.integer(field), str(number))
        for stored, enumerator in ARMNN_SCHEMA.enumerators(kind).items():
            if enumerator == name and stored in choices:
                return choices[stored]
        raise self.error(f"{field} is not supported", actual=name)

    def leaves_out(self, field: str) -> bool:
        """Return whether the layer has no such constant."""
        return self.tensors.get(_member_name(field)) is None

    def charge(self, num_bytes: int) -> None:
        """Count nothing: a program may make what it has memory for."""

    def error(self, failed: str, *, expected: str = "", actual: str = "") -> ParserError:
        """An error about the layer."""
        return ParserError(failed, where=self.where, expected=expected, actual=actual)

    def _member(self, field: str) -> Any:  # Any: members have many types
        name = _member_name(field)
        if field == "axis" and hasattr(self._members, "m_vAxis"):
            name = "m_vAxis"
        return getattr(self._members, name)


class _View(MemberTable):
    """The coordinates of one view."""

    def __init__(self, where: str, coordinates: list[int]) -> None:
        super().__init__(where, None, {})
        self._coordinates = coordinates

    def numbers(self, field: str) -> list[Any]:  # Any: as of the base
        """The coordinates."""
        return self._coordinates


def connected_layer(
    network: Network,
    layer: IConnectableLayer,
    inputs: Sequence[Value],
    outputs: Sequence[TensorInfo | None],
    transposed: dict[tuple[Value, tuple[int, ...]], Value],
) -> ArmnnLayer:
    """A layer for the converters of .armnn files.

    Parameters
    ----------
    outputs : sequence of (TensorInfo or None)
        Infos that the program has set.
    transposed : dict
        Weights in armpy's order, for all layers of the network.
    """
    table = MemberTable(layer.where, layer.descriptor, layer.tensors)
    rank = None if outputs[0] is None else outputs[0].rank
    return ArmnnLayer(
        network,
        layer.kind,
        layer.name,
        table,
        _tensor_of,
        inputs,
        outputs,
        transposed,
        has_old_weights=_has_old_weights(layer, inputs),
        rounds_once=bool(inputs) and inputs[0].info.data_type in _EIGHT_BITS,
        keeps_dimensions=rank is not None and rank > 2,
        output_shape=(
            tuple(layer.descriptor.m_OutputShape)  # type: ignore[attr-defined]
            if getattr(layer.descriptor, "m_OutputShapeEnabled", False)
            else None
        ),
    )


def _has_old_weights(layer: IConnectableLayer, inputs: Sequence[Value]) -> bool:
    """Decide whether depthwise weights are (M, I, H, W), as an argument was up to 20.11."""
    weights = layer.tensors.get("weights")
    if layer.kind != "DepthwiseConvolution2d" or weights is None:
        return False
    layout = DataLayout(layer.descriptor.m_DataLayout)  # type: ignore[attr-defined]
    return weights.GetShape()[1] == inputs[0].info.known_shape[layout.channel_axis]


def _tensor_of(table: LayerTable, field: str) -> tuple[Array, TensorInfo]:
    assert isinstance(table, MemberTable)
    tensor = table.tensors.get(field) or table.tensors.get(_member_name(field))
    if tensor is None:
        raise table.error(f"the {field} are missing")
    info = to_armpy(tensor.GetInfo(), where=f"{field} of {table.where}")
    return tensor.get_memory_area().reshape(info.known_shape), info


def _member_name(field: str) -> str:
    """``m_PadList`` for ``padList``."""
    if field.startswith("m_"):
        return field
    return _MEMBERS.get(field, f"m_{field[0].upper()}{field[1:]}")


def _names() -> dict[str, dict[int, str]]:
    """Names of enumerators by PyArmNN's numbers, by enumeration."""
    names: dict[str, dict[int, str]] = {}
    for constant, number in vars(constants).items():
        kind, underscore, enumerator = constant.partition("_")
        if underscore and isinstance(number, int):
            names.setdefault(kind, {})[number] = enumerator
    return names


_NAMES = _names()
