"""A network that a runtime has loaded: calls with tensors by their ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from armpy.errors import ArmpyError
from armpy.execution import NetworkProperties
from armpy.profiling import Profiler, ProfilingDetails
from armpy.tensor import TensorInfo
from armpy_compat.pyarmnn.conversion import from_armpy, runtime_errors
from armpy_compat.pyarmnn.running.optimized_network import NetworkParts
from armpy_compat.pyarmnn.tensors.tensor_info import TensorInfo as ArmnnTensorInfo
from armpy_compat.pyarmnn.tensors.tensor_memory import MemoryArea, TensorMemory

Pairs = Sequence[tuple[int, TensorMemory]]
"""Tensors with the ids of inputs or outputs."""

_Slots = dict[int, tuple[str, tuple[int, ...] | None]]


class LoadedModel:
    """A network that a runtime has loaded.

    Parameters
    ----------
    parts : NetworkParts
    details : ProfilingDetails
        Details of layers in profiles.

    Raises
    ------
    RuntimeError
        If the network cannot be prepared.
    """

    def __init__(self, parts: NetworkParts, details: ProfilingDetails) -> None:
        self._parts, self._details = parts, details
        self._plain_id = self._id = self._load(None)
        self._profiled_id: int | None = None
        graph = parts.graph
        infos = [value.info for value in graph.inputs]
        self._input_infos = dict(zip(parts.input_ids, infos, strict=True))
        self._output_infos = dict(zip(parts.output_ids, graph.output_infos, strict=True))
        self._inputs = _slots(parts.input_ids, self._input_infos)
        self._outputs = _slots(parts.output_ids, self._output_infos)
        self._enqueue = parts.runtime.enqueue_workload

    def _load(self, shares_state_with: int | None) -> int:
        with runtime_errors():
            return self._parts.runtime.load_network(
                self._parts.network,
                NetworkProperties(
                    profiling=shares_state_with is not None, profiling_details=self._details
                ),
                shares_state_with=shares_state_with,
            )

    def run(self, inputs: Pairs, outputs: Pairs) -> None:
        """Run the network; results are written into the tensors for outputs.

        Raises
        ------
        RuntimeError
            If tensors are missing, or do not fit.
        """
        if len(inputs) != len(self._inputs):
            raise RuntimeError("Number of inputs provided does not match network.")
        try:
            arrays = _arrays(self._inputs, inputs)
            targets = _arrays(self._outputs, outputs)
            if len(arrays) != len(self._inputs) or len(targets) != len(self._outputs):
                self._miss(arrays, targets)
            self._enqueue(self._id, arrays, targets)
        except ArmpyError as error:
            raise RuntimeError(str(error)) from error

    def _miss(self, arrays: Mapping[str, object], targets: Mapping[str, object]) -> NoReturn:
        """Refuse a call without a tensor for each id."""
        for side, slots, tensors in (
            ("output", self._outputs, targets),
            ("input", self._inputs, arrays),
        ):
            for binding_id, (name, _) in slots.items():
                if name not in tensors:
                    raise RuntimeError(f"No tensor supplied for {side} {binding_id}")
        raise AssertionError("no tensor is missing")

    def input_info(self, binding_id: int) -> ArmnnTensorInfo:
        """The description of an input; RuntimeError if there is none of that id."""
        return _info(self._inputs, self._input_infos, binding_id, "input")

    def output_info(self, binding_id: int) -> ArmnnTensorInfo:
        """The description of an output; RuntimeError if there is none of that id."""
        return _info(self._outputs, self._output_infos, binding_id, "output")

    @property
    def is_profiled(self) -> bool:
        """True if calls are measured."""
        return self._id == self._profiled_id

    def profile(self, enabled: bool) -> None:
        """Measure calls from now on, or no longer: a copy of the network is loaded for that."""
        if enabled and self._profiled_id is None:
            self._profiled_id = self._load(self._plain_id)
        self._id = self._profiled_id if enabled and self._profiled_id else self._plain_id

    @property
    def profiler(self) -> Profiler | None:
        """Measurements of calls; None if there are none."""
        if self._profiled_id is None:
            return None
        return self._parts.runtime.get_profiler(self._profiled_id)

    def unload(self) -> None:
        """Forget the network."""
        with runtime_errors():
            for network_id in (self._profiled_id, self._plain_id):
                if network_id is not None:
                    self._parts.runtime.unload_network(network_id)


def _slots(ids: Mapping[str, int], infos: Mapping[str, TensorInfo]) -> _Slots:
    """Names and shapes by id; no shape where sizes are open."""
    return {
        binding_id: (name, infos[name].known_shape if infos[name].is_fully_shaped else None)
        for name, binding_id in ids.items()
    }


def _arrays(slots: _Slots, pairs: Iterable[tuple[int, TensorMemory]]) -> dict[str, Any]:
    """Arrays by name, each a view of a tensor's memory; tensors of unknown ids are left out."""
    arrays: dict[str, MemoryArea] = {}
    for binding_id, tensor in pairs:
        if binding_id not in slots:
            continue
        name, shape = slots[binding_id]
        memory = tensor.shaped
        if shape is None:
            shape = tuple(tensor.GetShape())
        if memory is None:
            raise TypeError("the tensor has no memory")
        if memory.shape != shape:
            try:
                memory = memory.reshape(shape)
            except ValueError as error:
                raise RuntimeError(
                    "MemCopyQueueDescriptor: input & output must have the same number of elements."
                ) from error
        arrays[name] = memory
    return arrays


def _info(
    slots: _Slots, infos: Mapping[str, TensorInfo], binding_id: int, side: str
) -> ArmnnTensorInfo:
    if binding_id not in slots:
        raise RuntimeError(f"No {side} layer is associated with id {binding_id}")
    name, _ = slots[binding_id]
    return from_armpy(infos[name], infos[name].shape or (), where=name)
