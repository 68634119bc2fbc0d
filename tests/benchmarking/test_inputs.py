"""Engines that are measured beside each other get inputs of the same shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from armpy import DataType, TensorInfo
from armpy.execution.arrays.tensor_spec import TensorSpec
from armpy.tools.benchmark.inputs import chosen_shapes
from armpy.tools.benchmark.peers import _Peer
from armpy.tools.benchmark.subjects import Subject

OPEN = {
    "picture": ((None, None, None, 3), (1, 224, 224, 3)),
    "channels first": ((None, 3, None, None), (1, 3, 224, 224)),
    "sequence": ((None, None, 8), (1, 1, 8)),
}


class Engine(_Peer):
    """An engine that takes anything, and knows open sizes as -1."""

    def __init__(self, subject: Subject, shape: tuple[int | None, ...]) -> None:
        super().__init__(subject)
        self._shape = tuple(-1 if size is None else size for size in shape)

    def _inputs(self) -> list[tuple[str, tuple[int | None, ...], np.dtype[Any]]]:
        return [("x", self._shape, np.dtype(np.float32))]

    def _bind(self) -> None:
        pass

    def caller(self) -> Callable[[], object]:
        raise NotImplementedError


@pytest.mark.parametrize("kind", OPEN)
@pytest.mark.parametrize("batch", [None, 4])
def test_open_sizes_are_the_same_for_armpy_and_for_others(kind: str, batch: int | None) -> None:
    shape, usual = OPEN[kind]
    expected = usual if batch is None else (batch, *usual[1:])
    spec = TensorSpec("x", TensorInfo(shape, DataType.FLOAT32))
    engine = Engine(Subject("a.onnx", engine="onnxruntime", batch=batch), shape)
    engine.prepare_inputs(0)
    assert chosen_shapes([spec], [None], {}, batch) == {"x": expected}
    assert [array.shape for array in engine._arrays] == [expected]
