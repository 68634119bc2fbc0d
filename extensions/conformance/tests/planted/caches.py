"""Faults of what is kept for other layers, networks or executions, and found by too little."""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from armpy_reference.factory import ReferenceWorkloadFactory

from armpy.backend import HostTensorHandle, ITensorHandle, IWorkload, WorkloadInfo
from armpy.ops import BatchMatMul, Convolution2d, FullyConnected, TransposeConvolution2d
from armpy.ops.operation import Array, Operation
from armpy_testing.backends.fake_backends import FunctionWorkload, Handles, Outputs, Step

from .planting import Planted
from .shapes import Fault, LayerWorkload, Plain, spoil_tensor


class KeptConstants(Fault):
    """Constants are kept by a key, of all networks; layers with constants of a key share them."""

    def __init__(self, key: Callable[[Step, Array], object]) -> None:
        self._key = key
        self._kept: dict[object, Array] = {}

    def wrap(self, step: Step) -> IWorkload:
        constants = [
            None if constant is None else self._kept_for(step, index, constant)
            for index, constant in enumerate(step.info.constants)
        ]
        info = replace(step.info, constants=tuple(constants))
        right = ReferenceWorkloadFactory().create_workload(step.operation, info)

        def execute(inputs: Handles, outputs: Outputs) -> None:
            handles = [
                handle if handle is None or kept is None else HostTensorHandle(handle.info, kept)
                for handle, kept in zip(inputs, constants, strict=True)
            ]
            right.execute(handles, outputs)

        return FunctionWorkload(execute)

    def _kept_for(self, step: Step, index: int, constant: Array) -> Array:
        """A copy of the first constant with the key of this one."""
        key = (index, constant.shape, constant.dtype.str, self._key(step, constant))
        return self._kept.setdefault(key, constant.copy())


def by_address(_: Step, constant: Array) -> object:
    """Where it lies."""
    return constant.ctypes.data


class PackedOnce(Fault):
    """Weights that change are packed in the first execution only."""

    def execute(self, step: Step, inputs: Handles, outputs: Outputs) -> None:
        step.right.execute(inputs, outputs)

    def wrap(self, step: Step) -> IWorkload:
        is_weighted = isinstance(step.operation, Convolution2d | FullyConnected | BatchMatMul)
        if not is_weighted or step.info.constants[1] is not None:
            return step.right
        kept: list[Array] = []

        def execute(inputs: Handles, outputs: Outputs) -> None:
            weights = inputs[1]
            assert weights is not None
            if not kept:
                kept.append(np.array(weights.map(write=False)))
                weights.unmap()
            step.right.execute(
                [inputs[0], HostTensorHandle(weights.info, kept[0]), *inputs[2:]], outputs
            )

        return FunctionWorkload(execute)


class Remembers(Fault):
    """A layer whose first input begins with the bytes of the last time is not computed again."""

    def wrap(self, step: Step) -> IWorkload:
        last: list[tuple[bytes, list[Array]]] = []

        def execute(inputs: Handles, outputs: Outputs) -> None:
            first = next((handle for handle in inputs if handle is not None), None)
            start = b""
            if first is not None and not first.info.data_type.is_string:
                start = first.map(write=False).tobytes()[:64]
                first.unmap()
            if last and start and last[0][0] == start:
                for handle, array in zip(outputs, last[0][1], strict=True):
                    handle.copy_in_from(array)
                return
            step.right.execute(inputs, outputs)
            results = []
            for handle in outputs:
                results.append(np.array(handle.map(write=False)))
                handle.unmap()
            last[:] = [(start, results)]

        return FunctionWorkload(execute)


class StaysOnDevice(Fault):
    """A large input stays on the device, and is sent again if a sample of its elements changes."""

    def wrap(self, step: Step) -> IWorkload:
        kept: dict[int, Array] = {}

        def execute(inputs: Handles, outputs: Outputs) -> None:
            sent: list[ITensorHandle | None] = [*inputs]
            for number, handle in enumerate(inputs):
                if handle is None or handle.info.data_type.is_string:
                    continue
                array = np.array(handle.map(write=False))
                handle.unmap()
                if array.nbytes < 1 << 18:
                    continue
                last = kept.get(number)
                step_size = array.size // 1024
                if last is None or (last.flat[::step_size] != array.flat[::step_size]).any():
                    kept[number] = array
                sent[number] = HostTensorHandle(handle.info, kept[number])
            step.right.execute(sent, outputs)

        return FunctionWorkload(execute)


