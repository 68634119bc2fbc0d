from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy.backend import DeviceFigures, PerformanceFigures
from armpy.compiler import OptimizerOptions, Placement
from armpy.errors import BackendCapabilityError, BackendError
from armpy.execution import NetworkProperties, Runtime
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.ops import Activation, ElementwiseBinary
from armpy.types import DataType, DeviceType, Preference
from armpy_testing.backends.fake_backends import runtime_of
from armpy_testing.backends.scripted_backend import (
    Call,
    ScriptedBackend,
    declaration,
)
from armpy_testing.models.control_flow import BOOL, applied
from armpy_testing.models.networks import ADD, MUL, RELU, chain, diamond, f32, floats

X = floats(1, 2, 3, 4)


@pytest.fixture(autouse=True)
def _own_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decisions of one test are nothing to the others."""
    monkeypatch.setenv("ARMPY_CACHE_DIR", str(tmp_path))


def device(name: str, exec_time: float, power_usage: float, **others: object) -> ScriptedBackend:
    """A backend that says how much it takes of what CpuRef takes."""
    figures = DeviceFigures(tensors={DataType.FLOAT32: PerformanceFigures(exec_time, power_usage)})
    return ScriptedBackend(name, declared=declaration(figures=figures), **others)  # type: ignore[arg-type]


def placement_of(runtime: Runtime, graph: Graph) -> Placement:
    network = runtime.get_network(runtime.load_network(graph))
    if graph.is_fully_shaped:
        expected = network.run([X])[0]
        reference = runtime_of()
        np.testing.assert_array_equal(
            expected, reference.get_network(reference.load_network(graph)).run([X])[0]
        )
        reference.close()
    placement = network.placement
    assert placement is not None
    return placement


@pytest.mark.parametrize(
    ("preference", "backend_id"),
    # Fast takes a tenth of CpuRef's time and ten times its energy, Cool five and a quarter, Fair
    # half of both. A sustained speed is a matter of time.
    [
        (Preference.ORDER, "Fast"),
        (Preference.FASTEST, "Fast"),
        (Preference.LEAST_POWER, "Cool"),
        (Preference.SUSTAINED, "Fast"),
    ],
)
def test_figures_decide_as_the_preference_says(preference: Preference, backend_id: str) -> None:
    devices = device("Fast", 0.1, 10.0), device("Cool", 5.0, 0.25), device("Fair", 0.5, 0.5)
    with runtime_of(*devices, preference=preference) as runtime:
        placement = placement_of(runtime, chain())
    assert placement.layers_by_backend == {backend_id: 3}
    assert placement.fallbacks == 0
    assert placement.preference == preference.value


@pytest.mark.parametrize(
    ("device_type", "declared", "backend_id"),
    [
        # Half of CpuRef's energy, against an energy that is not known.
        (DeviceType.ACCELERATOR, 0.5, "Known"),
        (DeviceType.GPU, 0.5, "Known"),
        # An unknown one counts as CpuRef, which takes less than twice its energy.
        (DeviceType.ACCELERATOR, 2.0, "Quiet"),
        # Time by power of a processor is known: this kind takes a tenth of CpuRef's time.
        (DeviceType.CPU_COMPILED, 0.5, "Quiet"),
    ],
)
def test_least_power_takes_no_unknown_figure_for_a_low_one(
    device_type: DeviceType, declared: float, backend_id: str
) -> None:
    unknown = ScriptedBackend("Quiet", declared=declaration(device_type=device_type))
    with runtime_of(unknown, device("Known", 1.0, declared), preference="least_power") as runtime:
        assert placement_of(runtime, chain()).layers_by_backend == {backend_id: 3}


def test_the_report_says_what_alternatives_would_have_cost_as_text_and_json() -> None:
    devices = device("Fast", 0.1, 10.0), device("Cool", 5.0, 0.25)
    with runtime_of(*devices, preference="least_power") as runtime:
        placement = placement_of(runtime, chain())
    assert placement.alternatives[0].name == "Cool"
    costs = [alternative.estimated_us for alternative in placement.alternatives]
    assert costs == sorted(costs)
    first, *lines = placement.describe_alternatives().splitlines()
    assert first == "least_power, estimated:"
    words = [line.split()[:2] for line in lines]
    assert words == [["*", "Cool"], ["CpuRef", "estimated"], ["Fast", "estimated"]]
    short = f"least_power, estimated: Cool {costs[0]:.0f} us estimated (chosen), CpuRef"
    assert short in str(placement)
    document = json.loads(placement.to_json())
    assert (document["preference"], document["basis"]) == ("least_power", "estimated")
    assert document["alternatives"][0] == {
        "name": "Cool",
        "layers_by_backend": {"Cool": 3},
        "estimated_us": costs[0],
        "is_chosen": True,
    }


def test_what_is_cheaper_elsewhere_has_not_fallen_back_but_what_is_refused_has() -> None:
    hot, cool = device("Hot", 0.1, 10.0), device("Cool", 5.0, 0.25)
    with runtime_of(hot, cool, preference="least_power", on_fallback="error") as runtime:
        assert placement_of(runtime, diamond()).fallbacks == 0
    hot = device("Hot", 0.1, 10.0, operations=[ElementwiseBinary])
    with runtime_of(hot, cool, preference="least_power") as runtime:
        placement = placement_of(runtime, diamond())
        assert placement.fallbacks == 1
        (refusal,) = placement.refusals
        assert (refusal.layer, refusal.backend) == ("top", "Hot")
    with (
        runtime_of(hot, cool, preference="least_power", on_fallback="error") as runtime,
        pytest.raises(BackendCapabilityError, match="1 layer does not run on Hot"),
    ):
        runtime.load_network(diamond())


@pytest.mark.slow
def test_graphs_that_control_flow_runs_go_by_the_figures() -> None:
    net = Network("if")
    condition, x = net.input("condition", BOOL), net.input("x", f32(4))
    branch = armpy.ops.If(applied(ADD, floats(1), f32(4)), applied(MUL, floats(2), f32(4)))
    net.output("y", net.add(branch, condition, net.add(RELU, x, name="relu"), name="if"))
    devices = [
        device(name, *figures, operations=[ElementwiseBinary, Activation])
        for name, figures in {"First": (0.9, 1.0), "Second": (0.2, 1.0)}.items()
    ]
    with runtime_of(*devices, preference="fastest", backends=["First", "Second"]) as runtime:
        network = runtime.get_network(runtime.load_network(net.build()))
        for which, expected in ((True, X + 1), (False, X * 2)):
            (output,) = network.run([np.array([which]), X])
            np.testing.assert_array_equal(output, expected)
        placement = network.placement
    assert placement is not None
    inner = {layer.backend for layer in placement.layers if layer.inside}
    assert inner == {"Second"}


def test_one_network_may_have_a_preference_of_its_own_and_so_may_optimize() -> None:
    with runtime_of(device("Hot", 0.1, 10.0), device("Cool", 5.0, 0.25)) as runtime:
        options = OptimizerOptions(preference=Preference.LEAST_POWER)
        network_id = runtime.load_network(chain(), NetworkProperties(optimizer=options))
        own = runtime.get_network(network_id).placement
        assert own is not None
        assert own.layers_by_backend == {"Cool": 3}
        optimized = armpy.optimize(chain(), runtime, options)
        assert optimized.placement.layers_by_backend == {"Cool": 3}
        assert optimized.placement.alternatives == own.alternatives
        assert armpy.optimize(chain(), runtime).placement.layers_by_backend == {"Hot": 3}


def test_a_network_optimised_for_speed_keeps_its_placement_when_it_is_saved(tmp_path: Path) -> None:
    devices = device("First", 0.5, 1.0), device("Second", 0.25, 1.0)
    with runtime_of(*devices) as runtime:
        optimized = armpy.optimize(
            chain(), runtime, OptimizerOptions(preference=Preference.FASTEST)
        )
        optimized.save(tmp_path / "network.armpy")
        read = armpy.OptimizedNetwork.load(tmp_path / "network.armpy")
        assert read.placement == optimized.placement
        placement = runtime.get_network(runtime.load_network(read)).placement
    assert placement is not None
    assert placement.layers_by_backend == optimized.placement.layers_by_backend != {"First": 3}


def test_a_backend_that_fails_later_loses_its_layers_by_the_figures() -> None:
    runs: list[int] = []

    def fails_later(call: Call) -> object:
        runs.append(1)
        if is_broken:
            raise BackendError("it broke")
        return call.right()

    is_broken = False
    first = device("First", 0.1, 1.0, script={"execute": fails_later})
    second = device("Second", 0.5, 0.5)
    with runtime_of(first, second, preference="fastest") as runtime:
        properties = NetworkProperties(on_failure="next")
        network = runtime.get_network(runtime.load_network(chain(), properties))
        assert network.placement is not None
        assert "Second" not in network.placement.layers_by_backend
        is_broken = True
        (output,) = network.run([X])
        np.testing.assert_array_equal(output, X + 3)
