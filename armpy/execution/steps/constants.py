"""Handles of a network's constants, made by the backend that reads them."""

from __future__ import annotations

from weakref import WeakValueDictionary

from armpy.backend import ITensorHandle, ITensorHandleFactory
from armpy.graph import Value
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo


class Constant:
    """A constant's handle, with the elements that it was made of."""

    __slots__ = ("__weakref__", "data", "handle")

    def __init__(self, data: Array, handle: ITensorHandle) -> None:
        self.data = data
        self.handle = handle


class ConstantHandles:
    """A network's constants on one backend, each made once and kept as long as a plan has it."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[tuple[int, TensorInfo], Constant] = WeakValueDictionary()

    def get(self, value: Value, factory: ITensorHandleFactory) -> Constant | None:
        """What a factory makes of a value, or has made before; None if it is no constant."""
        data = value.data
        if data is None:
            return None
        # Graphs made of one another have other objects on one memory, which the constant keeps.
        key = (data.ctypes.data, value.info)
        known = self._known.get(key)
        if known is None:
            handle = factory.create_constant_handle(value.info, data)
            known = self._known[key] = Constant(data, handle)
        return known
