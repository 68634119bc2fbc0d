"""Engines that are measured beside each other get inputs of the same shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from armpy import DataType, TensorInfo
from armpy.execution import TensorSpec
from armpy.ops.operation import Array
from armpy_conformance.measure.engines import EngineInput, IEngine
from armpy_tools.benchmark.inputs import chosen_shapes
from armpy_tools.benchmark.peer import PeerSubjectModel
from armpy_tools.benchmark.subjects import Subject

OPEN = {
    "picture": ((None, None, None, 3), (1, 224, 224, 3)),
    "channels first": ((None, 3, None, None), (1, 3, 224, 224)),
    "sequence": ((None, None, 8), (1, 1, 8)),
}


class AnyEngine(IEngine):
    """An engine that takes anything."""

    def __init__(self, shape: tuple[int | None, ...]) -> None:
        self._shape = shape
        self.bound: list[tuple[int, ...]] = []

    @property
    def inputs(self) -> list[EngineInput]:
        return [EngineInput("x", self._shape, np.dtype(np.float32))]

    def bind(self, arrays: Sequence[Array]) -> None:
        self.bound = [array.shape for array in arrays]

    def caller(self) -> Callable[[], object]:
        raise NotImplementedError

    def outputs(self) -> list[Array]:
        raise NotImplementedError


@pytest.mark.parametrize("kind", OPEN)
@pytest.mark.parametrize("batch", [None, 4])
def test_open_sizes_are_the_same_for_armpy_and_for_others(kind: str, batch: int | None) -> None:
    shape, usual = OPEN[kind]
    expected = usual if batch is None else (batch, *usual[1:])
    spec = TensorSpec("x", TensorInfo(shape, DataType.FLOAT32))
    engine = AnyEngine(shape)
    subject = Subject("a.onnx", engine="onnxruntime", batch=batch)
    PeerSubjectModel(subject, engine).prepare_inputs(0)
    assert chosen_shapes([spec], [None], {}, batch).by_name == {"x": expected}
    assert engine.bound == [expected]