@dataclass
class Keeps(Fault):
    """Prepared layers are found by a key that leaves something out."""

    key: Callable[[Operation, WorkloadInfo], object]

    def __post_init__(self) -> None:
        self._kept: dict[object, IWorkload] = {}

    def wrap(self, step: Step) -> IWorkload:
        _, operation, info = step
        return self._kept.setdefault(self.key(operation, info), step.right)


def _shapes(info: WorkloadInfo) -> tuple[object, ...]:
    return tuple((i.shape, i.data_type) for i in (*info.inputs, *info.outputs) if i is not None)


def _digest(info: WorkloadInfo, part: slice) -> tuple[bytes | None, ...]:
    """Digests of a part of each constant's bytes."""
    return tuple(
        None if c is None else hashlib.sha256(c.tobytes()[part]).digest() for c in info.constants
    )


def _by_all_but_constants(operation: Operation, info: WorkloadInfo) -> object:
    """Where constants are, whatever their elements are."""
    are_constant = [constant is not None for constant in info.constants]
    return repr(operation), str(info.inputs), str(info.outputs), str(are_constant)


def _by_most_bytes(operation: Operation, info: WorkloadInfo) -> object:
    """All but the last four bytes of each constant."""
    return repr(operation), str(info.inputs), str(info.outputs), _digest(info, slice(None, -4))


def _by_shapes(operation: Operation, info: WorkloadInfo) -> object:
    """All but the quantisation of tensors."""
    return repr(operation), _shapes(info), _digest(info, slice(None))


def _by_name(operation: Operation, info: WorkloadInfo) -> object:
    """All but the operation's attributes."""
    return operation.name, str(info.inputs), str(info.outputs), _digest(info, slice(None))


class Slots(Fault):
    """Networks have numbers, which are given anew when one has gone."""

    def __init__(self) -> None:
        self._programs: dict[str, WorkloadInfo] = {}

    def wrap(self, step: Step) -> IWorkload:
        _, operation, info = step
        key = f"{operation} {info.inputs}"
        self._programs[key] = info

        def execute(inputs: Handles, outputs: Outputs) -> None:
            now = replace(info, constants=self._programs[key].constants)
            handles = [
                h if c is None or i is None else HostTensorHandle(i, c)
                for h, i, c in zip(inputs, info.inputs, now.constants, strict=True)
            ]
            LayerWorkload(self, operation, now, "made").execute(handles, outputs)

        return FunctionWorkload(execute)


class Vanishing(Fault):
    """When a network goes, so does what others of its shape need."""

    def __init__(self) -> None:
        self._alive: dict[str, int] = {}

    def wrap(self, step: Step) -> IWorkload:
        key = f"{step.operation} {step.info.inputs}"
        self._alive[key] = 1

        def execute(inputs: Handles, outputs: Outputs) -> None:
            step.right.execute(inputs, outputs)
            if not self._alive.get(key):
                spoil_tensor(outputs[0])

        workload = FunctionWorkload(execute)
        weakref.finalize(workload, self._alive.__setitem__, key, 0)
        return workload


CACHE_FAULTS: dict[str, Planted] = {
    "caches/by-shapes": Planted(
        "TransposeConvolution2d/",
        partial(Plain, operations={TransposeConvolution2d}),
        lambda: Keeps(_by_all_but_constants),
    ),
    "caches/by-all-but-the-last-bytes": Planted(
        "contract/contents/networks-differ-in-one-element", Plain, lambda: Keeps(_by_most_bytes)
    ),
    "caches/by-shapes-and-bytes": Planted(
        "contract/contents/networks-differ-in-one-element", Plain, lambda: Keeps(_by_shapes)
    ),
    "gauges/slots": Planted(
        "contract/gauges/neighbours-come-and-go", Plain, Slots, "after a neighbour"
    ),
    "gauges/vanishing": Planted(
        "contract/gauges/neighbours-come-and-go", Plain, Vanishing, "was unloaded"
    ),
    "blind-constants/address": Planted("FullyConnected/", Plain, lambda: KeptConstants(by_address)),
    "blind-constants/packed-once": Planted("FullyConnected/", Plain, PackedOnce),
    "blind-memory/remembers": Planted(
        "contract/contents/executions-that-differ-in-one-element", Plain, Remembers
    ),
    "blind-memory/stays-on-device": Planted(
        "contract/contents/executions-that-differ-in-one-element",
        Plain,
        StaysOnDevice,
        "after inputs of up to [0-9]{3},[0-9]{3} bytes that differ in one element",
    ),
    "alike/attributes-ignored": Planted(
        "contract/alike/layers-differ-in-one-attribute",
        Plain,
        lambda: Keeps(_by_name),
        "differ in one attribute",
    ),
}
"""By class and name."""
