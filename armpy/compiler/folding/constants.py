"""Constant evaluation: runs one operation at optimisation time, to fold constants."""

from __future__ import annotations

import weakref
from collections.abc import Sequence

import numpy as np

from armpy.backend import (
    DynamicTensorHandle,
    HostTensorHandle,
    IBackendInternal,
    NetworkResources,
    PreparationRequest,
    WorkloadInfo,
)
from armpy.core.text_memory import held_bytes, limited_text
from armpy.errors import ArmpyError, BackendError, MemoryLimitError
from armpy.graph import Graph, Value
from armpy.ops.operation import Array, Operation
from armpy.plugins.proxy.guarded_call import describe, let_user_interrupt
from armpy.tensor import TensorInfo

SMALL_BYTES = 64 * 1024
"""What follows from shapes alone is folded up to this size."""

FREE_FOLDING_BYTES = 1 << 20
LARGEST_GROWTH = 4
"""All that is folded together may take `FREE_FOLDING_BYTES` and this multiple of the graph's own
constants: a small file must not become a large network."""

ALWAYS_FOLDED_BYTES = 128
"""So many of a layer are folded whatever others took: shapes follow from sizes and axes."""

EXPANSION_GROWTH = 2
"""While one composite is expanded, its constants may take this multiple of what all may take."""


class Evaluator:
    """Evaluates operations on constants with one backend's workloads.

    Parameters
    ----------
    backend : IBackendInternal
        The reference backend, or another one that computes exactly.
    """

    def __init__(self, backend: IBackendInternal) -> None:
        self._factory = backend.create_workload_factory(NetworkResources())
        self._support = backend.get_layer_support(PreparationRequest())
        # Large results of one array, which networks for other shapes read as well: weak references
        # to both, so that none is kept for them.
        self._known: dict[object, tuple[weakref.ref[Array], weakref.ref[Array]]] = {}

    def fold(
        self,
        operation: Operation,
        inputs: Sequence[Value | None],
        outputs: Sequence[TensorInfo],
        allowed_bytes: int,
    ) -> list[Array] | None:
        """The outputs' elements, if all inputs are constant and the outputs not too large.

        Outputs whose shapes follow from the elements are computed to learn how large they are.
        """
        # Random numbers differ in each execution, and of a vendor's operation the core knows no
        # meaning.
        if operation.is_random or operation.extension:
            return None
        allowed_bytes = max(allowed_bytes, ALWAYS_FOLDED_BYTES)
        arrays = [None if value is None else value.data for value in inputs]
        if any(a is None and v is not None for a, v in zip(arrays, inputs, strict=True)):
            return None
        shaped = [info for info in outputs if info.is_fully_shaped]
        if len(shaped) < len(outputs) and not operation.has_data_dependent_outputs:
            return None
        if sum(info.size_bytes for info in shaped) > allowed_bytes:
            return None
        if not all(info.is_addressable for info in shaped):
            return None
        infos = [None if value is None else value.info for value in inputs]
        # An output may be small and its windows or samples huge: memory counts on the way, too.
        if operation.scratch_bytes(infos, outputs) > allowed_bytes:
            return None
        try:
            if not self._support.is_layer_supported(operation, infos, outputs):
                return None
            return self._known_or_executed(operation, infos, arrays, outputs, allowed_bytes)
        # The size of open outputs is known only while they are made; large ones stay unfolded.
        except MemoryLimitError:
            return None
        except ArmpyError:
            raise
        # Workloads are a backend's code, which may raise anything.
        except BaseException as error:
            let_user_interrupt(error)
            raise BackendError(
                f"folding constants raised {describe(error)}", where=operation.name
            ) from error

    def _known_or_executed(
        self,
        operation: Operation,
        infos: Sequence[TensorInfo | None],
        arrays: Sequence[Array | None],
        outputs: Sequence[TensorInfo],
        allowed_bytes: int,
    ) -> list[Array]:
        """The results of an earlier evaluation that are still used, or of one now."""
        array = arrays[0] if len(arrays) == 1 else None
        if array is None or len(outputs) != 1 or is_small(outputs):
            return self._execute(operation, infos, arrays, outputs, allowed_bytes)
        # As text, attributes of 0.0 and -0.0 differ; otherwise they are equal.
        key = repr(operation), operation, infos[0], outputs[0], id(array)
        source, known = self._known.get(key, (None, None))
        if source is not None and known is not None and source() is array:
            result = known()
            if result is not None:
                return [result]
        (result,) = self._execute(operation, infos, arrays, outputs, allowed_bytes)
        forget = self._known.pop
        self._known[key] = weakref.ref(array), weakref.ref(result, lambda _: forget(key, None))
        return [result]

    def _execute(
        self,
        operation: Operation,
        infos: Sequence[TensorInfo | None],
        arrays: Sequence[Array | None],
        outputs: Sequence[TensorInfo],
        allowed_bytes: int,
    ) -> list[Array]:
        """Make a workload and execute it once."""
        info = WorkloadInfo("constant folding", tuple(infos), tuple(outputs), tuple(arrays))
        workload = self._factory.create_workload(operation, info)
        results = [
            HostTensorHandle(o, np.empty(o.known_shape, o.data_type.dtype))
            if o.is_fully_shaped
            # Its size could not be checked beforehand, so the handle has the limit.
            else DynamicTensorHandle(o, allowed_bytes)
            for o in outputs
        ]
        sources = [
            HostTensorHandle(i, a) if i is not None and a is not None else None
            for i, a in zip(infos, arrays, strict=True)
        ]
        with limited_text(allowed_bytes):
            workload.execute(sources, results)
        return [handle.map() for handle in results]


def is_small(outputs: Sequence[TensorInfo]) -> bool:
    """Return whether outputs are fully shaped and small enough to be folded whatever they cost."""
    return all(info.is_fully_shaped for info in outputs) and (
        sum(info.size_bytes for info in outputs) <= SMALL_BYTES
    )


def folding_allowance(graph: Graph) -> int:
    """Return how many bytes folding may add to a graph."""
    own = sum(held_bytes(value.data) for value in graph.values() if value.data is not None)
    return FREE_FOLDING_BYTES + LARGEST_GROWTH * own
