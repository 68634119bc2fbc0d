"""Slots of networks whose inputs or outputs are imported in every call."""

from __future__ import annotations

from typing import TypeGuard

import numpy as np

from armpy.backend import ExternalMemory, MemorySource
from armpy.errors import ArmpyError, InvalidArgumentError, MemoryExportError, MemoryImportError
from armpy.execution.arrays.dlpack import as_view
from armpy.execution.arrays.imported_tensor import ImportedTensor, ToImport
from armpy.execution.arrays.slots import InputSlot, OutputSlot
from armpy.ops.operation import Array
from armpy.tensor import TensorInfo, shapes_agree


class ImportingInputSlot(InputSlot):
    """Requirements on an input that is imported in every call."""

    __slots__ = ("_given_shape", "_sources")

    def __init__(
        self,
        # All as for `InputSlot`.
        name: str,
        info: TensorInfo,
        shape: tuple[int, ...] | None,
        limit_bytes: int,
        sources: MemorySource,  # kinds of memory that the application gives
    ) -> None:
        super().__init__(name, info, shape, limit_bytes)
        self._given_shape = info.known_shape if info.is_fully_shaped else shape
        self._sources = sources

    def fits(self, given: object) -> TypeGuard[Array]:
        """Nothing does: the readers' backends are asked every time."""
        return False

    def converted(self, given: object, *, quantize: bool) -> Array:
        """Convert an argument to memory that is to be imported, or to an imported tensor.

        Raises MemoryImportError if it is of another kind, or would have to be copied.
        """
        if isinstance(given, ImportedTensor):
            return given  # type: ignore[return-value]  # stands for an array
        where = f"input '{self.name}'"
        memory = _to_import(where, self._info, self._given_shape, given, self._sources)
        if isinstance(memory, str):
            raise MemoryImportError(memory, where=where, expected=_kinds(self._sources, self._info))
        return memory  # type: ignore[return-value]  # stands for an array


class ImportingOutputSlot(OutputSlot):
    """Requirements on an output that is imported in every call."""

    __slots__ = ("_sources",)

    def __init__(
        self,
        # `name` and `info`: as for `OutputSlot`.
        name: str,
        info: TensorInfo,
        sources: MemorySource,  # kinds of memory that the application gives
    ) -> None:
        super().__init__(name, info)
        self._sources = sources

    def fits(self, given: object) -> TypeGuard[Array]:
        """Nothing does: the writer's backend is asked every time."""
        return False

    def converted(self, given: object) -> Array:
        """Return the stand-in array for memory to import or for an imported tensor.

        Raises MemoryExportError if it is of another kind, or would have to be copied to.
        """
        if isinstance(given, ImportedTensor):
            return given  # type: ignore[return-value]  # stands for an array
        where, info = f"output '{self.name}'", self.info
        shape = info.known_shape if info.is_fully_shaped else None
        memory = _to_import(where, info, shape, given, self._sources)
        if isinstance(memory, str):
            raise MemoryExportError(memory, where=where, expected=_kinds(self._sources, info))
        return memory  # type: ignore[return-value]  # stands for an array


def _to_import(
    where: str,
    info: TensorInfo,
    shape: tuple[int, ...] | None,
    argument: object,
    sources: MemorySource,
) -> ToImport | str:
    """Return the memory to import, or the reason why it cannot be imported."""
    if isinstance(argument, ExternalMemory):
        if not argument.source & sources:
            return f"the network does not import memory of the kind {argument.source}"
        if shape is None:
            raise InvalidArgumentError(
                "the tensor has no shape yet", where=where, fix="Prepare for one with Model.prepare"
            )
        return ToImport(argument, shape)
    try:
        array = argument if isinstance(argument, np.ndarray) else as_view(info, argument)
    except ArmpyError as error:
        error.where = where
        raise
    if array is None:
        return f"the memory of a {type(argument).__name__} cannot be imported"
    if not sources & MemorySource.MALLOC:
        return "the network does not import memory of the process"
    fits = array.dtype == info.data_type.dtype and shapes_agree(info.shape, array.shape)
    if not fits or not array.flags.c_contiguous:
        return f"{array.dtype} {array.shape} would have to be converted"
    return ToImport(ExternalMemory.of_array(array), array.shape)


def _kinds(sources: MemorySource, info: TensorInfo) -> str:
    """Return the kinds of objects that could be imported."""
    kinds = " or ".join(str(source.name) for source in sources)
    return f"{info} in C order, in memory of the kind {kinds}"
