"""Results that are wrong for some sizes, and programs that are wrong for new ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from armpy.backend import (
    Capability,
    ILayerSupport,
    IResizableProgram,
    ITensorHandle,
    IWorkload,
    IWorkloadFactory,
    NetworkResources,
    OptimizationViews,
    PreparationRequest,
    ReasonCode,
    Substitution,
    Support,
    WorkloadInfo,
)
from armpy.core.symbolic import Number, Size, is_traced
from armpy.graph import SubgraphView
from armpy.ops import PreCompiled
from armpy.ops.operation import Array, OperandInfos, Operation
from armpy.tensor import TensorInfo
from armpy.types import DataType
from armpy_testing.backends.fake_backends import FakeBackend
from armpy_testing.models.networks import RELU

from .planting import Planted
from .shapes import Call, Fault, Fused, Plain, spoil


@dataclass
class Sized(Fault):
    """Elements beyond some size are left out."""

    is_beyond: Callable[[Array], bool]  # takes an array, says whether it is

    def after(self, call: Call) -> None:
        arrays = [*(a for a in call.inputs if a is not None), *call.outputs]
        if any(self.is_beyond(array) for array in arrays):
            for output in call.outputs:
                spoil(output)


LONG_DIMENSION = Sized(lambda array: any(dim > 0xFFFF for dim in array.shape))
"""Dimensions are 16-bit numbers."""


TILES_AND_IMAGES = Sized(lambda a: a.ndim == 4 and a.shape[0] > 2 and min(a.shape[1:]) > 16)
"""The tiles of all images but the first are of the first."""


IMAGES_OF_256_KIB = Sized(
    lambda a: a.ndim == 4 and a.shape[0] > 1 and a.nbytes // a.shape[0] > 1 << 18
)
"""Of a batch of images above 256 KiB the last element is wrong."""


def odd_channels(rest: int) -> Plain:
    """Channels beyond multiples of 16 are wrong if there are so many."""
    return Plain(Sized(lambda a: a.ndim == 4 and a.shape[3] % 16 == rest and a.shape[3] > 1))


class NoElements(Fault):
    """Nothing at all is a mistake."""

    def before(self, call: Call) -> None:
        for array in call.inputs:
            if array is not None:
                array.reshape(-1)[0]


# --- Programs that are prepared again for other sizes


Answer = Callable[["Resizable", Sequence[Number]], Any]  # Any: some are wrong on purpose


class Resizable(IResizableProgram):
    """How many elements there are, which follows from sizes."""

    def __init__(self, count: Size, answer: Answer) -> None:
        self.count = count
        self._answer = answer

    def needed(self) -> Sequence[Size]:
        return [self.count]

    def for_sizes(self, numbers: Sequence[Number]) -> tuple[object, int]:
        program: tuple[object, int] = self._answer(self, numbers)
        return program


class RectifyOnly(ILayerSupport):
    """Takes RELU of floats."""

    def is_layer_supported(
        self, operation: Operation, inputs: OperandInfos, outputs: Sequence[TensorInfo]
    ) -> Support:
        if operation == RELU and outputs[0].data_type is DataType.FLOAT32:
            return Support.yes()
        return Support.no(ReasonCode.OPERATION, "RELU of float32 only")


class Rectify(IWorkload, IWorkloadFactory):
    """The positive part of as many elements as the program says, followed by 7s."""

    def __init__(self, count: int = 0) -> None:
        self._count = count

    def create_workload(self, operation: Operation, info: WorkloadInfo) -> IWorkload:
        assert isinstance(operation, PreCompiled)
        return Rectify(operation.program)

    def execute(
        self, inputs: Sequence[ITensorHandle | None], outputs: Sequence[ITensorHandle]
    ) -> None:
        assert inputs[0] is not None
        elements, out = inputs[0].map().reshape(-1), outputs[0].map().reshape(-1)
        out[:] = 7
        np.maximum(elements[: self._count], 0, out=out[: self._count])


class Resizing(FakeBackend):
    """Compiles parts to the number of their elements, each of any length."""

    def __init__(self, answer: Answer, *, is_declared: bool = True) -> None:
        super().__init__("Planted")
        self._answer = answer
        self._is_declared = is_declared

    def get_capabilities(self) -> dict[str, bool | int | float | str]:
        return {Capability.TRACED_SIZES: self._is_declared}

    def get_layer_support(self, request: PreparationRequest) -> ILayerSupport:
        return RectifyOnly()

    def create_workload_factory(self, network: NetworkResources) -> IWorkloadFactory:
        return Rectify()

    def optimize_subgraph_view(
        self, view: SubgraphView, request: PreparationRequest
    ) -> OptimizationViews:
        shapes = tuple(value.info.known_shape for value in view.outputs)
        count = math.prod(shapes[0])
        program = Resizable(count, self._answer) if is_traced(count) else count  # type: ignore[arg-type]
        substitution = Substitution.by_operation(view, PreCompiled(program, shapes))
        return OptimizationViews(substitutions=[substitution])


def right(program: Resizable, numbers: Sequence[Number]) -> tuple[object, int]:
    return numbers[program.count.number], 0


def stale(program: Resizable, numbers: Sequence[Number]) -> tuple[object, int]:
    return program.count.now, 0


def too_few(program: Resizable, numbers: Sequence[Number]) -> tuple[object, int]:
    return max(1, int(numbers[program.count.number]) - 1), 0


def raises(program: Resizable, numbers: Sequence[Number]) -> tuple[object, int]:
    raise RuntimeError("the formula is lost")


SIZE_FAULTS: dict[str, Planted] = {
    "sizes/long-plain": Planted("/long", Plain, lambda: LONG_DIMENSION),
    "sizes/cache": Planted("/256-kib", Plain, lambda: Sized(lambda a: a.nbytes > 1 << 18)),
    "sizes/larger-cache": Planted("/2-mib", Fused, lambda: Sized(lambda a: a.nbytes > 1 << 21)),
    "sizes/tiles-plain": Planted("/tiles", Plain, lambda: TILES_AND_IMAGES),
    "sizes/many-elements": Planted(
        "/2-20-elements", Plain, lambda: Sized(lambda array: array.size > 1 << 20)
    ),
    "sizes/large-images": Planted("tiles-", Plain, lambda: IMAGES_OF_256_KIB),
    **{
        f"sizes/channels-{rest}": Planted("/channels", partial(odd_channels, rest))
        for rest in (1, 7, 15)
    },
    "sizes/stale": Planted(
        "contract/sizes/new-sizes-are-as-if-compiled-for-them", lambda: Resizing(stale)
    ),
    "sizes/too-few": Planted(
        "contract/sizes/new-sizes-are-as-if-compiled-for-them", lambda: Resizing(too_few)
    ),
    "sizes/raises": Planted(
        "contract/sizes/new-sizes-are-as-if-compiled-for-them",
        lambda: Resizing(raises),
        said="for_sizes: the backend raised RuntimeError",
    ),
    "empty/plain": Planted("+no-elements", Plain, NoElements),
}
"""By class and name."""
