from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import armpy
from armpy.backend import DeviceFigures, PerformanceFigures
from armpy.compiler import OptimizerOptions, Placement
from armpy.errors import BackendCapabilityError, BackendError, InvalidArgumentError
from armpy.execution import NetworkProperties, Runtime, RuntimeOptions
from armpy.graph import Graph
from armpy.graph.network import Network
from armpy.ops import Activation, ElementwiseBinary
from armpy.types import DataType, DeviceType, Preference
from armpy_testing.backends.fake_backends import runtime_of
from armpy_testing.backends.scripted_backend import (
    Call,
    ScriptedBackend,
    Step,
    declaration,
    raises,
    sleeps,
    waits,
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


def slow(name: str, duration_s: float, **others: object) -> ScriptedBackend:
    """A backend that takes its time for each layer, whatever it says of itself."""
    return device(name, 0.5, 0.5, script={"execute": in_turn(sleeps(duration_s))}, **others)


def in_turn(step: Step) -> Step:
    """Carry out the action after a step."""

    def both(call: Call) -> object:
        step(call)
        return call.right()

    return both


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


def test_by_default_the_order_decides_and_nothing_is_weighed_or_run() -> None:
    first, second = slow("First", 0.01), device("Second", 0.001, 0.001)
    with runtime_of(first, second) as runtime:
        network = runtime.get_network(runtime.load_network(chain()))
        assert first.calls_of("execute") == []
        placement = network.placement
    assert placement is not None
    assert placement.layers_by_backend == {"First": 3}
    assert (placement.basis, placement.alternatives) == ("order", ())


@pytest.mark.slow
def test_the_fastest_is_found_by_running_whatever_devices_say_of_themselves() -> None:
    boaster = device("Boaster", 0.001, 1.0, script={"execute": in_turn(sleeps(0.01))})
    with runtime_of(boaster, device("Modest", 0.9, 1.0), preference="fastest") as runtime:
        placement = placement_of(runtime, chain())
    assert placement.layers_by_backend.keys().isdisjoint({"Boaster"})
    assert placement.basis == "measured"
    by_name = {alternative.name: alternative for alternative in placement.alternatives}
    assert by_name["Boaster"].estimated_us < by_name["Modest"].estimated_us
    assert by_name["Boaster"].measured_us is not None
    assert by_name["Boaster"].measured_us > 30_000  # three layers of 10 ms
    assert [alternative.is_chosen for alternative in placement.alternatives].count(True) == 1
    assert placement.alternatives[0].measured_us == min(
        alternative.measured_us
        for alternative in placement.alternatives
        if alternative.measured_us is not None
    )


def slow_at(*names: str) -> Step:
    """Take 20 ms for some layers."""

    def step(call: Call) -> object:
        if call.arguments["name"] in names:
            time.sleep(0.02)
        return call.right()

    return step


@pytest.mark.slow
def test_a_mixture_is_found_where_each_device_is_better_at_something() -> None:
    graph = chain(4)
    left = device("Left", 0.5, 1.0, script={"execute": slow_at("add_2", "add_3")})
    right = device("Right", 0.5, 1.0, script={"execute": slow_at("add_0", "add_1")})
    only = ["Left", "Right"]
    with runtime_of(left, right, preference="fastest", backends=only) as runtime:
        network = runtime.get_network(runtime.load_network(graph))
        placement = network.placement
    assert placement is not None
    assert [layer.backend for layer in placement.layers] == ["Left", "Left", "Right", "Right"]
    assert placement.alternatives[0].name == "mixed"


def test_the_same_question_is_answered_without_running_anything() -> None:
    answers = []
    for _ in range(2):
        first, second = slow("First", 0.005), device("Second", 0.9, 1.0)
        with runtime_of(first, second, preference="fastest") as runtime:
            network = runtime.get_network(runtime.load_network(chain()))
            placement = network.placement
        assert placement is not None
        answers.append((placement, len(first.calls_of("execute"))))
    (measured, num_runs), (remembered, num_runs_then) = answers
    assert num_runs > 0
    assert num_runs_then == 0
    assert (measured.basis, remembered.basis) == ("measured", "remembered")
    assert measured.alternatives == remembered.alternatives
    assert measured.layers_by_backend == remembered.layers_by_backend


def another_version() -> list[ScriptedBackend]:
    declared = declaration(version="2.0")
    return [ScriptedBackend("First", declared=declared), device("Second", 0.9, 1.0)]


def refusing() -> list[ScriptedBackend]:
    return [slow("First", 0.0, operations=[Activation]), device("Second", 0.9, 1.0)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("others", [another_version, refusing])
def test_another_question_is_measured_anew(others: Callable[[], list[ScriptedBackend]]) -> None:
    usual = [slow("First", 0.0), device("Second", 0.9, 1.0)]
    for devices, basis in ((usual, "measured"), (usual, "remembered"), (others(), "measured")):
        with runtime_of(*devices, preference="fastest") as runtime:
            assert placement_of(runtime, diamond()).basis == basis


@pytest.mark.sampled(3)
@pytest.mark.parametrize("damage", [b"", b"{}", b"\xff" * 100])
def test_an_answer_that_is_damaged_is_measured_again(
    tmp_path: Path, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    devices = slow("First", 0.002), device("Second", 0.9, 1.0)
    for basis in ("measured", "measured", "remembered"):
        with runtime_of(*devices, preference="fastest") as runtime:
            assert placement_of(runtime, chain()).basis == basis
        if not caplog.records:
            (answer,) = tmp_path.glob("devices/*/answers/*.json")
            answer.write_bytes(damage)
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


def test_a_failing_candidate_is_reported_and_never_chosen() -> None:
    bad = device("Bad", 0.001, 1.0, script={"execute": raises(BackendError("it is too hot"))})
    with runtime_of(bad, device("Good", 0.9, 1.0), preference="fastest") as runtime:
        placement = placement_of(runtime, chain())
    assert "Bad" not in placement.layers_by_backend
    (failed,) = [alternative for alternative in placement.alternatives if alternative.failure]
    assert (failed.name, failed.measured_us) == ("Bad", None)
    assert "it is too hot" in failed.failure


@pytest.mark.slow
def test_a_candidate_that_hangs_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("armpy_tools.placement.trials.DEADLINE_S", 0.3)
    goes_on = threading.Event()
    hanging = device("Hanging", 0.001, 1.0, script={"execute": in_turn(waits(goes_on))})
    with runtime_of(hanging, device("Good", 0.9, 1.0), preference="fastest") as runtime:
        placement = placement_of(runtime, chain())
        goes_on.set()
    assert "Hanging" not in placement.layers_by_backend
    (failed,) = [alternative for alternative in placement.alternatives if alternative.failure]
    assert failed.name == "Hanging"


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
        "measured_us": None,
        "is_chosen": True,
        "failure": "",
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


def test_a_layer_without_a_backend_is_an_error_as_ever() -> None:
    only = device("Only", 1.0, 1.0, operations=[Activation])
    with (
        runtime_of(only, preference="fastest", backends=["Only"]) as runtime,
        pytest.raises(BackendCapabilityError, match="no allowed backend supports this layer: Only"),
    ):
        runtime.load_network(chain())


def test_networks_for_other_shapes_are_questions_of_their_own() -> None:
    devices = slow("First", 0.002), device("Second", 0.9, 1.0)
    with runtime_of(*devices, preference="fastest") as runtime:
        network = runtime.get_network(runtime.load_network(chain(2, (None,))))
        bases = []
        for size in (3, 5, 3):
            network.run([np.ones(size, np.float32)])
            assert network.placement is not None
            bases.append(network.placement.basis)
    assert bases == ["measured", "measured", "measured"]  # the third is the first one's plan


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
    assert placement.basis == "measured"


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
    devices = slow("First", 0.002), device("Second", 0.9, 1.0)
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


def test_a_preference_that_is_none_is_refused() -> None:
    text = "preference: the value is not allowed. Expected 'preference', 'npu',"
    for make in (RuntimeOptions, OptimizerOptions):
        with pytest.raises(InvalidArgumentError, match=text):
            make(preference="quickest")  # type: ignore[arg-type]
    assert RuntimeOptions(preference="fastest").preference is Preference.FASTEST  # type: ignore[arg-type]


def test_a_backend_that_fails_later_loses_its_layers_by_the_figures() -> None:
    runs: list[int] = []

    def fails_later(call: Call) -> object:
        runs.append(1)
        if is_broken:
            raise BackendError("it broke")
        return call.right()

    is_broken = False
    first = device("First", 0.1, 1.0, script={"execute": fails_later})
    second = slow("Second", 0.001)
    with runtime_of(first, second, preference="fastest") as runtime:
        properties = NetworkProperties(on_failure="next")
        network = runtime.get_network(runtime.load_network(chain(), properties))
        assert network.placement is not None
        assert "Second" not in network.placement.layers_by_backend
        is_broken = True
        (output,) = network.run([X])
        np.testing.assert_array_equal(output, X + 3)
