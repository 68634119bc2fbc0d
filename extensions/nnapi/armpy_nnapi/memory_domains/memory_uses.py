"""Executions whose inputs or outputs are in memory that was made from descriptions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from armpy import ImportedTensor
from armpy.core.dataclass import dataclass
from armpy.core.vlog import vlog
from armpy.errors import (
    ArmpyError,
    BackendError,
    MemoryExportError,
    MemoryImportError,
    MemoryLimitError,
)
from armpy.execution import LoadedNetwork
from armpy.execution.arrays.imported_tensor import ToImport
from armpy.ops.operation import Array
from armpy_nnapi.memory_domains.described_memory import DescribedMemory
from armpy_nnapi.results import bad_data, op_failed

_log = logging.getLogger("armpy_nnapi")

Given: TypeAlias = list[Array | ToImport]
Targets: TypeAlias = list[Array | ToImport | None]
Run: TypeAlias = Callable[[LoadedNetwork, Given, Targets | None], list[Array]]

PLACEHOLDER: Array = np.empty(0, np.uint8)
"""Placeholder of an argument's array, where the argument is described memory."""


_WRITTEN = (ImportedTensor, ToImport)
"""Stand-ins for results that are where they belong already."""


@dataclass(frozen=True, eq=False, slots=True)
class _Use:
    """An argument in described memory, with the dimensions that the caller gives."""

    memory: DescribedMemory
    dimensions: tuple[int, ...]


