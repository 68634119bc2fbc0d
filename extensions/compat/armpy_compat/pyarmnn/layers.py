"""Layers of a network that is being built, and the slots that connect them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from armpy_compat.pyarmnn.swig import SwigReference
from armpy_compat.pyarmnn.tensors import ConstTensor
from armpy_compat.pyarmnn.tensors.tensor_info import TensorInfo

_guids = itertools.count()


class IInputSlot(SwigReference):
    """An input of a layer, which one output can be connected to."""

    def __init__(self, layer: IConnectableLayer, index: int) -> None:
        self.layer, self.index = layer, index
        self.source: IOutputSlot | None = None

    def GetConnection(self) -> IOutputSlot | None:
        """Return the output that it is connected to."""
        return self.source


class IOutputSlot(SwigReference):
    """An output of a layer, which any number of inputs can be connected to."""

    def __init__(self, layer: IConnectableLayer, index: int) -> None:
        self.layer, self.index = layer, index
        self._targets: list[IInputSlot] = []
        self._info = TensorInfo()
        self._is_set = False

    def GetNumConnections(self) -> int:
        """Return the number of inputs that are connected to it."""
        return len(self._targets)

    def GetConnection(self, index: int) -> IInputSlot:
        """Return a connected input.

        Raises
        ------
        RuntimeError
            If there are not as many.
        """
        if not 0 <= index < len(self._targets):
            raise RuntimeError(f"GetConnection: Invalid index {index} provided")
        return self._targets[index]

    def __getitem__(self, index: int) -> IInputSlot:
        if not 0 <= index < len(self._targets):
            raise ValueError(f"GetConnection: Invalid index {index} provided")
        return self._targets[index]

    def __len__(self) -> int:
        return len(self._targets)

    def SetTensorInfo(self, tensorInfo: TensorInfo) -> None:
        """Describe the output; `Optimize` checks it, and infers unset fields."""
        self._info, self._is_set = TensorInfo(tensorInfo), True

    def GetTensorInfo(self) -> TensorInfo:
        """Return the description."""
        return self._info

    def IsTensorInfoSet(self) -> bool:
        """Return whether there is a description."""
        return self._is_set

    def Connect(self, destination: IInputSlot) -> int:
        """Connect an input to it; returns the place of the connection.

        Raises
        ------
        TypeError
            If it is not an input.
        RuntimeError
            If the input is connected already.
        """
        if not isinstance(destination, IInputSlot):
            raise _wrong("Connect")
        if destination.source is not None:
            raise RuntimeError(
                "Tried to connect an output slot to an input slot, but the latter already has a"
                " connection"
            )
        destination.source = self
        self._targets.append(destination)
        return len(self._targets) - 1

    def Disconnect(self, slot: IInputSlot) -> None:
        """Take an input's connection away.

        Raises
        ------
        TypeError
            If it is not an input.
        ValueError
            If it is not connected to this output.
        """
        if not isinstance(slot, IInputSlot):
            raise _wrong("Disconnect")
        if slot.source is not self:
            raise ValueError("The input slot is not connected to this output slot")
        self._targets.remove(slot)
        slot.source = None

    def CalculateIndexOnOwner(self) -> int:
        """Return its place among the layer's outputs."""
        return self.index

    def GetOwningLayerGuid(self) -> int:
        """Return the layer's number."""
        return self.layer.GetGuid()


class IConnectableLayer(SwigReference):
    """A layer of an `INetwork`.

    Parameters
    ----------
    kind : str
        Arm NN's name of its type: "Convolution2d".
    name : str
    num_inputs, num_outputs : int
    descriptor : object
        Descriptor as it was when the layer was added; None for layers that have none.
    tensors : mapping of str to ConstTensor
        Constants that are part of the layer.
    binding_id : int
        Binding id of an input or output of the network.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        num_inputs: int,
        num_outputs: int,
        descriptor: object = None,
        tensors: Mapping[str, ConstTensor] | None = None,
        binding_id: int = -1,
    ) -> None:
        self.kind, self.name = kind, name
        self.descriptor = descriptor
        self.tensors = {} if tensors is None else tensors
        self.binding_id = binding_id
        self._guid = next(_guids)
        self.inputs: Sequence[IInputSlot] = [IInputSlot(self, i) for i in range(num_inputs)]
        self.outputs: Sequence[IOutputSlot] = [IOutputSlot(self, i) for i in range(num_outputs)]

    @property
    def where(self) -> str:
        """Kind and name of the layer, for messages."""
        return f"{self.kind} layer '{self.name}'" if self.name else f"{self.kind} layer"

    def GetName(self) -> str:
        """Return the name; empty if it has none."""
        return self.name

    def GetNumInputSlots(self) -> int:
        """Return the number of inputs."""
        return len(self.inputs)

    def GetNumOutputSlots(self) -> int:
        """Return the number of outputs."""
        return len(self.outputs)

    def GetInputSlot(self, index: int) -> IInputSlot:
        """Return an input.

        Raises
        ------
        RuntimeError
            If there are not as many.
        """
        return self.inputs[_checked("GetInputSlot", index, len(self.inputs))]

    def GetOutputSlot(self, index: int) -> IOutputSlot:
        """Return an output.

        Raises
        ------
        RuntimeError
            If there are not as many.
        """
        return self.outputs[_checked("GetOutputSlot", index, len(self.outputs))]

    def GetGuid(self) -> int:
        """Return its number, which no other layer of the process has."""
        return self._guid


def _checked(method: str, index: int, count: int) -> int:
    if not 0 <= index < count:
        raise RuntimeError(f"{method}: Invalid index {index} provided; the layer has {count}")
    return index


def _wrong(method: str) -> TypeError:
    """The error for an argument that is not an input of a layer."""
    return TypeError(f"in method 'IOutputSlot_{method}', argument 2 of type 'armnn::IInputSlot &'")
