"""Tensors that the host sees through copies: writes count only once unmapped."""

from __future__ import annotations

import numpy as np

from armpy.backend import (
    IBackendInternal,
    ITensorHandle,
    ITensorHandleFactory,
    MemorySource,
    NetworkResources,
    TensorHandleFactoryRegistry,
)
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo


class CopyingHandle(ITensorHandle):
    """A tensor whose mapped elements are a copy, which `unmap` writes back.

    `elements`: its contents; garbage if left out.
    """

    __slots__ = ("_copy", "_info", "elements", "num_open")

    def __init__(self, info: TensorInfo, elements: Array | None = None) -> None:
        self._info = info
        if elements is None:
            bytes_ = np.full(info.size_bytes, 1, np.uint8)
            elements = bytes_.view(info.data_type.dtype).reshape(info.known_shape)
        self.elements = elements
        self.num_open = 0
        self._copy = elements

    @property
    def info(self) -> TensorInfo:
        return self._info

    def map(self, *, read: bool = True, write: bool = True) -> Array:
        if not self.num_open:
            self._copy = self.elements.copy()
        self.num_open += 1
        return self._copy

    def unmap(self) -> None:
        if not self.num_open:
            raise RuntimeError(f"{self._info} is unmapped, but was not mapped")
        self.num_open -= 1
        self.elements = self._copy


class CopyingHandleFactory(ITensorHandleFactory):
    """Makes copying tensors, and keeps them; other backends may use them, too."""

    factory_id = "test/copying"
    import_sources = export_sources = MemorySource.MALLOC

    def __init__(self) -> None:
        self.made: list[CopyingHandle] = []

    def create_tensor_handle(self, info: TensorInfo, memory: Array) -> ITensorHandle:
        handle = CopyingHandle(info)
        self.made.append(handle)
        return handle


def copying(backend: IBackendInternal) -> tuple[IBackendInternal, CopyingHandleFactory]:
    """A backend whose tensors are copying ones, and what makes these."""
    factory = CopyingHandleFactory()

    def register(registry: TensorHandleFactoryRegistry, network: NetworkResources) -> None:
        registry.register_factory(factory)

    backend.register_tensor_handle_factories = register  # type: ignore[method-assign]
    backend.get_handle_factory_preferences = lambda: [factory.factory_id]  # type: ignore[method-assign]
    return backend, factory