class MemoryUses:
    """Uses of described memory by one execution.

    Parameters
    ----------
    may_fall_back : bool
        Whether another device may take over from one that fails.

    References
    ----------
    NNAPI ``ExecutionBuilder::updateMemories``; BufferTracker of the sample driver.
    """

    def __init__(self, *, may_fall_back: bool) -> None:
        self._may_fall_back = may_fall_back
        self._inputs: dict[int, _Use] = {}
        self._outputs: dict[int, _Use] = {}

    def add(
        self, index: int, memory: DescribedMemory, dimensions: tuple[int, ...], *, is_output: bool
    ) -> None:
        """Add an input or output."""
        uses = self._outputs if is_output else self._inputs
        uses[index] = _Use(memory, dimensions)

    def check(self, where: str) -> None:
        """Check that all memory can be used so.

        Raises
        ------
        NnapiError
            OP_FAILED if an input has no elements, or some of other dimensions; BAD_DATA if memory
            is an output and something else besides.
        """
        others = []
        for use in self._inputs.values():
            use.memory.check_input(use.dimensions, where)
            others.append(use.memory)
        for use in self._outputs.values():
            # The device may write an output before it has read all inputs.
            if use.memory in others:
                raise bad_data(
                    "one memory is an output and something else besides",
                    where=where,
                    actual=repr(use.memory),
                )
            others.append(use.memory)

    def run(
        self, network: LoadedNetwork, arrays: Sequence[Array | None], run: Run, where: str
    ) -> list[Array]:
        """Execute with devices' memory where it lies, or with copies of it if that cannot be."""
        try:
            return run(network, *self.in_place(network, arrays, where))
        except ArmpyError as error:
            if not self.may_copy(error, where):
                raise
        # After the except block, so that an error of this run does not show the first as its
        # cause.
        return run(network, self.copied(arrays), None)

    def in_place(
        self, network: LoadedNetwork, arrays: Sequence[Array | None], where: str
    ) -> tuple[Given, Targets]:
        """Arguments of a network with devices' memory where it lies.

        Parameters
        ----------
        arrays : sequence of (ndarray or None)
            The inputs, None for no value.

        Raises
        ------
        NnapiError
            OP_FAILED if an output does not fit its memory.
        MemoryExportError
            If it is not known how large an output will be.
        """
        arguments: Given = []
        for index, array in enumerate(arrays):
            use = self._inputs.get(index)
            if use is not None:
                arguments.append(use.memory.to_import(use.dimensions) or use.memory.read())
            elif array is not None:
                arguments.append(array)
        # The device needs to know how large its memory has to be before it can write there.
        infos = network.output_infos(tuple([argument.shape for argument in arguments]))
        targets: Targets = [None] * len(infos)
        for index, use in self._outputs.items():
            if not infos[index].is_fully_shaped:
                # Not an end: `may_copy` takes it as the reason to run with copies, whose size is
                # then known.
                raise MemoryExportError("the shape of an output depends on values", where=where)
            dimensions = use.memory.dimensions_of(infos[index].known_shape)
            use.memory.check_output(dimensions, where)
            targets[index] = use.memory.to_import(dimensions) or use.memory.array
        return arguments, targets

    def copied(self, arrays: Sequence[Array | None]) -> Given:
        """Inputs of a network with copies of what devices have."""
        read = [
            self._inputs[index].memory.read() if index in self._inputs else array
            for index, array in enumerate(arrays)
        ]
        return [array for array in read if array is not None]

    def by_name(
        self,
        network: LoadedNetwork,
        arrays: Sequence[Array | None],
        where: str,
        *,
        copies: bool,
    ) -> tuple[Given, dict[str, object]]:
        """Arguments as from `in_place` or `copied`, with the outputs by name."""
        if copies:
            return self.copied(arrays), {}
        arguments, targets = self.in_place(network, arrays, where)
        pairs = zip(network.graph.output_names, targets, strict=True)
        return arguments, {name: target for name, target in pairs if target is not None}

    def may_copy(self, error: BaseException, where: str) -> bool:
        """Return whether to execute again with copies after devices' memory could not be used.

        Raises
        ------
        NnapiError
            OP_FAILED if a device failed, and no other one knows the new size of memory.
        """
        if isinstance(error, (MemoryImportError, MemoryExportError)):
            _log.info("%s: elements are copied, as memory cannot be shared: %s", where, error)
            vlog("memory", "%s: elements are copied: %s", where, error)
            return True
        # Devices that the application chose are not replaced by others without its knowledge.
        if not self._may_fall_back or not isinstance(error, (BackendError, MemoryLimitError)):
            return False
        # Only the failed device knows the size of its output.
        if any(use.memory.is_open for use in self._outputs.values()):
            raise op_failed(
                f"a device failed, and no other can write memory without dimensions: {error}",
                where=where,
            ) from error
        _log.warning("%s: elements are copied for other devices: %s", where, error)
        return True

    def taken(
        self, results: Sequence[Array], buffers: Sequence[Array | None], where: str
    ) -> tuple[list[Array], list[Array | None]]:
        """Copy results to devices that have not written them.

        Parameters
        ----------
        results : sequence of ndarray
            In the place of those that devices have written, what stands for their memory.
        buffers : sequence of (ndarray or None)
            Where the application wants them.

        Returns
        -------
        results, buffers
            The rest to copy; memory that devices have written has a shape, and no elements.

        Raises
        ------
        NnapiError
            OP_FAILED if a result does not fit its memory.
        """
        left: list[Array | None] = [*buffers]
        for index, use in self._outputs.items():
            use.memory.check_output(use.memory.dimensions_of(results[index].shape), where)
            # All are checked before one is written: a failure then has changed no memory.
            left[index] = None
        for index, use in self._outputs.items():
            # Written in place already, either by the core into the array or by the device.
            is_there = results[index] is use.memory.array
            if not is_there and not isinstance(results[index], _WRITTEN):
                use.memory.write(results[index])
        return [
            _shape_only(result.shape) if isinstance(result, _WRITTEN) else result
            for result in results
        ], left

    def end(self, dimensions: Sequence[tuple[int, ...]] | None) -> None:
        """Note what became of the memory.

        Parameters
        ----------
        dimensions : sequence of tuple of int, optional
            The outputs'; None if the execution failed.
        """
        for index, use in self._outputs.items():
            use.memory.note_written(None if dimensions is None else dimensions[index])


def _shape_only(shape: tuple[int, ...]) -> Array:
    """An array of a shape that takes no memory."""
    # One byte broadcast to the shape; the elements are never read.
    nothing: Array = np.zeros((), np.uint8)
    return np.broadcast_to(nothing, shape)
