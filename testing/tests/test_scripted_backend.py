"""The scripted backend computes right, follows its script, and records its calls."""

from __future__ import annotations

import numpy as np
import pytest

from armpy.backend import (
    PreparationRequest,
)
from armpy.errors import ArmpyError, BackendError
from armpy.graph import SubgraphView
from armpy.ops import Activation
from armpy_testing.backends.fake_backends import runtime_of
from armpy_testing.backends.scripted_backend import (
    ScriptedBackend,
    raises,
    right,
)
from armpy_testing.models.networks import chain, diamond, floats

X = floats(-1, 0, 1, 2)
DIAMOND_OF_X = floats(1, 1, 5, 9)  # relu(x) + 1 + 3 relu(x) by hand: 1 + 4 max(x, 0)


def run(backend: ScriptedBackend) -> np.ndarray:
    """The diamond's output, with CpuRef for layers that the backend does not take."""
    with runtime_of(backend) as runtime:
        return runtime.enqueue_workload(runtime.load_network(diamond()), {"x": X})["y"]


@pytest.mark.parametrize("compiles", [False, True])
def test_without_a_script_it_computes_right(compiles: bool) -> None:
    backend = ScriptedBackend("Npu", compiles=compiles)
    np.testing.assert_array_equal(run(backend), DIAMOND_OF_X)
    names = [call.arguments["name"] for call in backend.calls_of("execute")]
    assert len(names) == (1 if compiles else 4)


def test_every_call_is_written_down_in_order_with_its_arguments() -> None:
    backend = ScriptedBackend("Npu", operations=[Activation])
    run(backend)
    firsts = sorted(set(backend.methods), key=backend.methods.index)
    assert firsts == ["open", "support", "optimize", "create_factory", "create_workload", "execute"]
    (optimized,) = backend.calls_of("optimize")
    assert isinstance(optimized.arguments["view"], SubgraphView)
    assert isinstance(optimized.arguments["request"], PreparationRequest)
    assert isinstance(backend.calls_of("create_workload")[0].arguments["operation"], Activation)
    starts = [call.started_s for call in backend.calls]
    assert starts == sorted(starts)
    backend.forget()
    assert backend.methods == []


def test_steps_are_taken_one_by_one_and_the_last_goes_on() -> None:
    backend = ScriptedBackend("Npu", {"execute": [right(), raises(BackendError("x")), right()]})
    with runtime_of(backend) as runtime:
        network = runtime.load_network(chain(1))
        outcomes: list[float | None] = []
        for _ in range(4):
            try:
                outcomes.append(float(runtime.enqueue_workload(network, {"x": X})["y"][0]))
            except ArmpyError:
                outcomes.append(None)
    assert outcomes == [0.0, None, 0.0, 0.0]
