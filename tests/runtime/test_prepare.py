"""What is prepared for some shapes is neither planned nor compiled by a call of these shapes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from armpy_numba_acc import backend as numba_backend
from armpy_numba_acc.store import objects

import armpy
from armpy import DataType, Model, Network, TensorInfo, ops
from armpy.errors import InvalidArgumentError
from armpy.execution import Runtime, RuntimeOptions
from armpy.execution.programs.planning import Planner


class Watch:
    """Writes down who plans and who compiles."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[str] = []
        for place, name in (
            (Planner, "program"),
            (numba_backend, "compiled_program"),
            (objects, "kernel_addresses"),
        ):
            monkeypatch.setattr(place, name, self._watched(getattr(place, name), name))

    def _watched(self, function: Callable[..., object], name: str) -> Callable[..., object]:
        def watched(*args: object, **kwargs: object) -> object:
            self.seen.append(name)
            return function(*args, **kwargs)

        return watched


@pytest.fixture
def model() -> Model:
    net = Network()
    x = net.input("x", TensorInfo((None, 8, 8, 3), DataType.FLOAT32))
    weights = net.constant(np.full((4, 3, 3, 3), 0.25, np.float32))
    y = net.add(ops.Convolution2d(padding=ops.Padding.SAME), x, weights)
    net.output("y", y)
    return Model(net, Runtime(RuntimeOptions(backends=["NumbaAcc"])), closes_runtime=True)


@pytest.mark.parametrize("how", ["prepare", "resize"])
def test_a_call_of_shapes_that_were_prepared_plans_and_compiles_nothing(
    model: Model, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(monkeypatch)
    getattr(model, how)({"x": (2, 8, 8, 3)})
    assert {"program", "compiled_program"} <= set(watch.seen)
    watch.seen.clear()
    x = np.ones((2, 8, 8, 3), np.float32)
    expected = model.run({"x": x})["y"]
    assert expected[0, 4, 4, 0] == 27 * 0.25
    np.testing.assert_array_equal(model.bind({"x": x})()["y"], expected)
    np.testing.assert_array_equal(model.start({"x": x}).result()["y"], expected)
    assert watch.seen == []


def test_a_call_of_other_shapes_is_seen(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    model.prepare({"x": (2, 8, 8, 3)})
    watch = Watch(monkeypatch)
    model.run({"x": np.ones((3, 8, 8, 3), np.float32)})
    assert {"program", "compiled_program"} <= set(watch.seen)


@pytest.mark.parametrize("shape", [(None, 8, 8, 3), ("n", 8, 8, 3), (-1, 8, 8, 3), 2])
def test_a_shape_that_is_none_is_refused_with_the_inputs_name(model: Model, shape: object) -> None:
    shapes: Any = {"x": shape}
    text = "input 'x': the shape cannot be used. Expected a sequence of sizes of 0 or more; got "
    for call in (model.prepare, lambda given: armpy.optimize(model.graph, shapes=given)):
        with pytest.raises(InvalidArgumentError, match=re.escape(text + repr(shape))):
            call(shapes)


def test_sizes_may_be_of_numpy(model: Model) -> None:
    model.prepare({"x": tuple(np.array([2, 8, 8, 3]))})
    assert model.run({"x": np.ones((2, 8, 8, 3), np.float32)})["y"].shape[0] == 2
