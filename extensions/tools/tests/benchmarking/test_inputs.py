"""Engines that are measured beside each other get inputs of the same shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pytest

from armpy import DataType, TensorInfo
from armpy.errors import InvalidArgumentError
from armpy.execution import TensorSpec
from armpy.ops.operation import Array
from armpy_tools.benchmark.inputs import chosen_shapes
from armpy_tools.benchmark.peer import PeerSubjectModel
from armpy_tools.benchmark.subjects import Subject
from armpy_tools.measure.engines import EngineInput, IEngine

OPEN = {
    "picture": ((None, None, None, 3), (1, 224, 224, 3)),
    "channels first": ((None, 3, None, None), (1, 3, 224, 224)),
    "sequence": ((None, None, 8), (1, 1, 8)),
}


class AnyEngine(IEngine):
    """An engine that takes anything."""

    def __init__(self, shape: tuple[int | None, ...], dtype: npt.DTypeLike = np.float32) -> None:
        self._shape = shape
        self._dtype: np.dtype[np.generic] = np.dtype(dtype)
        self.bound: list[tuple[int, ...]] = []
        self.arrays: list[Array] = []

    @property
    def inputs(self) -> list[EngineInput]:
        return [EngineInput("x", self._shape, self._dtype)]

    def bind(self, arrays: Sequence[Array]) -> None:
        self.bound = [array.shape for array in arrays]
        self.arrays = [*arrays]

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


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float16, np.bool_])
def test_numbers_for_an_input_have_the_type_of_the_engine(dtype: npt.DTypeLike) -> None:
    engine = AnyEngine((None, 3), dtype)
    subject = Subject("a.onnx", engine="onnxruntime", inputs=("x=1",), batch=2)
    PeerSubjectModel(subject, engine).prepare_inputs(0)
    assert engine.arrays[0].dtype == dtype
    assert engine.arrays[0].tolist() == [[1, 1, 1]] * 2


def test_the_size_of_pictures_is_chosen() -> None:
    engine = AnyEngine((None, None, None, 3))
    subject = Subject("a.onnx", engine="onnxruntime", size=(8, 9))
    PeerSubjectModel(subject, engine).prepare_inputs(0)
    assert engine.bound == [(1, 8, 9, 3)]


def test_a_shape_with_another_batch_is_refused() -> None:
    specs = [
        TensorSpec(name, TensorInfo(shape, DataType.FLOAT32))
        for name, shape in {"x": (None, 2), "scale": ()}.items()
    ]
    assert chosen_shapes(specs, [None, None], {}, 3).by_name == {"x": (3, 2), "scale": ()}
    with pytest.raises(InvalidArgumentError, match=r"input 'x' .*Expected 3; got \(2, 2\)"):
        chosen_shapes(specs, [None, None], {"x": (2, 2)}, 3)
    with pytest.raises(InvalidArgumentError, match="batch=3: no input has an axis"):
        chosen_shapes(specs[1:], [None], {}, 3)
